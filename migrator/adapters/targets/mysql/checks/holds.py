"""Rules for the values that the columns of a MySQL or MariaDB target take (see ``model.fit``)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal

from migrator.adapters.targets.mysql.reflect import catalog
from migrator.adapters.targets.mysql.settings import MysqlTarget
from migrator.adapters.targets.mysql.structure import Storage, Structure
from migrator.adapters.targets.shared.conditions import rules_of
from migrator.model.fit import Limit, Rule

_CONDITIONS = {
    "mysql": "SELECT c.CHECK_CLAUSE FROM information_schema.TABLE_CONSTRAINTS t"
    " JOIN information_schema.CHECK_CONSTRAINTS c"
    " ON c.CONSTRAINT_SCHEMA = t.CONSTRAINT_SCHEMA AND c.CONSTRAINT_NAME = t.CONSTRAINT_NAME"
    " WHERE t.TABLE_SCHEMA = %s AND t.TABLE_NAME = %s AND t.CONSTRAINT_TYPE = 'CHECK' AND t.ENFORCED = 'YES'",
    "mariadb": "SELECT CHECK_CLAUSE FROM information_schema.CHECK_CONSTRAINTS"
    " WHERE CONSTRAINT_SCHEMA = %s AND TABLE_NAME = %s",
}
_INTEGERS = {"tinyint": 8, "smallint": 16, "mediumint": 24, "int": 32, "bigint": 64}
_TEXT_OCTETS = {"tinytext": 255, "text": 65_535, "mediumtext": 2**24 - 1}
_BLOB_OCTETS = {"tinyblob": 255, "blob": 65_535, "mediumblob": 2**24 - 1}
_SIZE = re.compile(r"\((\d+)(?:,(\d+))?\)")
_CHARSET = re.compile(r" CHARACTER SET (\w+) COLLATE ")
_MOMENTS = {
    "date": ("0001-01-01", "9999-12-31"),
    "datetime": ("0001-01-01 00:00:00", "9999-12-31 23:59:59.999999"),
    "timestamp": ("1970-01-01 00:00:01", "2038-01-19 03:14:07.999999"),
}
_WHOLE_SETS = frozenset({"utf8mb4", "utf16", "utf32", "utf16le", "gb18030", "binary"})
"""Character sets that have every letter."""


def holds(settings: MysqlTarget, structure: Structure) -> Mapping[str, Sequence[Rule]]:
    """Returns the rules of each column by its name. Raises ``ConnectionFailed``."""
    table = structure.table.id
    with catalog(settings) as session:
        found = session.rows(_CONDITIONS[settings.server.kind], [table.schema, table.name])
    conditions = [str(condition) for (condition,) in found]
    return {
        name: (*_rules(one), *(rule for condition in conditions for rule in rules_of(condition, name)))
        for one in structure.storage
        for name in (one.column.name,)
    }


def _rules(storage: Storage) -> Iterator[Rule]:
    base, kind = storage.base, storage.column.native_type.lower()
    size = _SIZE.search(kind)
    if not storage.column.nullable:
        yield Rule(Limit.NO_NULL)
    if storage.column.spark_type != "boolean":
        yield from _numbers(base, kind, size)
    if base in ("char", "varchar") and size is not None:
        yield Rule(Limit.CHARACTERS, (int(size[1]),))
    octets = _TEXT_OCTETS.get(base) or _BLOB_OCTETS.get(base)
    if base == "varbinary" and size is not None:
        octets = int(size[1])
    if octets:
        yield Rule(Limit.OCTETS, (octets,))
    if storage.length:
        yield Rule(Limit.WIDTH, (storage.length,))
    charset = _CHARSET.search(storage.declared)
    if charset is not None and charset[1] not in _WHOLE_SETS:
        yield Rule(Limit.LETTERS, (charset[1],))
    if base in _MOMENTS:
        yield Rule(Limit.MOMENTS, _MOMENTS[base])
    if base in ("datetime", "timestamp") and storage.precision < 6:
        yield Rule(Limit.SECONDS, (storage.precision,))
    if base == "enum":
        yield Rule(Limit.MEMBERS, storage.members)
    if base == "time":
        yield Rule(Limit.TIME, (storage.precision,))
    if base in ("json", "uuid"):
        yield Rule(Limit.JSON if base == "json" else Limit.UUID)


def _numbers(base: str, kind: str, size: re.Match[str] | None) -> Iterator[Rule]:
    unsigned = "unsigned" in kind
    if base in _INTEGERS:
        bits = _INTEGERS[base]
        least, most = (0, 2**bits - 1) if unsigned else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
        yield Rule(Limit.RANGE, (least, most))
        yield Rule(Limit.SCALE, (0,))
    if base == "decimal" and size is not None:
        precision, scale = int(size[1]), int(size[2] or 0)
        greatest = (Decimal(10) ** precision - 1).scaleb(-scale)
        yield Rule(Limit.RANGE, (Decimal(0) if unsigned else -greatest, greatest))
        yield Rule(Limit.SCALE, (scale,))
    if base in ("float", "double"):
        yield Rule(Limit.FINITE)
        yield Rule(Limit.DIGITS, (6 if base == "float" else 15,))
    if base == "year":
        yield Rule(Limit.RANGE, (1901, 2155))
