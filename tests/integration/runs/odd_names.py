"""A migration whose every name is one that must be quoted: made for one pair of engines."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field
from pathlib import Path

from migrator.config import project as configuration
from migrator.wiring import parts as wiring
from scenarios.project import make_project
from tests.integration import run_project
from tests.integration.run_project import Project, scenario_database
from tests.servers import Database

ODD = "o\"d `d` 's.x \\ %s %(n)s {0} $1 :p ü€;--"
"""Quotes of all kinds, a dot, a backslash, placeholders of all drivers, letters beyond ASCII, a comment."""
SCHEMA = 'sche"ma %s'
TABLE, DOTTED = "select", f"{ODD} old"
KEY, KEY2, VALUE, GROUP = f"{ODD} k", "order", f"{ODD} v", "group"
NEW, NEW_KEY, NEW_KEY2, NEW_VALUE = f"{ODD} new", f"{ODD} id", "where", "%"
COUNTED, COUNT = f"{ODD} sum", f"{ODD} n"

_MAPPING = """
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from transforms import Mapping

mapping = Mapping()


def named(name):
    return F.col("`" + name.replace("`", "``") + "`")


@mapping.target({NEW!r}, key=({NEW_KEY!r}, {NEW_KEY2!r}), sources=[{table!r}])
def made(rows: DataFrame) -> DataFrame:
    return rows.select(
        named({KEY!r}).alias({NEW_KEY!r}), named({KEY2!r}).alias({NEW_KEY2!r}),
        named({VALUE!r}).alias({NEW_VALUE!r})
    )
"""
_JOINED = """

@mapping.target({COUNTED!r}, key={GROUP!r}, sources=[{table!r}], grain={grain!r})
def counted(rows: DataFrame) -> DataFrame:
    return rows.groupBy(named({GROUP!r})).agg(F.count(named({KEY!r})).alias({COUNT!r}))
"""
_REVISION = '''
"""Tables with odd names."""

from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    for statement in {statements!r}:
        op.get_bind().exec_driver_sql(statement)
'''


@dataclass
class Odd:
    """The project, and names as each side's server takes them."""

    old: Database
    new: Database
    table: str = DOTTED
    joined: bool = field(init=False)

    def __post_init__(self) -> None:
        self.joined = self.new.kind == "postgresql"

    def name(self, side: Database, *parts: str) -> str:
        """Quoted, a table's with its schema."""
        quote = '"' if side.kind == "postgresql" else "`"
        return ".".join(quote + part.replace(quote, 2 * quote) + quote for part in parts)

    def of_old(self, name: str) -> str:
        """A source table."""
        if self.old.kind != "postgresql":
            return self.name(self.old, name)
        return self.name(self.old, SCHEMA, name)

    def of_new(self, name: str) -> str:
        """A target table."""
        return (
            self.name(self.new, SCHEMA, name) if self.new.kind == "postgresql" else self.name(self.new, name)
        )

    def fill(self) -> None:
        """The old table with some rows."""
        key, key2, value, group = (self.name(self.old, name) for name in (KEY, KEY2, VALUE, GROUP))
        table = self.of_old(self.table)
        index, other = self.name(self.old, f"{ODD} i"), self.name(self.old, f"{ODD} u")
        statements = [
            f"CREATE TABLE {table} ({key} int, {key2} varchar(20), {value} varchar(80), {group} int,"
            f" CONSTRAINT {other} UNIQUE ({value}, {key}), PRIMARY KEY ({key}, {key2}))",
            f"CREATE INDEX {index} ON {table} ({value})",
        ]
        statements += [f"INSERT INTO {table} VALUES ({n}, 'k''{n}', 'v{n}', {n % 3})" for n in range(9)]
        if self.old.kind == "postgresql":
            statements.insert(0, f"CREATE SCHEMA {self.name(self.old, SCHEMA)}")
            statements.append(f"ALTER TABLE {table} REPLICA IDENTITY FULL")
        self.old.execute(*statements)

    def project(self, folder: Path) -> Project:
        """The project between them; the new schema is made."""
        config = make_project(
            folder, scenario_database(self.old), scenario_database(self.new), run_project.PROJECT, "odd"
        )
        text = config.read_text()
        for side in (self.old, self.new):
            if side.kind == "postgresql":
                place = f'database = "{side.database}"\n'
                text = text.replace(place, f"{place}schema = '{SCHEMA}'\n")
        config.write_text(text + '\n[spark]\nmaster = "local[2]"\n')
        names = {**globals(), "table": self.table, "grain": f"{self.table}.{GROUP}"}
        mapping = _MAPPING + (_JOINED if self.joined else "")
        (folder / "mapping.py").write_text(_filled(mapping, names))
        versions = folder / "alembic" / "versions"
        shutil.rmtree(versions)
        versions.mkdir()
        (versions / "0001_odd.py").write_text(
            _REVISION.replace("{statements!r}", repr(self._new_tables()).replace("%", "%%"))
        )
        wiring.upgrade_user_target(configuration.load(config))
        return Project(self.old, self.new, config)

    def _new_tables(self) -> list[str]:
        key, key2, value, group, count, unique = (
            self.name(self.new, name) for name in (NEW_KEY, NEW_KEY2, NEW_VALUE, GROUP, COUNT, f"{ODD} u")
        )
        made = [
            f"CREATE TABLE {self.of_new(NEW)} ({key} int, {key2} varchar(20), {value} varchar(80),"
            f" PRIMARY KEY ({key}, {key2}), CONSTRAINT {unique} UNIQUE ({value}))"
        ]
        if self.new.kind == "postgresql":
            made.insert(0, f"CREATE SCHEMA {self.name(self.new, SCHEMA)}")
        if self.joined:
            made.append(f"CREATE TABLE {self.of_new(COUNTED)} ({group} int PRIMARY KEY, {count} bigint)")
        return made

    def rows(self) -> tuple[list[tuple[object, ...]], list[tuple[object, ...]]]:
        """What must be in the new tables, by plain SQL over the old one; and what is."""
        key, key2, value, group = (self.name(self.old, name) for name in (KEY, KEY2, VALUE, GROUP))
        table = self.of_old(self.table)
        wanted: list[tuple[object, ...]] = sorted(
            self.old.query(f"SELECT {key}, {key2}, {value} FROM {table}")
        )
        found: list[tuple[object, ...]] = sorted(self.new.query(f"SELECT * FROM {self.of_new(NEW)}"))
        if self.joined:
            wanted += sorted(self.old.query(f"SELECT {group}, count(*) FROM {table} GROUP BY 1"))
            found += sorted(self.new.query(f"SELECT * FROM {self.of_new(COUNTED)}"))
        return wanted, found


def _filled(template: str, names: dict[str, object]) -> str:
    """The template with each ``{NAME!r}`` replaced by the value's literal."""
    for name, value in names.items():
        template = template.replace("{" + name + "!r}", repr(value))
    return template
