"""An array in C, its lines as full as they can be; for the generators of tables."""


def write(kind, name, values):
    print(f"static const {kind} {name}[] = {{")
    line = "   "
    for v in values:
        word = f" {v},"
        if len(line) + len(word) > 98:
            print(line)
            line = "   "
        line += word
    print(line)
    print("};")
