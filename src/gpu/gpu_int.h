/* gpu_int.h: what the files of gpu/ share.
 *
 * A `gpu_card` is what all work on one card shares: context, heap, segment cache, code, registered
 * host memory. A `gpu` is a worker on a card: streams, argument block, reports, events, all of the
 * one step that is inside (gpu_enter to gpu_leave). The card's parts have short locks, taken in this
 * order: card, then code or heap or pins. After a CUDA error that poisons the context the card is
 * `broken`; when the last worker has left, the next one resets the context, and blocks that were
 * handed out before carry an older epoch and are only forgotten. */
#ifndef WF_GPU_GPU_INT_H
#define WF_GPU_GPU_INT_H

#include "base/thread.h"
#include "defs/refusal.def"
#include "defs/kargs.h"
#include "defs/kernel.def"
#include "gpu/cu_api.h"
#include "gpu/gpu.h"
#include "run/device.h"

#define X(A, name, text, options) MODULE_##name,
enum module_no { WF_KERNEL_MODULES(X, ) MODULE_COUNT };
#undef X
#define X(A, name, module, text, threads) KERNEL_##name,
enum kernel_no { WF_KERNELS(X, ) KERNEL_COUNT };
#undef X

/* The last worker of a card is not for statements: it brings columns in the background. */
enum { GPU_STREAMS = 4, GPU_STEP_WORKERS = 4, GPU_MOVER = GPU_STEP_WORKERS, GPU_WORKERS_MOST };
enum { GPU_ALIGN = 256, VM_BLOCK = 128, WOVEN_BLOCK = 256 };

/* --- device memory (gpu_memory.c) --- */

struct gpu;
struct gpu_card;
struct gpu_image;
struct gpu_slab;
struct gpu_block {
    u64 addr;
    i64 bytes;
    struct gpu_slab *slab;
    struct buffer *host;           /* it lies in memory of the host; NULL = on the card */
    struct gpu_block *prev, *next; /* neighbours in the slab, or among those of the host */
    struct gpu_block *free_prev, *free_next;
    u64 epoch;
    b8 is_free;
};
struct gpu_heap {
    struct mutex lock;
    struct gpu_slab *slabs;
    struct gpu_block *free_list;
    struct gpu_block *away; /* blocks in memory of the host */
    i64 slab_bytes; /* mapped in */
    i64 used_bytes; /* handed out */
    i64 peak_bytes; /* the most of it since gpu_heap_mark */
    i64 budget_bytes;
    i64 unit_bytes; /* size of a common slab */
};
/* NULL when the budget or the card refuses; never evicts. 256-byte aligned, at least 64 readable
 * bytes after the end. */
struct gpu_block *gpu_heap_alloc(struct gpu_card *card, i64 bytes);
/* The block in use that an address lies in; false when there is none. */
bool gpu_heap_find(struct gpu_card *card, u64 addr, u64 *out_addr, i64 *out_bytes);
/* Starts to watch for the peak anew; returns the last one. Workers of a card share it. */
i64 gpu_heap_mark(struct gpu_card *card);
void gpu_heap_free(struct gpu_card *card,
                   struct gpu_block *block); /* NULL is fine; from any thread */
void gpu_heap_fini(struct gpu_card *card, bool context_alive);
i64 gpu_heap_available(
    struct gpu_card *card); /* bytes that could still be handed out, fragmentation aside */
/* Evicts cached segments as needed; ERR_DEVICE_MEMORY names bytes, budget and gpu_memory. Where the
 * card is too small for the step (TIGHT_SPILL), in host memory that it reaches over the bus. */
FALLIBLE gpu_alloc(struct gpu *g, i64 bytes, struct gpu_block **out, struct error *err);
/* In host memory that the card reaches. */
FALLIBLE gpu_alloc_away(struct gpu *g, i64 bytes, struct gpu_block **out, struct error *err);
/* On the card, or there: for rows that are written one after the other, and should not make a scan
 * over the bus begin again. */
FALLIBLE gpu_alloc_rows(struct gpu *g, i64 bytes, struct gpu_block **out, struct error *err);
/* On the card whatever the step. */
FALLIBLE gpu_alloc_here(struct gpu *g, i64 bytes, struct gpu_block **out, struct error *err);

struct pinned { /* host memory the card can reach */
    u8 *host;
    u64 addr;
    i64 bytes;
};
/* As gpu_alloc, but NULL and no error when memory is short. */
struct gpu_block *gpu_alloc_try(struct gpu *g, i64 bytes);
FALLIBLE gpu_pinned_reserve(struct gpu *g, struct pinned *p, i64 bytes, struct error *err);
void gpu_pinned_free(struct gpu *g, struct pinned *p);

/* --- host memory of results (gpu_host.c) --- */

struct gpu_host;
struct gpu_host *gpu_host_open(const struct cu_api *api, struct memory *mem); /* NULL: refused */
/* Frees the pool, or leaves it to the last buffer that is still out. */
void gpu_host_close(struct gpu_host *h);
/* Between attach and detach the memory is registered with the context. */
void gpu_host_attach(struct gpu_host *h, void *ctx);
void gpu_host_detach(struct gpu_host *h);
/* A block the card copies to directly; accounted to `mem`. pool: who makes fresh pages present; NULL
 * = nobody. NULL when refused. */
struct buffer *gpu_host_buffer(struct gpu_host *h, struct memory *mem, struct pool *pool,
                               i64 bytes);
/* Where the card reaches such a block; 0 = nowhere. */
u64 gpu_host_addr(struct gpu_host *h, const struct buffer *buf);
void gpu_host_give_back(void *host, i64 bytes); /* idle memory, to the system */
/* A statement's block is the database's from now on; its bytes, as the budget counts them. */
i64 gpu_host_own(struct buffer *buf, struct memory *database);
i64 gpu_host_size(const struct buffer *buf);

/* --- cached segments and pinned buffers (gpu_cache.c) --- */

struct cached {
    u64 tablet_id;
    u32 col;
    struct gpu_block *block;
    u64 data, nulls, text;         /* addresses; 0 = none */
    u64 used_by[GPU_WORKERS_MOST]; /* each worker's last step that used it */
    u64 load_no;                   /* the step that put it there */
    b8 loading;                    /* its copy is not queued yet */
    struct cached *chain;
    struct cached *newer, *older;
};
struct gpu_cache {
    struct cached **slots;
    i64 slot_count, count, bytes;
    u64 drop_no;   /* segments dropped so far */
    u64 change_no; /* segments dropped and added */
    struct cached *newest, *oldest;
};
struct cached_at { /* where a step found a segment */
    u64 tablet_id;
    u64 addr;
    u32 col;
};
/* What of a tablet's column a kernel reads. Zero bytes: constant, or no NULLs. */
struct seg_bytes {
    const void *data;
    i64 data_bytes;
    const void *valid;
    i64 valid_bytes;
    const void *text; /* of ENC_STR */
    i64 text_bytes;
    i64 total_bytes;
    struct buffer *data_buffer, *valid_buffer, *text_buffer; /* what they lie in; NULL: unknown */
};
struct seg_bytes gpu_segment_bytes(const struct tablet *tablet, u32 col, i64 rows);
bool gpu_cache_has(struct gpu_card *card, u64 tablet_id, u32 col);
/* The segment on the card, copied there on the first stream when missing; work on that stream comes
 * after the copy, whoever queued it. *moved counts bytes. It stays until the step ends. */
FALLIBLE gpu_cache_load(struct gpu *g, const struct tablet *tablet, u32 col, i64 rows,
                        struct cached **out, i64 *moved, struct error *err);
/* The segment is still there, and its copy is done. With the card's lock, like the next. */
bool gpu_cache_holds(const struct gpu *g, const struct cached_at *at);
/* It was used by these steps of the workers. */
void gpu_cache_touch(struct gpu_card *card, const struct cached_at *at,
                     const u64 used_by[GPU_WORKERS_MOST]);
i64 gpu_cache_evict(struct gpu *g,
                    i64 bytes); /* least recently used first, none that a step uses; bytes freed */
i64 gpu_cache_evictable(struct gpu *g); /* and what gpu_tries_drop would */
/* The same, but of those that no step has used since step `run_no` of the card. */
i64 gpu_cache_evict_older(struct gpu *g, i64 bytes, u64 run_no);
/* With the card's lock: bytes of a version's column, and those of them that are not there. */
void gpu_cache_count(struct gpu_card *card, const struct table_version *version, u32 col,
                     i64 *out_bytes, i64 *out_missing);
void gpu_cache_fini(struct gpu_card *card); /* nobody is inside */
/* Registers a buffer for direct transfer; false when the system refuses. */
bool gpu_pin(struct gpu *g, struct buffer *buf);
void gpu_unpin_all(struct gpu_card *card);
/* Copies host bytes to the card: directly when pinned, else through staging memory. */
FALLIBLE gpu_upload(struct gpu *g, u64 dst, const void *src, i64 bytes, struct buffer *in,
                    void *stream, struct error *err);

/* Segments that this step has loaded so far are not what they should be. */
void gpu_cache_forget(struct gpu *g);

/* --- columns over the bus (gpu_bring.c) --- */

struct gpu_bring {
    const struct tablet *tablet;
    u32 col;
    i32 stream;             /* of the worker's */
    i64 rows;
    u64 data, nulls, text;  /* where it goes, on the card */
};
/* Queues what brings a column to the card; *moved counts the bytes that cross. What it crosses from is held until the
 * step ends, or until another one that has no room beside it has been asked for: what is queued is waited for then. */
FALLIBLE gpu_bring(struct gpu *g, const struct gpu_bring *b, i64 *moved, struct error *err);
/* Once all has been waited for: XX001 where it was not as it must be. */
FALLIBLE gpu_bring_check(struct gpu *g, struct error *err);
void gpu_bring_end(struct gpu *g); /* with the step */

/* --- columns that are missed (gpu_move.c) --- */

/* A column of a version of a table: where it is, and what its absence cost so far. */
struct gpu_column {
    u64 version_id; /* 0 = a free place */
    u32 col;
    b8 known;      /* bytes are those of count `change_no` of the cache's */
    b8 moving;     /* it is in the queue */
    u8 refusals;   /* it was asked for, and there was no room */
    u64 change_no;
    i64 bytes, missing_bytes;
    f64 lost_ns;
    u64 since_no; /* steps of the card when the first of it was lost */
    u64 used;     /* when, by a clock of its own */
};
enum { COLUMN_SETS = 128, COLUMN_WAYS = 4 };
struct gpu_move;
struct gpu_moves {
    struct mutex lock; /* of the queue; before the card's */
    struct cond wake;
    struct gpu_column columns[COLUMN_SETS][COLUMN_WAYS]; /* these by the card's lock */
    u64 clock;
    struct gpu_move *queue; /* oldest first */
    struct thread *thread;
    b8 stop;
    _Atomic i64 moved_count;   /* columns that were brought whole */
    _Atomic i64 dropped_count; /* those that were given up */
    _Atomic i32 busy;          /* columns queued or on their way */
};
void gpu_moves_init(struct gpu_card *card);
/* Ends the thread, whatever it is doing, and forgets what it had to do. Without the card's lock. */
void gpu_moves_stop(struct gpu_card *card);
void gpu_moves_fini(struct gpu_card *card);
struct gpu_column gpu_column_of(struct gpu_card *card, const struct table_version *version, u32 col);
/* A statement lost so much time because it is not there, and bringing it would cost so much: once
 * more has been lost than that, it is brought in the background. */
void gpu_column_lost(struct gpu_card *card, struct table_version *version, u32 col, f64 lost_ns,
                     f64 move_ns);

/* --- compiled code (gpu_code.c) --- */

enum code_state { CODE_QUEUED, CODE_COMPILED, CODE_LOADED, CODE_FAILED };
struct code {
    u64 key;
    char *text; /* freed once loaded: an image that was not made from it here may be refused */
    _Atomic i32 state;
    char *image;
    i64 image_bytes;
    b8 found;    /* the image was compiled ahead of time or comes from the disk */
    b8 quick;    /* compiled in a hurry; the same text, compiled well, follows */
    b8 queued;   /* it is, or was, in the queue */
    b8 looked;   /* on the disk, before it was queued */
    i32 waiters; /* steps that cannot go on without it */
    i64 gain;    /* what steps lost so far for want of it, in rows times opcodes */
    char log[400];
    void *module;
    void *function; /* woven code: its kernel */
    i32 regs;
    struct code *next;
    struct code *queue_next;
};
enum { COMPILERS_MOST = 16 };
struct gpu_made { /* a kernel of a template */
    u64 key;
    struct code *code;
    void *function;
    struct gpu_made *next;
};
struct gpu_codes {
    struct mutex lock; /* of all that follows and of every code; not held while compiling */
    struct cond ready; /* state changes and new work */
    struct code *list;
    struct code *queue;
    i32 queue_count;
    i32 busy; /* being compiled */
    struct thread *threads[COMPILERS_MOST];
    i32 thread_count;
    _Atomic b8 stop;
    b8 has_machine;       /* the virtual machine is there without being compiled */
    _Atomic b8 slow_only; /* this NVRTC does not know how to hurry */
    u64 base_key;         /* of everything that goes into a cubin besides its text */
    struct code *modules[MODULE_COUNT];
    _Atomic(void *) kernels[KERNEL_COUNT];
    struct gpu_made *made;
    _Atomic i64 compile_count;
    _Atomic i64 disk_hits;
};
void gpu_codes_init(struct gpu_card *card);
void gpu_codes_fini(struct gpu_card *card, bool context_alive);
/* Forgets loaded modules, keeps compiled images: after a reset of the context. */
void gpu_codes_unload(struct gpu_card *card);
/* The kernels of a module compiled ahead of time for this chip, or as PTX for an older one; NULL
 * when there are none. The simt driver always compiles the text. */
const struct gpu_image *gpu_image_find(const struct gpu_card *card, const char *module);
/* Waits for a compiler if need be; a statement (NULL: none) may be cancelled meanwhile. */
FALLIBLE gpu_kernel(struct gpu_card *card, enum kernel_no kernel, struct exec *x, void **out,
                    struct error *err);
/* A kernel of kernels/<module>.h, compiled after the lines `defines`; kept like woven code. */
FALLIBLE gpu_template_function(struct gpu_card *card, struct exec *x, const char *module,
                               const char *defines, const char *kernel, void **out);
/* Woven code. */
enum woven_how {
    WOVEN_LATER,   /* queue it; no function until it is there */
    WOVEN_WAIT,    /* compile it well, now */
    WOVEN_QUICKLY, /* the best there is, at least a quick one, now; a better one follows */
};
struct woven_ask {
    const struct text *text;
    enum woven_how how;
    i64 gain;       /* see struct code; 0: a quick one is good enough */
    struct exec *x; /* may be cancelled while it waits */
    b8 is_quick;    /* out */
    b8 is_coming;   /* out: a better one is being compiled */
};
FALLIBLE gpu_woven(struct gpu_card *card, struct woven_ask *ask, void **out, struct error *err);
/* Compiles it quickly, in the background: a step of this statement is likely to ask for it. */
void gpu_woven_begin(struct gpu_card *card, const struct text *text);

/* --- NVRTC (gpu_compile.c) --- */

struct compile_job {
    const char *text;
    const char *const *options;
    i32 sure_count;   /* options that every NVRTC knows */
    i32 more_count;   /* behind them: those without which it only takes longer */
    _Atomic b8 *stop; /* gives up once it is set, where NVRTC can; NULL: never */
    b8 refused;       /* out: it did not know them all */
};
/* Compiles without a device; for tests and EXPLAIN, too. `log` says why not. */
bool gpu_compile(const struct cu_api *api, struct compile_job *job, char **out_image,
                 i64 *out_bytes, char log[400]);
/* From the folder of compiled kernels; false: not there. */
bool gpu_code_read(struct gpu_card *card, struct code *code);
void gpu_code_compile(struct gpu_card *card, struct code *code); /* here and now */
/* With the codes' lock, which is released while something is compiled or waited for. */
void gpu_code_enqueue(struct gpu_card *card, struct code *code);
/* Until it is compiled or has failed, or the statement (NULL: none) is cancelled. Tells the
 * statement's session when that takes long. */
FALLIBLE gpu_code_wait(struct gpu_card *card, struct code *code, struct exec *x);
void gpu_compilers_stop(struct gpu_card *card); /* without finishing what is being compiled */

/* --- prepared steps (gpu_kept.c) --- */

struct gpu_step;
struct gpu_kept {
    struct memory mem; /* of the card's; no limit of its own */
    struct gpu_step *slots[256];
    struct gpu_step *newest, *oldest;
    struct gpu_scan *scans; /* of all steps */
    i64 found_count; /* scans that a step did not have to make */
    u64 settled_no;  /* the card's count of steps when their uses were last told to the cache */
};
void gpu_kept_init(struct gpu_card *card);
void gpu_kept_fini(struct gpu_card *card); /* with the card's lock, or alone */
/* Tells the cache which segments kept scans used. With the card's lock. */
void gpu_kept_settle(struct gpu_card *card);
/* Those that no step uses: their memory on the card is wanted. */
bool gpu_kept_drop_scans(struct gpu_card *card);

/* --- cards and their workers (gpu_card.c) --- */

enum { GPU_FITS = 64 };
struct gpu_fit { /* how many blocks of a launch a multiprocessor holds */
    void *function;
    u32 threads;
    i32 per_sm;
    i64 shared_bytes;
};

/* What the workers of one card share. */
struct gpu_card {
    const struct cu_api *api;
    struct memory *mem;
    struct mutex lock;                     /* of the cache, and of who is inside */
    struct cond changed;                   /* somebody left, or a segment is there */
    struct gpu *workers[GPU_WORKERS_MOST]; /* NULL = none of this number */
    i32 worker_count;
    u64 run_count;     /* steps so far */
    i32 inside;        /* workers that are in a step */
    i32 inside_most;   /* at one time so far */
    i32 waiting_alone; /* steps that want the card for themselves */
    b8 alone;          /* one has it */
    i32 ordinal;
    u32 space; /* of device.h */
    void *ctx;
    char chip_name[100];
    i32 sm_count, chip, shared_max;
    i32 l2_bytes; /* of the second-level cache */
    i64 total_bytes;
    i64 budget_asked;
    _Atomic b8 broken;
    u64 epoch;
    struct gpu_heap heap;
    struct gpu_cache cache;
    struct gpu_kept kept;
    struct gpu_codes codes;
    struct gpu_host *host;
    struct gpu_moves moves;
    _Atomic(struct tries *) tries; /* in which something of this card is kept; NULL = nothing ever was */
};

struct gpu_grid { /* of a launch */
    i64 blocks;
    u32 threads;
    i64 shared_bytes;
};

/* How a step runs that the card has no room for. It is tried as the settings say; each further level
 * gives up more speed. */
enum gpu_tight {
    TIGHT_NOT,
    TIGHT_STREAM, /* columns of tables go over the bus instead of staying on the card */
    TIGHT_PART,   /* and groups in a hash table are made in several passes, by parts of their keys */
    TIGHT_SPILL,  /* and rows, indexes, groups and heaps may lie in memory of the host */
    TIGHT_MAP,    /* and columns are read where they are: not even a batch of them fits */
    TIGHT_ALL,    /* or copied to memory of the host that the card reaches */
    TIGHT_COUNT
};
/* What earlier tries of a step found out. */
struct gpu_known {
    i64 capacity, made_bytes;
    i64 groups[PIPE_AGGS];
    b8 interns_full, out_of_order;
};

/* What a step that is queued has of its own until all are settled: see gpu_queue.c. */
enum { QUEUE_STEPS = 32 };
struct gpu_seat {
    struct pinned args, reports;
    struct gpu_block *args_block;
};
struct job;
struct build;
struct sorter;
struct order_step;
struct gpu_queued {
    u32 step_no;
    const struct step *step;
    struct job *job; /* or */
    struct build *build;
    struct sorter *sort;
    struct order_step *order; /* any other */
    u32 slot, slot_count; /* of its variables, in struct kqueue */
};
enum { QUEUE_WANTED = 8, QUEUE_WANTED_BYTES = 256 << 10 };
struct gpu_wanted { /* rows of a variable that come when all is settled */
    u32 var;
    i64 at; /* behind those of others */
    struct kfetch fetch;
    i64 entries, bytes; /* of an interner: as many of each, one behind the other */
};
struct gpu_queue {
    i32 count;
    u32 slot_count;
    i64 event_count;
    i64 rows; /* of the sources so far */
    struct gpu_queued items[QUEUE_STEPS];
    struct gpu_seat seats[QUEUE_STEPS];
    struct gpu_block *block; /* struct kqueue */
    struct pinned seen;
    i32 wanted_count;
    i64 wanted_bytes;
    struct gpu_wanted wanted[QUEUE_WANTED];
    struct pinned fetched;
};

/* A worker: one step at a time, or steps that are queued, on streams of its own. */
struct gpu {
    struct device device;
    struct gpu_card *card;
    struct pins pins; /* columns of the database file that cross the bus, until the step ends */
    struct gpu_block *packed[GPU_STREAMS]; /* those that cross it packed, on the card; until then, too */
    struct pinned bad;        /* u32: what was unpacked cannot be */
    i64 packed_bytes;         /* that crossed it so, for the step */
    const struct cu_api *api; /* the card's */
    i32 number;               /* among the card's */
    u64 run_no;               /* of the step */
    i64 waits;                /* for the card, during it */
    b8 inside;                /* in a step; by the card's lock */
    b8 had_company;           /* another worker was inside during it */
    enum gpu_tight tight;     /* of the step */
    b8 may_spill;             /* to memory of the host, rather than leave the step to it */
    struct gpu_known known;
    i64 spilled_bytes;        /* of the step's blocks, in memory of the host */
    struct pool *pool;        /* of the step; NULL = none */
    void *streams[GPU_STREAMS];
    void **events; /* pairs around launches */
    i64 event_count, event_cap;
    struct pinned args;                   /* the argument block of the step */
    struct gpu_block *args_block;         /* and on the card */
    struct pinned reports;                /* what kernels reported */
    struct gpu_block *slots[GPU_STREAMS]; /* streamed columns */
    struct gpu_block *rows[GPU_STREAMS];  /* rows on their way to the host */
    u64 slots_run_no;                     /* the step that uses both */
    void *slot_done[GPU_STREAMS];         /* events: a slot's batch is computed and reported */
    void *slot_down[GPU_STREAMS];         /* and its rows are on the host */
    void *down;                           /* the stream of rows to the host */
    void *uploaded;                       /* event: the segments loaded so far are there */
    struct gpu_fit fits[GPU_FITS];
    void *widest; /* the kernel of the widest launch since gpu_enter, the last of equal ones */
    struct gpu_grid widest_grid;
    const void *foreseen; /* the program whose texts were compiled in advance */
    struct gpu_queue queue;
};
/* Turns a driver code into ERR_GPU (or ERR_DEVICE_MEMORY); anything but 0 marks the card broken. */
FALLIBLE gpu_check(struct gpu_card *card, int code, const char *what, struct error *err);
#define CU(call) TRY(gpu_check(g->card, (call), #call, err))
#define CARD(call) TRY(gpu_check(card, (call), #call, err))
/* Waits until no other step is inside this worker; context current and sound. */
FALLIBLE gpu_enter(struct gpu *g, struct error *err);
/* Once all other workers have left; none enters before this one leaves. */
FALLIBLE gpu_enter_alone(struct gpu *g, struct error *err);
/* Whether another worker was inside meanwhile: memory may have been short only because of it. */
bool gpu_leave(struct gpu *g);
/* Waits for a stream or an event; counted for the step. */
static inline int gpu_sync(struct gpu *g, void *stream) {
    g->waits++;
    return g->api->stream_synchronize(stream);
}
static inline int gpu_sync_event(struct gpu *g, void *event) {
    g->waits++;
    return g->api->event_synchronize(event);
}
void gpu_wait(struct gpu *g); /* for all that this worker queued; errors have been met before */
/* A card with one worker. NULL: the reason is in `why`. */
struct gpu *gpu_card_open(struct memory *host_mem, i64 budget_bytes, i32 number, char why[300]);
/* One more worker of the card; NULL when it has as many as it can have, or memory is short. `mover`:
 * the one in the background, of which there is one. */
struct gpu *gpu_worker_open(struct gpu_card *card, bool mover, char why[300]);
void gpu_worker_close(struct gpu *g); /* the last one closes the card */
FALLIBLE gpu_event(struct gpu *g, i64 n, void **out, struct error *err); /* event number n */
/* How many blocks a multiprocessor holds, asked once per function and shared memory. The limit of
 * 48 KB without asking counts the kernel's own arrays, too. */
FALLIBLE gpu_blocks_per_sm(struct gpu *g, void *function, u32 threads, i64 shared, i32 *out,
                           struct error *err);
FALLIBLE gpu_launch(struct gpu *g, void *function, struct gpu_grid grid, void *stream,
                    const void *args, struct error *err);
/* Of the widest launch since gpu_enter; zeros where there was none or the driver does not say. */
struct kernel_use gpu_widest_use(struct gpu *g);

/* --- how fast it is (gpu_rates.c) --- */

/* GB/s, inside a step; 0 when it could not be measured: there was no room, or a call failed. */
void gpu_measure_bus(struct gpu *g, i64 bytes, f64 *out_up, f64 *out_down);
f64 gpu_measure_mapped(struct gpu *g, i64 bytes); /* a kernel that reads memory of the host */
struct card_rates {
    f64 read, copy; /* GB/s; copy: read + written */
    f64 places;     /* a nanosecond, anywhere in these bytes */
};
void gpu_measure_card(struct gpu *g, i64 bytes, struct card_rates *out);
void gpu_rates(struct device *dev, struct exec *x, struct device_rates *out);
/* Given instead of measured, while no step runs: for who wants to know how a choice depends on them. */
void gpu_rates_tell(i32 number, const struct device_rates *rates);

/* --- a pipeline prepared for launching (gpu_plan.c) --- */

struct u32_list {
    u32 *items;
    i64 count, cap;
};
struct gpu_plan_col {
    u32 var, col;
};
#define PACK_BITS 31 /* that index and lookup have for a row's number, less one */
#define PACK_FIELDS 8
/* Columns of few bits that an index has in place of row numbers (gpu_pack.c). */
struct gpu_pack {
    u32 index; /* variable */
    u32 bits, count;
    struct pack_field {
        u32 col;
        b8 loaded, nulls; /* what is asked of it */
        u8 shift, bits, null_shift;
        i128 lo, hi;
    } fields[PACK_FIELDS];
};
struct plan_pack { /* of a column of a plan */
    u32 index; /* + 1; 0 = it cannot be packed */
    struct pack_field field;
};
struct plan_limbs { /* words that are limbs of one exact sum: see struct klimbs */
    u16 reg, lsb;   /* registers */
    u32 word, count;
    i32 first;
    u16 code; /* FLIMB_F64 or FSQUARE_F64 */
};
struct gpu_plan_ahead {
    u32 lit;  /* the program's */
    u16 code; /* the opcode it is worked out for */
};
struct gpu_plan {
    const struct program *program;
    const struct pipeline *pipe;
    const struct sink *sink; /* the only one besides marks, or the first of several */
    const struct sink *rows[PIPE_AGGS];
    u32 rows_count;
    u32 rows_at[PIPE_AGGS];   /* their first columns among all */
    u32 rows_into[PIPE_AGGS]; /* the number of the variable; branches of a union have one */
    u32 into_count;
    const struct sink *aggs[PIPE_AGGS];
    u32 agg_count;
    struct plan_keeps { /* groups out of these bounds are dropped */
        const struct prune *items[AGG_KEEPS];
        u32 count;
    } keeps[PIPE_AGGS];
    struct u32_list lits;                /* program literals, by kernel number */
    VEC(struct gpu_plan_ahead) patterns; /* worked out ahead: their numbers follow */
    struct u32_list luts;                /* variables */
    VEC(struct gpu_plan_col) cols;
    struct plan_pack *packed_by; /* per column of those */
    struct u32_list indexes; /* variables */
    struct u32_list interns; /* variables */
    b8 adds_interns;         /* not only finds */
    u32 best_count;          /* INTERN that has a key */
    u16 *op_imm;             /* kernel number of every opcode's literal, table, column or index */
    VEC(struct kop) ops;
    u32 hoist_count;
    u16 *places;       /* of registers */
    u32 *first, *last; /* opcode that defines a register first, and the last that needs it */
    i64 slot_bytes;
    u32 tile_rows; /* VM_TILE_… */
    i32 max_live;
    b8 has_match, has_each;
    b8 *col_used; /* source columns that are loaded */
    b8 has_text;  /* some register holds text */
    i32 makes;    /* opcodes that make strings */
    VEC(struct plan_limbs) limbs;
    b8 *is_limb;     /* registers that are only part of those */
    b8 *is_word;     /* and those that FROUND or VARIANCE takes from columns */
    b8 has_words;    /* one of them is there */
    b8 *host_text;   /* registers of text that keep the host's address: only rows take them */
    u8 *count_after; /* by opcode: the place, + 1, where rows are counted behind it; 0 = none */
    u32 count_places;
    const char *woven_op; /* what the virtual machine lacks: an opcode, or the room; NULL: nothing */
};
/* Why something stays on the host; the texts are in refusal.def. */
enum gpu_refusal {
#define X(A, name, before, after, why) REFUSE_##name,
    WF_REFUSALS(X, )
#undef X
};
const char *gpu_refusal(struct arena *arena, enum gpu_refusal reason, const char *what);
/* gpu_pack.c: whether an index may have columns in place of row numbers. */
bool gpu_pack_find(const struct program *program, u32 index, struct gpu_pack *out);
void gpu_pack_cols(struct arena *arena, struct gpu_plan *plan);
bool gpu_pack_is(const struct exec *x, const struct gpu_plan *plan, i64 col); /* whether it has, now */
struct kcol gpu_pack_col(const struct plan_pack *by);
/* NULL, or why the GPU cannot run it; texts live in `arena`. counts: rows are
 * counted at places, for EXPLAIN ANALYZE. */
const char *gpu_plan_make(struct arena *arena, const struct program *program,
                          const struct pipeline *pipe, bool counts, struct gpu_plan *out);
/* The opcode behind which a mark's rows can be counted; -1: as many as the source has. */
i64 gpu_counted_behind(const struct pipeline *pipe, u32 op);
/* Of the pipeline's sinks of that kind. */
u32 gpu_sink_number(const struct pipeline *pipe, u32 sink);
/* What WF_OPS_AHEAD makes of a literal: the automaton of a pattern, the changes of a zone, the parts of
 * a template. Empty: a kernel cannot have it. */
struct sv gpu_ahead_table(struct exec *x, const struct gpu_plan_ahead *ahead);
/* Opens a scope that END closes. */
bool gpu_op_guards(u16 code);
/* Looks every row that gets there up in an index. */
bool gpu_op_looks_up(const struct pipeline *pipe, u32 op);

bool gpu_op_repeats(u16 code); /* what follows, once a match: MATCH, MEET */
/* The runs that a MEET walks: register, index, column of the values. */
struct meet_list {
    u16 reg, index, col;
};
u32 gpu_meet_lists(const struct gpu_plan *plan, u32 at, struct meet_list lists[MEET_LISTS_MOST]);
bool gpu_op_adds(const struct op *op); /* INTERN or INTERN2 that may add */

struct weave_col {      /* the layout of a source column */
    u8 form, null_form; /* enum seg_form, null_form */
};
/* The plan's opcodes with loads that know their form. */
void gpu_plan_forms(const struct gpu_plan *plan, const struct weave_col *cols, struct kop *ops);

/* --- groups (gpu_cells.c, gpu_agg.c) --- */

enum { AGG_FIELDS = 40, AGG_CELLS = 32 };
/* Words in cells of each thread's own: see gpu_cells.c. */
struct agg_field {
    u8 op; /* enum word_op */
    u8 cell, shift, bits;
    b8 is_signed;
    b8 short_value; /* what is added has at most 32 bits and no sign */
};
struct agg_cells {
    i64 rows; /* of a thread, after which sums may overflow */
    u32 field_count;
    struct agg_field
        fields[AGG_FIELDS]; /* by word; behind them touches, where the state has a head */
    u32 count;
    struct agg_cell {
        b8 narrow; /* 32 bits instead of 64 */
        u32 place; /* among those of its width */
    } cells[AGG_CELLS];
    u32 wide_count, narrow_count;
};
/* False: words that cells cannot hold. */
bool gpu_agg_cells(const struct gpu_plan *plan, const struct sink *sink, bool head, i64 rows,
                   struct agg_cells *out);
i64 gpu_agg_cell_bytes(const struct agg_cells *cells); /* of a block, for a slot */
/* The values that keys can have at this execution, a subset of those the program allows for. */
struct range gpu_key_range(const struct exec *x, const struct gpu_plan *plan,
                           const struct sink *sink);
/* A word whose total is not 0 where there was a row; -1: none. */
i32 gpu_touch_word(const struct gpu_plan *plan, const struct sink *sink);
/* Whether all words of a group are sums that so many rows do not bring to 2^32. */
bool gpu_words_narrow(const struct gpu_plan *plan, const struct sink *sink, i64 rows);

struct agg_room { /* what the form of a table depends on besides the pipeline */
    i64 rows;     /* of the source */
    i64 groups;   /* known to be needed */
    i64 memory_bytes;
    i64 shared_max;
    i64 sharers; /* aggregations that share a block's memory */
    b8 is_simt;
    b8 in_runs; /* rows may come in the order of the key, if the sink says so */
    b8 few;     /* of the source's rows are expected to be grouped */
};
struct agg_shape {
    struct kagg agg;
    struct agg_cells cells;
    i64 own_bytes; /* of a block, in cells of each thread's own; 0 = not so */
    i64 copy_bytes; /* of all copies of a table at most */
    i32 run_rows;  /* of a thread, where rows come in the order of their key; 0 = not so */
    u32 front;     /* slots of a block's own table in front of the one that all share; 0 = none */
    b8 copies;     /* tables of the block's own */
    b8 numbered;   /* keys are bounded by this execution alone: numbers of an interner, codes */
};
void gpu_agg_shape(const struct exec *x, const struct gpu_plan *plan, const struct sink *sink,
                   const struct agg_room *room, struct agg_shape *out);
struct weave;
void gpu_agg_weave(const struct agg_shape *shape, u32 number, struct weave *out);

/* --- the weaver (weave_text.c) --- */

#define WEAVE_LEAST_ROWS 65536 /* under auto, less is not worth a compiler's time, */
#define WEAVE_LEAST_RUNS 4     /* unless it ran so often before */

enum { WEAVE_FEW = 4 }; /* 0: many */
/* Which field of a packed key a bitmap is of, where it is of one. */
struct weave_field {
    u8 count;  /* fields of the key; 0: the bitmap is of all of it */
    u8 number; /* from the lowest on */
    u8 shift;  /* its first bit */
};
struct weave_index {
    u8 form; /* enum kindex_form */
    b8 unique;
    b8 filter; /* a bitmap stands before it */
    u8 few;    /* of the keys that may be asked for are there: how few, below WEAVE_FEW */
    struct weave_field field;
    b8 near;   /* there are bits of it for shared memory */
    b8 narrow; /* keys of 32 bits are told by them whether its bitmap has them */
    b8 most;   /* lookups mostly find their key */
    b8 apart;  /* of struct kindex */
};
struct weave { /* what the text depends on besides the opcodes */
    const struct gpu_plan *plan;
    const struct weave_col *cols;             /* per source column */
    const struct weave_index *indexes;        /* per plan index */
    const struct agg_cells *cells[PIPE_AGGS]; /* groups in each thread's own; NULL = not so */
    /* All from here to the first that is given back tells functions apart (gpu_kept.c). */
    struct weave_agg {
        u32 form, head, narrow; /* of struct kagg */
        u32 front;      /* of struct agg_shape */
        b8 copies;      /* of the table, in shared memory */
    } aggs[PIPE_AGGS];
    i32 run_rows;        /* of struct agg_shape */
    b8 gone;             /* the source has deleted rows */
    b8 ranged;           /* which rows of it are read, the device knows: struct krange */
    b8 lists;            /* there is shared memory for lists of rows, */
    b8 roomy;            /* and for what rows of several levels carry */
    b8 heavy;            /* rows may have so many matches that all blocks share them */
    u64 packed;          /* of the plan's first 64 columns of variables, those that indexes have */
    u64 pieces;          /* opcodes, by number, whose pattern is literals between %s: gpu_weave_pieces */
    i32 rows_per_thread; /* out */
    i64 shared_bytes;    /* out: dynamic, without the aggregation's tables */
};
void gpu_weave_text(struct weave *w, struct text *out);
/* Which of the first 64 opcodes are LIKE a literal that has nothing but literals between %s. */
u64 gpu_weave_pieces(const struct exec *x, const struct pipeline *pipe);
/* Rows of a thread where groups are runs: what they give is kept in registers until these have ended. */
i32 gpu_weave_run_rows(const struct gpu_plan *plan, const struct sink *sink);
const char *gpu_part_text(const char *part); /* includes that a part of op.def needs; NULL: none */

/* --- variables on the card (gpu_var.c) --- */

struct gpu_col {
    struct gpu_block *data, *nulls;
    u64 addr, nulls_addr;
};
/* Strings that a step made, on the card. They have their addresses on the host from the beginning, but
 * come there only when rows that may point to them do. */
struct gpu_far {
    _Atomic i32 refs;
    struct gpu_card *card;
    struct gpu_block *block; /* HEAP_HEAD, and the bytes */
    struct buffer *host;
    i64 used;
    _Atomic b8 is_here; /* on the host, too */
};
/* Bytes that views in a variable point to: a tablet's, or others that stay where they are on the
 * host as long as the statement, or as long as `heap`. */
struct gpu_str {
    const struct tablet *tablet; /* or NULL */
    u32 col;
    i64 rows;
    const u8 *host;
    i64 bytes;
    struct buffer *heap;     /* or NULL; counted */
    struct gpu_far *far;     /* heap's bytes are there, or NULL; counted */
    struct gpu_block *block; /* no tablet: the copy on the card, made when it is needed */
};
struct gpu_str_list {
    struct gpu_str *items;
    i64 count, cap;
};

/* A pipeline of a program, prepared: see gpu_kept.c. */
struct gpu_woven_form { /* a function, and what its text was made for */
    struct weave weave;
    void *function;
    struct gpu_woven_form *next;
};
struct gpu_scan;
enum { STEP_INTERNS = 8 }; /* whose size is remembered */
struct gpu_step {
    u64 program_id;
    b8 counts;  /* for EXPLAIN ANALYZE */
    b8 is_kept; /* others can find it */
    i32 users;
    struct arena arena;
    const char *refusal; /* NULL: the plan stands */
    _Atomic b8 has_code; /* a kernel was woven for it, well or in a hurry */
    _Atomic b8 elsewhere; /* it met a text that only the host reads */
    _Atomic i64 asked;   /* how often somebody wanted to know what it would cost */
    _Atomic i64 small_runs; /* over few rows, under auto */
    _Atomic i64 made_bytes, made_rows; /* of strings that it made last, and of the source */
    struct {
        _Atomic i64 entries, bytes;
    } interned[STEP_INTERNS]; /* by the plan's number: what an interner held when it ended last */
    struct gpu_plan plan;
    struct gpu_woven_form *woven;
    struct gpu_scan *scans; /* the one used last first */
    struct gpu_step *chain;
    struct gpu_step *newer, *older;
};
/* Made when it is not kept; given back with gpu_step_give. From any thread. */
FALLIBLE gpu_step_take(struct gpu_card *card, struct exec *x, const struct pipeline *pipe,
                       struct gpu_step **out);
void gpu_step_give(struct gpu_card *card, struct gpu_step *step);
/* The function woven for this before, and what the weaver gave back; NULL: there is none yet. */
void *gpu_step_woven(struct gpu_card *card, struct gpu_step *step, struct weave *weave);
void gpu_step_keep_woven(struct gpu_card *card, struct gpu_step *step, const struct weave *weave,
                         void *function);

/* Rows that lie together by parts of their keys, and an index over such rows, of which there is one
 * for a part at a time (gpu_parts.c). */
struct gpu_parts {
    u32 count;         /* a power of two; 0 = all at once */
    u32 index;         /* ROWS that look keys up: in which index; else NO_VAR */
    const u64 *starts; /* of the rows, count + 1, in the execution's arena */
};

struct gpu_var {
    struct gpu_card *card;
    u64 epoch;
    i64 bytes; /* of this struct */
    u32 col_count;
    i64 rows;
    u64 count_at; /* where the card knows how many there are, while `rows` is expected; 0 = they are so many */
    i64 capacity; /* ROWS: that its columns have room for; 0 = not known */
    struct gpu_col *cols;
    struct kindex index; /* INDEX: addresses on the card */
    struct gpu_block *slots, *heads, *index_rows, *filter, *near;
    i32 set_bits;     /* SET: of its keys; heads is what key_set_bits is on the host, unless there are */
    i64 set_places;   /* ... places of a table of keys, a power of two; see keys_add */
    u8 set_best;      /* enum key_best */
    i64 most_matches; /* of one key */
    struct gpu_block *grow; /* INDEX: what it takes to add rows to it, see gpu_grow.c; NULL = none are added */
    i64 grown_rows; /* that it has; more than there are: nobody knows which */
    i64 grown_keys; /* that it has slots for */
    f64 share;        /* of lookups that are expected to find their key */
    struct gpu_parts parts; /* ROWS, INDEX */
    struct weave_field field; /* that the filter is of */
    struct kept_trie *kept; /* its blocks are lent; NULL = they are its own */
    struct gpu_var *lender; /* the record that has them then */
    b8 packed;        /* INDEX: in place of row numbers it has what gpu_pack_find says */
    struct gpu_block *lut;
    i64 lut_len;
    struct gpu_str_list texts; /* in the execution's arena */
    struct kintern intern;     /* INTERN */
    struct gpu_block *intern_blocks[4];
    i64 intern_count, intern_bytes; /* in use */
    i64 intern_most, intern_most_bytes; /* that it is expected to hold; 0 = no idea */
};
/* The variable's record on the card, made when missing. */
FALLIBLE gpu_var_get(struct gpu *g, struct exec *x, u32 var, struct gpu_var **out);
FALLIBLE gpu_var_new(struct gpu *g, struct exec *x, u32 var, u32 col_count, struct gpu_var **out);
FALLIBLE gpu_var_loose(struct gpu *g, struct exec *x, u32 col_count,
                       struct gpu_var **out); /* a record that is no variable's */
void gpu_var_release(void *var);
/* gpu_tries.c: lent blocks are given back, those that were added go. */
void gpu_var_give_back(struct gpu_var *gv);
/* For later statements: see struct device. */
bool gpu_take_kept(struct device *dev, struct exec *x, const struct trie_chain *chain);
void gpu_keep(struct device *dev, struct exec *x, const struct trie_chain *chain);
/* Drops what is kept there, nobody uses and was used least recently: its bytes, 0 = there is none. */
i64 gpu_tries_drop(struct gpu_card *card);
i64 gpu_tries_idle(struct gpu_card *card); /* bytes of all that could go */
/* How many lookups in an index of so many rows are expected to find their key; `bits`: how many of
 * the keys that may be asked for are there, for those of which nothing was expected. */
f64 gpu_var_share(const struct exec *x, u32 index, i64 rows, f64 bits);
/* Column `col` of a variable on the card, uploaded from its chunks when it is not there yet. */
FALLIBLE gpu_var_col(struct gpu *g, struct exec *x, u32 var, u32 col, struct kcol *out, i64 *moved);
FALLIBLE gpu_var_lut(struct gpu *g, struct exec *x, u32 var, struct kcol *out, i64 *moved);
FALLIBLE gpu_var_index(struct gpu *g, struct exec *x, u32 var, struct kindex *out, i64 *moved);
/* That a lookup may go to. */
i64 gpu_index_bytes(const struct gpu_var *gv);
FALLIBLE gpu_var_fetch(struct gpu *g, struct exec *x, u32 var);
/* The columns become those that were made of them; what the host has of them is old. */
void gpu_var_replace(struct gpu_card *card, struct variable *v, struct gpu_var *gv,
                     const struct gpu_col *made);
/* Rows of a variable without NULLs that are on the host already, columns `stride` bytes apart: its
 * chunk. */
FALLIBLE gpu_var_take_few(struct gpu *g, struct exec *x, u32 var, i64 rows, const u8 *from,
                          i64 stride);
/* Queues all rows of a variable, where they take no more than so many bytes, to `to`, which is mapped; then, when
 * they are there, makes `rows` of them its chunk. False: they are many, or somewhere else. */
FALLIBLE gpu_var_send_few(struct gpu *g, struct exec *x, u32 var, i64 most, u64 to,
                          struct kfetch *out, bool *out_sent);
FALLIBLE gpu_var_take_sent(struct gpu *g, struct exec *x, u32 var, i64 rows, const struct kfetch *sent,
                           const u8 *from);
/* Queues copies of rows [0, rows) of columns on the card into one new chunk of the variable. The
 * chunk is the variable's at once; its rows are there when the stream is done. */
struct fetch_col {
    u64 data, nulls; /* nulls 0 = none */
    struct buffer *data_here, *nulls_here; /* it lies in memory of the host, where it may stay; NULL = it is copied */
};
struct row_fetch {
    u32 var;
    i64 rows, order;
    const struct fetch_col *cols;
    void *stream;
};
FALLIBLE gpu_rows_to_chunk(struct gpu *g, struct exec *x, const struct row_fetch *fetch,
                           i64 *moved);

/* --- text (gpu_str.c, gpu_made.c) --- */

void gpu_far_release(struct gpu_far *far); /* NULL is fine */
FALLIBLE gpu_far_fetch(struct gpu *g, struct exec *x, struct gpu_far *far);

/* Copies the bytes of n views into one buffer and lets the views point there. */
FALLIBLE gpu_str_gather(struct memory *mem, str *views, i64 n, struct buffer **out,
                        struct error *err);
/* Takes the reference to the heap. */
void gpu_str_add(struct arena *arena, struct gpu_str_list *list, struct gpu_str text);
/* The same, for another variable: counted once more, without the copy on the card. */
void gpu_str_share(struct arena *arena, struct gpu_str_list *list, struct gpu_str text);
void gpu_str_drop(struct gpu_card *card, struct gpu_str_list *list);
/* The text's address on the card, copied there when missing. */
FALLIBLE gpu_str_addr(struct gpu *g, struct exec *x, struct gpu_str *text, u64 *out, i64 *moved);

/* --- sets of keys that are tables (gpu_keys.c) --- */
i64 gpu_keys_places(const struct gpu *g, i64 rows); /* for the keys of so many rows */
i64 gpu_keys_bytes(i64 places);
/* An empty one, or what the host has (NULL = nothing). */
FALLIBLE gpu_keys_new(struct gpu *g, struct exec *x, struct gpu_var *set, struct key_set *keys,
                      i64 *moved);
/* The keys of a table of `had` places in one of more. */
FALLIBLE gpu_keys_grow(struct gpu *g, struct exec *x, struct gpu_block **table, i64 had, i64 places);
FALLIBLE gpu_keys_fetch(struct gpu *g, struct exec *x, struct variable *v,
                        const struct gpu_var *set);

/* --- interners (gpu_intern.c) --- */

struct intern_size {
    b8 grows;           /* it was too small: at least twice as large */
    i64 entries, bytes; /* that are expected, of a new one; 0 = no idea */
};
/* The table on the card, with everything the host's holds. */
FALLIBLE gpu_intern_open(struct gpu *g, struct exec *x, u32 var, bool is_text,
                         struct intern_size size, struct kintern *out, i64 *moved);
/* Nobody has added to it. Then, of what a step has added that nobody asked for: nothing is left of it. */
bool gpu_intern_is_new(const struct exec *x, u32 var);
void gpu_intern_forget(struct gpu *g, struct exec *x, u32 var);
/* Behind what adds to it: queues a copy of how much there is, INTERN_COUNTS words; then, when they are there, that is
 * what it holds. */
FALLIBLE gpu_intern_send(struct gpu *g, const struct gpu_var *gv, u8 *to, struct error *err);
void gpu_intern_close(struct exec *x, u32 var, const u8 *sent, struct intern_size *out);
/* Those of `count` numbers, to the host's dictionary, which is empty: entry i is that of codes[i]. */
FALLIBLE gpu_intern_show(struct gpu *g, struct exec *x, u32 var, const i32 *codes, i64 count);
/* Queues its entries and texts as far as they are expected, where they take at most so many bytes, to `to`; then, when
 * they are there, they are the host's, unless there are more. *out_bytes = 0: they are many, or nobody knows. */
FALLIBLE gpu_intern_send_all(struct gpu *g, struct gpu_var *gv, i64 most, u8 *to, struct gpu_wanted *out,
                             i64 *out_bytes, struct error *err);
FALLIBLE gpu_intern_take_all(struct exec *x, u32 var, u8 *sent, const struct gpu_wanted *as);
bool gpu_has_fetch(const struct gpu_card *card); /* the kernels of fetching need no compiler */
FALLIBLE gpu_intern_fetch(struct gpu *g, struct exec *x, u32 var, i64 *moved);

/* --- steps (gpu_run.c, gpu_build.c) --- */

FALLIBLE gpu_run_pipeline(struct gpu *g, struct exec *x, u32 step_no, const struct step *step);
FALLIBLE gpu_run_build(struct gpu *g, struct exec *x, u32 step_no, const struct step *step);
/* The same without waiting; *out = NULL: it has to be run. `at`: where its report is looked at. */
/* The same of an index to which rows are added (gpu_grow.c). */
FALLIBLE gpu_run_grow(struct gpu *g, struct exec *x, u32 step_no, const struct step *step);
/* The index over what there is of `step`'s rows, with room for `capacity` of them, and what adds more:
 * three kernels, whose range and report the caller sets. */
enum { GROW_KERNELS = 3 };
struct gpu_growth {
    void *kernels[GROW_KERNELS];
    struct gpu_grid grid;
    struct kgrow args;
};
FALLIBLE gpu_grow_ready(struct gpu *g, struct exec *x, const struct step *step, i64 capacity,
                        struct gpu_growth *out);
FALLIBLE gpu_build_queue(struct gpu *g, struct exec *x, u32 step_no, const struct step *step,
                         struct build **out);
/* The table of a part of an index that is in parts, beside the index; gpu_var_release drops it. */
struct build_part {
    const struct step *step; /* STEP_BUILD */
    u32 part;
    i64 event_base; /* two events that are free */
    struct step_metric *metric;
};
FALLIBLE gpu_build_part(struct gpu *g, struct exec *x, const struct build_part *of,
                        struct gpu_var **out);
/* An index that is in parts becomes one whose table is whole. */
FALLIBLE gpu_build_whole(struct gpu *g, struct exec *x, u32 index, i64 *moved);
struct krelay gpu_build_relay(const struct build *b);
FALLIBLE gpu_build_settle(struct build *b);           /* it was as expected */
void gpu_build_close(struct build *b, wf_status status); /* once nothing of it is under way */
/* The same of sorts, and of windows, ordered aggregates and limits (gpu_order.c), which leave `rows`. */
FALLIBLE gpu_sort_queue(struct gpu *g, struct exec *x, u32 step_no, const struct step *step,
                        struct sorter **out);
struct krelay gpu_sort_relay(const struct sorter *s); /* without a report: there is nothing to tell */
FALLIBLE gpu_sort_settle(struct sorter *s, i64 rows);
void gpu_sort_close(struct sorter *s, wf_status status);
FALLIBLE gpu_order_queue(struct gpu *g, struct exec *x, u32 step_no, const struct step *step,
                         struct order_step **out);
FALLIBLE gpu_order_settle(struct order_step *o, i64 rows);
void gpu_order_close(struct order_step *o, wf_status status);
FALLIBLE gpu_queue_step(struct gpu *g, struct exec *x, u32 step_no, const struct step *step,
                        bool *out_done);
FALLIBLE gpu_queue_open(struct gpu *g, struct exec *x);
FALLIBLE gpu_queue_want(struct gpu *g, struct exec *x, u32 var);
FALLIBLE gpu_queue_settle(struct gpu *g, struct exec *x, bool keep, bool *out_good);
void gpu_queue_fini(struct gpu *g); /* what it keeps from one use to the next */
FALLIBLE gpu_run_sort(struct gpu *g, struct exec *x, u32 step_no, const struct step *step);
FALLIBLE gpu_run_rank(struct gpu *g, struct exec *x, u32 step_no, const struct step *step);
FALLIBLE gpu_run_window(struct gpu *g, struct exec *x, u32 step_no, const struct step *step);
FALLIBLE gpu_run_limit(struct gpu *g, struct exec *x, u32 step_no, const struct step *step);
FALLIBLE gpu_run_loop(struct gpu *g, struct exec *x, struct rounds *r);
/* Whether the steps of the block are such that it would queue rounds of them. */
bool gpu_queues_loop(struct gpu *g, struct exec *x, const struct block *block, u32 first_step);
FALLIBLE gpu_run_split(struct gpu *g, struct exec *x, u32 step_no, const struct step *step);
FALLIBLE gpu_run_fold(struct gpu *g, struct exec *x, u32 step_no, const struct step *step);
FALLIBLE gpu_run_cliques(struct gpu *g, struct exec *x, u32 step_no, const struct step *step);
/* How a segment looks to a kernel that loads it into a register of `kind`. */
struct weave_col gpu_segment_form(const struct segment *seg, b8 with_nulls);
struct weave_col gpu_kind_form(u8 kind, bool nulls); /* a variable's column */

#define DEV(type, addr) ((type)(size_t)(addr))

#endif
