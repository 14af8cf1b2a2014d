"""Baskets whose joined mappings fail on some: by a function, a cast, an overflow, a division, an error of their own,
a key without a value, two rows of one key. Beside them an oracle in plain Python.
"""

from __future__ import annotations

import random
from collections import defaultdict
from pathlib import Path
from typing import Any

from migrator.config import project as configuration
from migrator.model.progress import BadRow
from migrator.wiring.target import bad_rows
from scenarios.bench.orders.old_schema import create
from tests.integration import run_project
from tests.integration.run_project import Project, scenario_database
from tests.servers import Database

WAYS = [("old_maria", "new_pg"), ("old_pg", "new_maria")]
TARGETS = ("total", "worth", "plain")
OLD = ("basket", "line", "thing")
MAPPING = """
from pyspark.sql import functions as F
from pyspark.sql import types as T
from transforms import Mapping

mapping = Mapping()
LINKS = ["line.basket_id = basket.id", "thing.id = line.thing_id"]


@F.udf(T.StringType())
def shouted(text):
    if text == "mute":
        raise ValueError("nobody shouts this")
    return text.upper()


@mapping.target("total", key="id", grain="basket.id", links=LINKS)
def total(basket, line, thing):
    said = line.join(thing, line.thing_id == thing.id).select("basket_id", shouted("name").alias("name"))
    names = said.groupBy("basket_id").agg(F.max("name").alias("names"))
    rows = F.when(F.col("note") == "twice", F.array(F.lit(1), F.lit(2))).otherwise(F.array(F.lit(1)))
    return basket.join(names, basket.id == names.basket_id, "left").select(
        F.when(F.col("note") != "nokey", F.col("id")).alias("id"), "names", F.explode(rows).alias("number")
    )


@mapping.target("worth", key="id", grain="basket.id", links=LINKS)
def worth(basket, line, thing):
    priced = line.join(thing, line.thing_id == thing.id).select(
        "basket_id", (F.col("amount").cast("int") * (F.lit(100) / F.col("rate").cast("int"))).alias("worth")
    )
    summed = priced.groupBy("basket_id").agg(F.sum("worth").cast("int").alias("worth"))
    raised = F.when(F.col("note") == "raise", F.raise_error(F.lit("never this one")).cast("int"))
    return basket.join(summed, basket.id == summed.basket_id, "left").select(
        "id", F.coalesce(raised, "worth").alias("worth")
    )


@mapping.target("plain", key="id", grain="basket.id", links=["line.basket_id = basket.id"])
def plain(basket, line):
    counted = line.groupBy("basket_id").agg(F.count("*").alias("parts"))
    return basket.join(counted, basket.id == counted.basket_id, "left").select(
        "id", F.coalesce("parts", F.lit(0)).alias("parts")
    )
"""
NOTES = ("good", "good", "good", "good", "nokey", "twice", "raise")
AMOUNTS = ("1", "2", "3", "4", "5", "6", "none", "9999999999")
NAMES = ("bread", "milk", "salt", "soap", "mute")
RATES = ("1", "2", "4", "5", "0")


def make(folder: Path, old: Database, new: Database, baskets: int = 12) -> Project:
    """Baskets of which all can be mapped, and a project that sets grains aside."""
    create(scenario_database(old), 1)
    project = run_project.make(folder / "project", old, new)
    old.execute(
        "CREATE TABLE basket (id int PRIMARY KEY, note varchar(20) NOT NULL)",
        "CREATE TABLE thing (id int PRIMARY KEY, name varchar(20) NOT NULL, rate varchar(20) NOT NULL)",
        "CREATE TABLE line (basket_id int, no int, thing_id int NOT NULL, amount varchar(20) NOT NULL,"
        " PRIMARY KEY (basket_id, no))",
    )
    old.execute(*(f"INSERT INTO thing VALUES ({n}, '{NAMES[n % 4]}', '{RATES[n % 4]}')" for n in range(1, 9)))
    old.execute(*(f"INSERT INTO basket VALUES ({n}, 'good')" for n in range(1, baskets + 1)))
    old.execute(
        *(
            f"INSERT INTO line VALUES ({n}, {no}, {(n + no) % 8 + 1}, '{AMOUNTS[(n + no) % 6]}')"
            for n in range(1, baskets + 1)
            for no in range(n % 3)
        )
    )
    if old.kind == "postgresql":
        old.execute(*(f"ALTER TABLE {table} REPLICA IDENTITY FULL" for table in OLD))
    new.execute(
        "CREATE TABLE total (id int PRIMARY KEY, names varchar(20), number int NOT NULL)",
        "CREATE TABLE worth (id int PRIMARY KEY, worth int)",
        "CREATE TABLE plain (id int PRIMARY KEY, parts int NOT NULL)",
    )
    (project.config.parent / "mapping.py").write_text(MAPPING)
    project.config.write_text(project.config.read_text() + '\n[apply]\nbad_rows = "set_aside"\n')
    return project


def changes(drawn: random.Random, baskets: int = 12) -> list[str]:
    """Some changes: baskets, lines and what they name become bad, good, others, come and go."""
    found = []
    for _ in range(drawn.randint(1, 4)):
        key, other = drawn.randint(1, baskets), drawn.randint(1, baskets)
        found += drawn.choice(
            (
                [f"UPDATE basket SET note = '{drawn.choice(NOTES)}' WHERE id = {key}"],
                [f"UPDATE line SET amount = '{drawn.choice(AMOUNTS)}' WHERE basket_id = {key} AND no = 0"],
                [f"UPDATE line SET no = no + 100 + {key}, basket_id = {other} WHERE basket_id = {key}"],
                [f"UPDATE line SET thing_id = {drawn.randint(1, 8)} WHERE basket_id = {key}"],
                [f"UPDATE thing SET name = '{drawn.choice(NAMES)}' WHERE id = {drawn.randint(1, 8)}"],
                [f"UPDATE thing SET rate = '{drawn.choice(RATES)}' WHERE id = {drawn.randint(1, 8)}"],
                [f"DELETE FROM line WHERE basket_id = {key}", f"DELETE FROM basket WHERE id = {key}"],
            )
        )
    key = drawn.randint(1, baskets)
    exists = f"SELECT {key}, 'good' FROM (SELECT 1 AS one) d WHERE NOT EXISTS (SELECT 1 FROM basket WHERE id = {key})"
    return [*found, f"INSERT INTO basket {exists}", "DELETE FROM line WHERE no > 1000"]


def all_good(project: Project) -> None:
    """Corrects whatever can't be mapped."""
    project.old.execute(
        "UPDATE basket SET note = 'good'",
        "UPDATE line SET amount = '1' WHERE amount IN ('none', '9999999999')",
        "UPDATE thing SET name = 'ink' WHERE name = 'mute'",
        "UPDATE thing SET rate = '5' WHERE rate = '0'",
    )


def wanted(project: Project) -> dict[str, dict[int, tuple[Any, ...] | None]]:
    """The rows of each target by basket; None of one on which its mapping fails."""
    notes = {int(key): note for key, note in project.old.query("SELECT id, note FROM basket")}
    things = {int(key): rest for key, *rest in project.old.query("SELECT id, name, rate FROM thing")}
    lines = defaultdict(list)
    for basket, thing, amount in project.old.query("SELECT basket_id, thing_id, amount FROM line"):
        lines[int(basket)].append((*things[int(thing)], amount))
    total: dict[int, tuple[Any, ...] | None] = {}
    worth: dict[int, tuple[Any, ...] | None] = {}
    for key, note in notes.items():
        names = [name for name, _, _ in lines[key]]
        mute = "mute" in names or note in ("nokey", "twice")
        total[key] = None if mute else (key, max(names).upper() if names else None, 1)
        bad = note == "raise" or any(rate == "0" or amount in AMOUNTS[-2:] for _, rate, amount in lines[key])
        number = None if bad or not lines[key] else sum(int(a) * (100 / int(r)) for _, r, a in lines[key])
        worth[key] = None if bad else (key, None if number is None else int(number))
    plain: dict[int, tuple[Any, ...] | None] = {key: (key, len(lines[key])) for key in notes}
    return {"total": total, "worth": worth, "plain": plain}


def aside(project: Project) -> list[BadRow]:
    """What the ledger names."""
    return list(bad_rows(configuration.load(project.config)))


def holds(project: Project) -> int:
    """Compares all targets and the ledger with the oracle; returns how many grains are aside."""
    expected, found = wanted(project), aside(project)
    for target, rows in expected.items():
        there = project.new.query(f"SELECT * FROM {target} ORDER BY id")
        assert there == [row for _, row in sorted(rows.items()) if row is not None], target
        bad = {str(key) for key, row in rows.items() if row is None}
        of_target = [one for one in found if one.target == target]
        assert {one.key[0] for one in of_target} == bad, target
        assert len(of_target) == len(bad), "no record is there twice"
    assert all(one.grain and one.columns == ("basket.id",) and one.position for one in found)
    return len(found)
