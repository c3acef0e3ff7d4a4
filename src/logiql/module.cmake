set(WF_LOGIQL_SOURCES
    apart.c atom.c body.c builtin.c change.c constraint.c declare.c entity.c expr.c fold.c lex.c list.c names.c parse.c print.c recursion.c relation.c rule.c script.c split.c stage.c strata.c upkeep.c)
