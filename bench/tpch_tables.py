"""The TPC-H tables for DuckDB: their columns, and loading them from .tbl files."""
MONEY = "decimal(15,2)"
TABLES = {
    "region": "r_regionkey integer, r_name varchar, r_comment varchar",
    "nation": "n_nationkey integer, n_name varchar, n_regionkey integer, n_comment varchar",
    "supplier": "s_suppkey integer, s_name varchar, s_address varchar, s_nationkey integer, s_phone varchar, "
                f"s_acctbal {MONEY}, s_comment varchar",
    "customer": "c_custkey integer, c_name varchar, c_address varchar, c_nationkey integer, c_phone varchar, "
                f"c_acctbal {MONEY}, c_mktsegment varchar, c_comment varchar",
    "part": "p_partkey integer, p_name varchar, p_mfgr varchar, p_brand varchar, p_type varchar, p_size integer, "
            f"p_container varchar, p_retailprice {MONEY}, p_comment varchar",
    "partsupp": f"ps_partkey integer, ps_suppkey integer, ps_availqty integer, ps_supplycost {MONEY}, ps_comment varchar",
    "orders": f"o_orderkey bigint, o_custkey integer, o_orderstatus varchar, o_totalprice {MONEY}, o_orderdate date, "
              "o_orderpriority varchar, o_clerk varchar, o_shippriority integer, o_comment varchar",
    "lineitem": "l_orderkey bigint, l_partkey integer, l_suppkey integer, l_linenumber integer, "
                f"l_quantity {MONEY}, l_extendedprice {MONEY}, l_discount {MONEY}, l_tax {MONEY}, l_returnflag varchar, "
                "l_linestatus varchar, l_shipdate date, l_commitdate date, l_receiptdate date, l_shipinstruct varchar, "
                "l_shipmode varchar, l_comment varchar",
}


def columns(table):
    """(name, type) pairs."""
    text = TABLES[table].replace("(15,2)", "(15;2)")
    return [tuple(part.strip().replace(";", ",").split(" ")) for part in text.split(",")]


def copy_text(table, path):
    """DuckDB's way to load a .tbl file, whose lines end in a delimiter."""
    names = ", ".join(f"'{name}': '{kind}'" for name, kind in columns(table))
    return (f"insert into {table} select * exclude (line_end) from read_csv('{path}', delim='|', header=false, quote='', "
            f"escape='', auto_detect=false, columns={{{names}, 'line_end': 'varchar'}})")


def duckdb_load(duck, folder):
    for table, text in TABLES.items():
        duck.execute(f"create table {table} ({text})")
        duck.execute(copy_text(table, f"{folder}/{table}.tbl"))
