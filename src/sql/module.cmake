set(WF_SQL_SOURCES
    bind_agg.c bind_agg_rank.c bind_alter.c bind_case.c bind_comment.c bind_change.c bind_copy.c bind_ddl.c bind_depend.c bind_expr.c
    bind_file.c bind_friendly.c bind_from.c bind_full.c bind_func.c bind_group.c bind_insert.c bind_late.c
    bind_name.c bind_object.c bind_op.c bind_order.c bind_recursive.c bind_row.c bind_rules.c bind_search.c bind_select.c bind_serial.c
    bind_series.c bind_session.c bind_set.c bind_setop.c bind_split.c bind_statement.c bind_system.c bind_table_func.c bind_tablesample.c
    bind_type.c bind_update.c bind_view.c bind_window.c bind_with.c command_tag.c complete.c complete_scope.c
    friendly.c functions.c json.c keywords.c lex.c parse.c sample.c subquery.c)
