/* refuse.c: the n-th reservation of memory fails. Apart from the rest, since it alone looks inside the library. */
#include "base/mem.h"

void refuse_memory_at(int n);
void refuse_memory_at(int n) {
    memory_fail_at(n);
}
