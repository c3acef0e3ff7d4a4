set(WF_STORE_SOURCES behind.c blob.c change.c column_encode.c column_scan.c compact.c dict.c earlier.c file.c frames.c key.c key_meet.c key_part.c key_save.c key_twins.c load.c log.c moves.c packed.c replay.c reshape.c save.c segment.c sketch.c space.c table.c table_load.c table_save.c tablet.c tablet_seal.c tail.c version.c write.c)
# Compiled once per processor level.
set(WF_STORE_LEVEL_SOURCES pack_loops.c)
