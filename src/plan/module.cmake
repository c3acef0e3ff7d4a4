set(WF_PLAN_SOURCES plan.c expr.c fold.c print.c verify.c walk.c)
