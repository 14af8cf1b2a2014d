"""Keys and unique values that the target takes for one however they are spelled: dumped, streamed, judged, repaired.

The source tells all spellings apart and has one of each. What the target spells otherwise is a difference, and a
repair makes it as in the source.
"""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from migrator.config import project as configuration
from tests.drawn import SEED
from tests.integration.commands.repair.test_repair import running
from tests.integration.key_spellings import MARIADB, MYSQL, POSTGRES, Kind, set_up
from tests.integration.run_project import Project, written
from tests.servers import Database

pytestmark = [pytest.mark.integration, pytest.mark.spark, pytest.mark.slow]
CHOSEN = {
    "new_pg": [kind for kind in POSTGRES if kind.name in ("case", "accents", "punctuation", "forms")],
    "new_pg: more": [
        kind
        for kind in POSTGRES
        if kind.name in ("digits", "case, not accents", "punctuation and case", "digits and case")
    ],
    "new_mysql": [
        kind for kind in MYSQL if kind.name in ("utf8mb4_0900_ai_ci", "utf8mb4_bin", "latin1_swedish_ci")
    ],
    "new_maria": [
        kind for kind in MARIADB if kind.name in ("utf8mb4_general_ci", "utf8mb4_bin", "utf8mb4_czech_ci")
    ],
}
"""Kinds that are tried on a target, by its fixture. Those of PostgreSQL are families of nondeterministic collations,
which only a server with ICU has."""


@dataclass(frozen=True)
class Spelled:
    """Two tables of each kind: ``k<n>`` whose key is spelled, ``u<n>`` whose unique value is."""

    project: Project
    kinds: list[Kind]
    dice: random.Random

    def tables(self) -> list[str]:
        return [f"{name}{number}" for number in range(len(self.kinds)) for name in "ku"]

    def groups(self, table: str) -> list[list[str]]:
        return [list(group) for group in self.kinds[int(table[1:])].groups]

    def rows(self, database: Database, table: str) -> list[tuple[Any, ...]]:
        """As bytes, which no collation folds."""
        shown = (
            "convert_to(k, 'UTF8')"
            if database.kind == "postgresql"
            else "CAST(CONVERT(k USING utf8mb4) AS BINARY)"
        )
        rows = database.query(f"SELECT id, {shown} FROM {table}")
        return sorted((number, bytes(text)) for number, text in rows)

    def differing(self) -> set[str]:
        old, new = self.project.old, self.project.new
        return {table for table in self.tables() if self.rows(old, table) != self.rows(new, table)}

    def respell(self, database: Database, some: list[str]) -> set[str]:
        """Spells some values otherwise, the same to the target; tells in which tables."""
        found = set()
        for table in some:
            for number, group in enumerate(self.groups(table)):
                if len(group) > 1 and (self.dice.random() < 0.5 or table not in found):
                    [(_, now)] = [one for one in self.rows(database, table) if one[0] == number]
                    other = self.dice.choice([one for one in group if one.encode() != now])
                    database.execute(f"UPDATE {table} SET k = '{other}' WHERE id = {number}")
                    found.add(table)
        return found


@pytest.fixture(params=CHOSEN)
def spelled(request: pytest.FixtureRequest, tmp_path: Path, old_pg: Database, spark: SparkSession) -> Spelled:
    new: Database = request.getfixturevalue(request.param.partition(":")[0])
    kinds = CHOSEN[request.param]
    dice = random.Random(SEED)
    mapping = ["from transforms import Mapping", "mapping = Mapping()"]
    for number, kind in enumerate(kinds):
        set_up(new, kind)
        for name, key in (("k", "k"), ("u", "id")):
            table = f"{name}{number}"
            new.execute(
                f"CREATE TABLE {table} (id int NOT NULL, k {kind.declared} NOT NULL, PRIMARY KEY ({key}), UNIQUE (k))"
            )
            old_pg.execute(
                f'CREATE TABLE {table} (id int NOT NULL, k varchar(20) COLLATE "C" NOT NULL, PRIMARY KEY ({key}))',
                f"ALTER TABLE {table} REPLICA IDENTITY FULL",
                *(
                    f"INSERT INTO {table} VALUES ({place}, '{dice.choice(list(group))}')"
                    for place, group in enumerate(kind.groups)
                ),
            )
            made = f'def {table}({table}):\n    return {table}.select("id", "k")'
            mapping.append(f'@mapping.target("{table}", key="{key}")\n{made}')
    return Spelled(written(tmp_path, old_pg, new, "spelled", "\n\n".join(mapping)), kinds, dice)


def verdicts(project: Project) -> set[str]:
    """Tables that the judge's last report calls different."""
    report = json.loads((configuration.load(project.config).reports() / "verify.json").read_text())
    return {one["target"] for one in report["tables"] if one["verdict"] == "different"}


def test_spellings_travel_are_judged_and_repaired(spelled: Spelled) -> None:
    project = spelled.project
    project.run_here()
    assert spelled.differing() == set()
    assert spelled.respell(project.old, spelled.tables()) == set(spelled.tables()) == spelled.differing()
    project.run_here()
    assert spelled.differing() == set()
    assert project.command("verify", "--wait", "20") == 0
    wrong = spelled.respell(project.new, spelled.dice.sample(spelled.tables(), len(spelled.tables()) // 2))
    assert spelled.differing() == wrong, (
        "the control: there is something to find, and something that is right"
    )
    assert project.command("verify", "--wait", "10") == 1
    assert verdicts(project) == wrong
    with running(project):
        assert project.command("repair", "--apply") == 0
    assert spelled.differing() == set()
    assert project.command("verify", "--wait", "20") == 0
