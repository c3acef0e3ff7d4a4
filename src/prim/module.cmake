set(WF_PRIM_SOURCES fold.c match.c move.c order.c prim.c)
