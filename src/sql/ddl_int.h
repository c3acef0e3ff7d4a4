/* ddl_int.h: the binding of definitions; shared by the files that bind them. */
#ifndef WF_SQL_DDL_INT_H
#define WF_SQL_DDL_INT_H

#include "sql/sql_int.h"

/* ON COMMIT that is not done; 42P16 where the table is not temporary. */
FALLIBLE ddl_on_commit(struct bind *b, const struct statement *out, i32 position);
/* The name of a new object: name, position, create.schema, create.temp. */
FALLIBLE ddl_target(struct bind *b, const struct json *relation, struct statement *out);
FALLIBLE ddl_column_type(struct bind *b, const struct json *body, struct type *out);
/* A ColumnDef into column `number`. */
FALLIBLE ddl_column(struct bind *b, const struct json *body, struct new_table *out, u32 number);
/* The keys, checks and references of a ColumnDef, whose column is part of def already. */
FALLIBLE ddl_column_keys(struct bind *b, const struct json *body, struct table_def *def,
                         const char *schema);
FALLIBLE ddl_add_constraint(struct bind *b, struct table_def *def, const struct json *body,
                            const char *column, const char *schema);
/* DEFAULT expr, checked against the column and kept as the text of its span in the script. */
FALLIBLE ddl_default(struct bind *b, const struct json *expr, const i64 span[2],
                     struct column_def *col);
/* A sequence for column `col`. */
struct ddl_seq *ddl_add_sequence(struct bind *b, struct new_table *out, u32 col);
/* The columns of a definition as a scope. */
void ddl_scope(struct bind *b, const struct table_def *def, struct scope *out);
/* 42710 when a constraint of the definition has that name, 42P07 when both are keys. */
FALLIBLE ddl_check_name(struct bind *b, const struct table_def *def, const char *name, bool key,
                        i32 position);

/* 42804 unless the columns of a reference can be compared with those of the parent. */
FALLIBLE ddl_check_pairs(struct bind *b, const struct table_def *def,
                         const struct table_foreign *fk, const struct table_def *parent,
                         i32 position);
void ddl_print_name(struct text *out, const char *name); /* in quotes */
/* IF EXISTS: whether there is no such relation; then the statement is one that does nothing. */
FALLIBLE ddl_if_exists(struct bind *b, const struct json *body, const struct json *relation,
                       struct statement *out, bool *out_missing);
/* The script's text between two positions, without blanks, comments and semicolons around it. */
const char *ddl_text(struct bind *b, i64 from, i64 to);
/* The position behind the next token equal to `word`; -1 when there is none. */
i64 ddl_after_word(struct bind *b, i64 at, const char *word);
/* Where the item of a list that starts at `at` ends: a comma, a closing parenthesis, the end. */
i64 ddl_item_end(struct bind *b, i64 at);
i64 ddl_list_end(struct bind *b, i64 at); /* the same of all items that follow */
const char *ddl_check_text(struct bind *b, i32 location);

/* bind_view.c */
/* CREATE TABLE AS, SELECT INTO. */
FALLIBLE ddl_create_as(struct bind *b, const struct json *into, const struct json *select,
                       bool if_not_exists, struct statement *out);
/* A relation by a name that is a text: 's', 'a.b', '"S"'. */
FALLIBLE bind_relation_text(struct bind *b, const char *text, i32 position,
                            const struct edition_entry **out);
/* Its OID, or that of the index of a key. */
FALLIBLE bind_oid_text(struct bind *b, const char *text, i32 position, u32 *out);
FALLIBLE bind_sequence_name(struct bind *b, const char *text, i32 position,
                            const struct edition_entry **out);
/* What ALTER makes of a sequence. */
FALLIBLE bind_sequence_changes(struct bind *b, const struct sequence *now,
                               const struct json *options, struct ddl_seq *out);
/* GENERATED … AS IDENTITY of column `col`: its sequence. */
FALLIBLE ddl_add_identity(struct bind *b, const struct json *body, struct new_table *out, u32 col);
FALLIBLE bind_sequence_options(struct bind *b, const struct json *options, struct ddl_seq *io);
/* The sequence of nextval('…'); NULL when the node is something else. */
FALLIBLE bind_nextval_of(struct bind *b, const struct json *node, const struct edition_entry **out);

#endif
