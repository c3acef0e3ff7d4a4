/* parse.c: SQL text to statements: PostgreSQL's own grammar, through libpg_query.
 *
 * First step in the life of a query. The parser recurses over what it reads, so what nests deeply
 * runs on a thread whose stack is reserved by a bound on the nesting (lex.c); what would need more
 * than a gibibyte is refused before it starts. The tree arrives as JSON and is read into the
 * caller's arena (json.c) on the way. The library counts error positions in characters and
 * everything else in bytes; here all become bytes from the start of the script. Its errors carry no
 * SQLSTATE: 42601 unless the table below knows better. */
#include <pg_query.h>

#include <stdio.h>

#include "base/thread.h"
#include "defs/value.h"
#include "host/chars.h"
#include "sql/friendly_int.h"
#include "sql/sql_int.h"

enum { STACK_PER_TOKEN = 2048, STACK_BASE = 1 << 20, REWRITES_MAX = 100 };
#ifdef WF_HARD
enum { SHALLOW = 4 }; /* most statements of the tests go through the thread */
#else
enum { SHALLOW = 128 }; /* nesting that any caller's stack has room for: 256 KiB */
#endif
#define STACK_MAX ((i64)1 << 30)

struct parse_job {
    struct arena *arena;
    struct sv script;   /* the user's, NUL-terminated */
    struct draft draft; /* what is parsed: the script, or a rewriting of it */
    struct json *tree;
    i32 depth;
    wf_status status;
    char message[500]; /* of a syntax error, with its place in the draft */
    i64 error_at;
    struct error *err;
};

/* Messages by a part of their text, the first that fits; others are 42601. */
static const struct {
    const char *part;
    wf_status code;
} known_messages[] = {
    {"LIMIT #,#", ERR_SYNTAX},
    {"invalid Unicode escape character", ERR_SYNTAX},
    {"invalid Unicode escape value", ERR_SYNTAX},
    {"cannot be marked", ERR_NOT_SUPPORTED},
    {"memory exhausted", ERR_TOO_COMPLEX},
    {"stack depth limit", ERR_TOO_COMPLEX},
    {"out of memory", ERR_OUT_OF_MEMORY},
    {"not yet implemented", ERR_NOT_SUPPORTED},
    {"not implemented", ERR_NOT_SUPPORTED},
    {"are not supported", ERR_NOT_SUPPORTED},
    {"is not supported", ERR_NOT_SUPPORTED},
    {"invalid Unicode escape", ERR_INVALID_ESCAPE},
    {"precision for type float", ERR_INVALID_PARAMETER},
    {"invalid byte sequence", ERR_INVALID_ENCODING},
    {"frame start", ERR_WINDOWING},
    {"frame end", ERR_WINDOWING},
};

static wf_status message_code(const char *message) {
    for (i64 i = 0; i < COUNT_OF(known_messages); i++) {
        if (strstr(message, known_messages[i].part)) {
            return known_messages[i].code;
        }
    }
    return ERR_SYNTAX;
}

/* From characters, counted from 1, to bytes. */
static i32 byte_position(struct sv script, i32 cursor) {
    if (cursor <= 0) {
        return -1;
    }
    i64 at = 0;
    for (i32 i = 1; i < cursor && at < script.len; i++) {
        at++;
        while (at < script.len && ((u8)script.ptr[at] & 0xc0) == 0x80) {
            at++;
        }
    }
    return (i32)at;
}

static bool token_ends(struct sv token, struct sv end) {
    return token.len > end.len &&
           sv_eq_nocase((struct sv){token.ptr + token.len - end.len, end.len}, end);
}

/* FROM 'file': no grammar of ours yet, but the user deserves more than a syntax error. */
static wf_status file_in_from(struct parse_job *job, i32 position, struct sv token) {
    if (token_ends(token, SV(".parquet'"))) {
        error_set(job->err, ERR_NOT_SUPPORTED, position,
                  "not supported yet: reading Parquet files");
        error_hint(job->err, "Load the data from a CSV file with COPY table FROM 'file.csv'.");
        return job->err->code;
    }
    return ERR_OK;
}

/* The error, in terms of the user's text. */
static wf_status syntax_error(struct parse_job *job) {
    bool known = job->error_at >= 0;
    i32 position = known ? (i32)draft_position(&job->draft, job->error_at) : -1;
    i64 at = MAX_OF(position, 0);
    struct sv token = {NULL, 0};
    if (known && lex_next(job->script, &at, &token) && token.ptr[0] == '\'') {
        TRY(file_in_from(job, position, token));
    }
    wf_status code = message_code(job->message);
    if (code == ERR_TOO_COMPLEX) {
        return error_set(job->err, code, position, "the statement nests too deeply to be parsed");
    }
    return error_set(job->err, code, position, "%s", job->message);
}

static void parse_on_stack(void *arg) {
    struct parse_job *job = arg;
    PgQueryParseResult result = pg_query_parse(job->draft.text.ptr);
    job->message[0] = 0;
    if (result.error) {
        const char *message = result.error->message ? result.error->message : "syntax error";
        snprintf(job->message, sizeof job->message, "%s", message);
        job->error_at = byte_position(job->draft.text, result.error->cursorpos);
    } else {
        job->status =
            json_read(job->arena, sv_from(result.parse_tree), &job->tree, &job->depth, job->err);
    }
    pg_query_free_parse_result(result);
}

static FALLIBLE parse_draft(struct parse_job *job) {
    i64 stack_bytes = STACK_BASE + (i64)lex_depth(job->arena, job->draft.text) * STACK_PER_TOKEN;
    if (stack_bytes > STACK_MAX) {
        FAIL(job->err, TOO_COMPLEX, "statement too complex: an expression of more than %lld tokens",
             (STACK_MAX - STACK_BASE) / STACK_PER_TOKEN);
    }
    if (stack_bytes <= STACK_BASE + SHALLOW * STACK_PER_TOKEN) {
        parse_on_stack(job); /* starting a thread would cost more than the parsing */
    } else if (!thread_run_deep(stack_bytes, parse_on_stack, job)) {
        FAIL(job->err, OUT_OF_MEMORY,
             "out of memory: no thread with %lld bytes of stack for the parser", stack_bytes);
    }
    return job->status;
}

/* Parses; while the grammar refuses, lets a rule rewrite the place and tries again. A rewriting
 * that leads to the same error is forgotten, and so is one whose own words are refused. */
static FALLIBLE parse_friendly(struct parse_job *job) {
    TRY(parse_draft(job));
    for (i32 round = 0; job->message[0] && round < REWRITES_MAX; round++) {
        struct parse_job next = *job;
        bool syntax = message_code(job->message) == ERR_SYNTAX && job->error_at >= 0;
        if (!syntax || !friendly_rewrite(&next.draft, job->error_at, job->message)) {
            break;
        }
        TRY(arena_check(job->arena, job->err));
        TRY(stop_check(job->err));
        TRY(parse_draft(&next));
        bool stuck = strcmp(next.message, job->message) == 0 &&
                     draft_position(&next.draft, next.error_at) ==
                         draft_position(&job->draft, job->error_at);
        if (next.message[0] && (stuck || draft_is_ours(&next.draft, next.error_at))) {
            break;
        }
        *job = next;
    }
    return job->message[0] ? syntax_error(job) : ERR_OK;
}

/* Positions in the tree become the user's. */
static void restore_positions(struct parse_job *job) {
    VEC(struct json *) todo = {0};
    VEC_PUSH(job->arena, &todo, job->tree);
    while (todo.count > 0) {
        struct json *node = todo.items[--todo.count];
        if (node->kind == JSON_NUMBER && node->number >= 0 && strcmp(node->key, "location") == 0) {
            node->number = draft_position(&job->draft, node->number);
        } else if (node->kind >= JSON_ARRAY) {
            for (struct json *child = node->first; child; child = child->next) {
                VEC_PUSH(job->arena, &todo, child);
            }
        }
    }
}

/* The number of a parameter, from the text: the tree has it in 32 bits, and what is too large comes
 * out as another one. */
static FALLIBLE check_param(struct sv script, const struct json *ref, struct error *err) {
    i64 number = 0;
    i32 position = json_position(ref);
    i64 end = position + 1;
    while (position >= 0 && end < script.len && script.ptr[end] >= '0' && script.ptr[end] <= '9') {
        number = MIN_OF(number * 10 + (script.ptr[end] - '0'), (i64)PARAM_MAX + 1);
        end++;
    }
    if (number > PARAM_MAX) {
        FAIL_AT(err, UNDEFINED_PARAMETER, position,
                "there is no parameter %.*s: the highest number is %d",
                (int)MIN_OF(end - position, 100), script.ptr + position, (int)PARAM_MAX);
    }
    return ERR_OK;
}

/* Highest $n below a node; the walk keeps its own stack, for the tree may be deep. */
static FALLIBLE find_params(struct arena *arena, struct sv script, const struct json *root,
                            i32 *out, i32 *out_position, struct error *err) {
    VEC(const struct json *) todo = {0};
    VEC_PUSH(arena, &todo, root);
    *out = 0;
    while (todo.count > 0) {
        const struct json *node = todo.items[--todo.count];
        if (node->kind == JSON_OBJECT && strcmp(node->key, "ParamRef") == 0) {
            i64 number = json_number(node, "number");
            TRY(check_param(script, node, err));
            *out_position = number > *out ? json_position(node) : *out_position;
            *out = MAX_OF(*out, (i32)number);
            continue;
        }
        JSON_EACH(child, node) {
            if (child->kind >= JSON_ARRAY) {
                VEC_PUSH(arena, &todo, child);
            }
        }
    }
    return ERR_OK;
}

/* The statement's text without blanks and comments around it. */
static struct sv statement_text(struct sv script, i64 start, i64 len) {
    i64 end = len > 0 ? MIN_OF(start + len, script.len) : script.len;
    struct sv part = {script.ptr, end};
    i64 at = start;
    struct sv token;
    if (!lex_next(part, &at, &token)) {
        return (struct sv){script.ptr + end, 0};
    }
    const char *first = token.ptr;
    const char *last = token.ptr + token.len;
    while (lex_next(part, &at, &token)) {
        last = token.ptr + token.len;
    }
    return (struct sv){first, last - first};
}

/* Where a statement of the draft lies in the user's text: from its first to its last byte. */
static struct sv users_text(const struct parse_job *job, const struct json *raw) {
    struct sv text = statement_text(job->draft.text, json_number(raw, "stmt_location"),
                                    json_number(raw, "stmt_len"));
    i64 first = text.ptr - job->draft.text.ptr;
    i64 lo = draft_position(&job->draft, first);
    i64 hi = lo;
    for (i64 i = 0; i < text.len && job->draft.pieces.count > 1; i++) { /* clauses may have moved */
        i64 at = draft_position(&job->draft, first + i);
        if (stop_due((u64)i, (u64)i + 1)) {
            break;
        }
        lo = MIN_OF(lo, at);
        hi = MAX_OF(hi, at + 1);
    }
    return (struct sv){job->script.ptr + lo, job->draft.pieces.count > 1 ? hi - lo : text.len};
}

static FALLIBLE make_parsed(struct parse_job *job, const struct json *raw, struct parsed **out) {
    struct parsed *parsed = NEW(job->arena, struct parsed);
    parsed->node = json_get(raw, "stmt");
    parsed->script = job->script;
    parsed->depth = job->depth;
    parsed->text = users_text(job, raw);
    for (i64 i = 0; i < job->draft.replaced.count; i++) {
        const char *at = job->script.ptr + job->draft.replaced.items[i];
        parsed->or_replace |= at >= parsed->text.ptr && at < parsed->text.ptr + parsed->text.len;
    }
    if (!node_body(parsed->node)) {
        FAIL(job->err, INTERNAL, "the parse tree is malformed");
    }
    *out = parsed;
    return find_params(job->arena, job->script, parsed->node, &parsed->param_count,
                       &parsed->param_position, job->err);
}

static FALLIBLE check_text(struct sv text, struct error *err) {
    i64 bad = 0;
    const char *nul = text.len > 0 ? memchr(text.ptr, '\0', (size_t)text.len) : NULL;
    if (nul) {
        FAIL_AT(err, INVALID_ENCODING, (i32)(nul - text.ptr),
                "a statement cannot hold a zero byte");
    }
    if (!utf8_valid(text.ptr, text.len, &bad)) {
        FAIL_AT(err, INVALID_ENCODING, (i32)bad, "invalid byte sequence for UTF-8: 0x%02x",
                (unsigned)(u8)text.ptr[bad]);
    }
    if (text.len >= I32_MAX) {
        FAIL(err, TOO_COMPLEX, "a script can hold at most 2 GiB of text");
    }
    return ERR_OK;
}

FALLIBLE sql_parse(struct arena *arena, struct sv text, struct parsed_list *out,
                   struct error *err) {
    memset(out, 0, sizeof *out);
    TRY(check_text(text, err));
    struct parse_job job = {.arena = arena, .script = arena_sv(arena, text), .err = err};
    draft_init(&job.draft, arena, job.script);
    TRY(parse_friendly(&job));
    if (job.draft.pieces.count > 1) {
        restore_positions(&job);
    }
    JSON_EACH(raw, json_get(job.tree, "stmts")) {
        struct parsed *parsed = NULL;
        TRY(make_parsed(&job, raw, &parsed));
        VEC_PUSH(arena, &out->items, parsed);
    }
    return arena_check(arena, err);
}

struct sv parsed_text(const struct parsed *parsed) {
    return parsed->text;
}

i32 parsed_param_count(const struct parsed *parsed) {
    return parsed->param_count;
}

i32 parsed_param_position(const struct parsed *parsed) {
    return parsed->param_position;
}
