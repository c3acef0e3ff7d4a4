/* functions.c: names of the functions a query may call, for shells: what the tables of src/defs
 * hold, without operators and what only the binder writes, and what the binder has names for. */
#include "sql/sql_int.h"

#include "defs/agg.def"
#include "defs/func.def"
#include "defs/table_func.def"
#include "defs/window.def"

#define FUNC_ROW(A, id, name, args, text) {name, "function", text},
#define SCALAR_ROW(A, id, name, args, result, op, text) {name, "function", text},
#define AGG_ROW(A, id, name, args, how, text) {name, "aggregate", text},
#define WINDOW_ROW(A, id, name, fewest, most, text) {name, "window function", text},
#define TABLE_ROW(A, id, name, fewest, most, text) {name, "table function", text},
static const struct sql_function functions[] = {
    WF_FUNCS(FUNC_ROW, ) WF_SCALARS(SCALAR_ROW, ) WF_AGGS(AGG_ROW, ) WF_WINDOWS(WINDOW_ROW, )
        WF_TABLE_FUNCS(TABLE_ROW, ){"read_csv", "table function", "rows of a file"},
        {"read_trie", "table function", "rows of a trie file, in order"},
    {"pg_sleep", "function", "waits for a seconds, for every row"},
    {"nextval", "function", "next number of sequence a"},
    {"currval", "function", "number that nextval gave this session last, of sequence a"},
    {"lastval", "function", "number that nextval gave this session last, of any sequence"},
    {"setval", "function", "sets sequence a to b"},
    {"current_setting", "function", "value of setting a"},
    {"current_schema", "function", "schema where new tables go"},
    {"current_database", "function", "name of the database"},
    {"version", "function", "version of the database"},
};

static bool is_name(const char *text) {
    bool word = (text[0] >= 'a' && text[0] <= 'z') && strncmp(text, "wf_", 3) != 0;
    for (; *text && word; text++) {
        word = (*text >= 'a' && *text <= 'z') || (*text >= '0' && *text <= '9') || *text == '_';
    }
    return word;
}

static bool is_listed(const char *name) {
    bool found = false;
    for (i64 k = 0; k < COUNT_OF(functions) && !found; k++) {
        found = strcmp(functions[k].name, name) == 0;
    }
    return found;
}

bool sql_function(i32 i, struct sql_function *out) {
    for (i64 k = 0; i >= 0 && k < COUNT_OF(functions); k++) {
        if (is_name(functions[k].name) && i-- == 0) {
            *out = functions[k];
            return true;
        }
    }
    for (i64 k = 0; i >= 0 && typing_function(k); k++) {
        bool fresh = is_name(typing_function(k)) && !is_listed(typing_function(k));
        if (fresh && i-- == 0) {
            *out = (struct sql_function){typing_function(k), "function", ""};
            return true;
        }
    }
    return false;
}
