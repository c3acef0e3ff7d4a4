set(WF_BENCH_SOURCES bench.c virginian.c virginian_data.c)
