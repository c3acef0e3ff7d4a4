/* settings.c: setting.def as a table, and the one place where a setting's text is read and written.
 *
 * SET, SHOW, the shell's options and the public API all come here, so a value is checked the same
 * way wherever it was given. A settings struct is plain data: sessions copy it. */
#include "defs/settings.h"
#include "base/zone.h"

#include <errno.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/map.h"
#include "defs/value.h"

enum setting_kind {
    SETTING_INT,
    SETTING_SIZE,
    SETTING_BOOL,
    SETTING_ENUM,
    SETTING_ZONE,
    SETTING_TIME,
    SETTING_TEXT
};
enum setting_scope { SCOPE_SESSION, SCOPE_DATABASE };

struct setting {
    const char *name;
    u8 kind;
    u8 scope;
    const char *value; /* default */
    i64 least;
    const char *most; /* INT: the greatest value; ENUM: the choices */
    const char *text;
    i64 offset;
};

#define X(A, name, kind, value, least, most, scope, text) \
    {#name, SETTING_##kind, SCOPE_##scope, value,         \
     least, most,           text,          (i64)offsetof(struct settings, name)},
static const struct setting table[] = {WF_SETTINGS(X, )};
#undef X

_Static_assert(sizeof(struct settings) == sizeof(i64) * (sizeof table / sizeof table[0]),
               "one i64 per line of setting.def");

static i64 *slot(struct settings *settings, const struct setting *setting) {
    return (i64 *)(void *)((u8 *)settings + setting->offset);
}

i32 setting_count(void) {
    return (i32)COUNT_OF(table);
}

const char *setting_name(i32 i) {
    return table[i].name;
}

const char *setting_text(i32 i) {
    return table[i].text;
}

i32 setting_find(struct sv name) {
    for (i32 i = 0; i < setting_count(); i++) {
        if (sv_eq_nocase(name, sv_from(table[i].name))) {
            return i;
        }
    }
    return -1;
}

/* Choice i of "auto,cpu,gpu"; ptr NULL past the last. */
static struct sv choice(const char *choices, i64 i) {
    const char *p = choices;
    for (; i > 0; i--) {
        p = strchr(p, ',');
        if (!p) {
            return (struct sv){NULL, 0};
        }
        p++;
    }
    const char *end = strchr(p, ',');
    return (struct sv){p, end ? end - p : (i64)strlen(p)};
}

static bool parse_enum(const char *choices, struct sv value, i64 *out) {
    for (i64 i = 0;; i++) {
        struct sv text = choice(choices, i);
        if (!text.ptr) {
            return false;
        }
        if (sv_eq_nocase(text, value)) {
            *out = i;
            return true;
        }
    }
}

/* Digits, a point, an exponent: as far as they go. */
static i64 number_len(const char *text) {
    const char *p = text + strspn(text, " ");
    p += *p == '-' || *p == '+';
    p += strspn(p, "0123456789");
    p += *p == '.' ? 1 + strspn(p + 1, "0123456789") : 0;
    if (*p == 'e' || *p == 'E') {
        const char *digits = p + 1 + (p[1] == '-' || p[1] == '+');
        p = *digits >= '0' && *digits <= '9' ? digits + strspn(digits, "0123456789") : p;
    }
    return p - text;
}

/* A number as PostgreSQL's settings take it (12, 1.5, 1e3, 0x10, 017), and what stands behind it.
 */
static bool read_amount(struct sv value, f64 *out, char unit[16]) {
    char text[64], *end = NULL;
    if (value.len == 0 || value.len >= (i64)sizeof text) {
        return false;
    }
    memcpy(text, value.ptr, (size_t)value.len);
    text[value.len] = 0;
    errno = 0;
    *out = (f64)strtoll(text, &end, 0);
    if (*end == '.' || *end == 'e' || *end == 'E' || errno) {
        i64 len = number_len(text);
        if (value_parse_f64((struct sv){text, len}, out)) {
            return false;
        }
        end = text + len;
    }
    while (*end == ' ') {
        end++;
    }
    i64 len = (i64)strlen(end);
    while (len > 0 && end[len - 1] == ' ') {
        len--;
    }
    bool fits = end > text && text + value.len >= end + len && len < 16;
    memcpy(unit, end, fits ? (size_t)len : 0);
    unit[fits ? len : 0] = 0;
    return fits && *out == *out;
}

/* Amounts are whole numbers of their least unit: the nearest, and of two the even one. */
static bool set_amount(f64 amount, i64 *out) {
    bool fits = amount > -9e18 && amount < 9e18;
    *out = fits ? llrint(amount) : 0;
    return fits;
}

/* A number of bytes: 64MB, 2 GB, 1.5GB, 1024. Units are powers of 1024. */
static bool parse_size(struct sv value, i64 *out) {
    static const struct {
        const char *name;
        i32 shift;
    } units[] = {{"", 0},     {"b", 0},   {"k", 10},   {"kb", 10}, {"kib", 10},
                 {"m", 20},   {"mb", 20}, {"mib", 20}, {"g", 30},  {"gb", 30},
                 {"gib", 30}, {"t", 40},  {"tb", 40},  {"tib", 40}};
    f64 number;
    char unit[16];
    if (!read_amount(value, &number, unit)) {
        return false;
    }
    for (i64 i = 0; i < COUNT_OF(units); i++) {
        if (sv_eq_nocase(sv_from(unit), sv_from(units[i].name))) {
            return set_amount(number * (f64)(1LL << units[i].shift), out);
        }
    }
    return false;
}

static const struct {
    const char *name;
    i64 ms;
} time_units[] = {{"d", 86400000}, {"h", 3600000}, {"min", 60000}, {"s", 1000}, {"ms", 1}};

/* Milliseconds: 300, 300ms, 2s, 1.5 min, 1h, 1d, 1500us. */
static bool parse_time(struct sv value, i64 *out) {
    f64 number;
    char unit[16];
    if (!read_amount(value, &number, unit)) {
        return false;
    }
    if (strcmp(unit, "us") == 0) {
        return set_amount(number / 1000, out);
    }
    for (i64 i = 0; i < COUNT_OF(time_units); i++) {
        if (strcmp(unit, time_units[i].name) == 0) {
            return set_amount(number * (f64)time_units[i].ms, out);
        }
    }
    return unit[0] == 0 && set_amount(number, out);
}

/* A zone's seconds east of Greenwich; a plain number counts hours. */
static bool parse_zone(struct sv value, i64 *out) {
    i32 east = 0;
    f64 hours = 0;
    if (value_parse_f64(value, &hours) == 0) {
        *out = hours > -168 && hours < 168 ? (i64)(hours * 3600) : 0;
        return hours > -168 && hours < 168;
    }
    u8 fault = value_parse_zone(value, &east);
    if (fault == 0 && east != 0 && !zone_is_named(east)) {
        (void)zone_find(value, &east); /* CET is a zone with summer time here */
    }
    *out = east;
    return fault == 0;
}

/* As PostgreSQL shows an offset: <+05:30>-05:30. */
static i32 print_zone(i64 zone, char *buf, i32 cap) {
    i64 size = zone < 0 ? -zone : zone;
    char text[24];
    if (zone_is_named((i32)zone)) {
        return snprintf(buf, (size_t)cap, "%s", zone_name((i32)zone));
    }
    if (zone == 0) {
        return snprintf(buf, (size_t)cap, "UTC");
    }
    snprintf(text, sizeof text,
             size % 60     ? "%02lld:%02lld:%02lld"
             : size % 3600 ? "%02lld:%02lld"
                           : "%02lld",
             size / 3600, size / 60 % 60, size % 60);
    return snprintf(buf, (size_t)cap, "<%s%s>%s%s", zone < 0 ? "-" : "+", text,
                    zone < 0 ? "+" : "-", text);
}

/* Texts that settings ever had, so that a settings struct stays plain data: a value is a text's
 * number. They are few, and stay. */
enum { TEXTS_MOST = 4096 };
static char *texts[TEXTS_MOST];
static _Atomic i32 text_count;
static atomic_flag texts_busy = ATOMIC_FLAG_INIT;

static bool parse_text(struct sv value, i64 *out) {
    if (value.len > SETTING_TEXT_MOST || memchr(value.ptr, 0, (size_t)value.len)) {
        return false;
    }
    while (atomic_flag_test_and_set_explicit(&texts_busy, memory_order_acquire)) {
    }
    i32 count = atomic_load(&text_count);
    i32 at = 0;
    while (at < count && !sv_eq(sv_from(texts[at]), value)) {
        at++;
    }
    char *added = at == count && count < TEXTS_MOST ? calloc(1, (size_t)value.len + 1) : NULL;
    if (added) {
        memcpy(added, value.ptr, (size_t)value.len);
        texts[count] = added;
        atomic_store(&text_count, count + 1);
    }
    atomic_flag_clear_explicit(&texts_busy, memory_order_release);
    *out = at;
    return at < count || added;
}

const char *setting_folder(const struct settings *settings) {
    const char *set = texts[settings->temp_directory];
    const char *usual = getenv("TMPDIR");
    return set[0] ? set : usual && usual[0] ? usual : "/tmp";
}

static bool parse_value(const struct setting *setting, struct sv value, i64 *out) {
    b8 flag;
    i64 most;
    f64 amount;
    char unit[16];
    bool read = false;
    switch ((enum setting_kind)setting->kind) {
    case SETTING_ENUM:
        return parse_enum(setting->most, value, out);
    case SETTING_BOOL:
        if (value_parse_bool(value, &flag)) {
            return false;
        }
        *out = flag;
        return true;
    case SETTING_ZONE:
        return parse_zone(value, out);
    case SETTING_TEXT:
        return parse_text(value, out);
    case SETTING_SIZE:
        return parse_size(value, out) && *out >= setting->least;
    case SETTING_TIME:
        read = parse_time(value, out);
        break;
    case SETTING_INT:
        read = read_amount(value, &amount, unit) && !unit[0] && set_amount(amount, out);
        break;
    }
    if (!read || value_parse_int(sv_from(setting->most), &most)) {
        return false;
    }
    bool power =
        setting->offset != (i64)offsetof(struct settings, tablet_rows) || (*out & (*out - 1)) == 0;
    return *out >= setting->least && *out <= most && power;
}

/* What may be written, for the error's hint. */
static void hint_allowed(const struct setting *setting, struct error *err) {
    switch ((enum setting_kind)setting->kind) {
    case SETTING_ENUM:
        error_hint(err, "Choose one of: %s.", setting->most);
        break;
    case SETTING_BOOL:
        error_hint(err, "Use on or off.");
        break;
    case SETTING_ZONE:
        error_hint(err, "Use UTC, an abbreviation such as CET, or hours east of Greenwich.");
        break;
    case SETTING_TEXT:
        error_hint(err, "Use a text of at most %d bytes.", SETTING_TEXT_MOST);
        break;
    case SETTING_SIZE:
        error_hint(err, "Use a size such as 512MB or 8GB; 0 = automatic.");
        break;
    case SETTING_TIME:
        error_hint(err, "Use a time such as 300ms, 2s, 1min or 1h; 0 = none.");
        break;
    case SETTING_INT:
        error_hint(err, "Use a whole number from %lld to %s%s.", setting->least, setting->most,
                   setting->offset == (i64)offsetof(struct settings, tablet_rows)
                       ? ", a power of two"
                       : "");
        break;
    }
}

void settings_init(struct settings *settings) {
    for (i64 i = 0; i < COUNT_OF(table); i++) {
        i64 value = 0;
        CHECK(parse_value(&table[i], sv_from(table[i].value), &value));
        *slot(settings, &table[i]) = value;
    }
}

static struct sv next_name(void *arg, i64 i) {
    UNUSED(arg);
    return i < COUNT_OF(table) ? sv_from(table[i].name) : (struct sv){NULL, 0};
}

static wf_status unknown(struct sv name, struct error *err) {
    struct memory mem;
    struct arena arena;
    memory_init(&mem, NULL, 0, "memory");
    arena_init(&arena, &mem);
    wf_status status = error_set(err, ERR_UNDEFINED_OBJECT, -1, "there is no setting \"%.*s\"",
                                 (int)MIN_OF(name.len, 100), name.ptr);
    const char *near = nearest_name(&arena, name, next_name, NULL);
    if (near) {
        error_hint(err, "Perhaps you meant \"%s\".", near);
    } else {
        error_hint(err, "SHOW ALL lists the settings.");
    }
    arena_fini(&arena);
    return status;
}

wf_status setting_set(struct settings *settings, struct sv name, struct sv value, bool opening,
                      struct error *err) {
    i32 i = setting_find(name);
    if (i < 0) {
        return unknown(name, err);
    }
    const struct setting *setting = &table[i];
    if (setting->scope == SCOPE_DATABASE && !opening) {
        error_set(err, ERR_INVALID_PARAMETER, -1, "setting \"%s\" cannot be changed now",
                  setting->name);
        error_hint(err, "Give it when the database is opened.");
        return err->code;
    }
    if (!value.ptr || sv_eq_nocase(value, SV("default"))) {
        value = sv_from(setting->value);
    }
    i64 number;
    if (!parse_value(setting, value, &number)) {
        error_set(err, ERR_INVALID_PARAMETER, -1, "invalid value for setting \"%s\": \"%.*s\"",
                  setting->name, (int)MIN_OF(value.len, 100), value.ptr);
        hint_allowed(setting, err);
        return err->code;
    }
    *slot(settings, setting) = number;
    return ERR_OK;
}

static i32 print_size(i64 bytes, char *buf, i32 cap) {
    static const char *const units[] = {"", "kB", "MB", "GB", "TB"};
    i32 unit = 0;
    while (unit < 4 && bytes && bytes % 1024 == 0) {
        bytes /= 1024;
        unit++;
    }
    return snprintf(buf, (size_t)cap, "%lld%s", bytes, units[unit]);
}

static i32 print_time(i64 ms, char *buf, i32 cap) {
    i64 i = 0;
    while (i + 1 < COUNT_OF(time_units) && ms % time_units[i].ms) {
        i++;
    }
    return ms ? snprintf(buf, (size_t)cap, "%lld%s", ms / time_units[i].ms, time_units[i].name)
              : snprintf(buf, (size_t)cap, "0");
}

i32 setting_print(const struct settings *settings, i32 i, char *buf, i32 cap) {
    const struct setting *setting = &table[i];
    i64 value;
    memcpy(&value, (const u8 *)settings + setting->offset, sizeof value);
    switch ((enum setting_kind)setting->kind) {
    case SETTING_BOOL:
        return snprintf(buf, (size_t)cap, "%s", value ? "on" : "off");
    case SETTING_ENUM: {
        struct sv text = choice(setting->most, value);
        return snprintf(buf, (size_t)cap, "%.*s", (int)text.len, text.ptr);
    }
    case SETTING_ZONE:
        return print_zone(value, buf, cap);
    case SETTING_TEXT:
        return snprintf(buf, (size_t)cap, "%s", texts[value]);
    case SETTING_SIZE:
        return print_size(value, buf, cap);
    case SETTING_TIME:
        return print_time(value, buf, cap);
    case SETTING_INT:
        break;
    }
    return snprintf(buf, (size_t)cap, "%lld", value);
}
