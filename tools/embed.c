/* embed.c: turns text files into one C file of (name, text) pairs: `embed OUT.c name=path ...`.
 *
 * The library carries its kernel text this way and hands it to NVRTC as named headers, so that a kernel can
 * include "defs/op.def" on a machine that has neither our sources nor a toolkit. Texts are written as
 * arrays of numbers: string literals of this length are beyond what C promises. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static long put_text(FILE *out, const char *path) {
    FILE *in = fopen(path, "rb");
    if (!in) {
        fprintf(stderr, "embed: cannot read %s\n", path);
        exit(1);
    }
    long bytes = 0;
    for (int c = fgetc(in); c != EOF; c = fgetc(in)) {
        fprintf(out, "%d,%s", c > 127 ? c - 256 : c, ++bytes % 24 ? "" : "\n");
    }
    fputs("0", out);
    fclose(in);
    return bytes;
}

int main(int argc, char **argv) {
    if (argc < 3) {
        fputs("usage: embed OUT.c name=path ...\n", stderr);
        return 1;
    }
    FILE *out = fopen(argv[1], "wb");
    if (!out) {
        fprintf(stderr, "embed: cannot write %s\n", argv[1]);
        return 1;
    }
    fputs("/* Made by tools/embed.c. */\n#include \"gpu/gpu_text.h\"\n", out);
    for (int i = 2; i < argc; i++) {
        char *equals = strchr(argv[i], '=');
        if (!equals) {
            fprintf(stderr, "embed: %s is not name=path\n", argv[i]);
            return 1;
        }
        *equals = 0;
        fprintf(out, "static const char text_%d[] = {\n", i);
        put_text(out, equals + 1);
        fputs("};\n", out);
    }
    fputs("const struct gpu_text gpu_texts[] = {\n", out);
    for (int i = 2; i < argc; i++) {
        fprintf(out, "    {\"%s\", text_%d},\n", argv[i], i);
    }
    fprintf(out, "};\nconst int gpu_text_count = %d;\n", argc - 2);
    if (fclose(out)) {
        fprintf(stderr, "embed: cannot write %s\n", argv[1]);
        return 1;
    }
    return 0;
}
