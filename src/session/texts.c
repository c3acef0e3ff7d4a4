/* texts.c: statements that wf_query gets again: their syntax tree and program are kept.
 *
 * A connection keeps a statement from the second time on that it meets its text, so that texts
 * which never return, such as rows to insert, cost a number each and nothing else. The kept program
 * is used like that of a prepared statement: while definitions, search path and settings are those
 * it was compiled for and its guards hold; else it is compiled anew and replaced. Places are few: a
 * new text takes that of the one used longest ago. When memory is short, or statement_cache off,
 * nothing is kept. They belong to the connection, not to the database, so that nobody waits and a
 * program never outlives who may run it. */
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "session/session_int.h"

enum { PLACES = 64, SEEN = 256, TEXT_BYTES_MAX = 8192, SHARE_OF_MEMORY = 16 };
#define SPARED_BYTES (256LL << 20)

struct kept_text {
    u64 hash;
    struct script *script; /* NULL: the place is free */
    struct compiled *compiled;
    i64 compile_count;
    i64 used; /* when, by the clock of `texts` */
};

struct texts {
    i64 clock;
    u64 seen[SEEN]; /* hashes of the last texts that were new */
    u32 next_seen;
    struct kept_text kept[PLACES];
};

static void drop(struct kept_text *kept) {
    compiled_release(kept->compiled);
    script_release(kept->script);
    memset(kept, 0, sizeof *kept);
}

void texts_close(struct wf_connection *conn) {
    if (!conn->texts) {
        return;
    }
    for (i32 i = 0; i < PLACES; i++) {
        drop(&conn->texts->kept[i]);
    }
    mem_free(&conn->db->mem, conn->texts, (i64)sizeof *conn->texts);
    conn->texts = NULL;
}

/* Programs are small beside large budgets, however many rows those hold; of a small budget they leave
 * most to others. */
static bool memory_is_short(struct wf_connection *conn) {
    const struct memory *mem = &conn->db->mem;
    i64 most = MAX_OF(mem->limit_bytes / SHARE_OF_MEMORY, mem->limit_bytes / 4 * 3 - SPARED_BYTES);
    return mem->limit_bytes && atomic_load(&mem->used_bytes) > most;
}

static u64 hash_of(struct sv text) {
    return XXH3_64bits(text.ptr, (size_t)text.len) | 1;
}

struct kept_text *texts_find(struct wf_connection *conn, const char *sql) {
    struct sv text = sql ? sv_from(sql) : (struct sv){NULL, 0};
    if (!conn->texts || !conn->settings.statement_cache || text.len == 0 ||
        text.len > TEXT_BYTES_MAX) {
        return NULL;
    }
    u64 hash = hash_of(text);
    for (i32 i = 0; i < PLACES; i++) {
        struct kept_text *kept = &conn->texts->kept[i];
        if (kept->hash == hash && kept->script->text.len == text.len &&
            kept->script->logical == (conn->settings.language == LANGUAGE_LOGIQL) &&
            memcmp(kept->script->text.ptr, text.ptr, (size_t)text.len) == 0) {
            kept->used = ++conn->texts->clock;
            return kept;
        }
    }
    return NULL;
}

/* Whether the text is one of the last; if not, it is from now on. */
static bool was_seen(struct texts *texts, u64 hash) {
    bool seen = false;
    for (i32 i = 0; i < SEEN; i++) {
        seen |= texts->seen[i] == hash;
    }
    if (!seen) {
        texts->seen[texts->next_seen++ % SEEN] = hash;
    }
    return seen;
}

struct kept_text *texts_keep(struct wf_connection *conn, struct script *script) {
    i64 bytes = (i64)sizeof *conn->texts;
    bool plain = script->list.items.count == 1 && script->text.len <= TEXT_BYTES_MAX &&
                 parsed_param_count(script->list.items.items[0]) == 0;
    if (!plain || !conn->settings.statement_cache || memory_is_short(conn)) {
        return NULL;
    }
    if (!conn->texts) {
        conn->texts = mem_alloc(&conn->db->mem, bytes);
        if (!conn->texts) {
            return NULL;
        }
        memset(conn->texts, 0, (size_t)bytes);
    }
    struct texts *texts = conn->texts;
    u64 hash = hash_of(script->text);
    if (!was_seen(texts, hash)) {
        return NULL;
    }
    struct kept_text *kept = &texts->kept[0];
    for (i32 i = 1; i < PLACES; i++) {
        kept = texts->kept[i].used < kept->used ? &texts->kept[i] : kept;
    }
    drop(kept);
    *kept =
        (struct kept_text){.hash = hash, .script = script_retain(script), .used = ++texts->clock};
    return kept;
}

struct script *texts_script(struct kept_text *kept) {
    return script_retain(kept->script);
}

void texts_request(struct kept_text *kept, struct run_request *request) {
    request->cache = &kept->compiled;
    request->compile_count = &kept->compile_count;
}

/* Others have a state of their own, or run once. */
void texts_settle(struct wf_connection *conn, struct kept_text *kept) {
    u8 kind = kept->compiled ? kept->compiled->stmt.kind : (u8)STATEMENT_SET;
    bool stays = kind == STATEMENT_SELECT || kind == STATEMENT_INSERT || kind == STATEMENT_UPDATE ||
                 kind == STATEMENT_DELETE;
    if (!stays || memory_is_short(conn)) {
        drop(kept);
    }
}
