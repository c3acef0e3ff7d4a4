set(WF_CPU_SOURCES device.c vec.c prim_move.c prim_map.c prim_compact.c prim_segments.c prim_fsum.c prim_scan.c prepare.c cut.c cut_run.c sink_parts.c frame.c ops.c hold.c load.c make.c
    probe.c meet.c boxes.c cliques.c cliques_build.c cliques_bits.c cliques_lists.c lookup.c pipeline.c scan.c slices.c rates.c sink_rows.c groups.c prim_algebra.c prim_algebra_join.c prim_algebra_stages.c prim_match.c prim_match_parts.c prim_match_runs.c prim_match_table.c
    sink_agg.c agg_parts.c agg_runs.c sink_lut.c sink_mark.c sink_top.c top_text.c best_text.c index_build.c index_hash.c index_set.c index_grow.c index_classes.c class_texts.c texts.c variance.c window.c
    window_frame.c window_fn.c real_angle.c
    fold.c sort.c sort_runs.c sort_texts.c sort_key.c ranks.c recode.c radix.c prims.c prim_merge.c prim_order.c prim_sort.c prim_sort_items.c prim_texts.c)
# Compiled once per processor level; vec_ops.c once per part of op_loop.def, too.
set(WF_CPU_LEVEL_SOURCES vec_rows.c vec_like.c vec_real.c)
set(WF_CPU_LOOP_PARTS core int float date str like)
