set(WF_TYPING_SOURCES agg_parts.c aggregate.c build.c choice.c coerce.c decimal.c function.c math.c operator.c overload.c scan.c text.c time.c type_name.c)
