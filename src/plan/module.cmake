set(WF_PLAN_SOURCES plan.c expr.c print.c verify.c)
