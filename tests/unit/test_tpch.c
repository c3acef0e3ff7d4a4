/* test_tpch.c: the TPC-H generator against checksums of what the official generator prints.
 *
 * The checksums (FNV-1a over the .tbl files) were taken from tpchgen-cli 4.0.0, whose files are
 * byte for byte those of dbgen. Rows are made whole, in pieces, and through tables filled by
 * several threads; the memory of a load comes back whatever happens to it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "io/tpch_int.h"
#include "test_tpch_print.h"

static struct memory mem;
static struct pool *pool;
static struct error err;
static struct generator *gen; /* at scale factor 0.001 */

struct sum {
    u64 hash;
    i64 lines;
};
enum { NO_SUM_LINES = 0 };
static const u64 fnv_basis = 1469598103934665603ULL;

static void add_line(void *arg, const char *text, i64 len) {
    struct sum *sum = arg;
    sum->lines++;
    for (i64 i = 0; i < len; i++) {
        sum->hash = (sum->hash ^ (u8)text[i]) * 1099511628211ULL;
    }
}

/* In the order of enum tpch_table. */
static const struct sum sums_thousandth[TPCH_TABLES] = {
    {0x542b08352f211f7eULL, 6005}, {0xc30daba8b03c8c57ULL, 1500}, {0x77f4d836d0b89151ULL, 800},
    {0x1acd83fe0daffda5ULL, 200},  {0x8ec1942f7df30822ULL, 150},  {0x2e5fbec4296a7271ULL, 10},
    {0x78254bc21d2c019bULL, 25},   {0x6329647e87d6b362ULL, 5},
};
static const struct sum sums_hundredth[TPCH_TABLES] = {
    {0xd9a8132f8f8d246dULL, 60175}, {0x64e18e3b731dc721ULL, 15000}, {0x7ff462acfc7fc281ULL, 8000},
    {0x25de1e4da92c238eULL, 2000},  {0xca750fcd35896137ULL, 1500},  {0x99a7598882d863beULL, 100},
    {0x78254bc21d2c019bULL, 25},    {0x6329647e87d6b362ULL, 5},
};

static wf_status open_at(struct generator **out, i64 millionths, struct pool *threads,
                         struct load_progress *progress) {
    struct gen_request request = {.millionths = millionths,
                                  .text = TPCH_TEXT_DBGEN,
                                  .pool = threads,
                                  .mem = &mem,
                                  .progress = progress};
    return tpch_suite.open(out, &request, &err);
}

static int set_up(void **state) {
    (void)state;
    memory_init(&mem, NULL, 0, "memory");
    error_reset(&err);
    pool = pool_open(3);
    return open_at(&gen, 1000, pool, NULL) == ERR_OK ? 0 : -1;
}

static int tear_down(void **state) {
    (void)state;
    gen->close(gen);
    pool_close(pool);
    return atomic_load(&mem.used_bytes) == 0 ? 0 : -1;
}

static void check_mark(void *arg, i64 block, u32 seed, i64 offset) {
    i64 *bad = arg;
    char made[64];
    char want[64];
    struct tpch *tpch = (struct tpch *)(void *)gen;
    /* Every block begins with what a walk from the start would put there. */
    if (block > 0) {
        char last = tpch->pool[block * TPCH_POOL_BLOCK_BYTES + offset - 1];
        *bad += last != ' ';
    }
    snprintf(made, sizeof made, "%u %lld", seed, offset);
    snprintf(want, sizeof want, "%u %lld", tpch_pool_seed(block), tpch_pool_offset(block));
    if (strcmp(made, want) != 0) {
        print_message("mark %lld is {%s}, not {%s}\n", block, want, made);
        ++*bad;
    }
}

static void test_marks(void **state) {
    (void)state;
    i64 bad = 0;
    tpch_pool_walk(check_mark, &bad);
    assert_int_equal(bad, 0);
}

/* All rows of a table, `piece` at a time. */
static struct sum sum_of(const struct generator *g, i32 table, i64 piece) {
    struct sum sum = {fnv_basis, NO_SUM_LINES};
    i64 rows = g->rows(g, table);
    for (i64 first = 0; first < rows; first += piece) {
        print_rows(g, table, first, MIN_OF(piece, rows - first), add_line, &sum);
    }
    return sum;
}

static void test_rows(void **state) {
    (void)state;
    for (i32 t = 0; t < TPCH_TABLES; t++) {
        struct sum sum = sum_of(gen, t, I32_MAX);
        assert_int_equal(sum.lines, sums_thousandth[t].lines);
        assert_int_equal(sum.hash, sums_thousandth[t].hash);
    }
    struct generator *larger;
    assert_int_equal(open_at(&larger, 10000, NULL, NULL), ERR_OK);
    for (i32 t = 0; t < TPCH_TABLES; t++) {
        struct sum sum = sum_of(larger, t, I32_MAX);
        assert_int_equal(sum.lines, sums_hundredth[t].lines);
        assert_int_equal(sum.hash, sums_hundredth[t].hash);
    }
    larger->close(larger);
}

static void test_any_rows_alone(void **state) {
    (void)state;
    static const i64 pieces[] = {1, 3, 7, 1000};
    for (i32 t = 0; t < TPCH_TABLES; t++) {
        for (i64 p = 0; p < COUNT_OF(pieces); p++) {
            struct sum sum = sum_of(gen, t, pieces[p]);
            assert_int_equal(sum.lines, sums_thousandth[t].lines);
            assert_int_equal(sum.hash, sums_thousandth[t].hash);
        }
    }
}

/* One column of a table, alone or with all others. */
static u64 column_hash(i32 table, u32 wanted, bool alone) {
    const struct gen_table *plan = &gen->tables[table];
    struct gen_target cols[PRINT_COLS] = {{NULL, NULL}};
    struct sum sum = {fnv_basis, NO_SUM_LINES};
    i64 rows = gen->rows(gen, table);
    for (u32 c = 0; c < plan->col_count; c++) {
        if (c == wanted || !alone) {
            cols[c].data = malloc((size_t)((rows + 1) * column_bytes(&plan->cols[c])));
            cols[c].text = malloc((size_t)((rows + 1) * plan->cols[c].text_bytes + 1));
        }
    }
    struct gen_chunk chunk = {0, rows, cols};
    gen->fill(gen, table, &chunk);
    for (i64 i = 0; i < rows; i++) {
        char text[400];
        add_line(&sum, text, print_value(text, &plan->cols[wanted], cols[wanted].data, i));
    }
    for (u32 c = 0; c < plan->col_count; c++) {
        free(cols[c].data);
        free(cols[c].text);
    }
    return sum.hash;
}

static void test_any_column_alone(void **state) {
    (void)state;
    for (i32 t = 0; t < TPCH_TABLES; t++) {
        for (u32 c = 0; c < gen->tables[t].col_count; c++) {
            assert_int_equal(column_hash(t, c, true), column_hash(t, c, false));
        }
    }
}

/* --- through tables --------------------------------------------------------------------------- */

static struct type type_named(const char *name) {
    return strcmp(name, "integer") == 0  ? type_of(TYPE_INTEGER)
           : strcmp(name, "bigint") == 0 ? type_of(TYPE_BIGINT)
           : strcmp(name, "date") == 0   ? type_of(TYPE_DATE)
           : strcmp(name, "text") == 0   ? type_of(TYPE_TEXT)
                                         : type_decimal(15, 2);
}

static void open_tables(struct table **out, bool all, u32 tablet_shift) {
    for (i32 t = 0; t < TPCH_TABLES; t++) {
        const struct gen_table *plan = &gen->tables[t];
        struct column_def defs[PRINT_COLS];
        u32 n = 0;
        memset(defs, 0, sizeof defs);
        for (u32 c = 0; c < plan->col_count; c++) {
            if (all || !plan->cols[c].unread) {
                defs[n].name = plan->cols[c].name;
                defs[n].type = type_named(plan->cols[c].type);
                defs[n++].not_null = 1;
            }
        }
        out[t] = table_open(&mem, (u64)t + 1, plan->name, n, defs, tablet_shift, false);
        assert_non_null(out[t]);
    }
}

static void close_tables(struct table **tables) {
    for (i32 t = 0; t < TPCH_TABLES; t++) {
        table_close(tables[t]);
    }
}

static struct sum stored_sum(struct table *table, const struct gen_table *plan) {
    struct sum sum = {fnv_basis, NO_SUM_LINES};
    struct table_version *version = table_snapshot(table);
    for (i64 t = 0; t < version->tablet_count; t++) {
        for (i64 i = 0; i < version->tablet_rows[t]; i++) {
            char text[2048], *end = text;
            for (u32 c = 0; c < table->col_count; c++) {
                _Alignas(16) u8 value[16];
                struct gen_column col = plan->cols[c];
                col.word = NULL;
                assert_true(segment_get(&version->tablets[t]->cols[c], table->dicts[c],
                                        table->cols[c].type, i, value));
                end += print_value(end, &col, value, 0);
                *end++ = '|';
            }
            *end++ = '\n';
            add_line(&sum, text, end - text);
        }
    }
    version_release(version);
    return sum;
}

static void test_tables(void **state) {
    (void)state;
    struct table *tables[TPCH_TABLES];
    struct pool *pools[] = {NULL, pool};
    for (i32 round = 0; round < 4; round++) {
        i64 rows;
        struct load_progress progress = {0};
        open_tables(tables, true, round < 2 ? 5 : 20);
        assert_int_equal(generate_load(gen, tables, pools[round % 2], &mem, &progress, &rows, &err),
                         ERR_OK);
        assert_int_equal(rows, 6005 + 1500 + 800 + 200 + 150 + 10 + 25 + 5);
        assert_int_equal(atomic_load(&progress.bytes_done), progress.bytes_total);
        for (i32 t = 0; t < TPCH_TABLES; t++) {
            struct sum sum = stored_sum(tables[t], &gen->tables[t]);
            assert_int_equal(sum.lines, sums_thousandth[t].lines);
            assert_int_equal(sum.hash, sums_thousandth[t].hash);
        }
        close_tables(tables);
    }
}

static void test_statistics(void **state) {
    (void)state;
    struct table *tables[TPCH_TABLES];
    i64 rows;
    open_tables(tables, false, 10);
    assert_int_equal(generate_load(gen, tables, pool, &mem, NULL, &rows, &err), ERR_OK);
    assert_int_equal(tables[TPCH_LINEITEM]->col_count, 15);
    assert_int_equal(tables[TPCH_ORDERS]->col_count, 8);
    struct table_version *version = table_snapshot(tables[TPCH_LINEITEM]);
    struct column_stats *stats = version->stats;
    assert_int_equal((i64)stats[4].range.lo, 100); /* l_quantity */
    assert_int_equal((i64)stats[4].range.hi, 5000);
    assert_true(stats[8].all_dict); /* l_returnflag */
    assert_int_equal(stats[8].dict_len, 3);
    assert_true(stats[14].all_dict); /* l_shipmode */
    assert_int_equal(stats[14].dict_len, 7);
    version_release(version);
    version = table_snapshot(tables[TPCH_ORDERS]);
    assert_true(version->stats[0].unique);
    version_release(version);
    close_tables(tables);
}

static void test_refused_memory(void **state) {
    (void)state;
    struct table *tables[TPCH_TABLES];
    struct generator *other = NULL;
    for (i64 nth = 1; nth <= 3; nth++) {
        memory_fail_at(nth);
        assert_int_equal(open_at(&other, 1000, pool, NULL), ERR_OUT_OF_MEMORY);
    }
    i64 used = atomic_load(&mem.used_bytes);
    for (i64 nth = 1;; nth += 7) {
        i64 rows;
        open_tables(tables, true, 8);
        memory_fail_at(nth);
        wf_status status = generate_load(gen, tables, pool, &mem, NULL, &rows, &err);
        memory_fail_at(0);
        close_tables(tables);
        assert_int_equal(atomic_load(&mem.used_bytes), used);
        if (status == ERR_OK) {
            break;
        }
        assert_int_equal(status, ERR_OUT_OF_MEMORY);
    }
}

static void test_cancelled(void **state) {
    (void)state;
    struct table *tables[TPCH_TABLES];
    struct generator *other = NULL;
    _Atomic i32 cancel = 1;
    i64 rows;
    struct stop stop = {.cancel = &cancel};
    struct load_progress progress = {.stop = &stop};
    open_tables(tables, true, 10);
    assert_int_equal(generate_load(gen, tables, pool, &mem, &progress, &rows, &err), ERR_CANCELLED);
    assert_int_equal(open_at(&other, 1000, pool, &progress), ERR_CANCELLED);
    for (i32 t = 0; t < TPCH_TABLES; t++) {
        struct table_version *version = table_snapshot(tables[t]);
        assert_int_equal(version->rows, 0);
        version_release(version);
    }
    close_tables(tables);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_marks),          cmocka_unit_test(test_rows),
        cmocka_unit_test(test_any_rows_alone), cmocka_unit_test(test_any_column_alone),
        cmocka_unit_test(test_tables),         cmocka_unit_test(test_statistics),
        cmocka_unit_test(test_refused_memory), cmocka_unit_test(test_cancelled),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
