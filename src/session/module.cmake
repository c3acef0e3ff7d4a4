set(WF_SESSION_SOURCES alter.c append.c call_generate.c cascade.c change.c compact.c compile.c conflict.c connection.c constraint.c
    copy_from.c copy_out.c database.c ddl.c define.c execute.c explain.c export.c keep.c kept.c kept_file.c logiql.c param.c prepared.c read_file.c reference.c orphans.c rows.c script.c texts.c
    transaction.c utility.c violation.c watch.c)
