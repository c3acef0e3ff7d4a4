/* plot.c: plain charts as SVG. Lines: axes with ticks, a line and a marker per series, a legend; the
 * x axis is logarithmic. Bars: in groups, a colour a series. The y axis starts at zero and ends at a
 * round number. */
#include "bench.h"

#include <math.h>

enum { WIDTH = 900, HEIGHT = 520, LEFT = 80, RIGHT = 240, TOP = 50, BOTTOM = 60 };

struct frame {
    double x_lo, x_hi, y_hi;
};

static const char *const colours[] = {"#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e",
                                      "#17becf", "#8c564b", "#e377c2", "#7f7f7f", "#bcbd22"};
enum { COLOURS = sizeof colours / sizeof *colours };

static double at_x(const struct frame *f, double x) {
    double span = log(f->x_hi) - log(f->x_lo);
    return LEFT + (WIDTH - LEFT - RIGHT) * (span > 0 ? (log(x) - log(f->x_lo)) / span : 0.5);
}

static double at_y(const struct frame *f, double y) {
    return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * y / f->y_hi;
}

/* The step of about five ticks: 1, 2 or 5 times a power of ten. */
static double round_step(double top) {
    double power = pow(10, floor(log10(top / 5)));
    double times = top / 5 / power;
    return power * (times > 5 ? 10 : times > 2 ? 5 : times > 1 ? 2 : 1);
}

static struct frame frame_of(const struct plot_series *series, int count) {
    struct frame f = {INFINITY, 0, 0};
    for (int s = 0; s < count; s++) {
        for (int i = 0; i < series[s].count; i++) {
            f.x_lo = fmin(f.x_lo, series[s].x[i]);
            f.x_hi = fmax(f.x_hi, series[s].x[i]);
            f.y_hi = fmax(f.y_hi, series[s].y[i]);
        }
    }
    if (!(f.x_hi > 0)) {
        f.x_lo = f.x_hi = 1;
    }
    if (!(f.y_hi > 0)) {
        f.y_hi = 1;
    }
    double step = round_step(f.y_hi);
    f.y_hi = ceil(f.y_hi / step) * step;
    return f;
}

/* Names come from programs, but a chart must stay well-formed whatever they are. */
static void put_text(FILE *out, const char *text) {
    for (; *text; text++) {
        if (*text == '<' || *text == '>' || *text == '&') {
            fprintf(out, "&#%d;", *text);
        } else {
            fputc(*text, out);
        }
    }
}

static void put_label(FILE *out, double x, double y, const char *anchor, const char *more,
                      const char *text) {
    fprintf(out, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\"%s>", x, y, anchor, more);
    put_text(out, text);
    fprintf(out, "</text>\n");
}

static void put_axes(FILE *out, const struct frame *f, const char *x_label, const char *y_label) {
    char text[40];
    double step = round_step(f->y_hi);
    for (int i = 0; i * step <= f->y_hi * 1.001; i++) {
        double y = at_y(f, i * step);
        fprintf(out, "<line x1=\"%d\" y1=\"%.1f\" x2=\"%d\" y2=\"%.1f\" stroke=\"#ddd\"/>\n", LEFT,
                y, WIDTH - RIGHT, y);
        snprintf(text, sizeof text, "%g", i * step);
        put_label(out, LEFT - 8, y + 4, "end", "", text);
    }
    for (double x = pow(10, ceil(log10(f->x_lo) - 1e-9)); x <= f->x_hi * 1.001; x *= 10) {
        double at = at_x(f, x);
        fprintf(out, "<line x1=\"%.1f\" y1=\"%d\" x2=\"%.1f\" y2=\"%d\" stroke=\"#ddd\"/>\n", at,
                TOP, at, HEIGHT - BOTTOM);
        snprintf(text, sizeof text,
                 x >= 1e9   ? "%.0f G"
                 : x >= 1e6 ? "%.0f M"
                 : x >= 1e3 ? "%.0f k"
                            : "%.0f",
                 x / (x >= 1e9   ? 1e9
                      : x >= 1e6 ? 1e6
                      : x >= 1e3 ? 1e3
                                 : 1));
        put_label(out, at, HEIGHT - BOTTOM + 18, "middle", "", text);
    }
    fprintf(out, "<path d=\"M%d %d V%d H%d\" fill=\"none\" stroke=\"black\"/>\n", LEFT, TOP,
            HEIGHT - BOTTOM, WIDTH - RIGHT);
    put_label(out, (LEFT + WIDTH - RIGHT) / 2.0, HEIGHT - 16, "middle", "", x_label);
    put_label(out, -(TOP + HEIGHT - BOTTOM) / 2.0, 22, "middle", " transform=\"rotate(-90)\"",
              y_label);
}

static void put_series(FILE *out, const struct frame *f, const struct plot_series *s, int no) {
    const char *colour = colours[no % COLOURS];
    const char *dash = no / COLOURS % 2 ? " stroke-dasharray=\"6 3\"" : "";
    fprintf(out, "<path fill=\"none\" stroke=\"%s\" stroke-width=\"1.6\"%s d=\"", colour, dash);
    for (int i = 0; i < s->count; i++) {
        fprintf(out, "%s%.1f %.1f", i ? " L" : "M", at_x(f, s->x[i]), at_y(f, s->y[i]));
    }
    fprintf(out, "\"/>\n");
    for (int i = 0; i < s->count; i++) {
        fprintf(out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"2.5\" fill=\"%s\"/>\n", at_x(f, s->x[i]),
                at_y(f, s->y[i]), colour);
    }
    double y = TOP + 8 + 17.0 * no;
    fprintf(out,
            "<line x1=\"%d\" y1=\"%.1f\" x2=\"%d\" y2=\"%.1f\" stroke=\"%s\" "
            "stroke-width=\"2\"%s/>\n",
            WIDTH - RIGHT + 16, y, WIDTH - RIGHT + 38, y, colour, dash);
    put_label(out, WIDTH - RIGHT + 44, y + 4, "start", "", s->name);
}

static FILE *open_chart(const char *path, int height) {
    FILE *out = fopen(path, "w");
    if (!out) {
        fprintf(stderr, "bench: %s cannot be written\n", path);
        return NULL;
    }
    fprintf(out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
            "font-family=\"sans-serif\" font-size=\"12\">\n"
            "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
            WIDTH, height);
    return out;
}

static bool close_chart(const char *path, FILE *out) {
    fprintf(out, "</svg>\n");
    bool written = !ferror(out);
    if (fclose(out) != 0 || !written) {
        fprintf(stderr, "bench: %s cannot be written\n", path);
        return false;
    }
    return true;
}

bool plot_write(const char *path, const char *title, const char *x_label, const char *y_label,
                const struct plot_series *series, int count) {
    struct frame f = frame_of(series, count);
    int height = TOP + 17 * count + 30 > HEIGHT ? TOP + 17 * count + 30 : HEIGHT;
    FILE *out = open_chart(path, height);
    if (!out) {
        return false;
    }
    put_label(out, LEFT, 28, "start", " font-size=\"15\"", title);
    put_axes(out, &f, x_label, y_label);
    for (int s = 0; s < count; s++) {
        put_series(out, &f, &series[s], s);
    }
    return close_chart(path, out);
}

/* --- bars ------------------------------------------------------------------------------------- */

enum { BARS_HEIGHT = 360, BARS_BOTTOM = 80 };

void plot_bars_add(struct plot_bars *bars, const char *label, const double *y) {
    if (bars->count < PLOT_BARS) {
        int at = bars->count++;
        snprintf(bars->bars[at].label, sizeof bars->bars[at].label, "%s", label);
        for (int s = 0; s < bars->series_count; s++) {
            bars->bars[at].y[s] = y[s];
        }
    }
}

static double top_of(const struct plot_bars *bars) {
    double top = 0;
    for (int i = 0; i < bars->count; i++) {
        for (int s = 0; s < bars->series_count; s++) {
            top = fmax(top, bars->bars[i].y[s]);
        }
    }
    double step = round_step(top > 0 ? top : 1);
    return ceil((top > 0 ? top : 1) / step) * step;
}

static void put_group(FILE *out, const struct plot_bars *bars, int i, double hi, double y0) {
    double width = (double)(WIDTH - LEFT - RIGHT) / bars->count;
    double bar = width * 0.8 / bars->series_count, x = LEFT + i * width + width * 0.1;
    double span = BARS_HEIGHT - TOP - BARS_BOTTOM, base = y0 + TOP + span;
    for (int s = 0; s < bars->series_count; s++) {
        double height = span * bars->bars[i].y[s] / hi;
        fprintf(out, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"%s\"/>\n",
                x + s * bar, base - height, bar, height, colours[s]);
    }
    char more[80];
    snprintf(more, sizeof more, " transform=\"rotate(-45 %.1f %.1f)\"", x + width * 0.4, base + 14);
    put_label(out, x + width * 0.4, base + 14, "end", more, bars->bars[i].label);
}

static void put_panel(FILE *out, const struct plot_bars *bars, double y0) {
    double hi = top_of(bars), step = round_step(hi), span = BARS_HEIGHT - TOP - BARS_BOTTOM;
    put_label(out, LEFT, y0 + 28, "start", " font-size=\"15\"", bars->title);
    for (int i = 0; i * step <= hi * 1.001; i++) {
        char text[40];
        double y = y0 + TOP + span - span * i * step / hi;
        fprintf(out, "<line x1=\"%d\" y1=\"%.1f\" x2=\"%d\" y2=\"%.1f\" stroke=\"#ddd\"/>\n", LEFT,
                y, WIDTH - RIGHT, y);
        snprintf(text, sizeof text, "%g", i * step);
        put_label(out, LEFT - 8, y + 4, "end", "", text);
    }
    put_label(out, -(y0 + TOP + span / 2), 22, "middle", " transform=\"rotate(-90)\"",
              bars->y_label);
    for (int i = 0; i < bars->count; i++) {
        put_group(out, bars, i, hi, y0);
    }
    for (int s = 0; s < bars->series_count; s++) {
        double y = y0 + TOP + 8 + 17.0 * s;
        fprintf(out, "<rect x=\"%d\" y=\"%.1f\" width=\"12\" height=\"12\" fill=\"%s\"/>\n",
                WIDTH - RIGHT + 16, y - 6, colours[s]);
        put_label(out, WIDTH - RIGHT + 36, y + 4, "start", "", bars->series[s]);
    }
}

bool plot_bars_write(const char *path, const struct plot_bars *panels, int count) {
    FILE *out = open_chart(path, BARS_HEIGHT * count);
    if (!out) {
        return false;
    }
    for (int i = 0; i < count; i++) {
        put_panel(out, &panels[i], (double)BARS_HEIGHT * i);
    }
    return close_chart(path, out);
}
