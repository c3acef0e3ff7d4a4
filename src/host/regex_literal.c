/* regex_literal.c: what a match of a regular expression must contain.
 *
 * A text without these bytes needs no automaton: looking for bytes is several times faster. The
 * prefix is read off the program from its start. Bytes needed further inside are those of an
 * instruction without which the end cannot be reached; what follows it without a choice is needed,
 * too. That takes a walk per instruction, so only short programs are asked, and only once they have
 * been used some times. */
#define _GNU_SOURCE
#include "defs/fault.h"
#include "defs/host_words.h"
#include "host/chars.h"
#include "host/regex_auto.h"

#include "defs/fn_str.h"

enum { NEEDED_INSTS_MAX = 64 };

/* False when the character has several forms. */
static bool append_char(const struct regex *re, struct auto_literal *out, u32 c) {
    bool cased = re->nocase && (case_lower(c) != c || case_upper(c) != c);
    if (cased || c > 0x10ffff || (c >= 0xd800 && c < 0xe000) || out->len >= AUTO_LITERAL_MAX) {
        return false;
    }
    char *to = out->bytes + out->len;
    if (c < 0x80) {
        to[0] = (char)c;
        out->len += 1;
        return true;
    }
    i32 more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    to[0] = (char)((0xf00u >> (more + 1) & 0xf0u) | c >> 6 * more);
    for (i32 i = 1; i <= more; i++) {
        to[i] = (char)(0x80u | (c >> 6 * (more - i) & 0x3fu));
    }
    out->len += 1 + more;
    return true;
}

/* The byte of a literal that stands in fewest texts, by what is usual. */
static void choose_rare(struct auto_literal *literal) {
    static const char common[] = "zqjxkvbywgpfmcduhlr0123456789/.-sniotae ";
    i32 best = -1;
    for (i32 i = 0; i < literal->len; i++) {
        u8 c = (u8)literal->bytes[i];
        const char *at = c ? strchr(common, c) : NULL;
        i32 rank = c >= 0x80 && (c & 0xc0) != 0x80 ? 100 : at ? (i32)(at - common) + 1 : 0;
        if (best < 0 || rank < best) {
            best = rank;
            literal->rare = i;
        }
    }
}

const u8 *auto_find_literal(const struct auto_literal *literal, const u8 *p, const u8 *end) {
    i64 len = literal->len, rare = literal->rare;
    for (i32 tries = 0; tries < 8; tries++) {
        if (end - p < len) {
            return NULL;
        }
        const u8 *at = memchr(p + rare, literal->bytes[rare], (size_t)(end - p - len + 1));
        if (!at) {
            return NULL;
        }
        p = at - rare;
        if (memcmp(p, literal->bytes, (size_t)len) == 0) {
            return p;
        }
        p++;
    }
    /* the byte is not that rare here */
    return memmem(p, (size_t)(end - p), literal->bytes, (size_t)len);
}

/* The characters read from pc on without a choice; returns where that ends. */
static i32 read_literal(const struct regex *re, i32 pc, struct auto_literal *out) {
    out->len = out->rare = 0;
    for (;;) {
        const struct regex_inst *inst = &re->insts[pc];
        if (inst->op == RE_CHAR && append_char(re, out, inst->c)) {
            pc++;
        } else if (inst->op == RE_SAVE) {
            pc++;
        } else if (inst->op == RE_JUMP) {
            pc += inst->x;
        } else {
            choose_rare(out);
            return pc;
        }
    }
}

void auto_find_prefix(struct regex_auto *m) {
    i32 stop = read_literal(&m->re, 0, &m->prefix);
    m->whole = m->re.insts[stop].op == RE_MATCH && m->prefix.len > 0;
    m->needed.len = 0;
}

/* Whether the end can be reached without pc. */
static bool avoidable(const struct regex *re, i32 pc) {
    u8 stack[2 * NEEDED_INSTS_MAX + 2];
    b8 seen[NEEDED_INSTS_MAX] = {0};
    i32 depth = 0;
    stack[depth++] = 0;
    seen[pc] = 1;
    while (depth > 0) {
        i32 at = stack[--depth];
        const struct regex_inst *inst = &re->insts[at];
        if (seen[at]) {
            continue;
        }
        seen[at] = 1;
        if (inst->op == RE_MATCH) {
            return true;
        }
        if (inst->op == RE_SPLIT) {
            stack[depth++] = (u8)(at + inst->y);
        }
        bool far = inst->op == RE_SPLIT || inst->op == RE_JUMP;
        stack[depth++] = (u8)(at + (far ? inst->x : 1));
    }
    return false;
}

void auto_find_needed(struct regex_auto *m) {
    i32 first = 0;
    while (m->re.insts[first].op == RE_SAVE || m->re.insts[first].op == RE_BEGIN ||
           m->re.insts[first].op == RE_TEXT_BEGIN) {
        first++;
    }
    bool fails_early = m->anchored && m->re.insts[first].op == RE_CHAR;
    if (fails_early || m->re.inst_count > NEEDED_INSTS_MAX) {
        return;
    }
    for (i32 pc = 0; pc < m->re.inst_count; pc++) {
        struct auto_literal found = {.len = 0};
        if (m->re.insts[pc].op != RE_CHAR || avoidable(&m->re, pc)) {
            continue;
        }
        read_literal(&m->re, pc, &found);
        if (found.len > m->needed.len) {
            m->needed = found;
        }
    }
}

/* A lead is the literal's first bytes. */
static void add_lead(struct leads *out, const struct auto_literal *literal) {
    u32 bytes = 0;
    u32 len = (u32)MIN_OF(literal->len, 4);
    memcpy(&bytes, literal->bytes, len);
    if (len) {
        fn_leads_set(out, out->count, bytes, len);
    }
}

void auto_find_leads(const struct regex_auto *m, struct leads *out) {
    struct auto_literal first, longest = {.len = 0};
    fn_leads_none(out, 0);
    if (m->anchored) { /* most texts fail at once */
        return;
    }
    i32 stop = read_literal(&m->re, 0, &first);
    for (i32 pc = stop; pc < m->re.inst_count && m->re.inst_count <= NEEDED_INSTS_MAX; pc++) {
        struct auto_literal found;
        if (m->re.insts[pc].op == RE_CHAR && !avoidable(&m->re, pc)) {
            read_literal(&m->re, pc, &found);
            longest = found.len > longest.len ? found : longest;
        }
    }
    add_lead(out, &first);
    add_lead(out, &longest);
}
