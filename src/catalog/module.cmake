set(WF_CATALOG_SOURCES catalog.c edition.c tree.c object.c saved.c snapshot.c)
