set(WF_BENCH_SOURCES bench.c ops.c ops_run.c plot.c prim.c prim_ops.c sides.c ssb.c suite.c suite_check.c suite_profile.c tpch.c virginian.c virginian_data.c virginian_check.c prim_order.c joins.c joins_data.c strings.c papers.c weave.c weave_data.c weave_library.c everyday.c everyday_data.c)
# Texts that experiments carry: name = path below bench.
set(WF_BENCH_TEXTS)
foreach(number 01 02 03 04 05 06 07 08 09 10 11 12 13 14 15 16 17 18 19 20 21 22)
  list(APPEND WF_BENCH_TEXTS q${number}=tpch/q${number}.sql)
endforeach()
foreach(number 1.1 1.2 1.3 2.1 2.2 2.3 3.1 3.2 3.3 3.4 4.1 4.2 4.3)
  list(APPEND WF_BENCH_TEXTS q${number}=ssb/q${number}.sql)
endforeach()
