/* tablet.c: the tablet as an object: its block of metadata, its counting, single values out of it.
 *
 * Header, segments, zones and the list of buffers are one allocation; column data are counted
 * buffers, so that the successive tablets of a tail share them. Ids come from one counter of the
 * database: its devices may keep copies by id for as long as they like. */
#include "store/tablet.h"

#include "store/key_int.h"

struct tablet *tablet_new(struct memory *mem, u32 col_count, u32 buffer_count, i64 zone_count) {
    i64 segs_at = ALIGN_UP((i64)sizeof(struct tablet), 64);
    i64 zones_at = segs_at + ALIGN_UP((i64)col_count * (i64)sizeof(struct segment), 64);
    i64 bufs_at = zones_at + zone_count * (i64)col_count * (i64)sizeof(struct zone);
    i64 bytes = bufs_at + (i64)buffer_count * (i64)sizeof(struct buffer *);
    u8 *block = mem_alloc(mem, bytes);
    if (!block) {
        return NULL;
    }
    memset(block, 0, (size_t)bytes);
    struct tablet *tablet = (struct tablet *)(void *)block;
    atomic_init(&tablet->refs, 1);
    tablet->id = memory_identity(mem, IDENTITY_TABLET);
    tablet->col_count = col_count;
    tablet->cols = (struct segment *)(void *)(block + segs_at);
    tablet->buffers = (struct buffer **)(void *)(block + bufs_at);
    tablet->buffer_count = buffer_count;
    tablet->mem = mem;
    tablet->meta_bytes = tablet->bytes = bytes;
    struct zone *zones = (struct zone *)(void *)(block + zones_at);
    for (u32 i = 0; zone_count && i < col_count; i++) {
        tablet->cols[i].zones = zones + (i64)i * zone_count;
    }
    return tablet;
}

struct tablet *tablet_retain(struct tablet *tablet) {
    atomic_fetch_add_explicit(&tablet->refs, 1, memory_order_relaxed);
    return tablet;
}

void tablet_release(struct tablet *tablet) {
    if (!tablet || atomic_fetch_sub_explicit(&tablet->refs, 1, memory_order_acq_rel) != 1) {
        return;
    }
    for (u32 i = 0; i < tablet->buffer_count; i++) {
        buffer_release(tablet->buffers[i]);
    }
    tablet_place_free(tablet->mem, tablet->col_count, tablet->place);
    tablet_keys_free(tablet);
    mem_free(tablet->mem, tablet, tablet->meta_bytes);
}

bool tablet_list_push(struct tablet_list *list, struct tablet *tablet) {
    if (list->count == list->cap) {
        i64 cap = MAX_OF(list->cap * 2, 16);
        i64 item = (i64)sizeof *list->items;
        struct tablet **grown = mem_alloc(list->mem, cap * item);
        if (!grown) {
            return false;
        }
        if (list->count) {
            memcpy(grown, list->items, (size_t)(list->count * item));
        }
        mem_free(list->mem, list->items, list->cap * item);
        list->items = grown;
        list->cap = cap;
    }
    list->items[list->count++] = tablet;
    return true;
}

void tablet_list_fini(struct tablet_list *list) {
    for (i64 i = 0; i < list->count; i++) {
        tablet_release(list->items[i]);
    }
    mem_free(list->mem, list->items, list->cap * (i64)sizeof *list->items);
    *list = (struct tablet_list){.mem = list->mem};
}
