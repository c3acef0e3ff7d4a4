/* saved.c: the catalog in a database file: objects as bytes, states as extents, commits as records.
 *
 * A commit is what is different in two editions, and so is its record: objects that are new, other
 * or gone, rows and deletions of tables (store/replay.c), places of sequences. What a record should
 * not hold (many rows, a table redefined with its rows) is saved instead: the whole state goes to
 * the file beside the one there, sharing its extents, and the header is switched; that is a
 * checkpoint, and the log begins anew. Both happen under the commit lock, before anybody sees the
 * edition.
 *
 * A checkpoint that no commit waits for leaves them alone: keeper.c. See decision 0034. */
#include "catalog/catalog_int.h"
#include "store/saved.h"

enum { LOG_ROWS_MOST = 1 << 19 }; /* bytes of a commit that go to the log */
#define LOG_BYTES_MOST (64LL << 20) /* then a checkpoint follows, if nothing else was asked for */

enum change_kind { CHANGE_END, CHANGE_GONE, CHANGE_OBJECT, CHANGE_TABLE, CHANGE_ROWS, CHANGE_SEQ };

static bool is_saved(const struct object *object) {
    return !object->temp && !(object->kind == OBJECT_SCHEMA && object->hidden);
}

/* objects to bytes */

/* `is_kept`: nobody can commit before this is in log or file, so what is different afterwards is
 * all that the next record has to say. */
static void sequence_save(struct blob *out, struct sequence *seq, bool is_kept) {
    mutex_lock(&seq->lock);
    blob_u64(out, (u64)seq->start);
    blob_u64(out, (u64)seq->increment);
    blob_u64(out, (u64)seq->min);
    blob_u64(out, (u64)seq->max);
    blob_u8(out, (u8)(seq->cycle | seq->called << 1));
    type_save(out, seq->type);
    blob_u64(out, (u64)seq->last);
    if (is_kept) {
        seq->saved_last = seq->last;
        seq->saved_called = seq->called;
    }
    mutex_unlock(&seq->lock);
}

static void object_save(struct blob *out, const struct object *object, bool is_kept) {
    blob_u8(out, object->kind);
    blob_u32(out, object->oid);
    blob_u32(out, object->schema);
    blob_u8(out, (u8)(object->hidden | object->logical << 1));
    blob_text(out, object->name);
    blob_text(out, object->comment);
    blob_u32(out, object->owner);
    blob_u32(out, object->owner_col);
    blob_text(out, object->text);
    blob_text(out, object->path);
    blob_u32(out, object->col_count);
    for (u32 i = 0; i < object->col_count; i++) {
        blob_text(out, object->col_names[i]);
        type_save(out, object->col_types[i]);
    }
    blob_u32(out, object->dep_count);
    for (u32 i = 0; i < object->dep_count; i++) {
        blob_u32(out, object->deps[i]);
        blob_u32(out, object->dep_cols[i].count);
        for (u32 c = 0; c < object->dep_cols[i].count; c++) {
            blob_text(out, object->dep_cols[i].names[c]);
        }
    }
    if (object->sequence) {
        sequence_save(out, object->sequence, is_kept);
    }
}

/* The object's definition; its table and sequence are the caller's to make. */
static struct object object_load(struct blob_reader *from, struct arena *arena) {
    struct object object = {.kind = read_u8(from)};
    object.oid = read_u32(from);
    object.schema = read_u32(from);
    u8 flags = read_u8(from);
    object.hidden = flags & 1;
    object.logical = flags >> 1 & 1;
    object.name = read_text(from, arena);
    object.comment = read_text(from, arena);
    object.owner = read_u32(from);
    object.owner_col = read_u32(from);
    object.text = read_text(from, arena);
    object.path = read_text(from, arena);
    object.col_count = read_count(from, 12);
    object.col_names = NEW_ARRAY(arena, const char *, object.col_count + 1);
    object.col_types = NEW_ARRAY(arena, struct type, object.col_count + 1);
    for (u32 i = 0; i < object.col_count; i++) {
        object.col_names[i] = read_text(from, arena);
        object.col_types[i] = type_load(from);
    }
    object.dep_count = read_count(from, 8);
    object.deps = NEW_ARRAY(arena, u32, object.dep_count + 1);
    object.dep_cols = NEW_ARRAY(arena, struct column_names, object.dep_count + 1);
    for (u32 i = 0; i < object.dep_count; i++) {
        struct column_names *names = &object.dep_cols[i];
        object.deps[i] = read_u32(from);
        names->count = read_count(from, 4);
        names->names = NEW_ARRAY(arena, const char *, names->count + 1);
        for (u32 c = 0; c < names->count; c++) {
            names->names[c] = read_text(from, arena);
        }
    }
    from->bad |= object.kind > OBJECT_INDEX || !object.name;
    return object;
}

static struct sequence sequence_load(struct blob_reader *from) {
    struct sequence like = {.start = (i64)read_u64(from)};
    like.increment = (i64)read_u64(from);
    like.min = (i64)read_u64(from);
    like.max = (i64)read_u64(from);
    u8 flags = read_u8(from);
    like.cycle = flags & 1;
    like.called = flags >> 1 & 1;
    like.type = type_load(from);
    like.last = (i64)read_u64(from);
    return like;
}

/* states to the file */

static FALLIBLE write_objects(struct state_out *out, struct catalog *catalog,
                              struct edition *edition, struct error *err) {
    struct save *save = out->save;
    struct dict_list *dicts = &out->dicts;
    struct blob *objects = &out->objects;
    u32 count = 0;
    for (struct edition_walk at = edition_walk(edition); edition_step(&at);) {
        const struct object *object = at.entry->object;
        if (!is_saved(object)) {
            continue;
        }
        object_save(objects, object, out->is_kept);
        if (object->kind == OBJECT_TABLE) {
            struct extent extent;
            table_def_save(objects, object->table);
            TRY(version_save(save, dicts, object->table, at.entry->version, &extent, err));
            extent_save(objects, &extent);
        }
        count++;
    }
    TRY(rows_save(out, catalog, edition, err));
    struct blob root;
    blob_init(&root, catalog->mem);
    blob_u32(&root, atomic_load(&catalog->last_oid));
    blob_u64(&root, catalog->last_dict);
    blob_u32(&root, dicts->count);
    blob_bytes(&root, dicts->out.data, dicts->out.len);
    blob_u32(&root, count);
    blob_bytes(&root, objects->data, objects->len);
    wf_status status = blob_check(&root, err);
    status = status ? status : blob_check(&dicts->out, err);
    status = status ? status : blob_check(objects, err);
    status = status ? status : save_put(save, root.data, root.len, &out->root, err);
    blob_fini(&root);
    return status;
}

wf_status state_write(struct state_out *out, struct catalog *catalog, struct edition *edition,
                      struct error *err) {
    out->dicts = (struct dict_list){.last_id = &catalog->last_dict};
    blob_init(&out->dicts.out, catalog->mem);
    blob_init(&out->objects, catalog->mem);
    wf_status status = write_objects(out, catalog, edition, err);
    status = status ? status : save_sync(out->save, err);
    blob_fini(&out->objects);
    blob_fini(&out->dicts.out);
    return status;
}

wf_status state_save(struct catalog *catalog, struct edition *edition, bool is_last,
                     struct error *err) {
    struct state_out out = {.is_kept = true};
    u64 moves = sequence_moves();
    ASSERT(!catalog->saving);
    TRY(save_open(catalog->file, NULL, &out.save, err));
    wf_status status = state_write(&out, catalog, edition, err);
    status = status ? status : save_finish(out.save, &out.root, is_last, err);
    save_close(out.save);
    if (!status) {
        rows_saved(catalog, &out);
    }
    rows_list_close(out.rows);
    if (!status) {
        catalog->root = out.root;
        catalog->saved_moves = moves;
        edition_release(catalog->saved);
        catalog->saved = edition_retain(edition);
    }
    return status;
}

/* commits to the log */

struct record_out {
    struct blob blob;
    b8 is_any;   /* something is to be kept */
    b8 is_large; /* more than a record should hold */
};

static void note_table(struct record_out *out, const struct edition_entry *before,
                       const struct edition_entry *after) {
    const struct object *object = after->object;
    bool same = before && before->object->table == object->table;
    if (!same || before->object != object) {
        blob_u8(&out->blob, same ? CHANGE_OBJECT : CHANGE_TABLE);
        object_save(&out->blob, object, true);
        if (!same) {
            table_def_save(&out->blob, object->table);
            out->is_large |= before && after->version->rows; /* its rows stay where they are */
        }
    }
    const struct table_version *old = same ? before->version : NULL;
    if (old != after->version && !out->is_large) {
        blob_u8(&out->blob, CHANGE_ROWS);
        blob_u32(&out->blob, object->oid);
        out->is_large |= !version_change_save(&out->blob, object->table, old, after->version,
                                              LOG_ROWS_MOST);
    }
}

static void note_change(struct record_out *out, const struct edition_entry *before,
                        const struct edition_entry *after) {
    const struct object *object = (after ? after : before)->object;
    if (!is_saved(object) || out->is_large) {
        out->is_any |= is_saved(object);
        return;
    }
    out->is_any = 1;
    if (!after) {
        blob_u8(&out->blob, CHANGE_GONE);
        blob_u32(&out->blob, object->oid);
    } else if (object->kind == OBJECT_TABLE) {
        note_table(out, before, after);
    } else {
        blob_u8(&out->blob, CHANGE_OBJECT);
        object_save(&out->blob, object, true);
    }
}

/* Numbers that sequences handed out since the last record. */
static void note_sequences(struct record_out *out, const struct edition *edition) {
    for (struct edition_walk at = edition_walk(edition); edition_step(&at);) {
        struct sequence *seq = at.entry->object->sequence;
        if (!seq || !is_saved(at.entry->object)) {
            continue;
        }
        mutex_lock(&seq->lock);
        if (seq->last != seq->saved_last || seq->called != seq->saved_called) {
            out->is_any = 1;
            blob_u8(&out->blob, CHANGE_SEQ);
            blob_u32(&out->blob, at.entry->object->oid);
            blob_u64(&out->blob, (u64)seq->last);
            blob_u8(&out->blob, seq->called);
            seq->saved_last = seq->last;
            seq->saved_called = seq->called;
        }
        mutex_unlock(&seq->lock);
    }
}

static FALLIBLE write_record(struct catalog *catalog, struct edition *next, struct record_out *out,
                             bool *out_again, struct error *err) {
    u64 moves = sequence_moves();
    blob_u32(&out->blob, atomic_load(&catalog->last_oid));
    for (struct edition_diff diff = edition_diff(catalog->saved, next); edition_diff_step(&diff);) {
        note_change(out, diff.before, diff.after);
    }
    if (moves != catalog->saved_moves && !out->is_large) {
        note_sequences(out, next);
    }
    blob_u8(&out->blob, CHANGE_END);
    TRY(blob_check(&out->blob, err));
    if (out->is_any) {
        TRY(db_file_check(catalog->file, err));
        bool saves = out->is_large || out->blob.len > LOG_RECORD_MOST ||
                     log_is_replayed(catalog->file);
        while (saves && catalog->saving) {
            *out_again = true;
            atomic_store(&catalog->save_stops, true);
            cond_wait(&catalog->save_done, &catalog->commit_lock);
        }
        if (saves) {
            return *out_again ? ERR_OK : state_save(catalog, next, false, err);
        }
        TRY(log_append(catalog->file, out->blob.data, out->blob.len, &catalog->last_record, err));
    }
    catalog->saved_moves = moves;
    edition_release(catalog->saved);
    catalog->saved = edition_retain(next);
    return ERR_OK;
}

wf_status catalog_keep(struct catalog *catalog, struct edition *next, bool *out_again,
                       struct error *err) {
    struct record_out out = {.is_any = 0};
    *out_again = false;
    if (!catalog->file) {
        return ERR_OK;
    }
    blob_init(&out.blob, catalog->mem);
    wf_status status = write_record(catalog, next, &out, out_again, err);
    blob_fini(&out.blob);
    if (!status && !*out_again) {
        keeper_wake(catalog);
    }
    return status;
}

wf_status catalog_settle(struct catalog *catalog, u64 record, struct error *err) {
    return catalog->file ? log_sync(catalog->file, record, err) : ERR_OK;
}

wf_status catalog_detach(struct catalog *catalog, struct error *err) {
    struct db_file *file = catalog->file;
    wf_status status = ERR_OK;
    if (!file) {
        return ERR_OK;
    }
    keeper_end(catalog);
    catalog_lock_idle(catalog);
    if (!db_file_is_read_only(file)) {
        bool clean = db_file_is_clean(file) && catalog->saved == catalog->edition &&
                     catalog->saved_moves == sequence_moves() && !rows_are_new(catalog);
        status = clean ? ERR_OK : state_save(catalog, catalog->edition, true, err);
        log_remove(file);
    }
    mutex_unlock(&catalog->commit_lock);
    edition_release(catalog->saved);
    rows_list_close(catalog->rows);
    mem_free(catalog->mem, catalog->rows_numbers, catalog->rows_number_count * (i64)sizeof(u64));
    catalog->rows = NULL;
    catalog->rows_numbers = NULL;
    catalog->rows_number_count = 0;
    db_file_close(file);
    catalog->saved = NULL;
    catalog->file = NULL;
    return status;
}

/* states out of the file */

struct loading {
    struct catalog *catalog;
    struct db_file *file;
    struct arena arena;
    struct dict_shelf dicts;
    VEC(struct edit) edits; /* of the state, then of the log */
    VEC(struct replay *) replays; /* by edit; NULL = no change */
    struct blob_reader from;
    struct error *err;
};

static FALLIBLE bad_catalog(struct loading *l) {
    return error_set(l->err, ERR_DAMAGED, -1, "the catalog of \"%.300s\" is damaged",
                     db_file_path(l->file));
}

static void read_last_oid(struct loading *l) {
    u32 last = read_u32(&l->from);
    atomic_store(&l->catalog->last_oid, MAX_OF(last, OID_FIRST - 1));
}

/* A new object of the definition; takes the table and the sequence. */
static FALLIBLE make_object(struct loading *l, struct object *like, struct object **out) {
    *out = object_new(l->catalog->mem, like);
    table_close(like->table);
    sequence_close(like->sequence);
    return *out ? ERR_OK : memory_refused(l->catalog->mem, l->err, (i64)sizeof *like);
}

static FALLIBLE make_sequence(struct loading *l, struct object *like) {
    if (like->kind != OBJECT_SEQUENCE || l->from.bad) {
        return ERR_OK;
    }
    struct sequence state = sequence_load(&l->from);
    like->sequence = sequence_open(l->catalog->mem, &state);
    if (!like->sequence) {
        return memory_refused(l->catalog->mem, l->err, (i64)sizeof state);
    }
    like->sequence->saved_last = state.last;
    like->sequence->saved_called = state.called;
    return ERR_OK;
}

static FALLIBLE make_table(struct loading *l, const struct extent *extent, struct object *like,
                           const struct table_def *def, u32 shift, bool plain) {
    struct catalog *catalog = l->catalog;
    struct dict **dicts = NULL;
    if (extent) {
        TRY(version_load_dicts(l->file, extent, &l->dicts, &l->arena, def->col_count, &dicts,
                               l->err));
    }
    like->table =
        table_open_def(catalog->mem, catalog_new_id(catalog), def, dicts, shift, plain);
    if (!like->table) {
        return memory_refused(catalog->mem, l->err, (i64)sizeof *like->table);
    }
    table_set_file(like->table, l->file);
    return ERR_OK;
}

static struct edit *find_edit(struct loading *l, u32 oid, i64 *out_at) {
    for (i64 i = 0; i < l->edits.count; i++) {
        if (l->edits.items[i].oid == oid) {
            *out_at = i;
            return &l->edits.items[i];
        }
    }
    return NULL;
}

/* Puts the object in the place of its OID's; takes both. */
static void put_edit(struct loading *l, u32 oid, struct object *object,
                     struct table_version *version) {
    i64 at;
    struct edit *edit = find_edit(l, oid, &at);
    if (edit) {
        object_release(edit->object);
        version_release(edit->version);
        *edit = (struct edit){oid, object, version};
        l->replays.items[at] = NULL;
        return;
    }
    struct edit made = {oid, object, version};
    VEC_PUSH(&l->arena, &l->edits, made);
    VEC_PUSH(&l->arena, &l->replays, NULL);
}

static FALLIBLE load_table(struct loading *l, struct object *like,
                           struct table_version **out_version) {
    u32 shift;
    bool plain;
    struct table_def def = table_def_load(&l->from, &l->arena, &shift, &plain);
    struct extent extent = extent_load(&l->from, db_file_stamp(l->file));
    if (l->from.bad) {
        return bad_catalog(l);
    }
    TRY(make_table(l, &extent, like, &def, shift, plain));
    return version_load(l->file, &extent, like->table, out_version, l->err);
}

static FALLIBLE load_object(struct loading *l) {
    struct object like = object_load(&l->from, &l->arena), *object = NULL;
    struct table_version *version = NULL;
    TRY(make_sequence(l, &like));
    wf_status status = l->from.bad                    ? bad_catalog(l)
                       : like.kind == OBJECT_TABLE ? load_table(l, &like, &version)
                                                      : ERR_OK;
    if (status) {
        table_close(like.table);
        sequence_close(like.sequence);
        return status;
    }
    status = make_object(l, &like, &object);
    if (status) {
        version_release(version);
        return status;
    }
    struct edit edit = {object->oid, object, version};
    VEC_PUSH(&l->arena, &l->edits, edit);
    VEC_PUSH(&l->arena, &l->replays, NULL);
    return ERR_OK;
}

static struct object *find_loaded(void *arg, u32 oid, struct table_version **out_version) {
    i64 at = 0;
    const struct edit *edit = find_edit(arg, oid, &at);
    if (edit && out_version) {
        *out_version = edit->version;
    }
    return edit ? edit->object : NULL;
}

static FALLIBLE load_state(struct loading *l, const struct extent *root) {
    u8 *block = arena_alloc(&l->arena, root->bytes + 1);
    TRY(arena_check(&l->arena, l->err));
    TRY(db_file_read(l->file, root, block, l->err));
    l->from = (struct blob_reader){block, block + root->bytes, 0};
    read_last_oid(l);
    l->catalog->last_dict = read_u64(&l->from);
    TRY(dict_shelf_load(l->file, l->catalog->mem, &l->from, &l->dicts, l->err));
    u32 count = read_count(&l->from, 40);
    for (u32 i = 0; i < count && !l->from.bad; i++) {
        TRY(load_object(l));
    }
    if (!l->from.bad && l->from.at < l->from.end) { /* not before format 5 */
        struct rows_reader rows = {l->catalog, l->file, &l->from, &l->dicts, find_loaded, l};
        TRY(rows_load(&rows, l->err));
    }
    if (l->from.bad || l->from.at != l->from.end) {
        return bad_catalog(l);
    }
    if (!db_file_note(l->file, root)) {
        return memory_refused(l->catalog->mem, l->err, 4096);
    }
    return db_file_noted(l->file, l->err);
}

/* records of the log */

static FALLIBLE read_object(struct loading *l, bool has_table) {
    struct object like = object_load(&l->from, &l->arena), *object = NULL;
    struct table_version *version = NULL;
    i64 at = 0;
    TRY(make_sequence(l, &like));
    struct edit *before = l->from.bad ? NULL : find_edit(l, like.oid, &at);
    struct replay *replay = before ? l->replays.items[at] : NULL;
    wf_status status = ERR_OK;
    if (has_table) {
        u32 shift;
        bool plain;
        struct table_def def = table_def_load(&l->from, &l->arena, &shift, &plain);
        status = l->from.bad ? bad_catalog(l) : make_table(l, NULL, &like, &def, shift, plain);
        version = status ? NULL : table_snapshot(like.table);
        replay = NULL;
    } else if (like.kind == OBJECT_TABLE && before && before->object->table) {
        like.table = table_retain(before->object->table);
        version = before->version ? version_retain(before->version) : NULL;
    } else if (like.kind == OBJECT_TABLE || l->from.bad) {
        status = bad_catalog(l);
    }
    if (status) {
        sequence_close(like.sequence);
        return status;
    }
    status = make_object(l, &like, &object);
    if (status) {
        version_release(version);
        return status;
    }
    put_edit(l, object->oid, object, version);
    if (before && replay) {
        l->replays.items[at] = replay;
    }
    return ERR_OK;
}

static FALLIBLE read_rows(struct loading *l) {
    i64 at;
    struct edit *edit = find_edit(l, read_u32(&l->from), &at);
    if (!edit || !edit->object || !edit->object->table || l->from.bad) {
        return bad_catalog(l);
    }
    struct replay **replay = &l->replays.items[at];
    if (!*replay) {
        *replay = replay_new(&l->arena, edit->object->table, edit->version);
    }
    return replay_read(*replay, &l->from, l->err);
}

static FALLIBLE read_sequence(struct loading *l) {
    i64 at;
    struct edit *edit = find_edit(l, read_u32(&l->from), &at);
    i64 last = (i64)read_u64(&l->from);
    b8 called = read_u8(&l->from) & 1;
    struct sequence *seq = edit && edit->object ? edit->object->sequence : NULL;
    if (!seq || l->from.bad) {
        return bad_catalog(l);
    }
    seq->last = seq->saved_last = last;
    seq->called = seq->saved_called = called;
    return ERR_OK;
}

static wf_status read_record(void *arg, const u8 *payload, i64 bytes, struct error *err) {
    struct loading *l = arg;
    UNUSED(err); /* l->err is the same */
    l->from = (struct blob_reader){payload, payload + bytes, 0};
    read_last_oid(l);
    for (u8 kind = read_u8(&l->from); kind != CHANGE_END; kind = read_u8(&l->from)) {
        switch (l->from.bad ? CHANGE_END : (enum change_kind)kind) {
        case CHANGE_GONE:
            put_edit(l, read_u32(&l->from), NULL, NULL);
            break;
        case CHANGE_OBJECT:
        case CHANGE_TABLE:
            TRY(read_object(l, kind == CHANGE_TABLE));
            break;
        case CHANGE_ROWS:
            TRY(read_rows(l));
            break;
        case CHANGE_SEQ:
            TRY(read_sequence(l));
            break;
        default:
            return bad_catalog(l);
        }
    }
    bool whole = !l->from.bad && l->from.at == l->from.end;
    return whole ? arena_check(&l->arena, l->err) : bad_catalog(l);
}

static FALLIBLE apply_log(struct loading *l, i64 *out_count) {
    TRY(log_replay(l->file, read_record, l, out_count, l->err));
    for (i64 i = 0; i < l->edits.count; i++) {
        struct edit *edit = &l->edits.items[i];
        if (l->replays.items[i] && edit->object) {
            struct table_version *version = NULL;
            TRY(replay_finish(l->replays.items[i], &version, l->err));
            version_release(edit->version);
            edit->version = version;
        }
    }
    return ERR_OK;
}

/* The first edition, of which only the system's own schemas stay, with what the file has. */
static FALLIBLE install(struct loading *l) {
    struct catalog *catalog = l->catalog;
    struct edition *made = NULL;
    i64 at;
    struct extent root = db_file_root(l->file);
    if (root.bytes && !find_edit(l, OID_PUBLIC, &at)) {
        put_edit(l, OID_PUBLIC, NULL, NULL);
    }
    TRY(arena_check(&l->arena, l->err));
    TRY(edition_change(catalog, catalog->edition, l->edits.items, l->edits.count, &made, l->err));
    for (struct edition_walk walk = edition_walk(made); edition_step(&walk);) {
        if (walk.entry->object->table) {
            table_set_epoch(walk.entry->object->table, &catalog->epoch);
        }
    }
    catalog_set_edition(catalog, made);
    catalog->saved = edition_retain(made);
    catalog->saved_moves = sequence_moves();
    return ERR_OK;
}

/* What the log had goes to the file: records that follow begin a log of their own. On a full disk it stays in the log
 * alone, can be read, and the next commit saves it with what it changed, or is refused. */
static FALLIBLE save_replayed(struct loading *l) {
    wf_status status = state_save(l->catalog, l->catalog->edition, false, l->err);
    if (status == ERR_DISK_FULL && log_is_replayed(l->file)) {
        error_reset(l->err);
        status = ERR_OK;
    }
    return status;
}

static FALLIBLE load_all(struct loading *l) {
    struct extent root = db_file_root(l->file);
    i64 records = 0;
    TRY(root.bytes ? load_state(l, &root) : ERR_OK);
    TRY(apply_log(l, &records));
    TRY(db_file_claim(l->file, l->err));
    TRY(install(l));
    l->catalog->root = root;
    l->catalog->file = l->file;
    return records && !db_file_is_read_only(l->file) ? save_replayed(l) : ERR_OK;
}

wf_status catalog_attach(struct catalog *catalog, struct db_file *file, i64 log_most,
                         struct error *err) {
    catalog->log_most = log_most ? log_most : LOG_BYTES_MOST;
    struct loading l = {.catalog = catalog, .file = file, .err = err};
    arena_init(&l.arena, catalog->mem);
    l.dicts.arena = &l.arena;
    wf_status status = load_all(&l);
    for (i64 i = 0; i < l.edits.count; i++) {
        object_release(l.edits.items[i].object);
        version_release(l.edits.items[i].version);
    }
    dict_shelf_fini(&l.dicts);
    arena_fini(&l.arena);
    if (status && !catalog->file) {
        rows_list_close(catalog->rows);
        catalog->rows = NULL;
        db_file_close(file);
    }
    return status;
}
