/* settings.h: a session's settings as a struct; expands setting.def. */
#ifndef WF_DEFS_SETTINGS_H
#define WF_DEFS_SETTINGS_H

#include "base/error.h"
#include "defs/setting.def"

enum { SETTING_TEXT_MOST = 500, SETTING_VALUE_CAP = SETTING_TEXT_MOST + 1 };
struct settings { /* INT, SIZE: the number; BOOL: 0 or 1; ENUM: index of the choice; TEXT: a number
                     of settings.c's own */
#define X(A, name, kind, value, least, most, scope, text) i64 name;
    WF_SETTINGS(X, )
#undef X
};

enum { LANGUAGE_SQL, LANGUAGE_LOGIQL };
enum { DERIVED_KEPT, DERIVED_COMPUTED, DERIVED_FOLLOWED };
enum { TRIES_KEPT, TRIES_COMPUTED };
enum { DEVICE_AUTO, DEVICE_CPU, DEVICE_GPU, DEVICE_HYBRID };
enum { PLACE_AUTO, PLACE_CACHED, PLACE_MAPPED, PLACE_STREAMED, PLACE_SERIAL };
enum { CODE_AUTO, CODE_VM, CODE_WOVEN };
enum { CUB_AUTO, CUB_ON, CUB_OFF };
enum { RESULT_HOST, RESULT_DEVICE };
enum { PARTITION_AUTO, PARTITION_ON, PARTITION_OFF };
enum { PAYLOAD_AUTO, PAYLOAD_ON, PAYLOAD_OFF };
enum { FLOAT_SUM_EXACT, FLOAT_SUM_FAST };
enum { DURABILITY_FULL, DURABILITY_LAZY };

/* The kind of device a session asks for, as its devices are named; NULL = whichever is best. */
static inline const char *setting_device(const struct settings *s) {
    return s->device == DEVICE_CPU ? "cpu" : s->device == DEVICE_GPU ? "gpu" : NULL;
}
static inline const char *setting_device_title(const struct settings *s) {
    return s->device == DEVICE_CPU ? "CPU" : "GPU";
}
/* The folder for temporary data; lives as long as the process. */
const char *setting_folder(const struct settings *s);
/* Whether several devices may share a scan. */
static inline bool setting_shares(const struct settings *s) {
    return s->device == DEVICE_HYBRID;
}
/* Whether answers stay where they were made. */
static inline bool setting_keeps_result(const struct settings *s) {
    return s->gpu_result == RESULT_DEVICE;
}
/* Whether columns are to lie in a device's memory, or it is an error. */
static inline bool setting_needs_cache(const struct settings *s) {
    return s->gpu_placement == PLACE_CACHED;
}

void settings_init(struct settings *settings); /* defaults */
i32 setting_count(void);
const char *setting_name(i32 i);
const char *setting_text(i32 i);
i32 setting_find(struct sv name); /* -1 when unknown */
/* fixed.c: PostgreSQL's settings that have one value here; NULL: no such setting. */
const char *fixed_value(struct sv name);
/* ERR_OK where the value is that; NULL = its default. Only for names that fixed_value knows. */
FALLIBLE fixed_set(struct sv name, const char *value, struct error *err);
/* ERR_UNDEFINED_OBJECT (nearest name as hint), ERR_INVALID_PARAMETER naming what is allowed; a
 * DATABASE setting after opening is ERR_INVALID_PARAMETER ("cannot be changed now"). */
FALLIBLE setting_set(struct settings *settings, struct sv name, struct sv value, bool opening,
                     struct error *err);
i32 setting_print(const struct settings *settings, i32 i, char *buf,
                  i32 cap); /* as SHOW prints it */

#endif
