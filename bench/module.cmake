set(WF_BENCH_SOURCES bench.c ops.c ops_run.c plot.c prim.c prim_ops.c sides.c tpch.c tpch_check.c virginian.c virginian_data.c virginian_check.c prim_order.c joins.c joins_data.c strings.c papers.c)
# Texts that experiments carry: name = path below bench.
set(WF_BENCH_TEXTS)
foreach(number 01 02 03 04 05 06 07 08 09 10 11 12 13 14 15 16 17 18 19 20 21 22)
  list(APPEND WF_BENCH_TEXTS q${number}=tpch/q${number}.sql)
endforeach()
