-- Statements over two tables of several times the memory, one a line; larger.sh compares their answers with those of all memory.
select count(*), sum(a.v), sum(b.v) from a join b on a.k = b.k
select count(*), sum(a.v), sum(b.v) from a join b on a.k + 3000000000 = b.k + 3000000000
select count(*), sum(a.v), sum(b.v) from a join b on a.s = b.s
select count(*), sum(a.v), sum(b.v) from a join b on a.s = b.s and a.k > b.k
select count(*), sum(length(a.s)), sum(length(b.s)) from a join b on a.k = b.k and a.v % 7 = b.v % 7
select count(*), sum(length(a.s)), sum(length(b.s)) from a left join b on a.k = b.k + 30000
select count(*), sum(length(a.s)), sum(length(b.s)) from a full join b on a.k = b.k + 30000
select count(*), sum(length(a.s)), sum(length(b.s)) from a full join b on a.s = b.s and a.v < b.v
select count(*), count(a.s) from a right join b on a.k = b.k + 100 and a.s < b.s
select count(*) from a where exists (select 1 from b where b.s = a.s and b.v > a.v)
select count(*) from a where not exists (select 1 from b where b.k = a.k and b.s < a.s)
select count(*) from a where s not in (select s from b)
select count(*) from a where (k, v) in (select k, v from b)
select count(*), sum(length(a.s)), sum(length(b.s)), sum(length(c.s)) from a join b on a.k = b.k join a c on c.v = b.v
select a.s, b.s from a join b on a.k = b.k order by a.s, b.s limit 10 offset 100000
select max(x), min(y) from (select lag(s) over (order by k) x, lead(s, 3) over (order by k) y from a) q
select sum(x), sum(y), sum(z) from (select rank() over (order by k % 1000) x, dense_rank() over (order by s) y, ntile(100) over (order by v) z from a) q
select max(x), count(y) from (select first_value(s) over (partition by k % 50000 order by v) x, max(v) over (order by v range between 100 preceding and 100 following) y from a) q
select max(x) from (select sum(v) over (order by k groups between 2 preceding and current row) x from a) q
select count(*), max(c) from (select s, k, count(*) c from a group by s, k) q
select count(*), sum(d) from (select v / 10 g, count(distinct s) d from a group by g) q
select count(*), sum(length(m)), sum(length(n)) from (select v / 6 g, min(s) m, max(s) n from a group by g) q
select count(*), sum(length(m)) from (select v / 6 g, mode() within group (order by s) m from a group by g) q
select v % 3 g, percentile_cont(0.5) within group (order by k), percentile_disc(0.9) within group (order by s) from a group by g order by g
select count(*), sum(length(m)), max(m) from (select v / 12 g, string_agg(s, ',' order by k) m from a group by g) q
select count(*), sum(length(m)) from (select k g, string_agg(distinct s, '') filter (where v % 3 > 0) m from a group by g) q
select count(*), max(c), max(m) from (select k, s, count(*) c, min(s) m from a group by grouping sets ((k), (s), ())) q
select count(*), max(s) from (select distinct on (k % 100000) k, s from a order by k % 100000, v) q
select count(*) from (select s from a union select s from b) q
select count(*) from (select k, s from a except select k, s from b) q
select count(*) from (select s from a intersect all select s from b) q
select length(s), v % 5, k, s from a order by 1, 2, 3 limit 5 offset 200000
with recursive r(n, s) as (select k, s from a union select n - 200000, s || 'x' from r where n > 200000) select count(*), sum(length(s)) from r
select sum(length(x)) from (select (select max(b.s) from b where b.k = a.k) x from a) q
with t as (select k, count(*) c, max(s) m from a group by k) select count(*), max(length(x.m || y.m)) from t x join t y on x.k = y.k + 5
select count(*), sum(length(l.s)) from a, lateral (select b.s from b where b.k = a.k order by b.v limit 1) l
select a.v % 10 g, count(*), min(b.s), max(b.s) from a join b on a.k = b.k group by g order by g
with recursive t(n) as (select 1 union all select n + 1 from t where n < 60000) select count(*), sum(n) from t
with recursive t(n, s) as (select 1, 'text' union select n + 1, 'text number ' || n from t where n < 20000) select count(*), sum(n), max(s) from t
select count(*), sum(x) from logiql($$ n(0). n(y) <- n(x), y = x + 1, x < 30000. _(x) <- n(x). $$) as q(x)
select count(*), max(s) from (select k, v, s from a order by s offset 5) q
select count(*), max(s), sum(v) from (select distinct on (s) s, v from a order by s, v desc) q
select count(*) from (select v, s from a where v % 30000 = 0) x where exists (select 1 from b where b.s > x.s and b.k < x.v)
select count(*), max(t), sum(length(s)) from wide
select count(*) from (select s, v from wide except select s, v + v % 3 from wide) q
