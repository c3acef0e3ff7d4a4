set(WF_API_SOURCES alter.c append.c arrow.c call_tpch.c cascade.c change.c compile.c conflict.c connection.c constraint.c
    compact.c copy_from.c copy_out.c database.c ddl.c describe.c devices.c error_text.c execute.c explain.c param.c prepare.c prim.c
    prim_move.c query.c read_file.c reference.c result.c scan.c session.c texts.c transaction.c utility.c watch.c prim_order.c prim_algebra.c prim_match.c)
