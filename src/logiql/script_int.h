/* script_int.h: for script.c and change.c: a text of clauses, while its actions are found. */
#ifndef WF_LOGIQL_SCRIPT_INT_H
#define WF_LOGIQL_SCRIPT_INT_H

#include "logiql/bind_int.h"

struct change { /* rows for a table, or to go from it */
    struct lq_pred *target;
    struct lq_pred *source; /* a predicate of its own, whose rules are what the clauses say */
    u8 kind;                /* enum lq_action_kind: MAKE, TAKE, PUT or ADD */
    b8 reads;               /* a body */
    b8 is_final;            /* that waits for the other changes */
    b8 reads_deltas;
    i32 arg_count;         /* of the target */
    struct lq_slot *slots; /* of them; NULL: they are the source's columns */
    const char *shape;     /* the slots as a text */
    struct text text;
    i32 position;
};

struct file { /* of a predicate whose rows a file has */
    struct sv name;
    const char *path, *delimiter;
    b8 header, exports;
};

struct script {
    struct lq_bind b;
    VEC(struct file) files;
    struct lq_script *out;
    struct lq_program program;
    lq_preds installed;
    lq_preds created;
    VEC(struct change *) changes;
    VEC(struct lq_action) kept; /* states of before that are put aside */
    struct map wanted;          /* names of changes that bodies read */
    struct text delta_text;     /* rules for what clauses change, for those that read it */
};

struct file *script_file(struct script *s, struct sv name);
const struct edition_entry *script_entry(struct script *s, struct sv name);
/* Whether rules derive the predicate: those of the database, or of this text. */
bool script_has_rules(struct script *s, struct sv name);
void script_list(struct script *s, lq_preds *list, struct lq_pred *pred); /* once */
/* The clause with this head alone, as one of another predicate. */
struct lq_clause *script_with_head(struct script *s, const struct lq_clause *clause,
                                   const struct lq_atom *head, struct sv name);

/* stage.c: names instead of stages and changes, in the body of a change. */
FALLIBLE clause_stage(struct script *s, struct lq_clause *clause);
FALLIBLE clause_check_stages(struct script *s, const struct lq_clause *clause); /* of a rule */
/* Rules for what the clauses change, where one of them reads it. */
FALLIBLE deltas_add(struct script *s);

/* change.c */
FALLIBLE change_add(struct script *s, struct lq_clause *clause, const struct lq_atom *head);
/* A target without types gets those of what is stated of it; others give theirs. */
FALLIBLE change_type(struct script *s, struct change *change);
/* The table of an entity, with all its columns. */
struct lq_pred *entity_rows(struct script *s, struct lq_pred *entity);
void change_actions(struct script *s);
/* What a table of these columns is to be. */
void action_columns(struct lq_action *action, const struct lq_pred *pred);

#endif
