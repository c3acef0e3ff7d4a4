set(WF_IO_SOURCES input.c pack.c csv_load.c csv_parse.c csv_write.c csv_scan.c csv_guess.c csv_sniff.c csv_stream.c generate.c ssb.c ssb_rows.c tpch.c tpch_orders.c tpch_tables.c
    tpch_text.c trie_read.c trie_write.c)
