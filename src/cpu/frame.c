/* frame.c: the storage of one vector, and its compaction.
 *
 * All of a frame is one block of accounted memory. Compaction keeps the positions of the rows that
 * are left; a register follows when it is read, by a gather into a spare slot that then becomes its
 * own, so a gather never overlaps what it reads. */
#include "cpu/cpu_int.h"

enum { PAD = 64 };

/* First pass with base NULL adds up sizes; the second hands out addresses. */
struct layout {
    u8 *base;
    i64 used;
};

static void *place(struct layout *l, i64 bytes) {
    void *at = l->base ? l->base + l->used : NULL;
    l->used += ALIGN_UP(bytes + PAD, PAD);
    return at;
}

static void frame_layout(struct worker *w, struct frame *fr, struct layout *l) {
    const struct cpu_pipe *pipe = &w->run->pipe;
    i64 n = w->run->vector_rows;
    void **data = place(l, (i64)sizeof(void *) * (pipe->pipe->reg_count + 1));
    void **slots = place(l, (i64)sizeof(void *) * (pipe->slot_count + 1));
    u32 **when_sel = place(l, (i64)sizeof(u32 *) * (pipe->when_depth + 1));
    for (u32 s = 0; s < pipe->slot_count; s++) {
        void *slot = place(l, n << pipe->slot_width[s]);
        if (slots) {
            slots[s] = slot;
        }
    }
    for (u32 d = 0; d < pipe->when_depth; d++) {
        u32 *sel = place(l, n * (i64)sizeof(u32));
        if (when_sel) {
            when_sel[d] = sel;
        }
    }
    for (u32 i = 0; i < VEC_WIDTHS; i++) {
        fr->spare[i] = place(l, n << i);
    }
    fr->data = data;
    fr->slots = slots;
    fr->lag = place(l, (i64)pipe->pipe->reg_count + 1);
    fr->when_sel = when_sel;
    fr->when = place(l, (i64)sizeof(struct when_level) * (pipe->when_depth + 1));
    fr->mask = place(l, n);
    fr->kept = place(l, n);
    fr->sel_mem = place(l, n * (i64)sizeof(u32));
    fr->sel_alt = place(l, n * (i64)sizeof(u32));
    fr->pos_mem = place(l, n * (i64)sizeof(u32));
    fr->pos_alt = place(l, n * (i64)sizeof(u32));
    fr->from = place(l, n * (i64)sizeof(u32));
    fr->run_lo = place(l, n * (i64)sizeof(u32));
    fr->run_hi = place(l, n * (i64)sizeof(u32));
    fr->any = pipe->has_each ? place(l, n * (i64)sizeof(i64)) : NULL;
}

wf_status frame_open(struct worker *w, struct frame *fr, u32 level) {
    struct layout l = {NULL, 0};
    memset(fr, 0, sizeof *fr);
    frame_layout(w, fr, &l);
    void *memory = mem_alloc(w->run->x->mem, l.used);
    if (!memory) {
        return memory_refused(w->run->x->mem, &w->err, l.used);
    }
    memset(memory, 0, (size_t)l.used);
    fr->memory = memory;
    fr->memory_bytes = l.used;
    l = (struct layout){memory, 0};
    frame_layout(w, fr, &l);
    fr->level = level;
    const struct cpu_pipe *pipe = &w->run->pipe;
    for (u32 r = 0; r < pipe->pipe->reg_count; r++) {
        fr->data[r] = pipe->is_const[r]            ? w->const_data[r]
                      : pipe->slot_of[r] != NO_REG ? fr->slots[pipe->slot_of[r]]
                                                   : NULL;
    }
    return ERR_OK;
}

void frame_close(struct worker *w, struct frame *fr) {
    mem_free(w->run->x->mem, fr->memory, fr->memory_bytes);
    mem_free(w->run->x->mem, fr->part_lo, 2 * fr->part_room * (i64)sizeof(u32));
    fr->memory = NULL;
    fr->part_lo = NULL;
}

/* Gathers a register into a spare slot, which becomes its own. */
static void move_together(struct worker *w, struct frame *fr, u16 reg, const u32 *at, i64 n) {
    const struct cpu_pipe *pipe = &w->run->pipe;
    u8 width = pipe->width[reg];
    void *to = fr->spare[width];
    pipe->vec->gather[width](to, fr->data[reg], at, n);
    fr->spare[width] = fr->slots[pipe->slot_of[reg]];
    fr->slots[pipe->slot_of[reg]] = to;
    fr->data[reg] = to;
    fr->lag[reg] = 0;
}

const void *frame_read(struct worker *w, struct frame *fr, u16 reg) {
    if (fr->lag[reg]) {
        move_together(w, fr, reg, fr->pos, fr->n);
    }
    return fr->data[reg];
}

void frame_words(struct worker *w, struct frame *fr, const struct cpu_op *op, u32 i, i64 *out) {
    for (u32 k = 0; k < op->b; k++) {
        out[k] = ((const i64 *)frame_read(w, fr, (u16)(op->a + k)))[i];
    }
}

void *frame_dst(struct worker *w, struct frame *fr, u16 reg) {
    if (fr->lag[reg] && w->run->pipe.multi[reg]) {
        move_together(w, fr, reg, fr->pos, fr->n); /* rows that keep their value */
    }
    fr->lag[reg] = 0;
    return fr->data[reg] = fr->slots[w->run->pipe.slot_of[reg]];
}

static void compact_pos(struct worker *w, struct frame *fr) {
    if (fr->pos) {
        w->run->pipe.vec->gather[2](fr->pos_alt, fr->pos, fr->sel, fr->m);
        u32 *swap = fr->pos_mem;
        fr->pos_mem = fr->pos_alt;
        fr->pos_alt = swap;
    } else {
        memcpy(fr->pos_mem, fr->sel, (size_t)fr->m * sizeof(u32));
    }
    fr->pos = fr->pos_mem;
}

bool frame_is_sound(const struct worker *w, const struct frame *fr) {
    bool sound = fr->m >= 0 && fr->m <= fr->n && fr->n <= w->run->vector_rows;
    for (i64 j = 0; fr->sel && sound && j < fr->m; j++) {
        sound = fr->sel[j] < fr->n && (j == 0 || fr->sel[j - 1] < fr->sel[j]);
    }
    return sound && (fr->sel || fr->m == fr->n || fr->m == 0);
}

/* Registers of the vector as it was loaded lag behind: pos maps them, and who reads one gathers it
 * then, perhaps after another filter, perhaps straight into a sink. Others move at once. */
void frame_compact(struct worker *w, struct frame *fr, const struct cpu_op *op) {
    bool was_run = !fr->pos;
    ASSERT(fr->sel && fr->m > 0 && fr->m <= fr->n && !fr->scoped);
    compact_pos(w, fr);
    for (u32 i = 0; i < op->live_count; i++) {
        u16 r = op->live[i];
        if (was_run) {
            fr->lag[r] = 1;
        } else if (!fr->lag[r]) {
            move_together(w, fr, r, fr->sel, fr->m);
        }
    }
    fr->n = fr->m;
    fr->sel = NULL;
    fr->mask_valid = 0;
}
