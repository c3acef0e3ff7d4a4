set(WF_STORE_SOURCES column_encode.c column_scan.c dict.c load.c sketch.c table.c tablet.c tablet_seal.c tail.c version.c)
