/* fn_moment_zone.h: moments from text in a zone whose changes are a table. Kernel text (see fn_int.h);
 * needs fn_moment.h and fn_zone.h. */
#ifndef WF_DEFS_FN_MOMENT_ZONE_H
#define WF_DEFS_FN_MOMENT_ZONE_H

/* `zone`: the table, for texts without a zone of their own. */
FN_SLOW i64 fn_timestamptz_partly(str a, str zone, u8 *f) {
    i64 value = 0;
    b8 zoned = 0;
    i32 east = 0;
    if (!fn_plain_moment(a, &value, &zoned, &east)) {
        *f = (u8)FAULT_ELSEWHERE;
        return 0;
    }
    return zoned ? value - east * SECOND_US : fn_global_ahead(value, zone, f);
}

#endif
