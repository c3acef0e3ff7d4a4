set(WF_RUN_SOURCES variable.c index.c prune.c pair_map.c key_set.c choose.c auto.c place.c past.c queue.c share.c hybrid.c defer.c run.c answer.c shown.c fetch.c stream.c report.c rounds.c work.c)
