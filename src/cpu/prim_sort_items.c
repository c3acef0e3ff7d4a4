/* prim_sort_items.c: sorts by comparison (prim_sort_loops.h), once per type of element: words of 32
 * and 64 bits, words with rows, and items, which hold keys of any type.
 *
 * Elements of one type of key are compared by what orders them; only text goes on to compare bytes,
 * when the first sixteen are equal. */
#include "cpu/prim_order.h"

#define SORT_ELEM u32
#define SORT_LESS(a, b, o) (*(a) < *(b))
#define SORT_NAME(name) halves_##name
#include "cpu/prim_sort_loops.h"

#define SORT_ELEM u64
#define SORT_LESS(a, b, o) (*(a) < *(b))
#define SORT_NAME(name) words_##name
#include "cpu/prim_sort_loops.h"

#define SORT_ELEM struct prim_pair
#define SORT_LESS(a, b, o) ((a)->key < (b)->key)
#define SORT_NAME(name) pairs_##name
#include "cpu/prim_sort_loops.h"

#define SORT_ELEM struct radix_item
#define SORT_LESS(a, b, o) item_less(a, b, o)
#define SORT_NAME(name) items_##name
#include "cpu/prim_sort_loops.h"

const struct sort_loops sort_loops_halves = {halves_merge_sort, halves_bitonic_sort,
                                             halves_quick_sort};
const struct sort_loops sort_loops_words = {words_merge_sort, words_bitonic_sort, words_quick_sort};
const struct sort_loops sort_loops_pairs = {pairs_merge_sort, pairs_bitonic_sort, pairs_quick_sort};
const struct sort_loops sort_loops_items = {items_merge_sort, items_bitonic_sort, items_quick_sort};
