/* compact.c: tablets of which little is left, written anew.
 *
 * Deleting marks rows and leaves them where they are, so a table that is updated often consists
 * more and more of rows nobody sees. When more than half of a tablet is gone, its live rows are
 * sealed again, together with those of neighbours that are as empty, and take its place: the order
 * of rows stays, and with it whatever was known of it. An open tail is treated alike. A row that
 * moves gets another slot and position, which the version remembers (moves.c) for transactions that
 * began before and delete it. Versions that somebody still reads keep the old tablets alive.
 *
 * The cost is paid by what was deleted: as many rows are moved as were deleted before, at most.
 * Moving them behind the others instead, as an update does, was simpler but made an index of a key
 * that was only in order. */
#include "store/saved_int.h"

enum {
    LEAST_DEAD = 1024, /* less is not worth a new version */
    MANY_SMALL = 8,    /* neighbours that are brought together even if nothing in them is dead */
    RUNS_MAX = 16,     /* tablets made in one go; the rest comes next time */
};

struct run {
    i64 from, to; /* tablets */
    i64 live;
};

struct piece { /* a tablet of the new version */
    struct tablet *tablet;
    struct buffer *deleted;
    u32 slot, deleted_count;
};

struct compaction {
    struct table *table;
    struct table_version *base;
    struct writer writer;
    struct arena arena;
    VEC(struct piece) pieces;
    VEC(struct moved_from) from;
    VEC(struct moved_to) to;
    i32 runs;
    bool all; /* not only what is worth it by itself */
    bool new_tail;
};

static i64 live_of(const struct table_version *version, i64 t) {
    return (i64)version->tablet_rows[t] - version->deleted_counts[t];
}

static bool is_dead(const struct table *table, const struct table_version *version, i64 t,
                    bool all) {
    i64 dead = version->deleted_counts[t];
    return all ? dead > 0
               : dead * 2 > version->tablet_rows[t] &&
           dead >= MIN_OF((i64)LEAST_DEAD, (1LL << table->tablet_shift) / 2);
}

static bool has_tail(const struct table_version *version) {
    return version->draft->tail_rows > 0 && version->tablet_count > 0;
}

/* The next run of tablets worth writing anew, from tablet `at` on; false at the end. `all`: whatever
 * there is to gain. */
static bool next_run(const struct table *table, const struct table_version *version, i64 at,
                     bool all, struct run *out) {
    i64 most = 1LL << table->tablet_shift, count = version->tablet_count - has_tail(version);
    while (at < count) {
        struct run run = {at, at, 0};
        bool worth = false;
        while (run.to < count && (all || live_of(version, run.to) * 2 < most) &&
               run.live + live_of(version, run.to) <= most) {
            worth = worth || is_dead(table, version, run.to, all);
            run.live += live_of(version, run.to++);
        }
        if (worth || run.to - run.from >= (all ? 2 : MANY_SMALL)) {
            *out = run;
            return true;
        }
        at = MAX_OF(run.to, at + 1);
    }
    return false;
}

bool version_wants_compaction(const struct table *table, const struct table_version *version) {
    struct run run;
    return version->draft && !version->is_delta && version->rows > version->live_rows &&
           (next_run(table, version, 0, false, &run) ||
            (has_tail(version) && is_dead(table, version, version->tablet_count - 1, false)));
}

bool version_wants_vacuum(const struct table *table, const struct table_version *version) {
    struct run run;
    return version->draft && !version->is_delta &&
           (next_run(table, version, 0, true, &run) ||
            (has_tail(version) && is_dead(table, version, version->tablet_count - 1, true)));
}

static void keep_tablet(struct compaction *c, i64 t) {
    const struct table_version *base = c->base;
    struct buffer *deleted = base->deleted[t];
    struct piece piece = {tablet_retain(base->tablets[t]), deleted ? buffer_retain(deleted) : NULL,
                          base->slots[t], base->deleted_counts[t]};
    VEC_PUSH(&c->arena, &c->pieces, piece);
}

/* Plain rows to sealed tablets, as many as their text needs. */
static FALLIBLE seal_plain(struct compaction *c, const struct plain_rows *plain,
                           struct error *err) {
    struct table *table = c->table;
    struct seal seal = {.table = table, .column_rows = I64_MAX / 2, .dict_on = c->writer.dict_on};
    for (i64 first = 0; first < plain->rows;) {
        for (u32 i = 0; i < table->col_count; i++) {
            c->writer.sources[i] =
                source_of_input(table->cols[i].type, &plain->cols[i], first, plain->rows - first);
        }
        struct piece piece = {.slot = c->writer.next_slot++};
        seal.rows = seal_rows(table, c->writer.sources, plain->rows - first);
        TRY(tablet_seal_some(&seal, c->writer.sources, &piece.tablet, err));
        i32 left = 0;
        tablet_write_early(table, piece.tablet, &left);
        tablet_write_wait(table, &left);
        VEC_PUSH(&c->arena, &c->pieces, piece);
        TRY(arena_check(&c->arena, err));
        first += seal.rows;
    }
    return ERR_OK;
}

/* The tablets from..to became the pieces from `first` on, then `tail_rows` rows of the new tail. */
static void note_moves(struct compaction *c, i64 from, i64 to, i64 first, i64 tail_rows) {
    const struct table_version *base = c->base;
    i64 rows = 0;
    for (i64 t = from; t < to; t++) {
        struct moved_from moved = {.slot = base->slots[t],
                                   .rows = base->tablet_rows[t],
                                   .deleted = base->deleted[t],
                                   .run = c->runs,
                                   .before = rows};
        VEC_PUSH(&c->arena, &c->from, moved);
        rows += live_of(base, t);
    }
    rows = 0;
    for (i64 i = first; i < c->pieces.count; i++) {
        const struct piece *p = &c->pieces.items[i];
        struct moved_to piece = {p->slot, c->runs, rows, p->tablet->rows};
        VEC_PUSH(&c->arena, &c->to, piece);
        rows += p->tablet->rows;
    }
    struct moved_to tail = {c->writer.draft->tail_slot, c->runs, rows, tail_rows};
    VEC_PUSH(&c->arena, &c->to, tail);
    c->runs++;
}

/* How many rows of a run are laid out at once: all of them, or as many as memory is for. */
static i64 rows_at_once(const struct compaction *c, const struct run *run) {
    const struct table *table = c->table;
    i64 row_bytes = 0, rows;
    for (u32 i = 0; i < table->col_count; i++) {
        row_bytes += kind_bytes[type_kind(table->cols[i].type)] + 1;
    }
    (void)load_plan(table, table->mem, 1, row_bytes, &rows);
    return MAX_OF(MIN_OF(rows, run->live), 1);
}

static FALLIBLE write_run(struct compaction *c, const struct run *run, struct error *err) {
    struct plain_rows plain;
    i64 first = c->pieces.count, room = rows_at_once(c, run);
    wf_status status = ERR_OK;
    TRY(plain_open(&plain, c->table, room, err));
    for (i64 t = run->from; t < run->to && !status; t++) {
        for (i64 from = 0, to, rows = c->base->tablet_rows[t]; from < rows && !status; from = to) {
            to = MIN_OF(rows, from + room - plain.rows);
            status = plain_fill(&plain, c->table, c->base, t, from, to, err);
            if (!status && plain.rows == room) {
                status = seal_plain(c, &plain, err);
                plain_clear(&plain, c->table);
            }
        }
    }
    status = status ? status : seal_plain(c, &plain, err);
    plain_close(&plain, c->table);
    if (!status) {
        note_moves(c, run->from, run->to, first, 0);
    }
    return status;
}

/* The tail's live rows as a tail of their own. */
static FALLIBLE write_tail(struct compaction *c, struct error *err) {
    i64 last = c->base->tablet_count - 1, live = live_of(c->base, last), first = c->pieces.count;
    struct plain_rows plain;
    TRY(plain_open(&plain, c->table, MAX_OF(live, 1), err));
    wf_status status =
        plain_fill(&plain, c->table, c->base, last, 0, c->base->tablet_rows[last], err);
    tail_reset(&c->writer);
    c->new_tail = true;
    status = status ? status : writer_rows(&c->writer, plain.rows, plain.cols, err);
    plain_close(&plain, c->table);
    for (i64 i = 0; !status && i < c->writer.sealed.count; i++) {
        struct piece piece = {.tablet = tablet_retain(c->writer.sealed.items[i]),
                              .slot = c->writer.sealed_slots[i]};
        VEC_PUSH(&c->arena, &c->pieces, piece);
    }
    if (!status) {
        note_moves(c, last, last + 1, first, c->writer.draft->tail_rows);
    }
    return status;
}

/* What is known of the columns, from the tablets that are left. */
static void count_anew(struct compaction *c, const struct tablet *tail) {
    struct draft *draft = c->writer.draft;
    for (u32 i = 0; i < c->table->col_count; i++) {
        struct type type = c->table->cols[i].type;
        struct col_draft *col = &draft->cols[i];
        facts_init(&col->all, type);
        col->has_str = tail && tail->cols[i].encoding == ENC_STR;
        for (i64 p = 0; p < draft->sealed_count; p++) {
            const struct tablet *tablet = c->pieces.items[p].tablet;
            struct facts facts = segment_facts(&tablet->cols[i], type, tablet->rows);
            facts_merge(&col->all, &facts, type);
            col->has_str |= tablet->cols[i].encoding == ENC_STR;
        }
        if (tail) {
            facts_merge(&col->all, &col->tail, type);
        }
    }
}

static FALLIBLE make_version(struct compaction *c, struct table_version **out, struct error *err) {
    i64 last = c->base->tablet_count - 1, sealed = c->pieces.count;
    struct piece tail = {0};
    if (c->new_tail) {
        tail.slot = c->writer.draft->tail_slot;
        TRY(tail_view(&c->writer, &tail.tablet, err));
    } else if (has_tail(c->base)) {
        keep_tablet(c, last);
        tail = c->pieces.items[--c->pieces.count];
    }
    struct table_version *version = version_alloc(c->table, sealed + 1);
    if (!version || c->arena.refused_bytes) {
        version_release(version);
        tablet_release(tail.tablet);
        buffer_release(tail.deleted);
        return memory_refused(c->table->mem, err, sealed * 48);
    }
    c->writer.draft->sealed_count = sealed;
    count_anew(c, tail.tablet);
    for (i64 i = 0; i < sealed; i++) {
        struct piece *p = &c->pieces.items[i];
        version_push(version, p->tablet, p->slot, p->deleted, p->deleted_count);
    }
    c->pieces.count = 0;
    if (tail.tablet) {
        version_push(version, tail.tablet, tail.slot, tail.deleted, tail.deleted_count);
    }
    version->draft = c->writer.draft;
    c->writer.draft = NULL;
    version->next_slot = c->writer.next_slot;
    version_stats(version, c->table);
    *out = version;
    return ERR_OK;
}

static FALLIBLE compact(struct compaction *c, struct table_version **out, struct error *err) {
    const struct table_version *base = c->base;
    i64 sealed = base->tablet_count - has_tail(base), t = 0;
    struct run run;
    for (i32 i = 0; (c->all || i < RUNS_MAX) && next_run(c->table, base, t, c->all, &run); i++) {
        for (; t < run.from; t++) {
            keep_tablet(c, t);
        }
        TRY(write_run(c, &run, err));
        t = run.to;
    }
    for (; t < sealed; t++) {
        keep_tablet(c, t);
    }
    if (has_tail(base) && is_dead(c->table, base, sealed, c->all)) {
        TRY(write_tail(c, err));
    }
    TRY(arena_check(&c->arena, err));
    return make_version(c, out, err);
}

bool version_may_move(const struct table_version *version) {
    return moves_depth(version->moves) < MOVES_MAX;
}

/* What moved, and what had before where somebody may ask for it. */
static FALLIBLE keep_moves(struct compaction *c, bool older, struct table_version *out,
                           struct error *err) {
    out->content_no = c->base->content_no;
    out->moves = moves_new(c->table->mem, c->from.items, c->from.count, c->to.items, c->to.count,
                           older ? c->base->moves : NULL);
    return out->moves ? ERR_OK : memory_refused(c->table->mem, err, c->from.count * 64);
}

wf_status version_compact(struct table *table, struct table_version *base, bool all, bool older,
                          struct table_version **out, struct error *err) {
    struct compaction c = {.table = table, .base = base, .all = all};
    *out = NULL;
    arena_init(&c.arena, table->mem);
    wf_status status = writer_begin(&c.writer, table, base, err);
    status = status ? status : compact(&c, out, err);
    if (!status && keep_moves(&c, older, *out, err)) {
        status = err->code;
        version_discard(*out);
        *out = NULL;
    }
    for (i64 i = 0; i < c.pieces.count; i++) {
        tablet_release(c.pieces.items[i].tablet);
        buffer_release(c.pieces.items[i].deleted);
    }
    writer_end(&c.writer);
    arena_fini(&c.arena);
    if (!status) {
        status = version_keep_keys(table, base, *out, err);
        if (status) {
            version_discard(*out);
            *out = NULL;
        }
    }
    return status;
}
