set(WF_BASE_SOURCES duration.c error.c sv.c mem.c room.c map.c thread.c moment.c stop.c file.c disk.c temp.c zone.c)
