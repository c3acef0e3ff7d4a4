set(WF_OPT_SOURCES opt.c facts.c push_filter.c join_order.c prune_columns.c estimate.c)
