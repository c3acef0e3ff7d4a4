set(WF_CATALOG_SOURCES catalog.c edition.c object.c snapshot.c)
