set(WF_API_SOURCES append.c arrow.c compile.c connection.c copy_out.c database.c devices.c error_text.c execute.c explain.c param.c prepare.c query.c result.c scan.c utility.c call_tpch.c watch.c)
