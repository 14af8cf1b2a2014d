"""The dialect in which MariaDB writes and prints rows."""

from __future__ import annotations

from migrator.adapters.sources.binlog.events import table_map as types
from migrator.adapters.sources.binlog.rows import value_text
from migrator.adapters.sources.binlog.rows.dialect import Dialect

MARIADB = Dialect(
    character=frozenset(
        (
            types.STRING,
            types.VAR_STRING,
            types.VARCHAR,
            types.BLOB,
            types.GEOMETRY,
            types.VARCHAR_COMPRESSED,
            types.BLOB_COMPRESSED,
        )
    ),
    double_text=value_text.double_text,
    collations="COLLATION_CHARACTER_SET_APPLICABILITY",
    mariadb=True,
)
