"""No type is in between: what the server calls a data type is compared value by value, or refused by name."""

from __future__ import annotations

import pymysql
import pytest

from migrator.adapters.sources.mariadb.types import logical_type as mariadb_type
from migrator.adapters.sources.mysql.types import logical_type as mysql_type
from tests.integration.binlog_engine import BinlogEngine
from tests.integration.sources.binlog_preflight import obstacles
from tests.integration.sources.binlog_types import columns_of
from tests.servers import Database

pytestmark = pytest.mark.integration

NO_TYPES = {
    *(
        "AUTO_INCREMENT",
        "AUTO_INCREMENT FAQ",
        "Character Set and Collation Overview",
        "Coordinated Universal Time",
    ),
    *(
        "Data Type Storage Requirements",
        "Floating-point Accuracy",
        "Locales Plugin",
        "NULL Values",
        "Server Locale",
    ),
    *(
        "Numeric Data Type Overview",
        "SET CHARACTER SET",
        "SET NAMES",
        "Setting Character Sets and Collations",
    ),
    *("Setting the Language for Error Messages", "SQL_TSI_YEAR", "Supported Character Sets and Collations"),
    *("Time Zones", "Unicode"),
}
"""Pages in the chapter of data types that are about something else."""
NO_COLUMNS = {"ROW", "ROW TYPE OF", "TYPE OF", "CLOB", "NUMBER", "RAW", "VARCHAR2"}
"""Types of stored programs only, and Oracle's names, which only Oracle's sql_mode takes (they become others)."""
TITLES = {"BLOB and TEXT Data Types": "BLOB", "DEC, NUMERIC, FIXED": "FIXED", "LONG and LONG VARCHAR": "LONG"}
WORDS = {
    "CHAR BYTE": "CHAR(2) BYTE",
    "CHARACTER VARYING": "CHARACTER VARYING(2)",
    "ENUM": "ENUM('a')",
    "SET": "SET('a')",
    "VECTOR": "VECTOR(2)",
    **{
        name: f"{name}(2)"
        for name in (
            *(
                "CHAR VARYING",
                "NATIONAL CHAR VARYING",
                "NATIONAL CHARACTER VARYING",
                "NATIONAL VARCHAR",
            ),
            *(
                "NATIONAL VARCHARACTER",
                "NCHAR VARCHAR",
                "NCHAR VARCHARACTER",
                "NCHAR VARYING",
                "VARBINARY",
                "VARCHAR",
            ),
            "VARCHARACTER",
        )
    },
}
WRITTEN = [
    *("GEOMETRY", "POINT", "LINESTRING", "POLYGON", "MULTIPOINT", "MULTILINESTRING", "MULTIPOLYGON"),
    *("GEOMETRYCOLLECTION", "JSON", "CHARACTER VARYING", "NCHAR", "NVARCHAR"),
]
"""What the help of both servers has in other chapters or not at all, from their manuals."""
NEWER = {"VECTOR": "vector(2)", "XMLTYPE": "xmltype"}
"""In the help of MariaDB, for versions later than the server at hand."""


def names(database: Database) -> list[str]:
    rows = database.query(
        "SELECT t.name FROM mysql.help_topic t JOIN mysql.help_category c USING (help_category_id)"
        " WHERE c.name = 'Data Types'"
    )
    titles = {title.replace("\\", "") for (title,) in rows} - NO_TYPES - NO_COLUMNS
    plain = {TITLES.get(title, title).upper().removesuffix(" DATA TYPE") for title in titles}
    return sorted({*plain, *WRITTEN} - {"NVARCHAR"} | {"NVARCHAR(2)"})


def test_every_type_of_the_servers_help_is_compared_or_refused(
    engine: BinlogEngine, old_binlog: Database
) -> None:
    found = names(old_binlog)
    assert len(found) > 40
    newer = [name for name in found if engine.kind == "mariadb" and name in NEWER]
    declared = [
        f"v{n} {WORDS.get(name, name)}" for n, name in enumerate(found) if name not in (*newer, "SERIAL")
    ]
    old_binlog.execute(f"CREATE TABLE t (id SERIAL, {', '.join(declared)})")
    rows = old_binlog.query(
        "SELECT COLUMN_NAME, DATA_TYPE FROM information_schema.COLUMNS"
        f" WHERE TABLE_SCHEMA = '{old_binlog.database}'"
    )
    compared = {declared.split("(")[0].split(" ")[0] for declared, _ in columns_of(engine.kind).values()}
    refused = {subject.rpartition(".")[2] for subject in obstacles(engine, old_binlog, "t")}
    assert [(name, kind) for name, kind in rows if name not in refused and kind not in compared] == []
    assert refused == set()
    for name in newer:
        with pytest.raises(pymysql.err.MySQLError):
            old_binlog.execute(f"CREATE TABLE {name} (v {NEWER[name]})")


def test_types_of_other_versions_are_refused() -> None:
    for name, declared in NEWER.items():
        assert mariadb_type(name.lower(), declared) is None
    for logical_type in (mariadb_type, mysql_type):
        assert logical_type("some_day", "some_day(3)") is None
    assert mysql_type("uuid", "uuid") is None
    assert mariadb_type("year", "year(2)") is None
