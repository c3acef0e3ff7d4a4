set(WF_LOWER_SOURCES lower.c build.c finish.c range.c lower_rel.c lower_scalar.c lower_expr.c condition.c lower_func.c cast.c lower_string.c aggregate.c key.c values.c order.c prune.c weave.c)
