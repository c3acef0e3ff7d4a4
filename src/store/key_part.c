/* key_part.c: the rows of a tablet by the hash of their key.
 *
 * Sorted by hash, as far as its first bits say: the first ones name a chunk of some 2^16 rows, the
 * next ones a bucket of some 16, and 16 more are kept of every row, so a row that is not there is
 * taken for one that may be there once in 4096 times. Hashes and places are apart: the hashes are the
 * filter, 2.25 bytes a row, of which one look-up reads the 150 kB of one chunk; places are read where a
 * hash was found. Chunks lie in the file as they do in memory, and come and go as columns do
 * (frames.c). docs/file-format.md has the bytes, decision 0043 the reasons. */
#include "store/key_int.h"

#include "store/frames_int.h"

enum {
    CHUNK_MOST = 1 << 16, /* rows, about */
    BUCKET_ROWS = 12,     /* at least */
    REST_BITS = 16,
    CHUNK_BITS_MAX = 4,
};

u32 chunk_dir_bits(u32 count) {
    u32 bits = 0;
    while (count >> (bits + 1) >= BUCKET_ROWS) {
        bits++;
    }
    return bits;
}

i64 chunk_hash_bytes(u32 count) {
    return (((i64)1 << chunk_dir_bits(count)) + 1) * (i64)sizeof(u32) + (i64)count * 2;
}

i64 chunk_place_bytes(u32 count) {
    return (i64)count * 2 + ((i64)count + 1) / 2;
}

/* The `count` bits of a hash behind its first `skip`. */
static u32 hash_bits(u64 hash, u32 skip, u32 count) {
    return count ? (u32)(hash << skip >> (64 - count)) : 0;
}

/* --- the object --- */

static i64 part_bytes(u8 order, u8 chunk_bits) {
    i64 chunks = order ? 0 : 1LL << chunk_bits;
    return (i64)sizeof(struct key_part) + chunks * (i64)sizeof(struct key_chunk);
}

struct key_part *part_new(struct memory *mem, u8 order, u8 chunk_bits, u32 rows) {
    struct key_part *part = mem_alloc(mem, part_bytes(order, chunk_bits));
    if (part) {
        memset(part, 0, (size_t)part_bytes(order, chunk_bits));
        atomic_init(&part->refs, 1);
        part->mem = mem;
        part->order = order;
        part->chunk_bits = chunk_bits;
        part->rows = rows;
    }
    return part;
}

void part_release(struct key_part *part) {
    if (!part || atomic_fetch_sub_explicit(&part->refs, 1, memory_order_acq_rel) != 1) {
        return;
    }
    for (i64 c = 0; c < part_chunks(part); c++) {
        buffer_release(atomic_load(&part->chunks[c].hashes.buf));
        buffer_release(atomic_load(&part->chunks[c].places.buf));
    }
    frames_release(part->frames);
    mem_free(part->mem, part, part_bytes(part->order, part->chunk_bits));
}

static bool same_cols(const struct tablet_key *at, const u32 *cols, u32 col_count) {
    return at->col_count == col_count && memcmp(at->cols, cols, col_count * sizeof *cols) == 0;
}

struct key_part *tablet_find_part(const struct tablet *tablet, const u32 *cols, u32 col_count) {
    for (const struct tablet_key *at = atomic_load(&tablet->keys); at; at = at->next) {
        if (same_cols(at, cols, col_count)) {
            return at->part;
        }
    }
    return NULL;
}

static i64 node_bytes(u32 col_count) {
    return (i64)sizeof(struct tablet_key) + (i64)col_count * (i64)sizeof(u32);
}

bool tablet_add_part(struct tablet *tablet, const u32 *cols, u32 col_count, struct key_part *part) {
    struct tablet_key *node = mem_alloc(tablet->mem, node_bytes(col_count));
    if (!node) {
        part_release(part);
        return false;
    }
    node->part = part;
    node->col_count = col_count;
    memcpy(node->cols, cols, col_count * sizeof *cols);
    struct tablet_key *head = atomic_load(&tablet->keys);
    do {
        if (tablet_find_part(tablet, cols, col_count)) { /* somebody was faster */
            part_release(part);
            mem_free(tablet->mem, node, node_bytes(col_count));
            return true;
        }
        head = atomic_load(&tablet->keys);
        node->next = head;
    } while (!atomic_compare_exchange_strong(&tablet->keys, &head, node));
    return true;
}

void tablet_keys_free(struct tablet *tablet) {
    struct tablet_key *at = atomic_load(&tablet->keys);
    while (at) {
        struct tablet_key *next = at->next;
        part_release(at->part);
        mem_free(tablet->mem, at, node_bytes(at->col_count));
        at = next;
    }
}

bool tablet_share_parts(struct tablet *to, const struct tablet *from, const i32 *cols) {
    bool fine = true;
    for (const struct tablet_key *at = atomic_load(&from->keys); at && fine; at = at->next) {
        u32 mine[KEY_COLS_MAX], found = 0;
        for (u32 i = 0; i < at->col_count; i++) {
            for (u32 c = 0; c < to->col_count && found == i; c++) {
                if (cols[c] == (i32)at->cols[i]) {
                    mine[found++] = c;
                }
            }
        }
        if (found == at->col_count) {
            atomic_fetch_add_explicit(&at->part->refs, 1, memory_order_relaxed);
            fine = tablet_add_part(to, mine, found, at->part);
        }
    }
    return fine;
}

/* --- making one --- */

/* The hashes of all rows; and those of one chunk, with their positions. */
struct part_draft {
    struct memory *mem;
    struct frames *frames; /* of the table's file; NULL = it has none */
    i64 rows;
    u64 *hashes;
    b8 *has; /* whether the row has a key at all */
    i64 counts[1 << CHUNK_BITS_MAX], most; /* rows of each chunk, and of the largest */
    u64 *chunk_hashes;
    u32 *chunk_places;
};

static i64 key_draft_bytes(i64 rows) {
    return rows * (i64)(sizeof(u64) + sizeof(b8));
}

static i64 draft_chunk_bytes(const struct part_draft *draft) {
    return MAX_OF(draft->most, 1) * (i64)(sizeof(u64) + sizeof(u32));
}

/* As long as a tablet has rows: where memory has no room for them, in temporary space. */
static void *draft_take_block(const struct part_draft *draft, i64 bytes) {
    return draft->frames ? frames_scratch(draft->frames, bytes) : mem_alloc(draft->mem, bytes);
}

static void draft_give_block(const struct part_draft *draft, void *block, i64 bytes) {
    if (draft->frames) {
        frames_scratch_end(draft->frames, block, bytes);
    } else {
        mem_free(draft->mem, block, bytes);
    }
}

static bool part_draft_init(struct part_draft *draft, const struct table *table, i64 rows) {
    struct db_file *file = table->state->file;
    *draft = (struct part_draft){.mem = table->mem, .frames = file ? file->frames : NULL, .rows = rows};
    draft->hashes = draft_take_block(draft, key_draft_bytes(rows));
    draft->has = draft->hashes ? (b8 *)(draft->hashes + rows) : NULL;
    return draft->hashes != NULL;
}

static FALLIBLE draft_fill(struct part_draft *draft, const struct table *table,
                           const struct table_key *key, const struct tablet *tablet,
                           struct error *err) {
    struct pins pins;
    pins_init(&pins, table->mem);
    for (i64 from = 0; from < draft->rows; from += KEY_BATCH) {
        i64 n = MIN_OF(draft->rows - from, KEY_BATCH);
        if (!key_hashes(&pins, table, key, tablet, from, n, draft->hashes + from,
                        draft->has + from)) {
            break;
        }
    }
    wf_status status = pins_check(&pins, err);
    pins_fini(&pins);
    return status;
}

static FALLIBLE draft_count(struct part_draft *draft, u32 bits, struct error *err) {
    for (i64 i = 0; i < draft->rows; i++) {
        draft->counts[hash_bits(draft->hashes[i], 0, bits)] += draft->has[i];
    }
    for (i64 c = 0; c < 1LL << bits; c++) {
        draft->most = MAX_OF(draft->most, draft->counts[c]);
    }
    draft->chunk_hashes = draft_take_block(draft, draft_chunk_bytes(draft));
    draft->chunk_places = (u32 *)(void *)(draft->chunk_hashes + MAX_OF(draft->most, 1));
    return draft->chunk_hashes ? ERR_OK
                               : memory_refused(draft->mem, err, draft_chunk_bytes(draft));
}

/* The rows of one chunk, in their order. */
static void draft_take(const struct part_draft *draft, i64 c, u32 bits) {
    i64 to = 0;
    for (i64 i = 0; i < draft->rows; i++) {
        if (draft->has[i] && hash_bits(draft->hashes[i], 0, bits) == c) {
            draft->chunk_hashes[to] = draft->hashes[i];
            draft->chunk_places[to++] = (u32)i;
        }
    }
}

/* One chunk's rows to its two buffers, bucket by bucket. */
static bool chunk_make(struct key_chunk *chunk, const struct part_draft *draft, i64 c, u32 skip) {
    const u64 *hashes = draft->chunk_hashes;
    const u32 *places = draft->chunk_places;
    u32 count = (u32)draft->counts[c], bits = chunk_dir_bits(count);
    struct buffer *hash_buf = buffer_new(draft->mem, chunk_hash_bytes(count));
    struct buffer *place_buf = buffer_new(draft->mem, MAX_OF(chunk_place_bytes(count), 1));
    if (!hash_buf || !place_buf) {
        buffer_release(hash_buf);
        buffer_release(place_buf);
        return false;
    }
    u32 *starts = (u32 *)(void *)hash_buf->data, buckets = 1u << bits;
    u16 *rests = (u16 *)(void *)(starts + buckets + 1), *low = (u16 *)(void *)place_buf->data;
    u8 *high = (u8 *)(low + count);
    memset(starts, 0, (buckets + 1) * sizeof *starts);
    memset(high, 0, ((size_t)count + 1) / 2);
    for (u32 i = 0; i < count; i++) {
        starts[hash_bits(hashes[i], skip, bits) + 1]++;
    }
    for (u32 b = 0; b < buckets; b++) {
        starts[b + 1] += starts[b];
    }
    for (u32 i = 0; i < count; i++) { /* starts[b] becomes the end of bucket b */
        u32 to = starts[hash_bits(hashes[i], skip, bits)]++;
        rests[to] = (u16)hash_bits(hashes[i], skip + bits, REST_BITS);
        low[to] = (u16)places[i];
        high[to / 2] |= (u8)(places[i] >> 16 << 4 * (to & 1));
    }
    memmove(starts + 1, starts, buckets * sizeof *starts);
    starts[0] = 0;
    chunk->count = count;
    atomic_store(&chunk->hashes.buf, hash_buf);
    atomic_store(&chunk->places.buf, place_buf);
    return true;
}

static FALLIBLE build_hashes(const struct table *table, const struct table_key *key,
                             const struct tablet *tablet, struct key_part **out,
                             struct error *err) {
    u32 rows = tablet->rows;
    u8 bits = 0;
    while (rows >> bits > CHUNK_MOST) {
        bits++;
    }
    ASSERT(bits <= CHUNK_BITS_MAX);
    struct part_draft draft;
    struct key_part *part = part_new(table->mem, 0, bits, rows);
    if (!part || !part_draft_init(&draft, table, rows)) {
        part_release(part);
        return memory_refused(table->mem, err, key_draft_bytes(rows));
    }
    wf_status status = draft_fill(&draft, table, key, tablet, err);
    status = status ? status : draft_count(&draft, bits, err);
    for (i64 c = 0; c < 1LL << bits && !status; c++) {
        draft_take(&draft, c, bits);
        if (!chunk_make(&part->chunks[c], &draft, c, bits)) {
            status = memory_refused(table->mem, err, CHUNK_MOST * 5);
        }
    }
    draft_give_block(&draft, draft.chunk_hashes, draft_chunk_bytes(&draft));
    draft_give_block(&draft, draft.hashes, key_draft_bytes(rows));
    if (status) {
        part_release(part);
        return status;
    }
    if (tablet->filed) { /* of others it goes as soon as it is saved */
        part_write_early(table, key, part);
    }
    *out = part;
    return ERR_OK;
}

wf_status part_build(const struct table *table, const struct table_key *key,
                     const struct tablet *tablet, struct key_part **out, struct error *err) {
    u8 order = segment_key_order(table, key, tablet);
    if (!order && key->col_count > 1) {
        TRY(tablet_find_order(table, key, tablet, &order, err));
    }
    if (!order) {
        return build_hashes(table, key, tablet, out, err);
    }
    *out = part_new(table->mem, order, 0, tablet->rows);
    return *out ? ERR_OK : memory_refused(table->mem, err, (i64)sizeof **out);
}

/* --- looking into one --- */

static void damaged(struct pins *pins, const struct table *table, const struct table_key *key) {
    pins->status = error_set(&pins->err, ERR_DAMAGED, -1,
                             "key \"%.60s\" of table \"%.60s\" is damaged", key->name, table->name);
}

struct buffer *half_buffer(const struct key_part *part, struct key_half *half, const char *table,
                           const char *key) {
    struct buffer *buf = atomic_load(&half->buf), *none = NULL;
    if (buf) {
        return buf;
    }
    struct frame_form form = {.extent = half->home,
                              .lay = {.data_bytes = half->home.bytes, .total = half->home.bytes},
                              .encoding = ENC_INT,
                              .is_key = 1,
                              .table = table,
                              .column = key};
    CHECK(part->frames != NULL);
    buf = frame_new(part->frames, &form);
    if (buf && !atomic_compare_exchange_strong(&half->buf, &none, buf)) {
        buffer_release(buf);
        buf = none;
    }
    return buf;
}

/* A chunk's half in memory, held by the pins. */
static const u8 *half_data(struct part_cursor *cursor, struct key_half *half) {
    struct pins *pins = cursor->pins;
    struct buffer *buf = half_buffer(cursor->part, half, cursor->table->name, cursor->key->name);
    if (!buf) {
        pins->status = memory_refused(pins->mem, &pins->err, half->home.bytes);
        return NULL;
    }
    return pins_need_frame(pins, buf) ? buf->data : NULL;
}

bool part_seek(struct part_cursor *cursor, u64 hash) {
    const struct key_part *part = cursor->part;
    struct key_chunk *chunk = cursor->chunk =
        &cursor->part->chunks[hash_bits(hash, 0, part->chunk_bits)];
    u32 count = chunk->count, bits = chunk_dir_bits(count);
    cursor->at = cursor->end = 0;
    if (count == 0 || cursor->pins->status) {
        return false;
    }
    const u8 *data = half_data(cursor, &chunk->hashes);
    if (!data) {
        return false;
    }
    const u32 *starts = (const u32 *)(const void *)data;
    u32 bucket = hash_bits(hash, part->chunk_bits, bits);
    u32 from = starts[bucket], to = starts[bucket + 1];
    if (from > to || to > count) {
        damaged(cursor->pins, cursor->table, cursor->key);
        return false;
    }
    cursor->rests = (const u16 *)(const void *)(starts + ((size_t)1 << bits) + 1);
    cursor->rest = (u16)hash_bits(hash, part->chunk_bits + bits, REST_BITS);
    cursor->at = from;
    cursor->end = to;
    return from < to;
}

bool part_next(struct part_cursor *cursor, u32 *out_pos) {
    while (cursor->at < cursor->end && cursor->rests[cursor->at] != cursor->rest) {
        cursor->at++;
    }
    if (cursor->at >= cursor->end) {
        return false;
    }
    struct key_chunk *chunk = cursor->chunk;
    u32 count = chunk->count, at = cursor->at++;
    const u8 *data = half_data(cursor, &chunk->places);
    if (!data) {
        return false;
    }
    u32 high = data[(i64)count * 2 + at / 2] >> 4 * (at & 1) & 15;
    *out_pos = (u32)((const u16 *)(const void *)data)[at] | high << 16;
    if (*out_pos >= cursor->part->rows) {
        damaged(cursor->pins, cursor->table, cursor->key);
        return false;
    }
    return true;
}

static bool finds(struct part_cursor *cursor, u64 hash, u32 wanted) {
    u32 pos = 0;
    bool found = false, more = part_seek(cursor, hash);
    while (more && !found) {
        more = part_next(cursor, &pos);
        found = more && pos == wanted;
    }
    return found;
}

const char *key_name_of(const struct table *table, const u32 *cols, u32 col_count) {
    for (u32 k = 0; k < table->key_count; k++) {
        const struct table_key *key = &table->keys[k];
        if (key->col_count == col_count && memcmp(key->cols, cols, col_count * sizeof *cols) == 0) {
            return key->name;
        }
    }
    return "of old";
}

wf_status part_check(const struct table *table, const struct tablet_key *at,
                     const struct tablet *tablet, struct error *err) {
    struct pins pins;
    struct table_key key = {.name = key_name_of(table, at->cols, at->col_count),
                            .col_count = at->col_count,
                            .cols = (u32 *)(size_t)at->cols};
    bool in_memory =
        at->part->order || at->part->frames || atomic_load(&at->part->chunks[0].hashes.buf);
    if (at->part->order || !in_memory) {
        return ERR_OK;
    }
    struct part_cursor cursor = {.pins = &pins, .table = table, .key = &key, .part = at->part};
    u64 hash[KEY_BATCH];
    b8 has[KEY_BATCH];
    pins_init(&pins, table->mem);
    for (i64 from = 0; from < tablet->rows && !pins.status; from += KEY_BATCH) {
        i64 n = MIN_OF((i64)tablet->rows - from, KEY_BATCH);
        bool read = key_hashes(&pins, table, &key, tablet, from, n, hash, has);
        for (i64 i = 0; i < n && read && !pins.status; i++) {
            if (has[i] && !finds(&cursor, hash[i], (u32)(from + i)) && !pins.status) {
                damaged(&pins, table, &key);
            }
        }
    }
    wf_status status = pins_check(&pins, err);
    pins_fini(&pins);
    return status;
}
