set(WF_API_SOURCES append.c arrow.c connection.c database.c describe.c devices.c error_text.c prepare.c prim.c prim_algebra.c
    prim_match.c prim_move.c prim_order.c query.c result.c scan.c)
