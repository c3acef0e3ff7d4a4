set(WF_IO_SOURCES csv_load.c csv_parse.c csv_scan.c)
