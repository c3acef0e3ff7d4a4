/* gpu_prim_map.c: the card's map: a kernel per opcode, from the opcode's own expression.
 *
 * The lines written here name the expression, the kinds and the helper text the weaver would
 * include; kernels/map.h is the rest. */
#include "gpu/gpu_prim.h"

#include <stdarg.h>
#include <stdio.h>

#include "defs/kprim.h"
#include "gpu/gpu_prim_move.h"

enum { BLOCKS_MOST = 1 << 30 };

struct lines {
    char text[1600];
    i32 used;
};

static void add(struct lines *l, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void add(struct lines *l, const char *format, ...) {
    va_list args;
    va_start(args, format);
    l->used += vsnprintf(l->text + l->used, sizeof l->text - (size_t)l->used, format, args);
    va_end(args);
    CHECK(l->used < (i32)sizeof l->text);
}

static const char *kind_name(u8 kind) {
    static const char *const names[KIND_COUNT] = {
#define X(A, name, upper, bytes) [KIND_##upper] = #name,
        WF_KINDS(X, )
#undef X
    };
    return names[kind];
}

/* As many groups as keep four vectors of 16 bytes on their way. */
static i32 map_groups(const struct prim_map *map) {
    i32 widest = elem_bytes[map->out.type];
    for (i32 i = 0; i < map->arity; i++) {
        widest = MAX_OF(widest, elem_bytes[map->in[i].type]);
    }
    return widest == 16 ? 1 : widest == 8 ? 2 : 4;
}

static FALLIBLE map_lines(struct prim_job *job, const struct prim_map *map, struct lines *l) {
    const struct op_info *info = &op_infos[map->code];
    const char *part = gpu_part_text(info->part);
    bool text = false;
    if (!part) {
        char what[80];
        snprintf(what, sizeof what, "map of opcode %s", info->name);
        return prim_refuse(job, what);
    }
    for (i32 i = 0; i < map->arity; i++) {
        text = text || map->in[i].type == ELEM_TEXT;
    }
    l->used = 0;
    add(l, "#include \"prelude.h\"\n#include \"defs/fault.h\"\n");
    add(l, "%s%s", text && !strstr(part, "fn_str.h") ? "#include \"defs/fn_str.h\"\n" : "", part);
    add(l,
        "#define MAP_EXPR %s\n#define MAP_ARITY %d\n#define MAP_FAULTS %d\n#define MAP_TEXT %d\n",
        info->expr, map->arity, (info->flags & OP_FAULTS) != 0, text);
    add(l, "#define MAP_GROUPS %d\n", map_groups(map));
    add(l, "#define MAP_R %s\n#define MAP_R_BYTES %d\n", kind_name(info->result),
        elem_bytes[map->out.type]);
    for (i32 i = 0; i < map->arity; i++) {
        add(l, "#define MAP_%c %s\n#define MAP_%c_BYTES %d\n", 'A' + i,
            kind_name(info->operands[i]), 'A' + i, elem_bytes[map->in[i].type]);
    }
    return ERR_OK;
}

wf_status gpu_map(struct prim_job *job, const struct prim_map *map) {
    struct lines l;
    u64 *fault = prim_take(job, 8);
    u64 met = ~0ULL;
    bool may_fault = (op_infos[map->code].flags & OP_FAULTS) != 0;
    TRY(map_lines(job, map, &l));
    if (!map->count) {
        return ERR_OK;
    }
    struct kmap args = {.out = map->out.data, .count = map->count, .fault = fault};
    for (i32 i = 0; i < map->arity; i++) {
        args.in[i] = map->in[i].data;
        args.bytes[i] = map->in[i].bytes;
        args.byte_count[i] = map->in[i].byte_count;
        args.single[i] = map->in[i].count == 1 && map->count > 1;
        may_fault = may_fault || map->in[i].type == ELEM_TEXT;
    }
    struct gpu_template code = {"map", "k_map", l.text};
    i64 tile = (i64)MAP_THREADS * map_groups(map) * 4;
    TRY(gpu_prim_fill(job, fault, 255, 8));
    TRY(gpu_prim_launch_all(job, &code, MIN_OF((map->count + tile - 1) / tile, BLOCKS_MOST),
                            MAP_THREADS, 0, &args));
    if (may_fault) {
        TRY(gpu_prim_fetch(job, &met, fault, 8));
    }
    return job->measuring ? ERR_OK : prim_map_fault(job, met);
}
