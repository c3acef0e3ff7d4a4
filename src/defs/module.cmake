set(WF_DEFS_SOURCES fixed.c operands.c ops.c program_print.c program_verify.c settings.c types.c value.c value_any.c value_bytes.c value_interval.c value_moment.c value_time.c)
