/* cells.c: the test matrix. The quick cells cover every pair of (device, vector size, fusion, optimiser, tablet
 * size, memory, threads); --full adds the rest of the device and code combinations. */
#include "runner.h"

#define CPU {"device", "cpu"}
#define MIXED(n) {"device", "auto"}, {"mix_devices", n}, {"host_rows", "0"}
/* So much of every scan to the CPU, the rest to the cards. */
#define HYBRID(percent) {"device", "hybrid"}, {"hybrid_share", percent}, {"host_rows", "0"}
/* Small steps go to the card, too: scripts have few rows. */
#define GPU {"device", "gpu"}, {"host_rows", "0"}
#define VEC(n) {"vector_rows", n}
#define FUSE(x) {"fusion", x}
#define OPT(x) {"optimizer", x}
#define TAB(n) {"tablet_rows", n}
#define THREADS(n) {"threads", n}
#define WORKERS(n) {"gpu_workers", n}
#define TINY {"memory", "24MB"}
/* Hardly anything fits the card. */
#define SMALL(n) {"gpu_memory", n}
#define VM {"gpu_code", "vm"}
#define WOVEN {"gpu_code", "woven"}
#define PLACE(x) {"gpu_placement", x}
#define MORSEL(n) {"morsel_rows", n}
#define SLICE(n) {"result_bytes", n}
#define WIDE {"narrow", "off"}
/* all passes of the optimiser but one */
#define WITHOUT(pass) {"cpu without " pass, false, false, false, {THREADS("2")}, {CPU, {"skip_pass", pass}}}

const struct cell cells[] = {
    {"cpu", true, false, false, {THREADS("1")}, {CPU}},
    {"cpu v1 tiny-tablets", true, false, false, {THREADS("2")},
     {CPU, VEC("1"), TAB("16"), OPT("off"), MORSEL("4"), SLICE("24")}},
    {"cpu v3 unfused", true, false, false, {THREADS("1")}, {CPU, VEC("3"), FUSE("off"), TAB("16")}},
    {"cpu unfused unoptimised", true, false, false, {THREADS("2")}, {CPU, FUSE("off"), OPT("off"), TAB("16")}},
    {"cpu v3 tiny-memory", true, false, true, {THREADS("2"), TINY}, {CPU, VEC("3"), OPT("off"), MORSEL("7")}},
    {"cpu v1 unfused tiny-memory", true, false, true, {THREADS("1"), TINY}, {CPU, VEC("1"), FUSE("off")}},
    {"cpu wide tiny-memory", true, false, true, {THREADS("2"), TINY},
     {CPU, TAB("16"), WIDE, MORSEL("16"), SLICE("100")}},
    {"cpu file", false, false, false, {THREADS("2"), {"file", "yes"}}, {CPU, TAB("16")}},
    {"gpu vm file", true, true, false, {THREADS("2"), {"file", "yes"}}, {GPU, VM, TAB("16"), PLACE("streamed")}},
    {"gpu vm", true, true, false, {THREADS("1")}, {GPU, VM}},
    {"gpu vm tiny-tablets", true, true, false, {THREADS("2")}, {GPU, VM, OPT("off"), TAB("16"), VEC("1")}},
    {"gpu vm unfused", true, true, false, {THREADS("1"), SMALL("100kB")},
     {GPU, VM, FUSE("off"), TAB("16"), VEC("3"), WIDE}},
    {"gpu woven", true, true, false, {THREADS("2")}, {GPU, WOVEN}},
    {"gpu vm streamed tiny-memory", true, true, true, {THREADS("1"), TINY}, {GPU, VM, PLACE("streamed")}},
    {"mixed 1", true, true, false, {THREADS("2"), WORKERS("2")}, {MIXED("1"), VM}},
    {"mixed 2", true, true, false, {THREADS("1"), SMALL("200kB")}, {MIXED("2"), VM, TAB("16")}},
    {"hybrid", true, true, false, {THREADS("2")}, {HYBRID("50"), VM, TAB("16"), MORSEL("7")}},
    {"cpu v1", false, false, false, {THREADS("1")}, {CPU, VEC("1")}},
    {"cpu v3", false, false, false, {THREADS("4")}, {CPU, VEC("3"), MORSEL("5")}},
    {"cpu threads", false, false, false, {THREADS("4")}, {CPU, TAB("64"), MORSEL("16")}},
    {"cpu unoptimised", false, false, false, {THREADS("4")}, {CPU, OPT("off")}},
    {"cpu unfused", false, false, false, {THREADS("4")}, {CPU, FUSE("off")}},
    {"cpu wide", false, false, false, {THREADS("2")}, {CPU, WIDE}},
    WITHOUT("bodies"),
    WITHOUT("outer_to_inner"),
    WITHOUT("factor_or"),
    WITHOUT("infer"),
    WITHOUT("literals"),
    WITHOUT("arms"),
    WITHOUT("to_semi"),
    WITHOUT("agg_once"),
    WITHOUT("early_agg"),
    WITHOUT("extremes"),
    WITHOUT("group_keys"),
    WITHOUT("push_semi"),
    WITHOUT("join_order"),
    WITHOUT("reduce"),
    WITHOUT("share_equal"),
    WITHOUT("test_order"),
    WITHOUT("runs"),
    {"gpu woven tiny-tablets", false, true, false, {THREADS("1")}, {GPU, WOVEN, TAB("16")}},
    {"gpu woven unfused", false, true, false, {THREADS("1")}, {GPU, WOVEN, FUSE("off"), OPT("off")}},
    {"gpu vm mapped", false, true, false, {THREADS("1")}, {GPU, VM, PLACE("mapped"), TAB("16")}},
    {"gpu woven streamed", false, true, false, {THREADS("1")}, {GPU, WOVEN, PLACE("streamed"), TAB("16")}},
    {"gpu vm serial", false, true, false, {THREADS("1")}, {GPU, VM, PLACE("serial"), TAB("16")}},
    {"hybrid streamed tiny-memory", false, true, true, {THREADS("1"), TINY},
     {HYBRID("30"), VM, TAB("16"), PLACE("streamed"), VEC("3")}},
    {"hybrid woven", false, true, false, {THREADS("4"), WORKERS("2")}, {HYBRID("60"), WOVEN, TAB("16"), OPT("off")}},
    {"auto", false, true, false, {THREADS("2")}, {{"device", "auto"}}},
};
const int cell_count = (int)(sizeof cells / sizeof *cells);
