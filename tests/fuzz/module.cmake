set(WF_FUZZ_SOURCES answer.c compare.c dml.c expr.c from.c function.c fuzz.c identity.c query.c reduce.c schema.c text.c window.c)
