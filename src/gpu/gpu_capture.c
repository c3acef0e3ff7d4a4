/* gpu_capture.c: EXPLAIN (CUDA, STANDALONE): one CUDA program of the woven kernels of a statement
 * with the memory they ran on, which nvcc compiles and which runs without the database.
 *
 * The statement runs on samples of its tables (session/explain.c) while every woven launch is
 * recorded: its text, its argument, and all blocks of the card's memory that can be reached from
 * it, before and after. What is an address is guessed: a word that points into a block that is in
 * use. Blocks are then written as arrays, with a list of the addresses in them, and a few lines of
 * host code (kernels/standalone.h) put everything on a card, run the kernel and compare. */
#include "gpu/gpu_capture.h"

#include "gpu/gpu_text.h"

enum { CAPTURE_BLOCKS = 500, INCLUDES_DEEP = 16, WORDS_A_LINE = 8 };
#define CAPTURE_BYTES (64LL << 20)
#define PLAIN_RUN (1ULL << 63)

struct captured_block {
    u64 addr;
    i64 words;
    u64 *data;     /* as it was before the launch */
    u64 sum_after; /* of its halves of words */
    b8 has_address;
};
struct captured_move {
    i64 block, word, to, offset;
};
struct captured {
    u32 step_no;
    const char *label;
    struct sv text;
    struct gpu_grid grid;
    VEC(struct captured_block) blocks;
    VEC(struct captured_move) moves;
    i64 bytes;
};
struct launch_record {
    struct arena *arena;
    VEC(struct captured) launches;
};

struct launch_record *gpu_capture_new(struct arena *arena) {
    struct launch_record *capture = NEW(arena, struct launch_record);
    capture->arena = arena;
    return capture;
}

/* --- recording --------------------------------------------------------------------------------- */

static FALLIBLE read_card(struct gpu *g, void *dst, u64 src, i64 bytes, struct error *err) {
    CU(g->api->copy_to_host(dst, src, (size_t)bytes, g->streams[0]));
    CU(gpu_sync(g, g->streams[0]));
    return ERR_OK;
}

/* The number of the block an address lies in, which may be a new one; -1 when it is none. */
static FALLIBLE block_of(struct gpu *g, struct launch_record *capture, struct captured *c, u64 addr,
                         i64 *out, struct error *err) {
    *out = -1;
    for (i64 i = 0; i < c->blocks.count; i++) {
        const struct captured_block *b = &c->blocks.items[i];
        if (addr >= b->addr && addr < b->addr + (u64)b->words * 8) {
            *out = i;
            return ERR_OK;
        }
    }
    struct captured_block found = {0};
    i64 bytes = 0;
    if (!gpu_heap_find(g->card, addr, &found.addr, &bytes)) {
        return ERR_OK;
    }
    found.words = bytes / 8;
    c->bytes += bytes;
    if (c->bytes > CAPTURE_BYTES || c->blocks.count == CAPTURE_BLOCKS) {
        FAIL(err, PROGRAM_LIMIT, "a step of the statement reaches more than %lld MiB on the card",
             CAPTURE_BYTES >> 20);
    }
    found.data = NEW_ARRAY(capture->arena, u64, found.words + 1);
    TRY(arena_check(capture->arena, err));
    TRY(read_card(g, found.data, found.addr, bytes, err));
    *out = c->blocks.count;
    VEC_PUSH(capture->arena, &c->blocks, found);
    return ERR_OK;
}

/* Notes the addresses in `words`, which are those of block number `no`. */
static FALLIBLE note_moves(struct gpu *g, struct launch_record *capture, struct captured *c,
                           const u64 *words, i64 count, i64 no, struct error *err) {
    for (i64 i = 0; i < count; i++) {
        i64 to = -1;
        if (words[i] != 0) {
            TRY(block_of(g, capture, c, words[i], &to, err));
        }
        if (to >= 0) {
            struct captured_move move = {no, i, to, (i64)(words[i] - c->blocks.items[to].addr)};
            VEC_PUSH(capture->arena, &c->moves, move);
            if (no >= 0) {
                c->blocks.items[no].has_address = 1;
            }
        }
    }
    return arena_check(capture->arena, err);
}

FALLIBLE gpu_capture_before(struct gpu *g, struct exec *x, const struct gpu_launched *launched) {
    struct launch_record *capture = x->capture;
    struct captured c = {.step_no = launched->step_no,
                         .label = launched->label,
                         .text = arena_sv(capture->arena, launched->text),
                         .grid = launched->grid};
    i64 words = (i64)sizeof(struct kargs) / 8;
    _Static_assert(sizeof(struct kargs) % 8 == 0, "an argument is whole words");
    gpu_wait(g);
    TRY(note_moves(g, capture, &c, (const u64 *)(const void *)launched->args, words, -1, x->err));
    for (i64 i = 0; i < c.blocks.count; i++) { /* blocks that are found are behind this one */
        struct captured_block b = c.blocks.items[i];
        TRY(note_moves(g, capture, &c, b.data, b.words, i, x->err));
    }
    struct captured_block args = {.words = words};
    args.data = NEW_ARRAY(capture->arena, u64, words);
    memcpy(args.data, launched->args, sizeof *launched->args);
    for (i64 m = 0; m < c.moves.count; m++) {
        struct captured_move *move = &c.moves.items[m];
        move->block = move->block < 0 ? c.blocks.count : move->block;
    }
    VEC_PUSH(capture->arena, &c.blocks, args); /* the last one */
    VEC_PUSH(capture->arena, &capture->launches, c);
    return arena_check(capture->arena, x->err);
}

FALLIBLE gpu_capture_after(struct gpu *g, struct exec *x) {
    struct launch_record *capture = x->capture;
    struct captured *c = &capture->launches.items[capture->launches.count - 1];
    gpu_wait(g);
    for (i64 i = 0; i + 1 < c->blocks.count; i++) {
        struct captured_block *b = &c->blocks.items[i];
        u64 *after = mem_alloc(x->mem, b->words * 8);
        if (!after) {
            return memory_refused(x->mem, x->err, b->words * 8);
        }
        wf_status status = read_card(g, after, b->addr, b->words * 8, x->err);
        for (i64 w = 0; w < b->words && !status; w++) {
            b->sum_after += (after[w] & 0xffffffffu) + (after[w] >> 32);
        }
        mem_free(x->mem, after, b->words * 8);
        TRY(status);
    }
    return ERR_OK;
}

/* --- writing ------------------------------------------------------------------------------------ */

static const char *text_named(struct sv name) {
    for (i32 i = 0; i < gpu_text_count; i++) {
        if (sv_eq(sv_from(gpu_texts[i].name), name)) {
            return gpu_texts[i].text;
        }
    }
    return NULL;
}

/* The text with what it includes in its place. */
static void print_whole(struct text *out, struct sv text, i32 deep) {
    CHECK(deep < INCLUDES_DEEP);
    for (i64 at = 0; at < text.len;) {
        i64 end = at;
        while (end < text.len && text.ptr[end] != '\n') {
            end++;
        }
        struct sv line = {text.ptr + at, end - at};
        static const char include[] = "#include \"";
        i64 head = (i64)sizeof include - 1, quote = head;
        const char *inner = NULL;
        if (line.len > head && memcmp(line.ptr, include, (size_t)head) == 0) {
            while (quote < line.len && line.ptr[quote] != '"') {
                quote++;
            }
            inner = text_named((struct sv){line.ptr + head, quote - head});
        }
        if (inner) {
            print_whole(out, sv_from(inner), deep + 1);
        } else {
            text_print(out, "%.*s\n", (int)line.len, line.ptr);
        }
        at = end + 1;
    }
}

/* How many words from `at` on are one run: alike when *out_alike. */
static i64 run_of(const u64 *words, i64 count, i64 at, bool *out_alike) {
    i64 n = 1;
    while (at + n < count && words[at + n] == words[at]) {
        n++;
    }
    *out_alike = n > 2;
    if (n > 2) {
        return n;
    }
    while (at + n < count && !(at + n + 2 < count && words[at + n] == words[at + n + 1] &&
                               words[at + n] == words[at + n + 2])) {
        n++;
    }
    return n;
}

static void print_words(struct text *out, const struct captured_block *b, i64 no) {
    text_print(out, "static const unsigned long long wf_block_%lld[] = {", no);
    for (i64 at = 0, n; at < b->words; at += n) {
        bool alike;
        n = run_of(b->data, b->words, at, &alike);
        if (alike) {
            text_print(out, "\n%lluu, 0x%llxu,", (u64)n, b->data[at]);
            continue;
        }
        text_print(out, "\n0x%llxu,", (u64)n | PLAIN_RUN);
        for (i64 i = 0; i < n; i++) {
            text_print(out, "%s0x%llxu,", i % WORDS_A_LINE ? " " : "\n", b->data[at + i]);
        }
    }
    text_print(out, " 0};\n");
}

static void print_launch(struct text *out, const struct captured *c, i64 no) {
    text_print(out, "\n#if WF_STEP == %lld\n/* step %u of the program: %s */\n", no, c->step_no,
               c->label);
    print_whole(out, c->text, 0);
    for (i64 i = 0; i < c->blocks.count; i++) {
        print_words(out, &c->blocks.items[i], i);
    }
    text_print(out,
               "static const struct {\n    const unsigned long long *data;\n"
               "    unsigned long long words, sum_after;\n    int compared;\n} wf_blocks[] = {\n");
    for (i64 i = 0; i < c->blocks.count; i++) {
        const struct captured_block *b = &c->blocks.items[i];
        text_print(out, "    {wf_block_%lld, %lld, %lluu, %d},\n", i, b->words, b->sum_after,
                   i + 1 < c->blocks.count && !b->has_address);
    }
    text_print(out, "};\nstatic const unsigned long long wf_moves[][4] = {\n");
    for (i64 i = 0; i < c->moves.count; i++) {
        const struct captured_move *m = &c->moves.items[i];
        text_print(out, "    {%lld, %lld, %lld, %lld},\n", m->block, m->word, m->to, m->offset);
    }
    text_print(out,
               "    {0, 0, 0, 0}};\nenum {\n    WF_BLOCKS = %lld,\n    WF_MOVES = %lld,\n"
               "    WF_GRID = %lld,\n    WF_THREADS = %u,\n    WF_SHARED = %lld\n};\n#endif\n",
               c->blocks.count - 1, c->moves.count, MAX_OF(c->grid.blocks, 1), c->grid.threads,
               c->grid.shared_bytes);
}

FALLIBLE gpu_capture_print(const struct launch_record *capture, struct text *out, struct error *err) {
    i64 count = capture->launches.count;
    if (count == 0) {
        FAIL(err, NOT_SUPPORTED, "the statement has no step that a woven kernel runs");
    }
    text_print(out,
               "/* The woven kernels of a statement, with samples of what they read.\n *\n"
               " *   nvcc -std=c++17 -fmad=false -arch=native -o standalone standalone.cu\n *\n"
               " * runs the first of %lld; -DWF_STEP=0 to %lld choose one. */\n"
               "#include <cuda_runtime.h>\n#include <stdio.h>\n#include <stdlib.h>\n"
               "#include <string.h>\n\n#pragma nv_diag_suppress 177, 550 /* what a kernel does not use "
               "*/\n#ifndef WF_STEP\n#define WF_STEP 0\n#endif\n",
               count, count - 1);
    for (i64 i = 0; i < count; i++) {
        print_launch(out, &capture->launches.items[i], i);
    }
    const char *end = text_named(SV("standalone.h"));
    CHECK(end != NULL);
    text_print(out, "\n%s", end);
    return arena_check(capture->arena, err);
}
