set(WF_GPU_SOURCES cu_api.c gpu_build.c gpu_cache.c gpu_card.c gpu_code.c gpu_describe.c gpu_device.c gpu_host.c gpu_intern.c
    gpu_memory.c gpu_plan.c gpu_prim.c gpu_rates.c gpu_prim_algebra.c gpu_prim_compact.c gpu_prim_map.c gpu_prim_merge.c gpu_prim_move.c gpu_prim_segments.c
    gpu_prim_order.c gpu_prim_loose.c gpu_prim_sort.c gpu_prim_quick.c gpu_prim_texts.c gpu_run.c gpu_sink.c gpu_sort.c gpu_order.c gpu_window.c gpu_source.c gpu_str.c gpu_var.c weave_probe.c weave_sink.c weave_text.c gpu_prim_match.c gpu_cub.c)
