/* gendoc.h: pages that are written by files of their own. */
#ifndef WF_TOOLS_GENDOC_H
#define WF_TOOLS_GENDOC_H

#include <stdbool.h>
#include <stdio.h>

/* docs/warpfox.1 */
void write_man(FILE *out);

/* docs/sql.md, docs/c-api.md: the page as it is, with its made parts made anew. `root` holds include/. */
void write_parts(FILE *out, const char *page, const char *root);
/* A public header as a page; false when it cannot be read. */
bool write_header(FILE *out, const char *path);

#endif
