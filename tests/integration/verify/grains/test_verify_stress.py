"""Random transactions on all tables of joined mappings, judged all the while: no alarm but what is planted.

Each transaction changes some of: names (the grain of three tables), cities, payments, keys of rows, which
rows there are. It is brought over at once. Rounds of the judge fall anywhere between.

``MIGRATOR_STRESS_COMMITS`` says how many transactions; ``make stress`` asks for an hour's at three a second.
"""

from __future__ import annotations

import os
import random
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.integration.verify.grains import grain_project, test_verify_buckets
from tests.integration.verify.grains.test_verify_buckets import ROWS, BucketProject
from tests.servers import Database
from verify.readers.pending import Pending, PendingAnswer
from verify.readers.postgres.source import PostgresSource
from verify.tables.rounds import live
from verify.tables.rounds import progress as rounds
from verify.verdict import Verdict

pytestmark = [pytest.mark.integration, pytest.mark.spark]

COMMITS = int(os.environ.get("MIGRATOR_STRESS_COMMITS", "0"))
TABLES = None if COMMITS else ["account", "initial"]
"""All, or one of those that servers can look up by grain and one of those that they can't."""
_PAUSE_S = 0.1
"""Between two transactions: two cores have all servers, the judge and its Spark to run as well."""
HOT, NAMES = range(1, 41), "abcdefghijkl"
PLANTED = {
    ("person", "different", "c-100"): "UPDATE person SET name = '?' WHERE ref = 'c-100'",
    ("person", "missing", "c-101"): "DELETE FROM person WHERE ref = 'c-101'",
    ("account", "extra", "c-none"): "INSERT INTO account VALUES ('c-none', 'x', 0, 0)",
    ("initial", "different", "n"): "UPDATE initial SET customers = customers + 1 WHERE letter = 'n'",
    ("circle", "missing", "o"): "DELETE FROM circle WHERE letter = 'o'",
    ("namesake", "different", "p"): "UPDATE namesake SET staff = '?' WHERE letter = 'p'",
}
"""In rows that nothing is written to."""


QUERIES = {
    **{name: query for name, query in grain_project.MADE.items() if name != "letter"},
    **test_verify_buckets.MADE,
}
FUNCTIONS = (
    grain_project.MAPPING.partition('@mapping.target("letter"')[0]
    + test_verify_buckets.MAPPING.partition("mapping = Mapping()\n")[2]
)


class StressProject(BucketProject):
    """All kinds of joined mappings over one small shop."""

    new_tables, queries, mapping_text = grain_project.NEW + test_verify_buckets.NEW, QUERIES, FUNCTIONS


class Storm:
    """Random transactions from a seed, one after the other, each brought over with the ledger."""

    def __init__(self, project: StressProject, seed: int):
        self._project, self._random = project, random.Random(seed)
        self._numbers = iter(range(1000, 10**9))
        self._ended = threading.Event()
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="storm")
        self.commits = 0

    def __enter__(self) -> Storm:
        self._blowing = self._pool.submit(self._blow)
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._blowing.result(60)
        self._pool.shutdown()

    @property
    def going(self) -> bool:
        """Whether it blows."""
        return not self._blowing.done()

    def _blow(self) -> None:
        while not self._ended.is_set():
            self._transaction()
            self.commits += 1
            self._ended.wait(_PAUSE_S)

    def _transaction(self) -> None:
        kinds: list[Callable[[], Iterator[str]]] = [
            self._name, self._name, self._city, self._pay, self._repay, self._amount, self._come, self._go,
            self._staff,
        ]  # fmt: skip
        with self._project.old.connect(autocommit=False) as old:
            for kind in self._random.choices(kinds, k=self._random.randint(1, 4)):
                for statement in kind():
                    old.execute(statement)
            old.commit()
        self._project.apply(*(TABLES or self._project.queries), fault=list(PLANTED.values()))

    def _one(self) -> int:
        return self._random.choice(HOT)

    def _letter(self) -> str:
        return self._random.choice(NAMES)

    def _name(self) -> Iterator[str]:
        yield f"UPDATE customer SET name = '{self._letter()} {next(self._numbers)}' WHERE id = {self._one()}"

    def _city(self) -> Iterator[str]:
        city = self._random.choice(["NULL", *map(str, range(1, 6))])
        yield f"UPDATE customer SET city_id = {city} WHERE id = {self._one()}"
        yield f"UPDATE city SET city = 'city {next(self._numbers)}' WHERE city_id = 2"

    def _pay(self) -> Iterator[str]:
        yield f"INSERT INTO payment VALUES ({next(self._numbers)}, {self._one()}, 1)"
        yield "DELETE FROM payment WHERE payment_id = (SELECT min(payment_id) FROM payment WHERE payment_id > 150)"

    def _repay(self) -> Iterator[str]:
        yield f"UPDATE payment SET customer_id = {self._one()} WHERE payment_id = {self._random.randint(1, 150)}"

    def _amount(self) -> Iterator[str]:
        yield f"UPDATE payment SET amount = amount + 1 WHERE customer_id = {self._one()}"

    def _come(self) -> Iterator[str]:
        number = next(self._numbers) * self._random.choice([1, -1])
        yield f"INSERT INTO customer VALUES ({number}, '{self._letter()} new', {self._random.randint(1, 5)})"

    def _go(self) -> Iterator[str]:
        yield (
            "DELETE FROM customer WHERE id = (SELECT id FROM customer WHERE abs(id) >= 1000 ORDER BY abs(id) LIMIT 1)"
        )

    def _staff(self) -> Iterator[str]:
        number = next(self._numbers)
        yield (
            f"UPDATE staff SET name = '{self._letter()} {number}', code = 'code {number}'"
            " WHERE code = (SELECT min(code) FROM staff)"
        )


@pytest.fixture
def project(
    old_pg: Database, new_pg: Database, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> StressProject:
    in_use = Pending(PendingAnswer.UNKNOWN, "the slot is in use")
    monkeypatch.setattr(PostgresSource, "pending", lambda *_: in_use)
    monkeypatch.setattr(live, "POLL_S", 0.02)
    return StressProject(old_pg, new_pg, spark, tmp_path)


@pytest.mark.slow
def test_a_storm_on_joined_tables_is_no_alarm_and_hides_nothing(project: StressProject) -> None:
    project.apply(*project.queries, fault=list(PLANTED.values()))
    planted = {each for each in PLANTED if TABLES is None or each[0] in TABLES}
    judged = 0
    with Storm(project, seed=1) as storm:
        while storm.going and (not judged or storm.commits < COMMITS):
            result = project.verify(ROWS, TABLES, rounds=rounds.STEADY_ROUNDS + 2)
            assert (result.verdict, project.found()) == (Verdict.DIFFERENT, planted)
            assert all(table.counts.equal for table in result.tables)
            judged += 1
            aside = sum(table.counts.set_aside for table in result.tables)
            print(f"{storm.commits} transactions, {judged} verifications, set aside in the last one: {aside}")
    assert storm.commits > 50, "they are the storm"
