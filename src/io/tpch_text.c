/* tpch_text.c: the text pool of TPC-H: 300 MiB of sentences, from which all comments are cut.
 *
 * The pool is one stream of random numbers: how many a sentence takes depends on the sentence, so
 * no position in it can be reached by skipping. Marks (tpch_pool.h) hold the seed of the first
 * sentence of every mebibyte; with them all threads of a database write the pool at once. It is
 * written for each load and given back after it: 300 MiB are too many to keep, and half a second of
 * one core makes them again.
 *
 * A word is copied as 16 bytes whatever its length, so a sentence may scribble up to 15 bytes
 * behind itself; near the next mark, where another thread may be writing, it is made aside first.
 * See decision 0009. */
#include "io/tpch_int.h"

#include "io/tpch_pool.h"
#include "io/tpch_words.h"

enum {
    WORD_BYTES = 16,
    WEIGHT_MAX = 512,
    WORDS_MAX = 48,
    SENTENCE_BYTES = 512, /* more than the longest, with what it scribbles */
    POOL_SEED = 933588178,
};

struct word_list {
    i32 weight;          /* of all words */
    u8 pick[WEIGHT_MAX]; /* drawn number to word */
    u8 len[WORDS_MAX];   /* with the blank that follows */
    char text[WORDS_MAX][WORD_BYTES];
};

/* Everything a sentence is drawn from. */
struct grammar {
    struct word_list sentences, noun_phrases, verb_phrases; /* their letters are words, too */
    struct word_list nouns, verbs, adjectives, adverbs, prepositions, auxiliaries, terminators;
};

static void list_init(struct word_list *list, const struct tpch_word *words, i64 count) {
    CHECK(count <= WORDS_MAX);
    list->weight = 0;
    for (i64 i = 0; i < count; i++) {
        size_t len = strlen(words[i].text);
        CHECK(len < WORD_BYTES && list->weight + words[i].weight <= WEIGHT_MAX);
        memset(list->text[i], ' ', WORD_BYTES);
        memcpy(list->text[i], words[i].text, len);
        list->len[i] = (u8)(len + 1);
        memset(list->pick + list->weight, (int)i, (size_t)words[i].weight);
        list->weight += words[i].weight;
    }
}

#define LIST(g, member) list_init(&(g)->member, tpch_##member, COUNT_OF(tpch_##member))
static void grammar_init(struct grammar *g) {
    list_init(&g->sentences, tpch_grammar, COUNT_OF(tpch_grammar));
    LIST(g, noun_phrases);
    LIST(g, verb_phrases);
    LIST(g, nouns);
    LIST(g, verbs);
    LIST(g, adjectives);
    LIST(g, adverbs);
    LIST(g, prepositions);
    LIST(g, auxiliaries);
    LIST(g, terminators);
}
#undef LIST

static inline i32 draw_word(const struct word_list *list, u32 *seed) {
    return list->pick[rand_draw(seed, list->weight)];
}

static inline char *put_word(char *out, const struct word_list *list, u32 *seed) {
    i32 word = draw_word(list, seed);
    memcpy(out, list->text[word], WORD_BYTES);
    return out + list->len[word];
}

static char *put_noun_phrase(char *out, const struct grammar *g, u32 *seed) {
    const char *form = g->noun_phrases.text[draw_word(&g->noun_phrases, seed)];
    for (; *form != ' '; form++) {
        switch (*form) {
        case 'J':
            out = put_word(out, &g->adjectives, seed);
            break;
        case 'D':
            out = put_word(out, &g->adverbs, seed);
            break;
        case 'N':
            out = put_word(out, &g->nouns, seed);
            break;
        default: /* a comma, over the blank */
            memcpy(out - 1, ", ", 2);
            out++;
        }
    }
    return out;
}

static char *put_verb_phrase(char *out, const struct grammar *g, u32 *seed) {
    const char *form = g->verb_phrases.text[draw_word(&g->verb_phrases, seed)];
    for (; *form != ' '; form++) {
        const struct word_list *list = *form == 'V'   ? &g->verbs
                                       : *form == 'X' ? &g->auxiliaries
                                                      : &g->adverbs;
        out = put_word(out, list, seed);
    }
    return out;
}

/* One sentence and the blank behind it. */
static char *put_sentence(char *out, const struct grammar *g, u32 *seed) {
    const char *form = g->sentences.text[draw_word(&g->sentences, seed)];
    for (; *form != ' '; form++) {
        switch (*form) {
        case 'N':
            out = put_noun_phrase(out, g, seed);
            break;
        case 'V':
            out = put_verb_phrase(out, g, seed);
            break;
        case 'P':
            out = put_word(out, &g->prepositions, seed);
            memcpy(out, "the ", 4);
            out = put_noun_phrase(out + 4, g, seed);
            break;
        default: /* a terminator, over the blank */
            out = put_word(out - 1, &g->terminators, seed);
        }
    }
    return out;
}

i64 tpch_pool_bytes(i64 blocks) {
    return blocks * TPCH_POOL_BLOCK_BYTES + SENTENCE_BYTES;
}

_Static_assert(COUNT_OF(tpch_pool_marks) == TPCH_POOL_BLOCKS, "a mark for every block");

u32 tpch_pool_seed(i64 block) {
    return tpch_pool_marks[block].seed;
}

i64 tpch_pool_offset(i64 block) {
    return tpch_pool_marks[block].offset;
}

static i64 mark_at(i64 block, i64 blocks) {
    return block * TPCH_POOL_BLOCK_BYTES + (block < blocks ? tpch_pool_marks[block].offset : 0);
}

void tpch_pool_block(char *pool, i64 block, i64 blocks) {
    struct grammar g;
    char aside[SENTENCE_BYTES];
    i64 at = mark_at(block, blocks), end = mark_at(block + 1, blocks);
    u32 seed = tpch_pool_marks[block].seed;
    grammar_init(&g);
    while (end - at > SENTENCE_BYTES) {
        at = put_sentence(pool + at, &g, &seed) - pool;
    }
    while (at < end) {
        const char *aside_end = put_sentence(aside, &g, &seed);
        i64 len = MIN_OF(aside_end - aside, end - at); /* the pool ends in a sentence */
        memcpy(pool + at, aside, (size_t)len);
        at += len;
    }
}

void tpch_pull_comments(const struct gen_target *col, i64 rows, i32 text_bytes) {
    enum { AHEAD = 24, LINE_BYTES = 64 };
    str *views = col->data;
    if (!views) {
        return;
    }
    char *to = col->text, *end = col->text + rows * text_bytes;
    for (i64 i = -AHEAD; i < rows; i++) {
        if (i + AHEAD < rows) {
            const char *next = (const char *)(size_t)views[i + AHEAD].addr;
            for (u32 at = 0; at < views[i + AHEAD].len + LINE_BYTES - 1; at += LINE_BYTES) {
                __builtin_prefetch(next + at);
            }
        }
        if (i >= 0 && (i64)views[i].len <= end - to) {
            memcpy(to, (const char *)(size_t)views[i].addr, views[i].len);
            views[i].addr = (u64)(size_t)to;
            to += views[i].len;
        }
    }
}

void tpch_pool_walk(void (*mark)(void *arg, i64 block, u32 seed, i64 offset), void *arg) {
    struct grammar g;
    char aside[SENTENCE_BYTES];
    i64 at = 0, block = 0;
    u32 seed = POOL_SEED;
    grammar_init(&g);
    while (block < TPCH_POOL_BLOCKS) {
        if (at >= block * TPCH_POOL_BLOCK_BYTES) {
            mark(arg, block, seed, at - block * TPCH_POOL_BLOCK_BYTES);
            block++;
        }
        at += put_sentence(aside, &g, &seed) - aside;
    }
}
