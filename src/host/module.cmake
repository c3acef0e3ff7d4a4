set(WF_HOST_SOURCES bodies.c case_map.c char_class.c decimal.c eval.c format.c normal.c number.c print.c regex.c regex_auto.c regex_literal.c regex_ops.c regex_table.c text.c zone_table.c)
