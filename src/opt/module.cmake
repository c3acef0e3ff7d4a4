set(WF_OPT_SOURCES
    opt.c agg_once.c bodies.c facts.c estimate.c factor_or.c fold.c group_keys.c infer.c join_order.c meet.c cliques.c outer_to_inner.c prune_columns.c
    push_filter.c push_limit.c push_semi.c reduce.c runs.c share.c share_equal.c split_distinct.c test_order.c unnest.c unnest_carry.c unnest_simple.c early_agg.c extremes.c extremes_merge.c late_keys.c arms.c lazy.c literals.c numbers.c to_semi.c)
