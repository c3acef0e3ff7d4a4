set(WF_PLAN_SOURCES plan.c copy.c equal.c expr.c fix.c fold.c func.c order.c print.c verify.c walk.c)
