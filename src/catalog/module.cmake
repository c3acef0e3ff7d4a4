set(WF_CATALOG_SOURCES catalog.c)
