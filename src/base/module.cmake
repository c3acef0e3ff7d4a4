set(WF_BASE_SOURCES error.c sv.c mem.c map.c thread.c stop.c file.c zone.c)
