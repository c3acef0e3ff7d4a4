/* hold.c: columns of tables that lie in the database file: held by a worker while it reads a tablet.
 *
 * A worker holds what the pipeline loads of its tablet from the first rows that zones do not exclude
 * until it comes to another one. Texts are held to the end of the execution, since whatever keeps rows
 * keeps views of them; where that would be much of the budget, they are passing like those of a
 * provider: whoever keeps them copies them (cpu_pipe.made). See store/frames.h. */
#include "cpu/cpu_int.h"

enum {
    TEXT_SHARE = 4, /* of the budget that texts may take */
    AHEAD = 4,      /* tablets that are expected */
};

bool texts_pass(const struct exec *x, const struct pipeline *pipe) {
    if (pipe->source.kind != SOURCE_TABLE || exec_provider(x, pipe)) {
        return false;
    }
    const struct table_version *version = x->versions[pipe->source.ref];
    i64 bytes = 0, limit = 0;
    for (const struct memory *mem = x->mem; mem; mem = mem->parent) {
        limit = mem->limit_bytes && (!limit || mem->limit_bytes < limit) ? mem->limit_bytes : limit;
    }
    for (i64 t = 0; t < version->tablet_count; t++) {
        const struct tablet *tablet = version->tablets[t];
        for (u32 c = 0; tablet->framed && c < pipe->source.col_count; c++) {
            const struct segment *seg = &tablet->cols[pipe->source.cols[c]];
            bytes += seg->encoding == ENC_STR ? seg->bytes_len + 4LL * tablet->rows : 0;
        }
    }
    return limit && bytes > limit / TEXT_SHARE;
}

/* The columns that opcodes load, by number in the table. */
void hold_open(struct pipe_run *run) {
    const struct pipeline *pipe = run->pipe.pipe;
    if (pipe->source.kind != SOURCE_TABLE || run->provider) {
        return;
    }
    run->texts_pass = texts_pass(run->x, pipe);
    run->loaded = NEW_ARRAY(run->x->arena, u32, pipe->source.col_count + 1);
    for (u32 c = 0; c < pipe->source.col_count; c++) {
        bool loads = false;
        for (u32 i = 0; i < pipe->op_count && !loads; i++) {
            const struct op *op = &pipe->ops[i];
            loads = op_infos[op->code].roles[OPERAND_IMM] == ROLE_column && op->imm == c;
        }
        if (loads) {
            run->loaded[run->loaded_count++] = pipe->source.cols[c];
        }
    }
}

void hold_end(struct worker *w) {
    for (u32 i = 0; i < w->held_count; i++) {
        u32 col = w->run->loaded[i];
        bool text = w->held->cols[col].encoding == ENC_STR && !w->run->texts_pass;
        if (!text) {
            column_drop(w->held, col);
        }
    }
    w->held = NULL;
    w->held_count = 0;
}

/* The next tablets that zones do not exclude are read meanwhile: the first of them by a thread
 * (from = 0), or those behind it by the disk. */
static void hold_ahead(const struct worker *w, i32 from, i32 to) {
    const struct pipe_run *run = w->run;
    const struct table_version *version = run->x->versions[run->pipe.pipe->source.ref];
    i32 found = 0;
    for (i64 t = w->part + 1; t < version->tablet_count && found < to; t++) {
        const struct tablet *tablet = version->tablets[t];
        bool wanted = run->part_ends[t] > run->part_firsts[t] && !tablet_pruned(run, tablet);
        for (u32 i = 0; wanted && found >= from && i < run->loaded_count; i++) {
            if (found == 0) {
                column_ahead(tablet, run->loaded[i], false);
            } else {
                column_expect(tablet, run->loaded[i], false);
            }
        }
        found += wanted;
    }
}

wf_status hold_begin(struct worker *w) {
    const struct pipe_run *run = w->run;
    const struct tablet *tablet = w->tablet;
    if (!tablet || tablet == w->held || (!tablet->framed && !w->held)) {
        return ERR_OK;
    }
    hold_end(w);
    if (!tablet->framed) {
        return ERR_OK;
    }
    w->held = tablet;
    for (u32 i = 0; i < run->loaded_count; i++) {
        column_expect(tablet, run->loaded[i], false);
    }
    hold_ahead(w, 0, 1);
    for (u32 i = run->loaded_count; i-- > 0;) { /* who came first began with the first of them */
        column_help(tablet, run->loaded[i], false);
    }
    hold_ahead(w, 1, AHEAD);
    bool last = run->worker_count == 1 || run->alone; /* nobody lets go of a column while this one waits */
    wf_status status = ERR_OK;
    for (; w->held_count < run->loaded_count && !status; w->held_count += !status) {
        u32 col = run->loaded[w->held_count];
        bool text = tablet->cols[col].encoding == ENC_STR && !run->texts_pass;
        status = text ? exec_hold(run->x, tablet, col, last, &w->err)
                      : column_hold(tablet, col, last ? HOLD_SHORT : HOLD_IN_MEMORY, &w->err);
    }
    if (status == ERR_OUT_OF_MEMORY && !last) {
        hold_end(w); /* no row of the morsel was looked at yet */
        w->put_off = 1;
    }
    return status;
}
