set(WF_STORE_SOURCES change.c column_encode.c column_scan.c compact.c dict.c key.c load.c moves.c reshape.c segment.c sketch.c table.c tablet.c tablet_seal.c tail.c version.c write.c)
