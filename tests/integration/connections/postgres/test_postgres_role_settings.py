"""Settings of roles and databases that change how values are printed: our sessions and the walsender don't
follow."""

from __future__ import annotations

from dataclasses import replace

import pytest

from migrator.columnar.text import rows_to_table
from migrator.model.chunk import ChunkRequest
from tests.fix_postgres_source import changes as changes_of
from tests.fix_postgres_source import chunk_reader, log_reader, prepared, read_to, source_of
from tests.integration.exact import assert_same
from tests.servers import Database

pytestmark = pytest.mark.integration

VALUES = {
    "at": ("timestamptz", "2021-03-28 02:30:00.5+02", "2021-03-28 00:30:00.5+00"),
    "ats": ("timestamptz[]", "{2021-03-28 02:30:00+02}", '{"2021-03-28 00:30:00+00"}'),
    "during": ("tstzrange", "[2021-03-28 02:30:00+02,)", '["2021-03-28 00:30:00+00",)'),
    "days": ("daterange", "[2021-02-01,2021-03-02)", "[2021-02-01,2021-03-02)"),
    "span": ("interval", "1 year -2 days +03:04:05.5", "1 year -2 days +03:04:05.5"),
    "raw": ("bytea", "\\xc3a95c", "\\xc3a95c"),
    "raws": ("bytea[]", '{"\\\\xc3a9"}', '{"\\\\xc3a9"}'),
    "place": ("point", "(0.1,0.30000000000000004)", "(0.1,0.30000000000000004)"),
    "numbers": ("float8[]", "{0.30000000000000004}", "{0.30000000000000004}"),
    "price": ("money", "-1234.50", "-$1,234.50"),
    "label": ('"order"', "a", "a"),
}
"""Column -> its type, a value, and the text that has to come."""
SETTINGS = {
    "TimeZone": ("'Asia/Kathmandu'", "at"),
    "DateStyle": ("'German, DMY'", "days"),
    "IntervalStyle": ("'iso_8601'", "span"),
    "bytea_output": ("'escape'", "raws"),
    "extra_float_digits": ("-15", "numbers"),
    "search_path": ("'elsewhere'", ""),
    "quote_all_identifiers": ("on", ""),
    "standard_conforming_strings": ("off", ""),
    "client_encoding": ("'LATIN1'", ""),
    "statement_timeout": ("1", ""),
    "idle_session_timeout": ("1", ""),
    "default_transaction_isolation": ("'serializable'", ""),
    "row_security": ("off", ""),
}
"""Setting -> a value, and a column that a plain session prints in another way because of it."""


@pytest.mark.parametrize(
    ("name", "where"), [*((name, "ROLE") for name in SETTINGS), ("IntervalStyle", "DATABASE")]
)
def test_no_setting_reaches_a_value(old_pg: Database, name: str, where: str) -> None:
    value, shown_by = SETTINGS[name]
    role = f"r_{old_pg.database}"
    columns = ", ".join(f"{column} {kind}" for column, (kind, _, _) in VALUES.items())
    old_pg.execute(
        "CREATE TYPE \"order\" AS ENUM ('a')",
        f"CREATE TABLE v (id int PRIMARY KEY, {columns})",
        "ALTER TABLE v REPLICA IDENTITY FULL",
        f"CREATE ROLE {role} LOGIN SUPERUSER",
    )
    values = ", ".join(f"E'{text}'".replace("\\", "\\\\") for _, text, _ in VALUES.values())
    wanted = ["1", *(text for _, _, text in VALUES.values())]
    source = source_of(old_pg, user=role)
    try:
        (plain,) = prepared(source, "v")
        old_pg.execute(f"ALTER {where} {role if where == 'ROLE' else old_pg.database} SET {name} = {value}")
        (schema,) = prepared(source, "v")
        assert schema == plain
        with chunk_reader(source) as chunks, log_reader(source, [schema]) as log:
            old_pg.execute(
                "SET statement_timeout = 0; SET TimeZone = UTC; SET DateStyle = ISO; SET search_path = public;"
                f"INSERT INTO v VALUES (1, {values})"
            )
            chunk = chunks.read(ChunkRequest(1, schema.id, None, 10), schema)
            (change,) = changes_of(read_to(log, chunk.high))
        assert change.after is not None
        printed = [f"\\x{value.hex()}" if isinstance(value, bytes) else value for value in change.after]
        assert printed == wanted
        assert_same(chunk.rows, rows_to_table(schema, [change.after]))
        if shown_by:  # the setting does what it is feared for, where nobody overrules it
            with replace(old_pg, user=role).connect() as session:
                ((text,),) = session.execute(f"SELECT {shown_by}::text FROM v").fetchall()
            assert text != VALUES[shown_by][2]
    finally:
        old_pg.execute("SET statement_timeout = 0", f"DROP OWNED BY {role}", f"DROP ROLE {role}")
