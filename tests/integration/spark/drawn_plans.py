"""Drawn joined mappings: chains of steps over two tables, each step from one shape of rows to the same shape.

So any step may follow any other. What depends on chance in Spark itself (the order of equal rows, sums of floats) is
left out: its own job gives other rows each time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from migrator.model.table import Column, TableId, TableSchema
from migrator.model.target import TargetColumn
from transforms.frames import arrow_schema
from transforms.registry import Mapping, TargetMapping

SHAPE = (
    ("k", "int64", "bigint"),
    ("n", "int32", "int"),
    ("t", "string", "string"),
    ("d", "decimal(38,10)", "decimal(38,10)"),
    ("f", "float64", "double"),
    ("at", "timestamptz", "timestamp"),
    ("b", "binary", "binary"),
)
NAMES = tuple(name for name, _, _ in SHAPE)
SCHEMAS = {
    name: TableSchema(
        TableId("s", name), tuple(Column(one, kind, one != "k", kind) for one, kind, _ in SHAPE), ("k",)
    )
    for name in ("main", "line")
}
COLUMNS = tuple(TargetColumn(name, kind, kind, True, False, False) for name, _, kind in SHAPE)
ALL = ", ".join(NAMES)
OTHERS = ", ".join(f"o.{name}" for name in NAMES[2:])

EXPRESSIONS = {
    "n": (
        "n + 1",
        "1 div n",
        "cast(t AS int)",
        "try_cast(t AS int)",
        "size(split(t, ','))",
        "length(b)",
        "year(at)",
        "cast(d AS int)",
        "if(f = 'NaN', 1, 0)",
        "hash(k, t, d, f, at, b)",
        "coalesce(n, raise_error('no n'))",
        "array_position(array(0D, f), -0D)",
        "datediff(at, timestamp'0001-01-01 00:00:00')",
    ),
    "t": (
        "upper(t)",
        "cast(f AS string)",
        "cast(at AS string)",
        "cast(d AS string)",
        "to_json(named_struct('t', t, 'f', f, 'at', at, 'd', d, 'b', b, 'm', map('k', n)))",
        "from_json(t, 'a int, b string').b",
        "concat_ws(',', transform(split(t, ','), (x, i) -> concat(x, i)))",
        "regexp_replace(t, '([a-z])(.)', '$2$1')",
        "cast(cast(t AS char(5)) AS varchar(9))",
        "date_format(at, 'GG yyyy-MM-dd HH:mm:ss.SSSSSS VV')",
        "hex(b)",
        "decode(b, 'UTF-8')",
        "collate(t, 'UNICODE_CI')",
        "collate(t, 'UTF8_LCASE')",
        "if(collate(t, 'UNICODE_CI_AI') = 'A', 'one', rtrim(t))",
        "aggregate(array(t, 'x', null), '', (s, x) -> concat(s, coalesce(x, '-')))",
        "element_at(map_from_arrays(array(1, 2), array(t, 'u')), 1)",
        "array_join(array_sort(array_distinct(array(f, 0D, -0D, double('NaN')))), ';')",
        "case when d > 1 then t when f < 0 then 'below' end",
        "to_char(n, 'S999')",
    ),
    "d": (
        "d * 10",
        "d / n",
        "round(d, 2)",
        "cast(f AS decimal(38,10))",
        "cast(t AS decimal(38,10))",
        "-d",
        "greatest(d, n)",
        "d % 3",
    ),
    "f": (
        "f * -1",
        "sqrt(f)",
        "cast(t AS double)",
        "f / n",
        "nanvl(f, 0D)",
        "cast(d AS double)",
        "cast(cast(f AS float) AS double)",
        "abs(f)",
        "array_max(array(f, 0D, -0D))",
        "round(f, 1)",
    ),
    "at": (
        "at + interval 1 day",
        "date_trunc('month', at)",
        "make_timestamp(year(at), 2, n, 0, 0, 0)",
        "to_timestamp(t)",
        "at - make_interval(n)",
        "from_utc_timestamp(at, 'Europe/Berlin')",
    ),
    "b": ("unhex(t)", "cast(t AS binary)", "substring(b, 2)", "b || b", "sha2(b, 256)", "unbase64(t)"),
}
"""New content of a column; some fail on some rows."""
CONDITIONS = (
    "n > 0",
    "f = 'NaN'",
    "f = -0D",
    "t IS NULL OR t <> ''",
    "d BETWEEN -1 AND 1",
    "1 / n > 0",
    "at < '1900-01-01'",
    "t LIKE '%a%'",
    "b > x'00'",
    "t IN ('a', 'A', '') OR f IN (0D, 1.5D, 'NaN')",
    "NOT (n <=> 1)",
    "collate(t, 'UTF8_LCASE') = 'a'",
)
KEYS = (
    "l.k = o.k",
    "l.k = o.k AND l.t = o.t",
    "l.k = o.k AND l.f <=> o.f",
    "l.k = o.k AND l.d = o.d AND l.n < o.n",
    "l.k = o.k AND l.at <=> o.at AND 10 / l.n > o.n",
    "l.k = o.k AND collate(l.t, 'UNICODE_CI') = collate(o.t, 'UNICODE_CI')",
    "l.k = o.k AND l.b = o.b",
    "l.k <= o.k AND l.k >= o.k",
)
JOINS = ("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "SEMI JOIN", "ANTI JOIN")
TIES = "n, t, d, f, at, b"
WINDOWS = (
    "row_number() OVER (PARTITION BY k ORDER BY {ties})",
    "rank() OVER (PARTITION BY k, t ORDER BY f DESC)",
    "dense_rank() OVER (PARTITION BY k ORDER BY d NULLS LAST)",
    "lag(n, 1, 0) OVER (PARTITION BY k ORDER BY {ties})",
    "cast(count(*) OVER (PARTITION BY k, f) AS int)",
    "max(n) OVER (PARTITION BY k ORDER BY {ties} ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING)",
    "ntile(2) OVER (PARTITION BY k ORDER BY {ties})",
    "cast(sum(n) OVER (PARTITION BY k ORDER BY {ties}) AS int)",
    "min(n) OVER (PARTITION BY k ORDER BY n RANGE BETWEEN 1 PRECEDING AND CURRENT ROW)",
)
GROUPS = (
    "SELECT k, max(n) AS n, min(t) AS t, cast(sum(d) AS decimal(38,10)) AS d, max(f) AS f, min(at) AS at,"
    " max(b) AS b FROM l GROUP BY k",
    "SELECT k, cast(count(*) AS int) AS n, t, max(d) AS d, f, max(at) AS at, b FROM l GROUP BY k, t, f, b",
    "SELECT k, cast(count(DISTINCT t) AS int) AS n, array_join(array_sort(collect_set(t)), '+') AS t,"
    " avg(DISTINCT d) AS d, min(f) AS f, max(at) AS at, min(b) AS b FROM l GROUP BY k",
    "SELECT k, cast(count(n) FILTER (WHERE f > 0) AS int) AS n, array_join(array_sort(collect_list(t)), ',') AS t,"
    " median(d) AS d, percentile(n, 0.5) AS f, at, cast(any(b IS NULL) AS string)::binary AS b"
    " FROM l GROUP BY k, at",
    "SELECT k, n, max(t) AS t, sum(d) AS d, max(f) AS f, max(at) AS at, max(b) AS b FROM l"
    " GROUP BY k, ROLLUP (n)",
    "SELECT k, cast(grouping_id() AS int) AS n, t, cast(count(*) AS decimal(38,10)) AS d, f, min(at) AS at,"
    " min(b) AS b FROM l GROUP BY GROUPING SETS ((k, t), (k, f), (k))",
    "SELECT k, cast(bit_xor(n) AS int) AS n, listagg(t, '-') WITHIN GROUP (ORDER BY t) AS t, max(d) AS d,"
    " max(f) AS f, max(at) AS at, max(b) AS b FROM l GROUP BY k HAVING count(*) > 1",
    f"SELECT DISTINCT {ALL} FROM l",
    "SELECT DISTINCT k, n % 2 AS n, t, d, f, at, b FROM l",
)
SETS = ("UNION ALL", "UNION", "INTERSECT", "EXCEPT", "INTERSECT ALL", "EXCEPT ALL")
WIDER = (
    "SELECT k, n, x AS t, d, f, at, b FROM l LATERAL VIEW explode(split(t, ',')) e AS x",
    "SELECT k, p AS n, x AS t, d, f, at, b FROM l LATERAL VIEW OUTER posexplode(split(t, '')) e AS p, x",
    "SELECT k, x AS n, t, d, f, at, b FROM l LATERAL VIEW explode(sequence(0, n % 3)) e AS x",
    "SELECT k, n, t, y AS d, f, at, b FROM l LATERAL VIEW stack(2, 'd', d, 'n', cast(n AS decimal(38,10))) e AS x, y",
    "SELECT k, n, x AS t, d, f, at, b FROM l LATERAL VIEW json_tuple(t, 'b') e AS x",
)
BESIDE = (
    f"SELECT {ALL} FROM l WHERE EXISTS (SELECT 1 FROM o WHERE o.k = l.k AND o.n > 0)",
    f"SELECT {ALL} FROM l WHERE NOT EXISTS (SELECT 1 FROM o WHERE o.k = l.k AND o.t = l.t)",
    f"SELECT {ALL} FROM l WHERE k IN (SELECT k FROM o WHERE f IS NOT NULL)",
    "SELECT k, (SELECT max(o.n) FROM o WHERE o.k = l.k) AS n, t, d, f, at, b FROM l",
    f"WITH w AS (SELECT {ALL} FROM l WHERE n >= 0) SELECT a.* FROM w a LEFT JOIN w z ON a.k = z.k AND a.n = z.n + 1",
    "SELECT l.k, l.n, x.label AS t, l.d, l.f, l.at, l.b FROM l JOIN VALUES (0, 'no'), (1, 'one'), (7, NULL)"
    " AS x(n, label) ON l.n = x.n",
    "SELECT l.k, x.id::int AS n, l.t, l.d, l.f, l.at, l.b FROM l JOIN range(3) x ON l.n = x.id",
)


@dataclass(frozen=True, slots=True)
class Step:
    """A query from ``l`` (the rows so far) and ``o`` (the other rows) to rows of the same shape."""

    query: str
    other: int = 0
    """Rows that the query takes for ``o``: 0 the lines, 1 the main table, 2 the rows so far."""


def _column(name: str, text: str) -> Step:
    return Step(f"SELECT {', '.join(f'{text} AS {name}' if one == name else one for one in NAMES)} FROM l")


def _join(how: str, on: str, other: int) -> Step:
    if how in ("SEMI JOIN", "ANTI JOIN"):
        return Step(f"SELECT l.* FROM l {how} o ON {on}", other)
    return Step(f"SELECT coalesce(l.k, o.k) AS k, l.n, {OTHERS} FROM l {how} o ON {on}", other)


_others = st.integers(0, 2)
steps = st.one_of(
    st.builds(_join, st.sampled_from(JOINS), st.sampled_from(KEYS), _others),
    st.sampled_from([(name, text) for name, texts in EXPRESSIONS.items() for text in texts]).map(
        lambda pair: _column(*pair)
    ),
    st.sampled_from(CONDITIONS).map(lambda text: Step(f"SELECT {ALL} FROM l WHERE {text}")),
    st.sampled_from(GROUPS).map(Step),
    st.sampled_from(WINDOWS).map(lambda text: _column("n", text.format(ties=TIES))),
    st.builds(lambda word, other: Step(f"TABLE l {word} TABLE o", other), st.sampled_from(SETS), _others),
    st.sampled_from(WIDER).map(Step),
    st.builds(Step, st.sampled_from(BESIDE), _others),
)
chains = st.lists(steps, min_size=1, max_size=5)


def mapping_of(chain: Sequence[Step]) -> TargetMapping:
    """The target of a chain; without a join it has one at its end, for it must read both tables."""

    def drawn(main: DataFrame, line: DataFrame) -> DataFrame:
        rows = main
        for step in (*chain, _join("LEFT JOIN", KEYS[0], 0)):
            other = (line, main, rows)[step.other]
            rows = main.sparkSession.sql(
                step.query.replace("FROM l", "FROM {l} l")
                .replace("TABLE l", "SELECT * FROM {l}")
                .replace("TABLE o", "SELECT * FROM {o}")
                .replace("JOIN o", "JOIN {o} o")
                .replace("FROM o", "FROM {o} o"),
                l=rows,
                o=other,
            )
        return rows

    mapping = Mapping()
    mapping.target("drawn", key="k", grain="main.k", links="line.k = main.k")(drawn)
    return mapping["drawn"]


_VALUES: dict[str, Sequence[Any]] = {
    "n": (0, 1, -1, 2, 7, 2**31 - 1, None),
    "t": ("", "a", "A", "a,b,,c", "ä", "😀", "12", "-1.5", '{"a":1,"b":"x"}', "a  ", "2024-02-29", "İ", None),
    "d": ("0", "1.5", "-1.5", "9" * 28 + ".9999999999", "0.0000000001", "2", None),
    "f": (0.0, -0.0, 1.5, float("nan"), float("inf"), -float("inf"), 5e-324, None),
    "at": (0, -1, -62135596800000000, 253402300799999999, 1709210096123456, 2**63 - 1, -(2**63), None),
    "b": (b"", b"\x00", b"a", b"\xff\xfe", None),
}
_TAME: dict[str, Sequence[Any]] = {
    "n": (1, 2, 3),
    "t": ("1", "12", "2"),
    "d": ("1.5", "2"),
    "f": (0.0, -0.0, 1.5),
    "at": (0, 1709210096123456),
    "b": (b"a", b"ab"),
}


def _rows(values: dict[str, Sequence[Any]]) -> st.SearchStrategy[pa.Table]:
    row = st.fixed_dictionaries(
        {"k": st.integers(0, 3), **{name: st.sampled_from(drawn) for name, drawn in values.items()}}
    )
    return st.one_of(st.lists(row, min_size=2, max_size=9), st.lists(row, max_size=1)).map(_table)


def _table(rows: Sequence[dict[str, Any]]) -> pa.Table:
    schema = arrow_schema(SCHEMAS["main"])
    raw = {"d": pa.string(), "at": pa.int64()}
    return pa.table(
        [
            pa.array([row[one.name] for row in rows], raw.get(one.name, one.type)).cast(one.type)
            for one in schema
        ],
        schema=schema,
    )


Side = dict[str, pa.Table]
_sides = st.sampled_from([_TAME, _TAME, _VALUES]).flatmap(
    lambda values: st.fixed_dictionaries({"main": _rows(values), "line": _rows(values)})
)
batches = st.lists(st.tuples(_sides, _sides), min_size=2, max_size=4)
Mapped = Callable[[Side, Side], pa.Table]
__all__ = ["COLUMNS", "SCHEMAS", "F", "Mapped", "batches", "chains", "mapping_of"]
