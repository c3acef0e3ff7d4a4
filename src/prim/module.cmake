set(WF_PRIM_SOURCES fold.c move.c prim.c)
