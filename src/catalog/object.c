/* object.c: what the catalog is made of: objects, which never change, and sequences, which do.
 *
 * An object is one counted block with an arena for its strings. Editions share objects, so that an
 * edition is little more than a list of pointers. A sequence belongs to all editions that know its
 * object: the numbers it handed out stay out, whatever becomes of the transaction. */
#include "catalog/catalog.h"

const char *const object_words[] = {"schema", "table", "view", "sequence", "index"};

static const char *copy_text(struct arena *arena, const char *text) {
    return text ? arena_sv(arena, sv_from(text)).ptr : NULL;
}

static const char **copy_names(struct arena *arena, u32 count, const char *const *names) {
    const char **copy = NEW_ARRAY(arena, const char *, count + 1);
    for (u32 i = 0; i < count; i++) {
        copy[i] = copy_text(arena, names[i]);
    }
    return copy;
}

struct object object_view(const struct object *object) {
    struct object view = {.refs = 0};
    size_t from = offsetof(struct object, kind);
    memcpy((u8 *)&view + from, (const u8 *)object + from, sizeof view - from);
    return view;
}

struct object *object_new(struct memory *mem, const struct object *like) {
    struct object *object = mem_alloc(mem, (i64)sizeof *object);
    if (!object) {
        return NULL;
    }
    *object = object_view(like);
    atomic_init(&object->refs, 1);
    object->mem = mem;
    struct arena *arena = &object->arena;
    arena_init(arena, mem);
    object->name = copy_text(arena, like->name);
    object->comment = copy_text(arena, like->comment);
    object->text = copy_text(arena, like->text);
    object->path = copy_text(arena, like->path);
    object->col_names = copy_names(arena, like->col_count, like->col_names);
    object->col_types = NEW_ARRAY(arena, struct type, like->col_count + 1);
    for (u32 i = 0; like->col_types && i < like->col_count; i++) {
        object->col_types[i] = like->col_types[i];
    }
    object->deps = NEW_ARRAY(arena, u32, like->dep_count + 1);
    object->dep_cols = NEW_ARRAY(arena, struct column_names, like->dep_count + 1);
    for (u32 i = 0; i < like->dep_count; i++) {
        object->deps[i] = like->deps[i];
        if (like->dep_cols) {
            u32 count = like->dep_cols[i].count;
            object->dep_cols[i].count = count;
            object->dep_cols[i].names = copy_names(arena, count, like->dep_cols[i].names);
        }
    }
    object->table = like->table ? table_retain(like->table) : NULL;
    if (like->sequence) {
        atomic_fetch_add_explicit(&like->sequence->refs, 1, memory_order_relaxed);
    }
    if (arena->refused_bytes) {
        object_release(object);
        return NULL;
    }
    return object;
}

struct object *object_retain(struct object *object) {
    atomic_fetch_add_explicit(&object->refs, 1, memory_order_relaxed);
    return object;
}

void object_release(struct object *object) {
    if (object && atomic_fetch_sub_explicit(&object->refs, 1, memory_order_acq_rel) == 1) {
        table_close(object->table);
        sequence_close(object->sequence);
        arena_fini(&object->arena);
        mem_free(object->mem, object, (i64)sizeof *object);
    }
}

static _Atomic u64 moves;

u64 sequence_moves(void) {
    return atomic_load(&moves);
}

void sequence_set(struct sequence *seq, i64 last, bool called) {
    mutex_lock(&seq->lock);
    seq->last = last;
    seq->called = called;
    mutex_unlock(&seq->lock);
    atomic_fetch_add(&moves, 1);
}

struct sequence *sequence_open(struct memory *mem, const struct sequence *like) {
    struct sequence *seq = mem_alloc(mem, (i64)sizeof *seq);
    if (seq) {
        memset(seq, 0, sizeof *seq);
        atomic_init(&seq->refs, 1);
        seq->mem = mem;
        seq->start = like->start;
        seq->increment = like->increment;
        seq->min = like->min;
        seq->max = like->max;
        seq->cycle = like->cycle;
        seq->type = like->type;
        seq->last = like->last;
        seq->called = like->called;
        mutex_init(&seq->lock);
    }
    return seq;
}

void sequence_close(struct sequence *seq) {
    if (seq && atomic_fetch_sub_explicit(&seq->refs, 1, memory_order_acq_rel) == 1) {
        mutex_fini(&seq->lock);
        mem_free(seq->mem, seq, (i64)sizeof *seq);
    }
}

/* The value after `last`; false at the end. */
static bool step(const struct sequence *seq, i64 *io_last, bool *io_called) {
    if (!*io_called) {
        *io_called = true;
        return true;
    }
    i64 next;
    bool over = __builtin_add_overflow(*io_last, seq->increment, &next) || next > seq->max ||
                next < seq->min;
    if (over && !seq->cycle) {
        return false;
    }
    *io_last = over ? (seq->increment > 0 ? seq->min : seq->max) : next;
    return true;
}

wf_status sequence_next(struct sequence *seq, const char *name, i64 count, i64 *out,
                        struct error *err) {
    bool up = seq->increment > 0, fine = true;
    mutex_lock(&seq->lock);
    i64 last = seq->last, first = 0;
    bool called = seq->called;
    for (i64 i = 0; fine && i < count; i++) {
        fine = step(seq, &last, &called);
        first = i == 0 ? last : first;
    }
    if (fine) {
        seq->last = last;
        seq->called = called;
        atomic_fetch_add(&moves, 1);
    }
    mutex_unlock(&seq->lock);
    if (!fine) {
        FAIL(err, SEQUENCE_LIMIT, "nextval: reached %s value of sequence \"%.100s\" (%lld)",
             up ? "maximum" : "minimum", name, up ? seq->max : seq->min);
    }
    *out = first;
    return ERR_OK;
}
