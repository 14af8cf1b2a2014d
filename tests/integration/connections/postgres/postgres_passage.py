"""A table of many types carried from one PostgreSQL database to another and judged, by adapters alone: no Spark."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from migrator.adapters.sources.postgres.catalog import PostgresCatalog
from migrator.columnar.text import rows_to_table
from tests.fix_hostile_postgres import plain
from tests.fix_postgres_source import (
    all_chunks,
    changes,
    chunk_reader,
    log_reader,
    prepared,
    read_to,
    source_of,
)
from tests.integration.judged import settings_of as judged
from tests.integration.target_bench import Bench
from tests.servers import Database
from verify.readers.postgres.source import PostgresSource
from verify.readers.postgres.target import PostgresTarget

COLUMNS = {
    "note": ("text", "Müller €\\", "zażółć 'x'"),
    "name": ("varchar(40)", "naïve", "B\\n"),
    "exact": ("numeric(30,10)", "12345678901234567890.0123456789", "-0.0000000001"),
    "wide": ("numeric", "1e-30", "NaN"),
    "ratio": ("float8", "0.1", "5e-324"),
    "small": ("float4", "0.1", "-0"),
    "born": ("date", "2021-02-03", "0044-03-15 BC"),
    "seen": ("timestamp", "2021-02-03 04:05:06.789012", "infinity"),
    "at": ("timestamptz", "2021-03-28 02:30:00.5+02", "1999-12-31 23:59:59+14"),
    "span": ("interval", "1 year -2 days +03:04:05.5", "-00:00:01"),
    "raw": ("bytea", "\\xc3a95c00", "\\x"),
    "label": ("char(4)", "é", "ab"),
    "tags": ("text[]", '{NULL,"NULL",é,"a\\\\b"}', "{}"),
    "raws": ("bytea[]", '{"\\\\xc3a9"}', "{NULL}"),
    "numbers": ("float8[]", "{0.30000000000000004,NULL}", "{-0}"),
    "days": ("daterange", "[2021-02-01,2021-03-02)", "empty"),
    "during": ("tstzrange", '["2021-03-28 02:30:00+02",)', "(,)"),
    "doc": ("jsonb", '{"a": "é\\\\u0041", "n": 1.50}', "null"),
    "plain": ("json", '{"b" : 1,"b":2}', '"é"'),
    "ip": ("inet", "10.0.0.1/8", "::1"),
}
"""Column -> its type, and two values, written as a session in UTC and ISO dates reads them."""
_TABLE = f"t (id int PRIMARY KEY, {', '.join(f'{name} {kind}' for name, (kind, *_) in COLUMNS.items())})"
TEXTS = f"SELECT id::text, {', '.join(f'{name}::text' for name in COLUMNS)} FROM public.t ORDER BY id"


class Passage:
    """A source table ``t``, a target of the same columns, and what brings rows from one to the other."""

    def __init__(self, old: Database, new: Database):
        self.old, self.new = old, new
        for database in (old, new):
            with plain(database) as session:
                session.execute(f"CREATE TABLE public.{_TABLE}")
        with plain(old) as session:
            session.execute("ALTER TABLE public.t REPLICA IDENTITY FULL")
        self.write(1, 0)
        self.write(2, 1)

    def write(self, key: int, which: int) -> None:
        """A row of the source."""
        values = [values[which] for _, *values in COLUMNS.values()]
        marks = ", ".join(f"%s::{kind}" for kind, *_ in COLUMNS.values())
        with plain(self.old) as session:
            session.execute(f"INSERT INTO public.t VALUES (%s, {marks})", [key, *values])

    def carry(self) -> None:
        """A dump; then a stream of rows that come, go and change; all of it by sessions of the tool."""
        source = source_of(self.old)
        (schema,) = prepared(source, "t")
        bench = Bench(self.new)
        try:
            with chunk_reader(source) as reader, log_reader(source, [schema]) as log:
                for chunk in all_chunks(reader, schema, 100):
                    bench.apply(bench.part("t", chunk=chunk.rows))
                self.write(3, 0)
                self.write(4, 1)
                with plain(self.old) as session:
                    session.execute("DELETE FROM public.t WHERE id = 1")
                    session.execute(
                        "UPDATE public.t SET note = note || 'ß', at = at + interval '1 day' WHERE id = 2"
                    )
                found = changes(read_to(log, PostgresCatalog(source).position()))
            befores = [one.before for one in found if one.before is not None]
            afters = [one.after for one in found if one.after is not None]
            bench.apply(
                bench.part(
                    "t",
                    before=rows_to_table(schema, befores).select(["id"]),
                    after=rows_to_table(schema, afters),
                )
            )
        finally:
            bench.target.close()


def texts(database: Database) -> list[tuple[str | None, ...]]:
    """The table's rows as a neutral session prints them."""
    with plain(database) as session:
        return session.execute(TEXTS).fetchall()


def source_as_judged(old: Database, folder: Path) -> pa.Table:
    """What the judge reads of the source."""
    with PostgresSource(judged(old), "bench").chunks("t") as chunks:
        chunks.read("1 = 1", folder / "old.parquet")
    return pq.read_table(folder / "old.parquet").sort_by("id")


def target_as_judged(new: Database, folder: Path) -> pa.Table:
    """What the judge reads of the target."""
    with PostgresTarget(judged(new), "bench").chunks("t") as chunks:
        chunks.read("1 = 1", folder / "new.parquet")
    return pq.read_table(folder / "new.parquet").sort_by("id")


@contextmanager
def second(server_of: Database, name: str) -> Iterator[Database]:
    """Another database on the same server."""
    other = Database(server_of.host, server_of.port, name, server_of.user, server_of.password, server_of.kind)
    with plain(server_of) as session:
        session.execute(f'CREATE DATABASE "{name}"')
    yield other
    with plain(server_of) as session:
        session.execute(f'DROP DATABASE "{name}" WITH (FORCE)')
