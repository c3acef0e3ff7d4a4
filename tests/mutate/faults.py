"""Small faults that can be put into C text, and which of them are tried.

A fault is one place of one line and what stands there instead. It is known by file, function, kind, the line as it
was and the line as it becomes, not by a line number: the same seed chooses the same faults after a change elsewhere.
Only the bodies of functions are looked at (of .def files: the lines of their tables), never comments, strings,
directives or assertions.
"""
import hashlib
import math
import re

TOKEN = re.compile(
    r"""(?P<skip>\s+|/\*.*?\*/|//[^\n]*|\\\n)
      |(?P<directive>^[ \t]*\#(?:[^\n\\]|\\\n|\\.)*)
      |(?P<string>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
      |(?P<number>\.?[0-9](?:[eEpP][+-]|[0-9a-zA-Z_.])*)
      |(?P<name>[A-Za-z_][A-Za-z_0-9]*)
      |(?P<mark><<=|>>=|\.\.\.|->|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||\+=|-=|\*=|/=|%=|&=|\|=|\^=|\#\#|.)""",
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)
SWAPS = {
    "<": ["<=", ">="], "<=": ["<", ">"], ">": [">=", "<="], ">=": [">", "<"], "==": ["!="], "!=": ["=="],
    "&&": ["||"], "||": ["&&"], "+": ["-"], "-": ["+"],
}
LEAVES = {"return", "FAIL", "FAIL_AT", "continue", "break", "goto"}
ASSERTIONS = {"ASSERT", "CHECK", "static_assert", "_Static_assert", "UNUSED"}
GUARD_WEIGHT = 2.0  # checks, limits and error paths are rarer than other lines, and rarer still in tests


class Token:
    __slots__ = ("kind", "text", "start", "end", "line")

    def __init__(self, kind, text, start, end, line):
        self.kind, self.text, self.start, self.end, self.line = kind, text, start, end, line


class Fault:
    """`start` to `end` of the file's text becomes `new`."""

    def __init__(self, path, function, kind, guard, text, line, start, end, new):
        self.path, self.function, self.kind, self.guard = path, function, kind, guard
        self.line, self.start, self.end, self.new = line, start, end, new
        self.nth = 0  # of those in the function with the same text
        first = text.rfind("\n", 0, start) + 1
        last = text.find("\n", end)
        last = len(text) if last < 0 else last
        self.before = " ".join(text[first:last].split())
        self.after = " ".join((text[first:start] + new + text[end:last]).split())

    def key(self):
        return (self.path, self.function, self.before, self.after)

    def id(self):
        text = "\0".join(self.key()) + (f"\0{self.nth}" if self.nth else "")
        return hashlib.sha256(text.encode()).hexdigest()[:10]

    def apply(self, text):
        return text[: self.start] + self.new + text[self.end :]


def tokens_of(text, keep_directives=False):
    out, line, at = [], 1, 0
    while at < len(text):
        match = TOKEN.match(text, at)
        kind, word = match.lastgroup, match.group()
        if kind == "directive" and keep_directives:  # only its head goes: a table is one long #define
            head = re.match(r"[ \t]*#[ \t]*define[ \t]+\w+(\([^)]*\))?", word)
            word = head.group() if head else word
        if kind not in ("skip", "directive"):
            out.append(Token(kind, word, at, at + len(word), line))
        line += word.count("\n")
        at += len(word)
    return out


def closing(tokens, at):
    """The number of the bracket that closes the one at `at`."""
    pairs = {"(": ")", "[": "]", "{": "}"}
    open_, close, depth = tokens[at].text, pairs[tokens[at].text], 0
    for i in range(at, len(tokens)):
        depth += (tokens[i].text == open_) - (tokens[i].text == close)
        if depth == 0:
            return i
    return len(tokens) - 1


def functions(tokens):
    """(name, first token of the body, last) of every function."""
    at = 0
    while at < len(tokens):
        if tokens[at].text != "{":
            at += 1
            continue
        end = closing(tokens, at)
        if at and tokens[at - 1].text == ")":
            depth, back = 0, at - 1
            while back >= 0:
                depth += (tokens[back].text == ")") - (tokens[back].text == "(")
                if depth == 0:
                    break
                back -= 1
            yield (tokens[back - 1].text if back > 0 else "?", at + 1, end)
        at = end + 1


def is_operand_end(token):
    return token.kind in ("name", "number") and token.text != "return" or token.text in (")", "]")


def operand_before(tokens, at, first):
    """The first token of a plain name or chain of members that ends before `at`, or None."""
    i = at - 1
    if i < first or tokens[i].kind != "name":
        return None
    while i - 2 >= first and tokens[i - 1].text in ("->", ".") and tokens[i - 2].kind == "name":
        i -= 2
    return i


def number_faults(token):
    match = re.fullmatch(r"(0[xX][0-9a-fA-F]+|[0-9]+)([uUlL]*)", token.text)
    if not match:
        return []
    value = int(match.group(1), 0) if not re.fullmatch(r"0[0-9]+", match.group(1)) else int(match.group(1), 8)
    return [f"{v}{match.group(2)}" for v in ((value + 1, value - 1) if value else (1,))]


class Body:
    """The faults of one function, or of one table."""

    def __init__(self, path, text, function, tokens, first, last):
        self.path, self.text, self.function = path, text, function
        self.tokens, self.first, self.last = tokens, first, last
        self.guards, self.barred = set(), set()
        self.found = []

    def add(self, kind, guard, first, last, new):
        self.found.append(
            Fault(self.path, self.function, kind, guard, self.text, self.tokens[first].line,
                  self.tokens[first].start, self.tokens[last].end, new))

    def conditions(self):
        t = self.tokens
        for i in range(self.first, self.last):
            if t[i].text in ASSERTIONS and t[i + 1].text == "(":
                self.barred.update(range(i, closing(t, i + 1) + 1))
            elif t[i].text == "TRY" and t[i + 1].text == "(":
                self.add("error check removed", True, i, i, "(void)")
            elif t[i].text == "if" and t[i + 1].text == "(":
                end = closing(t, i + 1)
                body = end + 2 if t[end + 1].text == "{" else end + 1
                guard = body < self.last and t[body].text in LEAVES
                if guard:
                    self.guards.update(range(i, end))
                condition = self.text[t[i + 1].start : t[end].end]
                self.add("never", guard, i + 1, end, f"(0 && {condition})")
                self.add("always", guard, i + 1, end, f"(1 || {condition})")
                self.add("negated", guard, i + 1, end, f"(!{condition})")

    def operators(self):
        t = self.tokens
        for i in range(self.first, self.last):
            if i in self.barred:
                continue
            guard, word = i in self.guards, t[i].text
            if t[i].kind == "number" and not self.is_room(i):
                for new in number_faults(t[i]):
                    self.add("off by one", guard, i, i, new)
            elif t[i].kind == "mark" and word in SWAPS:
                if word in "+-" and not (i > self.first and is_operand_end(t[i - 1])):
                    continue  # a sign
                for new in SWAPS[word]:
                    self.add("operator", guard, i, i, new)
                left = operand_before(t, i, self.first) if word in ("&&", "||") else None
                if left is not None and left > self.first:
                    bang = t[left - 1].text == "!"
                    if (word == "||") == bang and t[left - bang - 1].text in ("(", "&&", "||", "=", "return"):
                        self.add("check dropped", True, left - bang, i - 1, "0" if bang else "1")

    def is_room(self, i):
        """How many a local array has: one more or less is no other behaviour, only another room."""
        t = self.tokens
        if t[i - 1].text != "[" or t[i - 2].kind != "name":
            return False
        pointer = t[i - 3].text == "*" and (t[i - 4].text in ("char", "void") or t[i - 5].text == "struct")
        return pointer or t[i - 3].kind == "name" and t[i - 3].text != "return"

    def all(self):
        self.conditions()
        self.operators()
        return self.found


def table_faults(path, text):
    """Of op.def and op_loop.def: operators within the expressions of its lines."""
    tokens = tokens_of(text, keep_directives=True)
    body = Body(path, text, "table", tokens, 0, len(tokens) - 1)
    body.operators()
    return [f for f in body.found if f.kind == "operator"]


def faults_of(path, text):
    if path.endswith(".def"):
        return table_faults(path, text)
    tokens, out, seen = tokens_of(text), [], {}
    for name, first, last in functions(tokens):
        out += Body(path, text, name, tokens, first, last).all()
    for fault in out:
        fault.nth = seen.get(fault.key(), 0)
        seen[fault.key()] = fault.nth + 1
    return out


def uniform(*parts):
    digest = hashlib.sha256("\0".join(map(str, parts)).encode()).digest()
    return (int.from_bytes(digest[:7], "big") + 0.5) / (1 << 56)


def choose(faults, seed):
    """One fault of every line that has any, in the order in which they are to be tried: lines are drawn at random, those
    with a check twice as readily."""
    lines = {}
    for fault in faults:
        lines.setdefault((fault.path, fault.line), []).append(fault)
    drawn = []
    for group in lines.values():
        weight = GUARD_WEIGHT if any(f.guard for f in group) else 1.0
        kind = min({f.kind for f in group}, key=lambda k: uniform(seed, "kind", k, *group[0].key()))
        best = min((f for f in group if f.kind == kind), key=lambda f: uniform(seed, "which", *f.key()))
        u = uniform(seed, "when", best.path, best.function, best.before, group.index(best), *([best.nth] if best.nth else []))
        drawn.append((-math.log(u) / weight, best.path, best.line, best))
    drawn.sort(key=lambda d: d[:3])
    return [d[3] for d in drawn]
