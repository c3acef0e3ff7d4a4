"""The texts and queries of `compare.py regex`: one shape of regular expression each, in either dialect."""
import random

HOST = (r"^https?://(?:www\.)?([^/]+)/.*$", r"\1")
COLUMNS = "(id integer, url varchar, t varchar, u varchar, l varchar)"
SHAPES = [
    ("literal", "t", "match", "Error"),
    ("literal, no match", "t", "match", "zzzqqq"),
    ("^literal", "url", "match", "^https://www"),
    ("literal$", "t", "match", "code-7$"),
    ("literal, then class", "t", "match", r"code-[0-9]+"),
    ("class", "t", "match", "[a-z]+[0-9]"),
    ("digits", "t", "match", r"\d{3}"),
    ("alternation", "t", "match", "(foo|bar|baz|qux|code)"),
    ("alternation, anchored", "url", "match", r"^https?://(www|ftp)\."),
    ("a.*q.*z", "t", "match", "a.*q.*z"),
    ("word edges", "t", "match", r"\ycode\y"),
    ("no case", "t", "match", "(?i)error CODE"),
    ("no match at all", "t", "match", "[0-9]+x[0-9]+"),
    ("Unicode, class", "u", "match", "[а-я]+ [0-9]"),
    ("Unicode, any", "u", "match", "语.本|語.日本"),
    ("long texts", "l", "match", "[a-z]+q[xyz] [a-z]+ed"),
    ("e-mail", "t", "match", r"^[a-z0-9._-]+@[a-z0-9.-]+\.[a-z]{2,}$"),
    ("similar to", "t", "similar", "%(foo|code)%"),
    ("host by replace", "url", "replace", HOST),
    ("host, grouped", "url", "group", HOST),
    ("replace digits, all", "t", "replace all", ("[0-9]+", "#")),
    ("replace vowels, all", "t", "replace all", ("[aeiou]", "_")),
    ("swap words", "t", "replace", ("([a-z]+) ([a-z]+)", r"\2 \1")),
    ("part", "url", "part", "id=([0-9]+)"),
    ("substring", "t", "substring", "[0-9]+"),
    ("count", "t", "count", "[a-z]+"),
]


def words_of(r, letters, count):
    return ["".join(r.choice(letters) for _ in range(r.randint(2, 9))) for _ in range(count)]


def write_rows(path, rows, seed=5):
    """Urls, words, words of several scripts, and long texts in every twentieth row."""
    r = random.Random(seed)
    words = words_of(r, "abcdefghijklmnopqrstuvwxyz", 3000)
    others = words_of(r, "абвгдежзиклмнопрстуéèüöß語本日", 1000)
    with open(path, "w", encoding="utf-8") as out:
        for i in range(rows):
            host = f"{r.choice(['', 'www.'])}{r.choice(words)}.{r.choice(['com', 'org', 'de'])}"
            url = f"http{r.choice(['', 's'])}://{host}/{r.choice(words)}/{r.choice(words)}?id={r.randint(1, 10**6)}"
            text = " ".join(r.choice(words) for _ in range(r.randint(3, 9)))
            text += str(r.randint(1, 9999)) if r.random() < .2 else ""
            text += f" Error code-{r.randint(1, 99)}" if r.random() < .1 else ""
            other = " ".join(r.choice(others) for _ in range(r.randint(2, 6))) + (" 42" if r.random() < .1 else "")
            long = " ".join(r.choice(words) for _ in range(200)) if i % 20 == 0 else text[:10]
            out.write(f"{i},{url},{text},{other},{long}\n")


def quoted(text):
    return "'" + text.replace("'", "''") + "'"


def replaced(column, pattern, flags=""):
    return f"regexp_replace({column}, {quoted(pattern[0])}, {quoted(pattern[1])}{flags})"


def queries(column, kind, pattern):
    """The query in Warpfox's and in DuckDB's words."""
    if kind == "group":
        sql = f"select count(*) from (select {replaced(column, pattern)} h, count(*) from t group by 1) x"
        return sql, sql
    if kind.startswith("replace"):
        sql = f"select sum(length({replaced(column, pattern, ', ' + quoted('g') if kind == 'replace all' else '')})) from t"
        return sql, sql
    p = quoted(pattern)
    edges = p.replace(r"\y", r"\b")
    forms = {
        "match": (f"count(*) from t where {column} ~ {p}", f"count(*) from t where regexp_matches({column}, {edges})"),
        "similar": (f"count(*) from t where {column} similar to {p}",
                    f"count(*) from t where regexp_full_match({column}, {p.replace('%', '.*')})"),
        "part": (f"sum(length(substring({column} from {p}))) from t", f"sum(length(regexp_extract({column}, {p}, 1))) from t"),
        "substring": (f"sum(length(regexp_substr({column}, {p}))) from t", f"sum(length(regexp_extract({column}, {p}))) from t"),
        "count": (f"sum(regexp_count({column}, {p})) from t", f"sum(len(regexp_extract_all({column}, {p}))) from t"),
    }
    ours, duck = forms[kind]
    return "select " + ours, "select " + duck
