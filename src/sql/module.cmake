set(WF_SQL_SOURCES
    bind_agg.c bind_case.c bind_copy.c bind_ddl.c bind_expr.c bind_from.c bind_func.c bind_insert.c
    bind_math.c bind_scalar.c bind_text.c bind_time.c bind_name.c bind_op.c bind_select.c bind_session.c bind_statement.c bind_type.c
    coerce.c json.c keywords.c lex.c parse.c)
