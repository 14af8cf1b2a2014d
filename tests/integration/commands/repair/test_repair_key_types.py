"""Keys of every type that a mapping hands through: a repair looks the rows concerned up, and no others."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from migrator.cli.repair.repair import _wanted
from migrator.config import project as configuration
from migrator.run.commands.repair import Way, repair_steps
from migrator.wiring import parts as wiring
from tests.integration.commands.repair.test_repair import running
from tests.integration.run_project import Project, written
from tests.servers import Database
from verify.tables.findings.differing import read_differing

pytestmark = [pytest.mark.integration, pytest.mark.spark, pytest.mark.slow]

ROWS = 30
CHANGED, GONE, EXTRA = (3, 4), (7, 8), 99


@dataclass(frozen=True)
class Kind:
    """A kind of key: its declaration on both sides, its n-th value as a literal, and how the mapping reads it."""

    name: str
    old: str
    new: str
    literal: str
    read: str = 'F.col("k")'


DATE = "'2{n:03d}-02-2{last}'"
MOMENT = "'2{n:03d}-02-2{last} 12:34:56.{n:03d}'"
UUID = "'0000{n:04d}-aaaa-bbbb-cccc-0123456789ab'"
WORD = "'Tool {n}'"
CI = "varchar(20) COLLATE utf8mb4_general_ci"
POSTGRES = (
    Kind("date", "date", "date", DATE),
    Kind("moment", "timestamp(3)", "timestamp", MOMENT),
    Kind("instant", "timestamptz", "timestamptz", "'2{n:03d}-02-2{last} 12:34:56.{n:03d}+02'"),
    Kind("uuid", "uuid", "uuid", UUID),
    Kind("uuid_in_text", "uuid", "varchar(40)", UUID),
    Kind("bytes", "bytea", "bytea", "'\\x00ff{n:04d}'"),
    Kind("word", "varchar(20)", "text", WORD),
    Kind("padded", "char(9)", "char(12)", WORD),
    Kind("big", "numeric(20,0)", "numeric(20,0)", "184467440737095500{n:02d}"),
)
FROM_MARIADB = (
    Kind("word", "varchar(20) COLLATE utf8mb4_general_ci", "varchar(20)", WORD),
    Kind("latin", "char(20) CHARACTER SET latin1", "text", "'grö {n}'"),
    Kind("bytes", "binary(5)", "bytea", "{x}00ff{n:04d}00'"),
    Kind("longer", "varbinary(9)", "bytea", "{x}00ff{n:04d}'"),
    Kind("uuid", "uuid", "uuid", UUID),
    Kind("date", "date", "date", DATE, 'columns.mysql_date(F.col("k"))'),
    Kind("moment", "datetime(3)", "timestamp", MOMENT, 'columns.mysql_datetime(F.col("k"))'),
    Kind(
        "instant",
        "timestamp(3)",
        "timestamptz",
        "'20{n:02d}-02-2{last} 12:34:56'",
        'F.col("k").cast("timestamp")',
    ),
    Kind("big", "bigint unsigned", "numeric(20,0)", "184467440737095500{n:02d}"),
)
TO_MARIADB = (
    Kind("word", "varchar(20)", "varchar(20) COLLATE utf8mb4_nopad_bin", WORD),
    Kind("bytes", "bytea", "varbinary(9)", "{x}00ff{n:04d}'"),
    Kind("uuid", "uuid", "char(36) COLLATE utf8mb4_general_ci", UUID),
    Kind("date", "date", "date", DATE),
    Kind("moment", "timestamp", "datetime(6)", MOMENT),
    Kind("big", "numeric(20,0)", "bigint unsigned", "184467440737095500{n:02d}"),
)
SAME_BINLOG = (
    Kind("word", CI, CI, WORD),
    Kind("bytes", "binary(5)", "binary(5)", "{x}00ff{n:04d}00'"),
    Kind("big", "bigint unsigned", "bigint unsigned", "184467440737095500{n:02d}"),
    Kind("date", "date", "date", DATE, 'columns.mysql_date(F.col("k"))'),
)
PAIRS = {
    ("old_pg", "new_pg"): POSTGRES,
    ("old_maria", "new_pg"): FROM_MARIADB,
    ("old_pg", "new_maria"): TO_MARIADB,
    ("old_mysql", "new_maria"): SAME_BINLOG,
}


def rows(kind: Kind, numbers: Iterable[int], database: Database) -> str:
    start = "'\\x" if database.kind == "postgresql" else "x'"
    literals = [(kind.literal.format(n=n, last=n % 9, x=start), n) for n in numbers]
    return ", ".join(f"({literal}, {n})" for literal, n in literals)


@pytest.fixture(params=PAIRS, ids="-".join)
def project(
    request: pytest.FixtureRequest, tmp_path: Path, spark: SparkSession
) -> tuple[Project, tuple[Kind, ...]]:
    old, new = (request.getfixturevalue(name) for name in request.param)
    mapping = [
        "from pyspark.sql import functions as F",
        "from transforms import Mapping, columns",
        "mapping = Mapping()",
    ]
    for kind in PAIRS[request.param]:
        old.execute(
            f"CREATE TABLE {kind.name} (k {kind.old} NOT NULL PRIMARY KEY, v int NOT NULL)",
            f"INSERT INTO {kind.name} VALUES {rows(kind, range(ROWS), old)}",
        )
        if old.kind == "postgresql":
            old.execute(f"ALTER TABLE {kind.name} REPLICA IDENTITY FULL")
        new.execute(f"CREATE TABLE {kind.name} (k {kind.new} NOT NULL PRIMARY KEY, v int NOT NULL)")
        function = (
            f'def {kind.name}({kind.name}):\n    return {kind.name}.select({kind.read}.alias("k"), "v")'
        )
        mapping.append(f'@mapping.target("{kind.name}", key="k")\n{function}')
    return written(tmp_path, old, new, "types", "\n\n".join(mapping)), PAIRS[request.param]


def content(database: Database, kind: Kind) -> list[int]:
    """The values, each key having its own: the keys' order says nothing, so a key with another's value is a
    difference to ``verify`` only."""
    return sorted(int(row[0]) for row in database.query(f"SELECT v FROM {kind.name}"))


def test_rows_are_looked_up_by_keys_of_every_type(project: tuple[Project, tuple[Kind, ...]]) -> None:
    migration, kinds = project
    migration.run_here()
    assert migration.command("verify", "--wait", "20") == 0
    for kind in kinds:
        migration.new.execute(
            f"UPDATE {kind.name} SET v = v + 1000 WHERE v IN {CHANGED}",
            f"DELETE FROM {kind.name} WHERE v IN {GONE}",
            f"INSERT INTO {kind.name} VALUES {rows(kind, range(EXTRA, EXTRA + 1), migration.new)}",
        )
    assert migration.command("verify", "--wait", "10") == 1
    settings = configuration.load(migration.config)
    wanted = _wanted(read_differing(settings.reports() / "verify.json"))
    steps = repair_steps(wiring.parts(settings), wanted)
    assert {step.target: (step.way, step.rows, step.why) for step in steps} == {
        kind.name: (Way.LISTED, len(CHANGED) + len(GONE) + 1, "") for kind in kinds
    }
    with running(migration):
        assert migration.command("repair", "--apply") == 0
    for kind in kinds:
        assert content(migration.new, kind) == list(range(ROWS)), kind.name
    assert migration.command("verify", "--wait", "20") == 0
