set(WF_FUZZ_SOURCES answer.c change.c compare.c corpus.c dml.c expr.c from.c function.c fuzz.c identity.c play.c query.c reduce.c refuse.c rounds.c
    schema.c text.c window.c)
