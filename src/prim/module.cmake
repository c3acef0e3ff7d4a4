set(WF_PRIM_SOURCES fold.c move.c order.c prim.c algebra.c match.c)
