set(WF_BASE_SOURCES duration.c error.c sv.c mem.c map.c thread.c file.c zone.c)
