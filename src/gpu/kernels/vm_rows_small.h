/* vm_rows_small.h: the virtual machine with a row sink, for pipelines with many registers. */
#define VM_TILE_ROWS 1024u
#define WF_MIN_BLOCKS 5
#include "vm_rows.h"
