/* fixed.c: PostgreSQL's settings that have one value here.
 *
 * Programs and dumps written for PostgreSQL begin with a page of SETs and look at a few SHOWs. What
 * asks for the only way things are done here is granted, what asks for another one is an error that
 * says so; those marked `any` concern what does not exist here (buffers, locks, costs), and every
 * value does. None of them is kept: a transaction and a connection have no state from here. */
#include "defs/settings.h"

static const struct fixed {
    const char *name, *value;
    const char *accepted; /* separated by bars; "" = read only, NULL = any */
} fixed[] = {
    {"client_encoding", "UTF8", "utf8|utf-8|unicode"},
    {"server_encoding", "UTF8", ""},
    {"server_version", "15.0", ""},
    {"server_version_num", "150000", ""},
    {"integer_datetimes", "on", ""},
    {"max_identifier_length", "63", ""},
    {"block_size", "8192", ""},
    {"in_hot_standby", "off", ""},
    {"is_superuser", "on", ""},
    {"lc_collate", "C", ""},
    {"lc_ctype", "C.UTF-8", ""},
    {"datestyle", "ISO, MDY", "iso|iso, mdy|mdy|iso,mdy"},
    {"intervalstyle", "postgres", "postgres"},
    {"bytea_output", "hex", "hex"},
    {"standard_conforming_strings", "on", "on|true|1|yes"},
    {"escape_string_warning", "on", NULL},
    {"backslash_quote", "safe_encoding", NULL},
    {"extra_float_digits", "1", "1|2|3"},
    {"default_transaction_isolation", "repeatable read",
     "repeatable read|read committed|read uncommitted"},
    {"transaction_isolation", "repeatable read", "repeatable read|read committed|read uncommitted"},
    {"transaction_read_only", "off", NULL}, /* this and the next are the transaction's own (session/utility.c) */
    {"transaction_deferrable", "off", NULL},
    {"default_transaction_read_only", "off", "off|false|0|no"},
    {"default_transaction_deferrable", "off", "off|false|0|no"},
    {"row_security", "on", NULL},
    {"role", "none", "none"},
    {"xmloption", "content", NULL},
    {"application_name", "", NULL},
    {"client_min_messages", "notice", NULL},
    {"log_statement", "none", NULL},
    {"check_function_bodies", "on", NULL},
    {"default_table_access_method", "heap", "heap"},
    {"default_tablespace", "", "|default"},
    {"temp_tablespaces", "", "|default"},
    {"default_text_search_config", "pg_catalog.simple", NULL},
    {"lc_messages", "C", NULL},
    {"lc_monetary", "C", NULL},
    {"lc_numeric", "C", NULL},
    {"lc_time", "C", NULL},
    {"lock_timeout", "0", NULL},
    {"idle_in_transaction_session_timeout", "0", NULL},
    {"idle_session_timeout", "0", NULL},
    {"synchronous_commit", "on", NULL},
    {"work_mem", "4MB", NULL},
    {"maintenance_work_mem", "64MB", NULL},
    {"shared_buffers", "128MB", ""},
    {"jit", "off", NULL},
};

static const struct fixed *find(struct sv name) {
    for (i64 i = 0; i < COUNT_OF(fixed); i++) {
        if (sv_eq_nocase(name, sv_from(fixed[i].name))) {
            return &fixed[i];
        }
    }
    return NULL;
}

const char *fixed_value(struct sv name) {
    const struct fixed *found = find(name);
    return found ? found->value : NULL;
}

/* Whether a value is one of a list. */
static bool among(const char *list, struct sv value) {
    for (const char *at = list;; at++) {
        const char *end = at;
        while (*end && *end != '|') {
            end++;
        }
        if (sv_eq_nocase((struct sv){at, end - at}, value)) {
            return true;
        }
        if (!*end) {
            return false;
        }
        at = end;
    }
}

FALLIBLE fixed_set(struct sv name, const char *value, struct error *err) {
    const struct fixed *found = find(name);
    if (found->accepted && !*found->accepted) {
        FAIL(err, CANNOT_CHANGE, "parameter \"%s\" cannot be changed", found->name);
    }
    if (!value || !found->accepted || among(found->accepted, sv_from(value))) {
        return ERR_OK;
    }
    error_set(err, ERR_INVALID_PARAMETER, -1, "invalid value for parameter \"%s\": \"%.100s\"",
              found->name, value);
    error_hint(err, "Here it is always \"%s\".", found->value);
    return err->code;
}
