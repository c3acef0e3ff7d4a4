/* gendoc.h: pages that are written by files of their own. */
#ifndef WF_TOOLS_GENDOC_H
#define WF_TOOLS_GENDOC_H

#include <stdio.h>

/* docs/warpfox.1 */
void write_man(FILE *out);

#endif
