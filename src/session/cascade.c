/* cascade.c: what follows from rows that are gone or have another key: ON DELETE and ON UPDATE.
 *
 * A change of a table is a wave of events: rows that went, rows that have become others. For every
 * reference to the table the rows that refer to one of them are looked for, and are deleted, get
 * other values, or are an error; what happens to them is the next wave. Nothing is changed before
 * the last wave has passed: rows are marked as dead, or have values laid over those they had, and
 * in the end every table gets one new version. So the depth of a chain costs neither stack nor
 * versions.
 *
 * Those who refer are found by a look at all rows of their table the first time, since mostly there
 * is no other; from the second time on by an index, which is made then. Together that takes time in
 * proportion to the rows. Where nothing but an error may follow from very many events, a join asks
 * for it (orphans.c). Within a wave references are followed in the order they were made, as in
 * PostgreSQL. */
#include "session/constraint_int.h"

/* A value that a row got in a cascade. Lists are never changed, only begun anew: an event keeps
 * what a row was. */
struct over {
    const struct over *next;
    u32 col;
    b8 null;
    union lit v;
};
struct place {
    const struct tablet *tablet;
    i64 pos;
    const struct over *over;
    struct pins *pins;
};
struct event {
    struct place before, after;
    b8 deleted;
};
struct events {
    struct event *items;
    i64 count, cap;
};
/* Numbers by hash; those who ask look whether one is meant. */
struct numbers {
    i64 cap, used;
    i64 *items; /* + 1, 0 = free */
    u32 *hashes;
};

struct changed {
    i64 row;
    const struct over *over;
    i64 wave, event; /* the latest event, and its wave */
};
enum { CHANGED_PAGE = 512 };
struct link;
/* A table in the cascade: as it was when the cascade came to it, and what has happened since. */
struct site {
    u32 oid;
    struct table *table;
    struct table_version *version;
    u64 *dead; /* by row of the version; NULL = none */
    i64 dead_count;
    VEC(struct changed *) changed; /* each row once */
    struct changed ***by_row;      /* the same by row number, in pages of CHANGED_PAGE rows; NULL = there is none */
    VEC(i64) log;       /* rows, as often as they changed */
    b8 linked;          /* `links` is made */
    VEC(struct link *) links;
    struct events now, next;
};
/* One reference to a site. */
struct link {
    struct site *parent, *child;
    const struct table_foreign *fk;
    u32 key, order[32]; /* of the parent that it refers to */
    i64 looks;
    struct numbers by_key; /* rows of the child, from the second look on */
    i64 entered;           /* entries of its log that are in there */
    struct numbers there;  /* rows of the parent that changed, by their keys */
    i64 there_count;       /* entries of its log that are in there */
    b8 has_defaults;
    union lit defaults[32];
    b8 default_nulls[32];
};
struct match {
    i64 row, event;
};
struct cascade {
    struct wf_connection *conn;
    struct edition *edition;
    struct arena arena;
    struct memory mem; /* the arena's: of very many rows it lies aside */
    struct temp temp;
    struct text own, other; /* keys at hand */
    VEC(struct site *) sites;
    VEC(struct match) matches;
    i64 wave;
    i64 steps;
    struct pins pins; /* columns that were read: keys at hand may be views */
};

enum { CHECK_STEPS = 4096 };
static FALLIBLE step(struct cascade *c) {
    if (++c->steps % CHECK_STEPS) {
        return ERR_OK;
    }
    TRY(arena_check(&c->arena, &c->conn->err));
    TRY(pins_check(&c->pins, &c->conn->err));
    return connection_check(c->conn);
}

static void numbers_put(struct numbers *n, u32 hash, i64 item) {
    u64 mask = (u64)n->cap - 1, at = hash & mask;
    while (n->items[at]) {
        at = (at + 1) & mask;
    }
    n->items[at] = item + 1;
    n->hashes[at] = hash;
    n->used++;
}

static FALLIBLE numbers_add(struct cascade *c, struct numbers *n, u32 hash, i64 item) {
    if ((n->used + 1) * 3 > n->cap * 2) {
        struct numbers more = {.cap = MAX_OF(n->cap * 2, 64)};
        more.items = NEW_ARRAY(&c->arena, i64, more.cap);
        more.hashes = NEW_ARRAY(&c->arena, u32, more.cap);
        TRY(arena_check(&c->arena, &c->conn->err));
        for (i64 i = 0; i < n->cap; i++) {
            if (n->items[i]) {
                numbers_put(&more, n->hashes[i], n->items[i] - 1);
            }
        }
        *n = more;
    }
    numbers_put(n, hash, item);
    return ERR_OK;
}

/* The next number with this hash from place *io_at on (at first the hash itself), or -1. */
static i64 numbers_next(const struct numbers *n, u32 hash, u64 *io_at) {
    u64 mask = (u64)n->cap - 1;
    while (n->cap && n->items[*io_at & mask]) {
        u64 at = (*io_at)++ & mask;
        if (n->hashes[at] == hash) {
            return n->items[at] - 1;
        }
    }
    return -1;
}

/* sites */

static struct site *site_of(struct cascade *c, const struct edition_entry *entry) {
    for (i64 i = 0; i < c->sites.count; i++) {
        if (c->sites.items[i]->oid == entry->object->oid) {
            return c->sites.items[i];
        }
    }
    struct site *site = NEW(&c->arena, struct site);
    site->oid = entry->object->oid;
    site->table = entry->object->table;
    site->version = version_retain(entry->version);
    VEC_PUSH(&c->arena, &c->sites, site);
    return site;
}

static bool is_dead(const struct site *site, i64 row) {
    return site->dead && site->dead[row >> 6] >> (row & 63) & 1;
}

static struct changed *changed_of(const struct site *site, i64 row) {
    struct changed **page = site->by_row ? site->by_row[row / CHANGED_PAGE] : NULL;
    return page ? page[row % CHANGED_PAGE] : NULL;
}

static FALLIBLE changed_new(struct cascade *c, struct site *site, i64 row, struct changed **out) {
    if (!site->by_row) {
        site->by_row = NEW_ARRAY(&c->arena, struct changed **, site->version->rows / CHANGED_PAGE + 1);
    }
    TRY(arena_check(&c->arena, &c->conn->err));
    struct changed ***page = &site->by_row[row / CHANGED_PAGE];
    if (!*page) {
        *page = NEW_ARRAY(&c->arena, struct changed *, CHANGED_PAGE);
    }
    struct changed *changed = NEW(&c->arena, struct changed);
    changed->row = row;
    changed->wave = -1;
    (*page)[row % CHANGED_PAGE] = changed;
    VEC_PUSH(&c->arena, &site->changed, changed);
    *out = changed;
    return ERR_OK;
}

static struct place place_of(struct cascade *c, const struct site *site, i64 row) {
    const struct changed *changed = changed_of(site, row);
    i64 t = version_find_row(site->version, row);
    return (struct place){site->version->tablets[t], row - site->version->row_starts[t],
                          changed ? changed->over : NULL, &c->pins};
}

/* false: NULL, or it cannot be read, which the cascade finds out later. */
static bool place_get(const struct table *table, const struct place *place, u32 col,
                      union lit *out) {
    for (const struct over *over = place->over; over; over = over->next) {
        if (over->col == col) {
            *out = over->v;
            return !over->null;
        }
    }
    return pins_need(place->pins, place->tablet, col) &&
           segment_get(&place->tablet->cols[col], table->dicts[col], table->cols[col].type,
                       place->pos, out);
}

/* The key that a row of the parent has, or the one that a row of the child refers to, as bytes;
 * false: it has none. */
static bool key_at(const struct link *link, bool child, const struct place *place,
                   struct text *out) {
    const struct table *table = child ? link->child->table : link->parent->table;
    const struct table_foreign *fk = link->fk;
    union lit v[32];
    for (u32 i = 0; i < fk->col_count; i++) {
        if (!place_get(table, place, child ? fk->cols[i] : fk->ref_cols[i], &v[i])) {
            return false;
        }
    }
    return reference_bytes(out, link->parent->table, fk, child ? table : NULL, v);
}

static bool same_text(const struct text *a, const struct text *b) {
    return a->len == b->len && memcmp(a->ptr, b->ptr, (size_t)a->len) == 0;
}

static u32 hash_text(const struct text *text) {
    return (u32)(sv_hash((struct sv){text->ptr, text->len}) >> 16);
}

/* References of a table to the site. */
static FALLIBLE link_table(struct cascade *c, struct site *parent,
                           const struct edition_entry *entry) {
    const struct table *table = entry->object->table;
    for (u32 f = 0; table && f < table->foreign_count; f++) {
        const struct table_foreign *fk = &table->foreigns[f];
        if ((fk->ref_oid ? fk->ref_oid : entry->object->oid) != parent->oid) {
            continue;
        }
        struct link *link = NEW(&c->arena, struct link);
        link->parent = parent;
        link->child = site_of(c, entry);
        link->fk = fk;
        TRY(reference_key(parent->table, fk, &link->key, link->order, &c->conn->err));
        VEC_PUSH(&c->arena, &parent->links, link);
        TRY(arena_check(&c->arena, &c->conn->err));
        i64 at = parent->links.count - 1;
        for (; at > 0 && parent->links.items[at - 1]->fk->oid > fk->oid; at--) {
            parent->links.items[at] = parent->links.items[at - 1];
        }
        parent->links.items[at] = link;
    }
    return ERR_OK;
}

/* References to a site, the oldest first. */
static FALLIBLE site_links(struct cascade *c, struct site *parent) {
    if (parent->linked) {
        return ERR_OK;
    }
    parent->linked = 1;
    TRY(link_table(c, parent, edition_find_oid(c->edition, parent->oid)));
    for (struct edition_walk at = edition_walk_users(c->edition, parent->oid); edition_step(&at);) {
        TRY(link_table(c, parent, at.entry));
    }
    return ERR_OK;
}

/* What happens to rows */

static FALLIBLE kill_row(struct cascade *c, struct site *site, i64 row) {
    if (is_dead(site, row)) {
        return ERR_OK;
    }
    if (!site->dead) {
        site->dead = NEW_ARRAY(&c->arena, u64, site->version->rows / 64 + 1);
        TRY(arena_check(&c->arena, &c->conn->err));
    }
    site->dead[row >> 6] |= 1ULL << (row & 63);
    site->dead_count++;
    const struct changed *changed = changed_of(site, row);
    if (changed && changed->wave == c->wave) {
        site->next.items[changed->event].deleted = 1;
    } else {
        struct event event = {.before = place_of(c, site, row), .deleted = 1};
        VEC_PUSH(&c->arena, &site->next, event);
    }
    return step(c);
}

/* The row gets a value; several in one wave are one event. */
static FALLIBLE set_value(struct cascade *c, struct site *site, i64 row, u32 col, bool null,
                          const union lit *v) {
    struct changed *changed = changed_of(site, row);
    if (!changed) {
        TRY(changed_new(c, site, row, &changed));
    }
    if (changed->wave != c->wave) {
        struct place was = place_of(c, site, row);
        struct event event = {.before = was, .after = was};
        changed->wave = c->wave;
        changed->event = site->next.count;
        VEC_PUSH(&c->arena, &site->next, event);
        VEC_PUSH(&c->arena, &site->log, row);
    }
    struct over *over = NEW(&c->arena, struct over);
    TRY(arena_check(&c->arena, &c->conn->err));
    *over = (struct over){changed->over, col, null, *v};
    changed->over = over;
    site->next.items[changed->event].after.over = over;
    return ERR_OK;
}

static FALLIBLE find_defaults(struct cascade *c, struct link *link) {
    for (u32 i = 0; i < link->fk->col_count && !link->has_defaults; i++) {
        TRY(default_value(c->conn, &c->arena, link->child->table, link->fk->cols[i],
                          &link->defaults[i], &link->default_nulls[i]));
    }
    link->has_defaults = 1;
    return ERR_OK;
}

static FALLIBLE set_reference(struct cascade *c, struct link *link, u8 action,
                              const struct event *event, i64 row) {
    const struct table_foreign *fk = link->fk;
    const struct table *child = link->child->table, *parent = link->parent->table;
    if (action == FK_SET_DEFAULT) {
        TRY(find_defaults(c, link));
    }
    for (u32 i = 0; i < fk->col_count; i++) {
        if (event->deleted && fk->set_on_delete && !(fk->set_on_delete >> i & 1)) {
            continue;
        }
        union lit v = link->defaults[i];
        bool null = action == FK_SET_NULL || link->default_nulls[i];
        if (action == FK_CASCADE) {
            struct type type = child->cols[fk->cols[i]].type;
            null = !place_get(parent, &event->after, fk->ref_cols[i], &v);
            if (!null && !reference_convert(type, parent->cols[fk->ref_cols[i]].type, &v)) {
                char name[32];
                FAIL(&c->conn->err, OUT_OF_RANGE, "%s out of range", type_print(type, name));
            }
        }
        TRY(set_value(c, link->child, row, fk->cols[i], null, &v));
    }
    return step(c);
}

/* Whether the parent has, after all that has happened, a row with the key in c->own. */
static FALLIBLE parent_has(struct cascade *c, struct link *link, const struct place *before,
                           bool *out) {
    struct site *parent = link->parent;
    const struct table_foreign *fk = link->fk;
    union lit v[32];
    const void *values[32];
    i64 row = -1;
    for (u32 i = 0; i < fk->col_count; i++) {
        (void)place_get(parent->table, before, fk->ref_cols[link->order[i]], &v[i]);
        values[i] = &v[i];
    }
    TRY(version_key_row(parent->table, parent->version, link->key, values, &row, &c->conn->err));
    *out = row >= 0 && !is_dead(parent, row) && !changed_of(parent, row);
    for (; link->there_count < parent->log.count; link->there_count++) {
        i64 added = parent->log.items[link->there_count];
        struct place place = place_of(c, parent, added);
        if (key_at(link, false, &place, &c->other)) {
            TRY(numbers_add(c, &link->there, hash_text(&c->other), added));
        }
    }
    u32 hash = hash_text(&c->own);
    u64 at = hash;
    while (!*out && (row = numbers_next(&link->there, hash, &at)) >= 0) {
        struct place place = place_of(c, parent, row);
        *out = !is_dead(parent, row) && key_at(link, false, &place, &c->other) &&
               same_text(&c->own, &c->other);
    }
    return ERR_OK;
}

/* Finding those who refer */

static u8 action_of(const struct link *link, const struct event *event) {
    return event->deleted ? link->fk->on_delete : link->fk->on_update;
}

/* Whether the event took a key away that somebody may refer to; c->own is the key then. */
static bool takes_key(struct cascade *c, const struct link *link, const struct event *event) {
    if (action_of(link, event) == FK_NO_ACTION && reference_is_deferred(c->conn, link->fk)) {
        return false;
    }
    return key_at(link, false, &event->before, &c->own) &&
           (event->deleted || !key_at(link, false, &event->after, &c->other) ||
            !same_text(&c->own, &c->other));
}

/* Calls `each` for every row of the child that is not dead and refers to something, whose key is
 * in c->other. */
static FALLIBLE each_child(struct cascade *c, struct link *link,
                           wf_status (*each)(struct cascade *c, struct link *link, i64 row,
                                             void *arg),
                           void *arg) {
    const struct site *child = link->child;
    const struct table_version *version = child->version;
    for (i64 t = 0; t < version->tablet_count; t++) {
        for (i64 pos = 0; pos < version->tablet_rows[t]; pos++) {
            i64 row = version->row_starts[t] + pos;
            TRY(step(c));
            if (!is_live(version, t, pos) || is_dead(child, row)) {
                continue;
            }
            const struct changed *changed = changed_of(child, row);
            struct place place = {version->tablets[t], pos, changed ? changed->over : NULL,
                                  &c->pins};
            if (key_at(link, true, &place, &c->other)) {
                TRY(each(c, link, row, arg));
            }
        }
    }
    return ERR_OK;
}

static wf_status match_event(struct cascade *c, struct link *link, i64 row, void *arg) {
    const struct numbers *events = arg;
    u32 hash = hash_text(&c->other);
    u64 at = hash;
    for (i64 i; (i = numbers_next(events, hash, &at)) >= 0;) {
        if (key_at(link, false, &link->parent->now.items[i].before, &c->own) &&
            same_text(&c->own, &c->other)) {
            VEC_PUSH(&c->arena, &c->matches, ((struct match){row, i}));
            return ERR_OK;
        }
    }
    return ERR_OK;
}

static wf_status enter_row(struct cascade *c, struct link *link, i64 row, void *arg) {
    UNUSED(arg);
    return numbers_add(c, &link->by_key, hash_text(&c->other), row);
}

static FALLIBLE match_by_scan(struct cascade *c, struct link *link) {
    struct numbers events = {0};
    for (i64 i = 0; i < link->parent->now.count; i++) {
        if (takes_key(c, link, &link->parent->now.items[i])) {
            TRY(numbers_add(c, &events, hash_text(&c->own), i));
        }
        TRY(step(c));
    }
    return events.used ? each_child(c, link, match_event, &events) : ERR_OK;
}

static FALLIBLE match_by_index(struct cascade *c, struct link *link) {
    for (i64 i = 0; i < link->parent->now.count; i++) {
        if (!takes_key(c, link, &link->parent->now.items[i])) {
            continue;
        }
        u32 hash = hash_text(&c->own);
        u64 at = hash;
        for (i64 row; (row = numbers_next(&link->by_key, hash, &at)) >= 0;) {
            struct place place = place_of(c, link->child, row);
            if (!is_dead(link->child, row) && key_at(link, true, &place, &c->other) &&
                same_text(&c->own, &c->other)) {
                VEC_PUSH(&c->arena, &c->matches, ((struct match){row, i}));
            }
        }
        TRY(step(c));
    }
    return ERR_OK;
}

/* What has changed refers elsewhere now; what was entered before is found not to be meant. */
static FALLIBLE enter_changed(struct cascade *c, struct link *link) {
    for (i64 i = link->entered; i < link->child->log.count; i++) {
        i64 row = link->child->log.items[i];
        struct place place = place_of(c, link->child, row);
        if (key_at(link, true, &place, &c->other)) {
            TRY(enter_row(c, link, row, NULL));
        }
    }
    return ERR_OK;
}

static FALLIBLE referred(struct cascade *c, const struct link *link, const struct place *before) {
    const struct table *parent = link->parent->table;
    struct shown_key key = {"", ""};
    for (u32 i = 0; i < link->fk->col_count; i++) {
        const struct column_def *col = &parent->cols[link->fk->ref_cols[i]];
        union lit v;
        if (place_get(parent, before, link->fk->ref_cols[i], &v)) {
            key_show_value(&key, col->name, col->type, &v);
        }
    }
    return still_referred(parent, link->child->table, link->fk, &key, &c->conn->err);
}

static FALLIBLE act_on(struct cascade *c, struct link *link, const struct match *match) {
    const struct event event = link->parent->now.items[match->event];
    u8 action = action_of(link, &event);
    if (is_dead(link->child, match->row)) {
        return ERR_OK;
    }
    if (action == FK_RESTRICT || action == FK_NO_ACTION) {
        bool there = false;
        if (action == FK_NO_ACTION && key_at(link, false, &event.before, &c->own)) {
            TRY(parent_has(c, link, &event.before, &there));
        }
        return there ? ERR_OK : referred(c, link, &event.before);
    }
    return action == FK_CASCADE && event.deleted
               ? kill_row(c, link->child, match->row)
               : set_reference(c, link, action, &event, match->row);
}

static FALLIBLE follow_link(struct cascade *c, struct link *link) {
    if (link->child->version->live_rows == 0) {
        return ERR_OK;
    }
    c->matches.count = 0;
    if (link->looks == 1) {
        TRY(each_child(c, link, enter_row, NULL));
    } else if (link->looks > 1) {
        TRY(enter_changed(c, link));
    }
    link->entered = link->child->log.count;
    TRY(link->looks++ ? match_by_index(c, link) : match_by_scan(c, link));
    for (i64 i = 0; i < c->matches.count; i++) {
        TRY(act_on(c, link, &c->matches.items[i]));
    }
    TRY(pins_check(&c->pins, &c->conn->err));
    return arena_check(&c->arena, &c->conn->err);
}

static FALLIBLE run_waves(struct cascade *c) {
    for (bool any = true; any;) {
        any = false;
        c->wave++;
        TRY(connection_check(c->conn));
        for (i64 i = 0; i < c->sites.count; i++) {
            struct site *site = c->sites.items[i];
            struct events done = site->now;
            site->now = site->next;
            site->next = done;
            site->next.count = 0;
        }
        for (i64 i = 0; i < c->sites.count; i++) {
            struct site *site = c->sites.items[i];
            if (site->now.count == 0) {
                continue;
            }
            any = true;
            TRY(site_links(c, site));
            for (i64 l = 0; l < site->links.count; l++) {
                TRY(follow_link(c, site->links.items[l]));
            }
        }
    }
    return ERR_OK;
}

/* The first wave: what the statement did. After an UPDATE the i-th live row of `delta` is what row
 * old_rows[i] of the base has become. */

static void push_deleted(struct cascade *c, struct site *site,
                         const struct table_version *removed) {
    for (i64 t = 0; t < removed->tablet_count; t++) {
        for (i64 pos = 0; pos < removed->tablet_rows[t]; pos++) {
            if (is_live(removed, t, pos)) {
                struct event event = {.before = {removed->tablets[t], pos, NULL, &c->pins},
                                      .deleted = 1};
                VEC_PUSH(&c->arena, &site->next, event);
            }
        }
    }
}

static void push_updated(struct cascade *c, struct site *site, const struct table_version *base,
                         const struct table_version *delta, const struct row_pairs *pairs) {
    i64 i = 0;
    for (i64 t = 0; t < delta->tablet_count; t++) {
        for (i64 pos = 0; pos < delta->tablet_rows[t] && i < pairs->count; pos++) {
            if (is_live(delta, t, pos)) {
                i64 row = pairs->old_rows[i++];
                if (row < 0) {
                    continue;
                }
                i64 from = version_find_row(base, row);
                struct event event = {
                    .before = {base->tablets[from], row - base->row_starts[from], NULL, &c->pins},
                    .after = {delta->tablets[t], pos, NULL, &c->pins}};
                VEC_PUSH(&c->arena, &site->next, event);
            }
        }
    }
}

/* The end: every table as the waves have left it. */

static FALLIBLE append_changed(struct cascade *c, struct site *site, struct table_version *less,
                               struct table_version **out) {
    const struct table *table = site->table;
    i64 count = site->changed.count, at = 0;
    struct input_col *cols = NEW_ARRAY(&c->arena, struct input_col, table->col_count);
    struct place *places = NEW_ARRAY(&c->arena, struct place, MAX_OF(count, 1));
    TRY(arena_check(&c->arena, &c->conn->err));
    for (i64 i = 0; i < count; i++) {
        const struct changed *changed = site->changed.items[i];
        if (!is_dead(site, changed->row)) {
            places[at++] = place_of(c, site, changed->row);
        }
    }
    for (u32 col = 0; col < table->col_count; col++) {
        i64 width = kind_bytes[type_kind(table->cols[col].type)];
        u8 *data = arena_alloc(&c->arena, MAX_OF(at, 1) * width);
        b8 *nulls = NEW_ARRAY(&c->arena, b8, MAX_OF(at, 1));
        TRY(arena_check(&c->arena, &c->conn->err));
        for (i64 i = 0; i < at; i++) {
            union lit v = {0};
            nulls[i] = !place_get(table, &places[i], col, &v);
            memcpy(data + i * width, &v, (size_t)width);
        }
        cols[col] = (struct input_col){data, nulls};
    }
    TRY(pins_check(&c->pins, &c->conn->err));
    return append_rows(c->conn, site->table, less, at, cols, out);
}

static FALLIBLE finish_site(struct cascade *c, struct site *site) {
    i64 *rows = NEW_ARRAY(&c->arena, i64, site->dead_count + site->changed.count + 1);
    i64 count = 0;
    TRY(arena_check(&c->arena, &c->conn->err));
    for (i64 word = 0; site->dead && word <= site->version->rows / 64; word++) {
        for (u64 bits = site->dead[word]; bits; bits &= bits - 1) {
            rows[count++] = word * 64 + __builtin_ctzll(bits);
        }
    }
    for (i64 i = 0; i < site->changed.count; i++) {
        const struct changed *changed = site->changed.items[i];
        rows[count] = changed->row;
        count += !is_dead(site, changed->row);
    }
    struct table_version *less, *mine = NULL;
    struct deletion gone = {.count = count, .rows = rows};
    TRY(version_delete(site->table, site->version, &gone, &less, &c->conn->err));
    wf_status status = append_changed(c, site, less, &mine);
    if (!status) {
        status = change_keep(c->conn, site->table, site->version, mine);
        version_release(mine);
    }
    version_release(less);
    return status;
}

static FALLIBLE finish(struct cascade *c) {
    for (i64 i = 0; i < c->sites.count; i++) {
        struct site *site = c->sites.items[i];
        if (site->dead_count || site->log.count) {
            TRY(finish_site(c, site));
        }
    }
    for (i64 i = 0; i < c->sites.count; i++) {
        struct site *site = c->sites.items[i];
        if (site->log.count) {
            TRY(constraints_of_new(c->conn, site->oid, site->table, site->version, false));
        }
    }
    return ERR_OK;
}

/* Whether all that follows from so many events may be an error, which a join finds. A RESTRICT does not ask whether
 * another row of an UPDATE has the key now. */
static bool only_asks(struct cascade *c, struct site *site, const struct table_version *rows,
                      bool updated) {
    bool fine = true;
    for (i64 i = 0; i < site->links.count && fine; i++) {
        const struct link *link = site->links.items[i];
        u8 action = updated ? link->fk->on_update : link->fk->on_delete;
        fine = (action == FK_NO_ACTION || (action == FK_RESTRICT && !updated)) &&
               !link->fk->unvalidated && edition_find_oid(c->edition, link->child->oid) &&
               orphans_by_join(link->child->table, link->fk, rows, site->table);
    }
    return fine;
}

static FALLIBLE ask(struct cascade *c, struct site *site) {
    const struct edition_entry *parent = edition_find_oid(c->edition, site->oid);
    for (i64 i = 0; i < site->links.count; i++) {
        const struct link *link = site->links.items[i];
        const struct edition_entry *child = edition_find_oid(c->edition, link->child->oid);
        bool any = false;
        struct shown_key key;
        if (link->child->version->live_rows && !reference_is_deferred(c->conn, link->fk)) {
            TRY(orphans_find(c->conn, child->object, link->fk, link->child->version, parent, &any,
                             &key));
        }
        if (any) {
            return still_referred(site->table, link->child->table, link->fk, &key, &c->conn->err);
        }
    }
    return ERR_OK;
}

static FALLIBLE start(struct cascade *c, struct site *site, struct table_version *base,
                      const struct row_pairs *pairs) {
    struct table_version *rows;
    TRY(pairs ? version_delta(site->table, base, site->version, &rows, &c->conn->err)
              : version_removed(site->table, base, site->version, &rows, &c->conn->err));
    if (only_asks(c, site, rows, pairs != NULL)) {
        version_release(rows);
        return ask(c, site);
    }
    if (pairs) {
        push_updated(c, site, base, rows, pairs);
    } else {
        push_deleted(c, site, rows);
    }
    wf_status status = arena_check(&c->arena, &c->conn->err);
    status = status ? status : run_waves(c);
    status = status ? status : finish(c);
    version_release(rows);
    return status;
}

FALLIBLE referrers_after(struct wf_connection *conn, u32 oid, struct table_version *base,
                         const struct row_pairs *pairs) {
    struct cascade c = {.conn = conn, .edition = edition_retain(conn->tx.mine)};
    const struct edition_entry *entry = edition_find_oid(c.edition, oid);
    memory_init(&c.mem, &conn->db->mem, 0, "memory");
    temp_init(&c.temp, setting_folder(&conn->settings), conn->settings.temp_size,
              conn->db->mem.limit_bytes / WARM_SHARE);
    c.mem.temp = &c.temp;
    arena_init(&c.arena, &c.mem);
    pins_init(&c.pins, &conn->db->mem);
    text_init(&c.own, &c.arena);
    text_init(&c.other, &c.arena);
    struct site *site = site_of(&c, entry);
    wf_status status = site_links(&c, site);
    if (!status && site->links.count) {
        status = start(&c, site, base, pairs);
    }
    pins_fini(&c.pins);
    for (i64 i = 0; i < c.sites.count; i++) {
        version_release(c.sites.items[i]->version);
    }
    status = status ? status : temp_check(&c.temp, &conn->err);
    arena_fini(&c.arena);
    temp_fini(&c.temp, &conn->db->temp_exit);
    edition_release(c.edition);
    return status;
}
