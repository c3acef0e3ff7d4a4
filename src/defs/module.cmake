set(WF_DEFS_SOURCES case_map.c host_ops.c ops.c program_print.c program_verify.c settings.c types.c value.c value_date.c value_float.c)
