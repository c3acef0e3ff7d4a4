/* share.h: parts of one scan for several devices: how large each is, where they part, how what they
 * made is put together. No device is named here, and none is run but to put groups together. */
#ifndef WF_RUN_SHARE_H
#define WF_RUN_SHARE_H

#include "run/device.h"

/* What a part of a scan takes a device: so much whatever its rows, so much for all of them, and so
 * much to bring the columns it lacks. Columns of a part `here` of the rows are there already; that
 * part is taken first. */
struct share_cost {
    f64 fixed_ns, rows_ns, move_ns;
    f64 here; /* in [0, 1] */
};

f64 share_ns(const struct share_cost *cost, f64 share); /* 0 for no share */
/* Shares with which all devices end at the same time, that time being the least: they sum to 1, and
 * a device that needs longer for nothing than the others for everything has none. Returns the time. */
f64 share_out(u32 count, const struct share_cost *costs, f64 *out_shares);
/* The row nearest to `row` where a tablet, or a zone of one, begins, or the end. */
i64 share_row(const struct table_version *version, i64 row);
/* Where each share ends, the last one with the table: by rows that zone maps do not rule out. */
void share_ends(const struct exec *x, const struct pipeline *pipe, u32 count, const f64 *shares,
                i64 *out_ends);

/* Whether several devices may each run a part of the pipeline's source: its rows are those of
 * tablets, what it makes of them can be put together, and it numbers nothing as it goes. */
bool share_possible(const struct exec *x, const struct step *step);

/* What `from`, a share, made for the sink is added to the variable of the whole: chunks are moved,
 * in order, marks joined. States of groups are only collected: share_merge_groups is to follow. */
FALLIBLE share_take(struct exec *x, struct exec *from, const struct sink *sink);
/* States of a group are merged, word by word, by a pipeline of the device `host`. */
FALLIBLE share_merge_groups(struct exec *x, struct device *host, const struct sink *sink);

#endif
