set(WF_PRIM_SOURCES prim.c)
