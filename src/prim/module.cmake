set(WF_PRIM_SOURCES algebra.c fold.c move.c prim.c)
