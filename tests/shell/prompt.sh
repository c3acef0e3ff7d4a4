# The prompt, on a terminal: history, pasted text, completion, transactions, Ctrl-C, the rc file. Read by run.sh.

# typed NAME SCRIPT PATTERN…: what typist sees of the program holds each pattern, as extended regular expressions.
typed() {
    local name="$1" rc pattern
    # libedit keeps the names of the functions that keys are bound to: no leak of ours
    printf '%s\n' "$2" | ASAN_OPTIONS="${ASAN_OPTIONS:-}:detect_leaks=0" TERM=xterm timeout 60 "$typist" "$fox" ${typed_args:-} >"$tmp/out" 2>"$tmp/err"
    rc=$?
    shift 2
    for pattern in "$@"; do
        grep -Eq -- "$pattern" "$tmp/out" || rc="$rc, no $pattern"
    done
    [ "$rc" = 0 ]
    note $? "$name" "status $rc; $(cat "$tmp/err" "$tmp/out")"
}

rm -f "$tmp/.warpfox_history"
typed "statements over several lines" 'wait warpfox> 
type select 41 + 1 -- the question\n
wait ...> 
type    as answer\n
type ;\n
wait 42
type .quit\n
end' 'answer'
# In the next session Up brings .quit, then the statement: all its lines and the comment, which ends with its line.
typed "history over sessions, with lines and comments" 'wait warpfox> 
type \e[A\e[A\n
wait the question
wait answer
wait 42
type \x04
end'
grep -q 'question\\012' "$tmp/.warpfox_history" && [ "$(grep -c 'the\\040question' "$tmp/.warpfox_history")" = 2 ]
note $? "the history file" "$(cat "$tmp/.warpfox_history")"
[ "$(stat -c %a "$tmp/.warpfox_history")" = 600 ]
note $? "is for its owner only"
typed "a comment of its own line stays with its statement" 'wait warpfox> 
type -- first a remark\n
wait warpfox> 
type select 1 as one;\n
wait 1 row
type \e[A\n
wait first a remark
wait select 1 as one
wait 1 row
type .quit\n
end'
typed "a comment over lines" 'wait warpfox> 
type /* here\n
wait ...> 
type .quit is no command\n
type */ select 2 as two;\n
wait 1 row
type .quit\n
end' '│ +2 │'
typed "pasted text is run by Enter, tabs and line ends as they are" 'wait warpfox> 
type create table trips (city text, km integer);\n
wait CREATE TABLE
type \e[200~.mode csv\nselect 1 as\n\ta,\n\t2 as b;\nselect 3 as c; -- ä\n\e[201~
wait as b;
type \n
wait a,b
wait 1,2
wait c
wait 3
type .quit\n
end'
! grep -q '3' <(sed -n '/as b;/,/a,b/p' "$tmp/out" | grep -v 'select 3')
note $? "nothing is run before"
typed "pasted COPY FROM STDIN" 'wait warpfox> 
type .mode csv\n
wait warpfox> 
type \e[200~create table p (a int, b text);\ncopy p from stdin (format csv);\n1,x\n2,"y;z"\n\\.\nselect sum(a) as s, max(b) as m from p;\e[201~\n
wait s,m
wait 3,y;z
type .quit\n
end'
typed "completion" 'wait warpfox> 
type create table trips (city text, "Day" date);\n
wait CREATE TABLE
type select ci\t from tri\t;\n
wait 0 rows
type select t."D\x02\x06 from trips t\x01\x06\x06\x06\x06\x06\x06\x06\x06\x06\x06\x06\t\x05;\n
wait "Day"
wait 0 rows
type set dev\t= cp\t;\n
wait SET
type .mo\tjs\tl\n
type sel\t1 as one;\n
wait {"one":1}
type .quit\n
end' 'select city +from trips ;' 'set device = cpu' '\.mode jsonl'
printf 'select 77 as from_file;\n' >"$tmp/some_script.sql"
printf 'a,b\n5,6\n' >"$tmp/some_data.csv"
typed "names of files" "wait warpfox> 
type .mode csv\n
type .read $tmp/some_s\t\n
wait 77
type select a + 100 as c from '$tmp/some_d\t;\n
wait 105
type .quit\n
end"
typed "the prompt tells of transactions" 'wait warpfox> 
type begin;\n
wait warpfox*> 
type select\n
wait ...*> 
type nonsense;\n
wait 42703
wait warpfox!> 
type select 1;\n
wait 25P02
wait warpfox!> 
type rollback;\n
wait warpfox> 
type .quit\n
end'
typed "Ctrl-C drops a half statement" 'wait warpfox> 
type select nonsense\n
wait ...> 
type from nowhere
type \x03
wait ^C
wait warpfox> 
type select 5 as five;\n
wait 1 row
type .quit\n
end' '│ +5 │'
typed "Ctrl-C cancels a statement" 'wait warpfox> 
type select pg_sleep(100);\n
running
type \x03
wait 57014
wait warpfox> 
type select 6 as six;\n
wait 1 row
type .quit\n
end' '│ +6 │'
typed "Ctrl-D leaves" 'wait warpfox> 
type \x04
end'
typed "wide characters and a window that changes" "wait warpfox> 
type select '日本語' as \"größe\", 'é' as e;\n
wait 日本語
size 24 30
type select 'a long text that does not fit into thirty columns' as x;\n
wait …
size 24 100
type select 'a long text that does not fit into thirty columns' as x;\n
wait thirty columns │
type .quit\n
end" '│ größe  │ e +│'
long=$(printf 'x%.0s' $(seq 3000))
typed "a very long line" "wait warpfox> 
type select length('$long') as n;\n
wait 3000
type .quit\n
end"
printf '\\x on\n.mode box\nselect nonsense;\nselect 8 as eight;\n' >"$tmp/.warpfoxrc"
typed "the rc file, errors and all" 'wait warpfox> 
type select 9 as nine;\n
wait nine = 9
type .quit\n
end' 'warpfoxrc:3: ERROR 42703' 'eight = 8'
typed_args=--no-rc typed "--no-rc" 'wait warpfox> 
type select 9 as nine;\n
wait │
type .quit\n
end'
! grep -q 'eight' "$tmp/out"
note $? "reads none"
printf '.mode csv\n' >"$tmp/rc"
WARPFOX_RC="$tmp/rc" typed "WARPFOX_RC" 'wait warpfox> 
type select 9 as nine;\n
wait nine
type .quit\n
end' '^nine$'
piped "scripts do not read it" 0 'select 1 as a' $'a\n1' --format csv
rm -f "$tmp/.warpfoxrc"
printf '#!/bin/sh\nprintf "select 1234 as edited;\\nselect 5 as" > "$1"\n' >"$tmp/editor"
chmod +x "$tmp/editor"
VISUAL="$tmp/editor" typed 'what an editor leaves is as if typed' 'wait warpfox> 
type \\e\n
wait edited
wait 1 row
wait ...> 
type five;\n
wait 1 row
type .quit\n
end' '│ +1234 │' '│ +5 │'
