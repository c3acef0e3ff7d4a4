set(WF_CATALOG_SOURCES catalog.c check.c edition.c keeper.c tree.c object.c rows.c saved.c snapshot.c)
