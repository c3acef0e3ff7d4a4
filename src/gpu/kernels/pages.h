/* pages.h: where a row of a relation lies: rows are numbered through its pages, each of which has
 * room for page_rows and holds as many as lie between its start and the next one's. Without starts
 * it is an array. */
#ifndef WF_PAGES_H
#define WF_PAGES_H

#include "prelude.h"

#include "defs/kalgebra.h"

/* The page of a row, known to be from lo up to hi. */
FN i64 page_of(const struct krel_pages *p, i64 row, i64 lo, i64 hi) {
    while (hi - lo > 1) {
        i64 mid = (lo + hi) / 2;
        if ((i64)p->starts[mid] <= row) {
            lo = mid;
        } else {
            hi = mid;
        }
    }
    return lo;
}

FN i64 row_in_page(const struct krel_pages *p, i64 row, i64 page) {
    return page * p->page_rows + (row - (i64)p->starts[page]);
}

FN i64 row_place(const struct krel_pages *p, i64 row) {
    return p->starts ? row_in_page(p, row, page_of(p, row, 0, p->page_count)) : row;
}

/* The pages that some rows lie in, so that each of them is found in few steps. */
struct page_span {
    i64 lo, hi;
};
FN struct page_span page_span(const struct krel_pages *p, i64 first, i64 rows) {
    struct page_span s;
    s.lo = s.hi = 0;
    if (p->starts && rows > 0) {
        s.lo = page_of(p, first, 0, p->page_count);
        s.hi = page_of(p, first + rows - 1, s.lo, p->page_count) + 1;
    }
    return s;
}
FN i64 row_near(const struct krel_pages *p, struct page_span s, i64 row) {
    return p->starts ? row_in_page(p, row, page_of(p, row, s.lo, s.hi)) : row;
}

#endif
