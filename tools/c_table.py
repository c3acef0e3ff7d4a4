"""An array in C, its lines as full as they can be; for the generators of tables."""


def write(what, values):
    """`what`: what stands before the values: `static const u16 name[]`."""
    print(f"{what} = {{")
    line = "   "
    for v in values:
        word = f" {v},"
        if len(line) + len(word) > 98:
            print(line)
            line = "   "
        line += word
    print(line)
    print("};")
