set(WF_PLAN_SOURCES plan.c copy.c expr.c fold.c print.c verify.c walk.c)
