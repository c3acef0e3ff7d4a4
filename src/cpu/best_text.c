/* best_text.c: INTERN for min and max of texts: only texts that may be the answer get a number.
 *
 * The order of texts is found by numbering and ranking them, which costs a sort of all that are
 * different. But a text that follows another of its group is not the group's least: the number of
 * the other one does as well. So a worker keeps the least text (or the greatest) of every group it
 * has met, and of a vector adds the best to the interner only when that beats it: of n texts in no
 * order about log n. A million texts in a thousand groups took 430 ms without this. Where texts come in
 * an order that makes each beat the one before, it is one a vector.
 *
 * Where groups have a row or two nothing is won; then the worker stops comparing. See decision 0019. */
#include "cpu/cpu_int.h"
#include "cpu/groups.h"
#include "cpu/top_text.h"

enum {
#ifdef WF_HARD
    TRIAL_ROWS = 64,
#else
    TRIAL_ROWS = 1 << 14, /* after which half of the rows must have been beaten */
#endif
    FIRST_ITEMS = 64
};

struct best_item {
    str text; /* the interner's, or one of the vector's */
    i32 code; /* -1 = no row yet */
    b8 fresh; /* the text has no number yet */
};

struct best {
    struct groups groups;
    struct best_item *items; /* by group */
    i64 cap;
    i64 rows, added;
    b8 is_open, is_off;
};

void best_close(struct worker *w) {
    struct memory *mem = w->run->x->mem;
    for (u32 i = 0; w->bests && i < w->run->pipe.op_count; i++) {
        struct best *best = w->bests[i];
        if (best) {
            groups_fini(&best->groups);
            mem_free(mem, best->items, best->cap * (i64)sizeof *best->items);
        }
    }
}

static struct best *best_of(struct worker *w, const struct cpu_op *op) {
    if (!w->bests) {
        w->bests = NEW_ARRAY(&w->arena, struct best *, w->run->pipe.op_count);
    }
    struct best **best = &w->bests[op - w->run->pipe.ops];
    *best = *best ? *best : NEW(&w->arena, struct best);
    return *best;
}

static bool reserve_items(struct memory *mem, struct best *best, i64 count) {
    i64 cap = MAX_OF(best->cap, (i64)FIRST_ITEMS);
    while (cap < count) {
        cap *= 2;
    }
    if (cap == best->cap) {
        return true;
    }
    struct best_item *items = mem_alloc(mem, cap * (i64)sizeof *items);
    if (!items) {
        return false;
    }
    if (best->cap) {
        memcpy(items, best->items, (size_t)best->cap * sizeof *items);
    }
    for (i64 i = best->cap; i < cap; i++) {
        items[i] = (struct best_item){.code = -1};
    }
    mem_free(mem, best->items, best->cap * (i64)sizeof *items);
    best->items = items;
    best->cap = cap;
    return true;
}

/* The groups of the active rows in w->group; a constant key needs none of them. */
static bool find_groups(struct worker *w, struct frame *fr, u16 key_reg, struct best *best) {
    struct memory *mem = w->run->x->mem;
    const struct vec_table *vec = w->run->pipe.vec;
    if (w->run->pipe.is_const[key_reg]) {
        return reserve_items(mem, best, 1);
    }
    if (!best->is_open) {
        if (!groups_init_least(&best->groups, mem, 0, NULL)) {
            groups_fini(&best->groups);
            return false;
        }
        groups_try_dense(&best->groups);
        best->is_open = 1;
    }
    const i64 *key = frame_read(w, fr, key_reg);
    if (fr->sel) {
        vec->gather[3](w->keys, key, fr->sel, fr->m);
        key = w->keys;
    }
    return groups_find(&best->groups, vec, key, fr->m, w->hash, w->group) &&
           reserve_items(mem, best, best->groups.count);
}

static bool add_texts(struct worker *w, struct frame *fr, const struct cpu_op *op,
                      struct best *best, struct dict *dict) {
    const str *s = frame_read(w, fr, op->a);
    i32 *dst = frame_dst(w, fr, op->dst);
    const u32 *group = w->run->pipe.is_const[op->c] ? NULL : w->group;
    i32 sign = op->b == INTERN_LEAST ? 1 : -1;
    for (i64 j = 0; j < fr->m; j++) {
        u32 i = ACTIVE(fr, j);
        struct best_item *item = &best->items[group ? group[j] : 0];
        bool none = item->code < 0 && !item->fresh;
        if (none || sign * compare_texts(s[i], item->text) < 0) {
            item->text = s[i];
            item->fresh = 1;
        }
    }
    for (i64 j = 0; j < fr->m; j++) {
        struct best_item *item = &best->items[group ? group[j] : 0];
        if (item->fresh) {
            item->code = dict_add(dict, sv_of(item->text));
            if (item->code < 0) {
                return false;
            }
            item->text = str_from(dict_get(dict, item->code));
            item->fresh = 0;
            best->added++;
        }
        dst[ACTIVE(fr, j)] = item->code;
    }
    return true;
}

wf_status best_intern(struct worker *w, struct frame *fr, const struct cpu_op *op) {
    struct dict *dict = w->run->x->vars[op->op->imm].dict;
    struct best *best = best_of(w, op);
    bool fine;
    if (best->is_off) {
        const str *s = frame_read(w, fr, op->a);
        fine = dict_add_many(dict, s, fr->sel, fr->m, frame_dst(w, fr, op->dst));
    } else {
        fine = find_groups(w, fr, op->c, best) && add_texts(w, fr, op, best, dict);
    }
    best->rows += fr->m;
    best->is_off = best->is_off || (best->rows >= TRIAL_ROWS && best->added * 2 > best->rows);
    return fine ? ERR_OK : memory_refused(w->run->x->mem, &w->err, dict_bytes(dict));
}
