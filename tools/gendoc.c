/* gendoc.c: the reference pages that are made from the tables.
 *
 *   gendoc FOLDER           writes opcodes.md, functions.md, settings.md, errors.md, gpu.md, warpfox.1, parts of sql.md
 *                           and c-api.md
 *   gendoc --check FOLDER   exits 1, naming them, when a page there differs from the tables
 *
 * It includes the tables and nothing else, so a page can only say what the code says. */
#define _GNU_SOURCE
#include "gendoc.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "defs/agg.def"
#include "defs/error.def"
#include "defs/fault.def"
#include "defs/func.def"
#include "defs/op.def"
#include "defs/op_loop.def"
#include "defs/real.def"
#include "defs/refusal.def"
#include "defs/setting.def"
#include "defs/table_func.def"
#include "defs/window.def"

static const char made[] = "<!-- Generated from src/defs by `make docs`; do not edit. -->\n";

/* Prints `text` with | escaped for a table cell. */
static void cell(FILE *out, const char *text) {
    for (; *text; text++) {
        if (*text == '|') {
            fputc('\\', out);
        }
        fputc(*text, out);
    }
}

static void op_row(FILE *out, const char *name, const char *kinds, const char *text, const char *expr) {
    fprintf(out, "| %s | %s | ", name, kinds);
    cell(out, text);
    fputs(" | ", out);
    if (*expr) {
        fputc('`', out);
        cell(out, expr);
        fputc('`', out);
    }
    fputs(" |\n", out);
}

/* An operand by its role in op.def: "i64 a", "index imm", ", match flags"; of a number its field alone. */
static void role_text(FILE *out, const char *role, const char *field) {
    if (strstr(role, "column") || !strcmp(role, "half") || !strcmp(role, "number")) {
        fputs(field, out);
        return;
    }
    bool is_flag = strstr(role, "flags") || strstr(role, "mode") || !strcmp(role, "find");
    fputs(is_flag ? ", " : "", out);
    for (; *role && strcmp(role, "_if") != 0; role++) {
        fputc(*role == '_' ? ' ' : *role, out);
    }
    fprintf(out, "%s%s", is_flag ? "" : " ", is_flag ? "" : field);
}

/* `roles` of dst, a, b, c, imm; `operands` names them as $a. */
static void control_row(FILE *out, const char *name, const char *operands, const char *const *roles,
                        const char *text) {
    static const char *const fields[] = {"dst", "a", "b", "c", "imm"};
    fprintf(out, "| %s | ", name);
    if (strcmp(roles[0], "no") != 0) {
        fprintf(out, "%s%s", strncmp(roles[0], "as_", 3) ? roles[0] : "any", *operands ? " &larr; " : "");
    }
    for (; *operands; operands++) {
        int field = 1;
        while (*operands == '$' && strncmp(operands + 1, fields[field], strlen(fields[field])) != 0) {
            field++;
        }
        if (*operands == '$') {
            role_text(out, roles[field], fields[field]);
            operands += strlen(fields[field]);
        } else {
            fputc(*operands, out);
        }
    }
    fputs(" | ", out);
    cell(out, text);
    fputs(" |  |\n", out);
}

static void op_head(FILE *out, const char *title, const char *prose) {
    fprintf(out, "\n## %s\n\n%s\n\n| opcode | operands | synopsis | body |\n|---|---|---|---|\n", title, prose);
}

static void write_opcodes(FILE *out) {
    fprintf(out, "# Opcodes\n\n%s\n", made);
    fputs("A pipeline's body is a register program of these. Scalar opcodes never see NULL: a nullable value has a "
          "second\nboolean register. EXPLAIN (OPCODES) shows them for a statement.\n",
          out);
    op_head(out, "Control", "They shape the rows; every device writes them itself.");
#define X(A, name, flags, dst, ra, rb, rc, imm, operands, text)                                    \
    control_row(out, #name, operands, (const char *const[]){#dst, #ra, #rb, #rc, #imm}, text);
    WF_CTLS(X, )
#undef X
    op_head(out, "Scalar, cannot fail", "Arithmetic is proven in range when the program is made, or wraps.");
#define X(A, name, r, a, part, cost, expr, text) op_row(out, #name, #r " &larr; " #a, text, #expr);
    WF_OPS1(X, )
#undef X
#define X(A, name, r, a, b, part, cost, expr, text) op_row(out, #name, #r " &larr; " #a ", " #b, text, #expr);
    WF_OPS2(X, )
#undef X
#define X(A, name, r, a, b, c, part, cost, expr, text)                                             \
    op_row(out, #name, #r " &larr; " #a ", " #b ", " #c, text, #expr);
    WF_OPS3(X, )
#undef X
    op_head(out, "Scalar, may fail", "A failing row that is active raises the statement's error (see errors.md).");
#define X(A, name, r, a, part, cost, expr, text) op_row(out, #name, #r " &larr; " #a, text, #expr);
    WF_OPS1F(X, )
#undef X
#define X(A, name, r, a, b, part, cost, expr, text) op_row(out, #name, #r " &larr; " #a ", " #b, text, #expr);
    WF_OPS2F(X, )
#undef X
#define X(A, name, r, a, b, c, part, cost, expr, text)                                             \
    op_row(out, #name, #r " &larr; " #a ", " #b ", " #c, text, #expr);
    WF_OPS3F(X, )
#undef X
    op_head(out, "CPU only", "The GPU reaches these through lookup tables over dictionaries.");
#define X(A, name, r, a, b, c, fn, text) op_row(out, #name, #r " &larr; " #a ", " #b ", " #c, text, #fn);
    WF_OPS_HOST(X, )
#undef X
#define X(A, name, a, b, c, fn, text) op_row(out, #name, "str &larr; " #a ", " #b ", " #c, text, #fn);
    WF_OPS_TEXT(X, )
#undef X
    op_head(out, "Rare", "One loop over the active rows on the CPU (functions of doubles: vector loops); on the GPU "
                         "in woven kernels, not in the virtual machine.");
#define X(A, name, fails, r, a, b, c, part, expr, text)                                            \
    op_row(out, #name, #r " &larr; " #a ", " #b ", " #c, text, #expr);
    WF_OPS_RARE(X, )
#undef X
#define X(A, name, fails, a, b, c, part, most, body, text)                                          \
    op_row(out, #name, "str &larr; " #a ", " #b ", " #c, text, #body);
    WF_OPS_MAKE(X, )
#undef X
}

static void op_name(FILE *out, const char *name, int *count) {
    fprintf(out, "%s%s", (*count)++ ? ", " : "", name);
}

/* Which code steps run on a GPU. */
static void write_gpu_code(FILE *out) {
    fputs("\n## Which code a step runs\n\nEXPLAIN ANALYZE and `wf_result_devices` name it; `SET "
          "gpu_code` chooses.\n\n"
          "| name | what |\n|---|---|\n"
          "| gpu vm | the virtual machine: kernels that were there before the statement, which "
          "read its opcodes |\n"
          "| gpu woven | a kernel made of the step's opcodes, compiled by NVRTC |\n"
          "| gpu vm+woven | the first until the second was compiled, in one step |\n"
          "| gpu quick, gpu quick+woven | a woven kernel that was compiled in a hurry, and in its "
          "place the one compiled well |\n\n"
          "Under `gpu_code = auto` a step over 65,536 rows or more starts on the virtual machine "
          "while threads in the background\n"
          "compile its woven kernel, what has cost most first. Compiled kernels are kept in "
          "`$WARPFOX_CACHE`, else\n"
          "`$XDG_CACHE_HOME/warpfox` or `~/.cache/warpfox`.\n\n"
          "The virtual machine is compiled when Warpfox is built, where nvcc is: for sm_90, with "
          "`make release` for all chips from\n"
          "Turing to Blackwell. On another chip, or in a build without nvcc, it is not used: what "
          "is known of a statement's texts is\n"
          "compiled in a hurry when it starts, a thread a core, and compiled well in the "
          "background. A NOTICE says so where that\n"
          "takes more than a second. Without NVRTC the driver makes the machine from PTX, which "
          "takes it half a minute, once.\n"
          "`warpfox devices` says what there is.\n\n"
          "The first statement of a process waits for the driver, a quarter of a second or more. The "
          "card is opened while it is planned,\n"
          "and what it reads of a database file comes from the disk meanwhile. `WARPFOX_MOMENTS=1` in "
          "the environment tells on stderr\n"
          "what happened when: the driver, columns, kernels, steps, the end.\n",
          out);
}

/* What becomes of steps that are larger than the card. */
static void write_gpu_memory(FILE *out) {
    fputs("\n## When the card has too little memory\n\n"
          "A step runs as it is, if it has room for its columns and all that it makes. If not, it is "
          "tried in these ways, one after the other:\n\n"
          "| way | what it costs |\n|---|---|\n"
          "| rows that only the host wants go there batch by batch | nothing |\n"
          "| columns of the table go over the bus while others are computed on | the bus, once for "
          "every column and step |\n"
          "| while columns go over the bus, groups are put aside in host memory whenever their table is "
          "full; in the end they meet a part of the keys after the other | the bus, twice for what is "
          "put aside |\n"
          "| other groups in a hash table are made in several passes, each for a part of the keys | the source "
          "is read as often |\n"
          "| a join whose table is expected to have no room has both sides split by key, in host memory where "
          "that is needed, and is made part by part: a part's table and the rows it leads to are on the card "
          "while it is looked up | writing and reading both sides once more, over the bus if they lie in host "
          "memory |\n"
          "| rows, indexes, groups and heaps for which there is no room lie in memory of the host that "
          "the card reaches | the bus, for what is read or written there |\n"
          "| columns are read where they are | the bus, as above, but nothing overlaps |\n\n"
          "Under `SET device = auto` the last five are left out: such a step runs on the CPU. So do sorts "
          "and windows without room,\n"
          "under `device = gpu`, too. EXPLAIN ANALYZE says which steps had no room, and what lies in host "
          "memory. That memory is part\n"
          "of the budget `memory`: 53200 means that the host has no room, either. `SET gpu_placement = "
          "cached` rules out the bus, so\n"
          "that columns without room are an error.\n",
          out);
}

static void write_gpu_rounds(FILE *out) {
    fputs("\n## Recursion\n\n"
          "Rounds of `with recursive`, and of recursive rules, are queued on the card before the host knows\n"
          "whether they are needed: it looks once in 1, 2, 4 up to `gpu_rounds` rounds, and in between the\n"
          "card alone knows how many rows there are. That holds for loops whose steps join new rows with what\n"
          "does not change from round to round, without text; others, and rounds for which there was no room,\n"
          "run a step at a time. `explain analyze` tells how many rounds were queued. A statement is cancelled\n"
          "at a look.\n",
          out);
}

static void write_gpu_queue(FILE *out) {
    fputs("\n## Steps that nobody waits for\n\n"
          "A statement that ran before is expected to find as many rows as it did then. Its steps are queued on\n"
          "the card one behind the other, up to `gpu_queue` of them, and the host waits once for what they gave:\n"
          "the card itself tells each step how many rows the one before it made. Sorts and first rows are expected\n"
          "to have keys like those of the time before, within wider bounds. Where something is otherwise (more rows,\n"
          "a repeated key, a key out of bounds, an error), those steps run again, one at a time. Steps over few rows,\n"
          "which otherwise are the calling thread's, stay on the card between others that are queued. EXPLAIN ANALYZE\n"
          "waits for every step, since it tells how long each takes. Strings that a step makes are expected to be as\n"
          "long as they were. Scans whose columns have to be brought first are waited for, and so are texts that\n"
          "a queued step numbered, before they are looked up.\n",
          out);
}

/* How columns of a database file get there. */
static void write_gpu_files(FILE *out) {
    fputs("\n## Tables of a database file\n\n"
          "All placements work from the file. A column of numbers that is not in the host's\n"
          "memory is read as it is packed there, crosses the bus so, and is unpacked by the\n"
          "card; text is unpacked on the host. The next tablets are read from the disk\n"
          "meanwhile. What was read stays in memory, packed, until others need the room, so\n"
          "that a scan that streams again sends it from there. `mapped` unpacks on the host,\n"
          "since kernels read the columns there. EXPLAIN ANALYZE tells how many bytes were\n"
          "moved and how many of them packed (`bytes_packed` of `wf_result_metric`).\n",
          out);
}

/* What hybrid adds to auto. */
static void write_gpu_shares(FILE *out) {
    fputs("\n## Scans that devices share\n\n"
          "Under `SET device = hybrid` statements are placed as under auto, and a scan that several devices "
          "finish clearly sooner than the\n"
          "better one alone is cut into shares, the cards' first, then the CPU's, as large as lets all end at "
          "the same time. Columns that are on\n"
          "a card, what earlier runs took, and bringing everything together on the host count. EXPLAIN ANALYZE "
          "shows the rows and the time of\n"
          "every share. A share for which its device has no memory is run by another. `hybrid_share` gives the "
          "CPU a fixed percentage, for tests.\n\n"
          "Not shared are scans that may stop early (LIMIT without ORDER BY), that number texts or pairs of keys "
          "as they go, files, and\n"
          "whatever reads no table.\n",
          out);
}

/* What a GPU does not run. */
static void write_gpu(FILE *out) {
    int count = 0;
    fprintf(out, "# What a GPU does not run\n\n%s\n", made);
    fputs("Under `SET device = auto` these steps run on the CPU and EXPLAIN ANALYZE says why; under `device = gpu` "
          "they are errors\nthat name the reason. Everything else runs on both, with the same bits.\n\n"
          "| reason given | why |\n|---|---|\n",
          out);
#define X(A, name, before, after, why) fprintf(out, "| %s…%s | %s |\n", before, after, why);
    WF_REFUSALS(X, )
#undef X
    fputs("\n## Steps that stay on the host\n\nWhatever `device` is. EXPLAIN ANALYZE gives the reason.\n\n"
          "| kind of step | reason given | why |\n|---|---|---|\n",
          out);
#define X(A, name, kind, text, why) fprintf(out, "| %s | %s | %s |\n", #kind, text, why);
    WF_HOST_STEPS(X, )
#undef X
    fputs("\n## Opcodes that make strings, by host code\n\n", out);
#define X(A, name, a, b, c, fn, text) op_name(out, #name, &count);
    WF_OPS_TEXT(X, )
#undef X
    fputs("\n\n## Opcodes that read text, or are host code\n\n", out);
    count = 0;
#define X(A, name, r, a, b, c, fn, text) op_name(out, #name, &count);
    WF_OPS_HOST(X, )
#undef X
    fputs("\n\nOf these, and of those above, woven kernels have where the second operand is a literal: ", out);
    count = 0;
#define X(A, name, part, expr) op_name(out, #name, &count);
    WF_OPS_AHEAD(X, )
#undef X
    fputs("; for texts in their plain form (see above): ", out);
    count = 0;
#define X(A, name, part, expr) op_name(out, #name, &count);
    WF_OPS_PARTLY(X, )
#undef X
    fputs(".\n\n## Opcodes of woven kernels, not of the virtual machine\n\n", out);
    count = 0;
#define X(A, name, ...) op_name(out, #name, &count);
    WF_OPS_RARE(X, )
    WF_OPS_MAKE(X, )
#undef X
#define X(A, name, flags, ...)                                                                      \
    if (strstr(#flags, "RARE")) {                                                                   \
        op_name(out, #name, &count);                                                                \
    }
    WF_CTLS(X, )
#undef X
    fputs("\n", out);
    write_gpu_code(out);
    write_gpu_memory(out);
    write_gpu_rounds(out);
    write_gpu_queue(out);
    write_gpu_files(out);
    write_gpu_shares(out);
}

/* The types a row of WF_SCALARS takes, by their letters. */
static void scalar_types(FILE *out, const char *letters) {
    static const char *const names[] = {"bboolean", "2smallint",  "iinteger",     "lbigint", "ndecimal",
                                        "Ndecimal", "rreal",      "fdouble",      "ddate",   "Mtime",
                                        "Ttimestamp", "Ztimestamptz", "Iinterval", "ttext",  "xblob",
                                        "uuuid"};
    for (const char *c = letters; *c && *c != '@' && *c != '#'; c++) {
        for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
            if (names[i][0] == *c) {
                fprintf(out, "%s%s", c == letters ? "" : ", ", names[i] + 1);
            }
        }
    }
}

static void scalar_row(FILE *out, const char *sql, const char *args, char result, const char *text) {
    char letter[2] = {result, 0};
    if (strncmp(sql, "wf_", 3) == 0) {
        return; /* written by the binder only; the function it serves is in its text */
    }
    fputs("| `", out);
    cell(out, sql);
    fputs("` | ", out);
    scalar_types(out, args);
    fputs(" | ", out);
    scalar_types(out, letter);
    fputs(" | ", out);
    cell(out, text);
    fputs(" |\n", out);
}

/* Functions whose arguments are of any type or may be left out (sql/bind_*.c). */
static const char also[] =
    "\nFurther: round(x[, n]), trunc(x[, n]), ceil, ceiling, floor, sign, abs, div, mod, pi(), random(),\n"
    "gen_random_uuid(), scale, min_scale, trim_scale, width_bucket(x, low, high, count), to_hex; length,\n"
    "char_length, octet_length, bit_length, upper, lower, substring (from / for, regular expression,\n"
    "SIMILAR), substr, overlay, position, trim / ltrim / rtrim / btrim, lpad, rpad, concat, concat_ws,\n"
    "format (%s %I %L), quote_literal, quote_nullable, regexp_like, regexp_count, regexp_instr,\n"
    "regexp_substr, regexp_replace, convert_from, convert_to, to_number; extract, date_part, date_trunc,\n"
    "age, make_timestamp, make_timestamptz, make_interval, timezone (AT TIME ZONE), now() and its kin,\n"
    "current_date, current_timestamp, localtime, localtimestamp, to_char; `~ ~* !~ !~*`, LIKE, ILIKE,\n"
    "SIMILAR TO; try_cast(x as t); current_user, user, session_user, current_role, current_catalog,\n"
    "current_schema, current_database(), current_setting(name), version(); pg_sleep(seconds), for every row.\n\n"
    "Decimals: sqrt, exp, ln, log and power of decimals are decimals, computed on the CPU; trigonometry is\n"
    "double precision.\n"
    "numeric without (p,s) takes the digits of its source: a literal has those it is written with, integers and\n"
    "decimals keep theirs; text and floats, and to_number whose template is not constant, become decimal(38,16),\n"
    "rounded half away from zero. A column's numeric needs (p,s).\n"
    "An interval has at most 134,217,727 months; a timestamp ends with the year 294246. A char(n) that meets\n"
    "another length loses its blanks. Years of infinite dates are NULL.\n"
    "Time zones are names of the system's tz database in any case, words such as CET (those of history, such as\n"
    "MSK, mean what they meant then), rules as POSIX writes them (`EST5EDT,M3.2.0,M11.1.0`), and intervals\n"
    "without days.\n";

static void write_functions(FILE *out) {
    fprintf(out, "# Functions and operators\n\n%s\n| name | arguments | meaning |\n|---|---|---|\n", made);
#define X(A, name, sql, arguments, text)                                                           \
    fprintf(out, "| `%s` | %d | ", !strcmp(sql, "||") ? "\\|\\|" : sql, arguments);                \
    cell(out, text);                                                                               \
    fputs(" |\n", out);
    WF_FUNCS(X, )
#undef X
    fputs("\n| name | arguments | result | meaning |\n|---|---|---|---|\n", out);
#define X(A, name, sql, arguments, result, op, text) scalar_row(out, sql, arguments, result, text);
    WF_SCALARS(X, )
#undef X
    fputs(also, out);
    fputs("\n## Aggregates\n\nAll take FILTER (WHERE ...), and DISTINCT where it makes a difference.\n"
          "Percentiles and mode are written name(...) WITHIN GROUP (ORDER BY a).\n\n"
          "| name | arguments | meaning |\n|---|---|---|\n",
          out);
#define X(A, name, sql, arguments, how, text)                                                      \
    fprintf(out, "| `%s` | %d | ", sql, arguments);                                                \
    cell(out, text);                                                                               \
    fputs(" |\n", out);
    WF_AGGS(X, )
#undef X
    fputs("\n## Window functions\n\nAggregates too, with OVER; percentile_cont and its kin, median "
          "included, are not (0A000).\n\n"
          "| name | arguments | meaning |\n|---|---|---|\n",
          out);
#define X(A, name, sql, fewest, most, text)                                                        \
    fprintf(out, "| `%s` | %d to %d | ", sql, fewest, most);                                       \
    cell(out, text);                                                                               \
    fputs(" |\n", out);
    WF_WINDOWS(X, )
    fputs("\n## Table functions\n\nIn FROM, also WITH ORDINALITY and in ROWS FROM, and in a select list.\n\n"
          "| name | arguments | meaning |\n|---|---|---|\n", out);
    WF_TABLE_FUNCS(X, )
#undef X
}

static void write_settings(FILE *out) {
    fprintf(out, "# Settings\n\n%s\n", made);
    fputs("`SET name = value`, `SHOW name`, `SHOW ALL`; when a database is opened also as shell options or open\n"
          "options.\n\n"
          "| name | kind | default | choices or most | when | meaning |\n|---|---|---|---|---|---|\n",
          out);
#define X(A, name, kind, value, least, most, scope, text)                                          \
    fprintf(out, "| %s | %s | %s | %s | %s | %s |\n", #name, #kind, value, most,                   \
            strcmp(#scope, "SESSION") ? "opening" : "any time", text);
    WF_SETTINGS(X, )
#undef X
}

static void write_errors(FILE *out) {
    fprintf(out, "# Errors\n\n%s\n", made);
    fputs("Every error carries a SQLSTATE, a message and, where there is one, the position in the statement.\n\n"
          "| SQLSTATE | name | meaning |\n|---|---|---|\n",
          out);
#define X(A, name, sqlstate, title) fprintf(out, "| %s | %s | %s |\n", sqlstate, #name, title);
    WF_ERRORS(X, )
#undef X
    fputs("\n## Faults\n\nWhat an opcode can report of a row, on any device.\n\n"
          "| fault | error | message |\n|---|---|---|\n",
          out);
#define X(A, name, error, message) fprintf(out, "| %s | %s | %s |\n", #name, #error, message);
    WF_FAULTS(X, )
#undef X
}

static const struct page {
    const char *name;
    void (*write)(FILE *out);
} pages[] = {
    {"opcodes.md", write_opcodes},
    {"functions.md", write_functions},
    {"settings.md", write_settings},
    {"errors.md", write_errors},
    {"gpu.md", write_gpu},
    {"warpfox.1", write_man},
    {"sql.md", NULL}, /* only parts of these are made */
    {"c-api.md", NULL},
};

static bool same_as_file(const char *path, const char *text, size_t len) {
    FILE *in = fopen(path, "r");
    if (!in) {
        return false;
    }
    char *old = malloc(len + 2);
    size_t got = old ? fread(old, 1, len + 1, in) : 0;
    bool same = old && got == len && memcmp(old, text, len) == 0;
    free(old);
    fclose(in);
    return same;
}

static void rewrite(FILE *out, const char *path, const char *root) {
    FILE *in = fopen(path, "r");
    char *page = NULL;
    size_t cap = 0;
    if (in && getdelim(&page, &cap, 0, in) > 0) {
        write_parts(out, page, root);
    }
    free(page);
    if (in) {
        fclose(in);
    }
}

int main(int argc, char **argv) {
    bool check = argc > 2 && strcmp(argv[1], "--check") == 0;
    const char *folder = argc > 1 ? argv[argc - 1] : "docs";
    char root[1000];
    int stale = 0;
    snprintf(root, sizeof root, "%.900s/..", folder);
    for (size_t i = 0; i < sizeof pages / sizeof *pages; i++) {
        char path[1024];
        char *text = NULL;
        size_t len = 0;
        snprintf(path, sizeof path, "%s/%s", folder, pages[i].name);
        FILE *out = open_memstream(&text, &len);
        if (!out) {
            return 2;
        }
        if (pages[i].write) {
            pages[i].write(out);
        } else {
            rewrite(out, path, root);
        }
        fclose(out);
        if (check && !same_as_file(path, text, len)) {
            fprintf(stderr, "%s is not current: run `make docs`\n", path);
            stale++;
        } else if (!check) {
            FILE *file = fopen(path, "w");
            if (!file || fwrite(text, 1, len, file) != len || fclose(file) != 0) {
                fprintf(stderr, "cannot write %s\n", path);
                return 2;
            }
        }
        free(text);
    }
    return stale ? 1 : 0;
}
