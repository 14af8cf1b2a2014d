"""A small shop whose new shape has other keys: what no chunk of one source table is enough for; pipeline by
hand."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from itertools import cycle
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

from migrator.model.codecs.codec import checkpoint_to_json
from migrator.model.position import Position
from migrator.model.progress import Checkpoint, TableDump
from migrator.model.table import TableId
from tests.integration.judged import settings_of
from tests.servers import Database
from verify.readers.engines import source_reader
from verify.readers.snapshot import LogPlace
from verify.tables.findings.differing import read_differing
from verify.tables.result import TableResult, VerifyResult
from verify.tables.rounds.named_keys import NamedKeys
from verify.tables.run import verify

CUSTOMERS, STAFF, CITIES = 60, 12, 5
TABLES = ("city", "customer", "staff", "payment")
PAUSE_S = 0.05
"""Between two hot transactions: two cores have all servers, the judge and its Spark to run as well."""
OLD = f"""
CREATE TABLE city (city_id int PRIMARY KEY, city text NOT NULL);
CREATE TABLE customer (id bigint PRIMARY KEY, name text, city_id int REFERENCES city);
CREATE INDEX ON customer (city_id);
CREATE TABLE staff (code varchar(20) COLLATE "C" PRIMARY KEY, name text);
CREATE TABLE payment (payment_id bigint PRIMARY KEY, customer_id bigint REFERENCES customer, amount numeric(12,2));
CREATE INDEX ON payment (customer_id);
INSERT INTO city SELECT g, 'city ' || g FROM generate_series(1, {CITIES}) g;
INSERT INTO customer SELECT g, chr(96 + g % 4) || ' name ' || g, nullif(g % ({CITIES} + 1), 0)
  FROM generate_series(1, {CUSTOMERS}) g;
INSERT INTO staff SELECT 'code ' || g, 'staff ' || g FROM generate_series(1, {STAFF}) g;
INSERT INTO payment SELECT g, g % 40 + 1, g FROM generate_series(1, 150) g;
CREATE TABLE foreign_table (id int PRIMARY KEY);
CREATE PUBLICATION migrator_judge FOR TABLE city, customer, staff, payment, foreign_table;
"""
NEW = """
CREATE TABLE person (ref text PRIMARY KEY, name text);
CREATE TABLE account (ref text PRIMARY KEY, city text, paid numeric(12,2), payments bigint);
CREATE TABLE city_sales (city_id int PRIMARY KEY, paid numeric(12,2));
CREATE TABLE letter (letter text PRIMARY KEY, customers bigint);
"""
MADE = {
    "person": "SELECT 'c-' || id AS ref, name FROM customer UNION ALL SELECT 's-' || code, name FROM staff",
    "account": "SELECT 'c-' || id AS ref, city, sum(amount) AS paid, count(payment_id) AS payments"
    " FROM customer LEFT JOIN city USING (city_id) LEFT JOIN payment ON customer_id = id GROUP BY id, city",
    "city_sales": "SELECT city_id, sum(amount) AS paid FROM customer JOIN payment ON customer_id = id"
    " WHERE city_id IS NOT NULL GROUP BY city_id",
    "letter": "SELECT left(name, 1) AS letter, count(*) AS customers FROM customer GROUP BY 1",
}
"""What the mapping makes, said to the old server."""
MAPPING = """
from pyspark.sql import DataFrame, functions as F
from transforms import Mapping

mapping = Mapping()


def ref(kind, column):
    return F.concat(F.lit(kind), F.col(column).cast("string")).alias("ref")


@mapping.target("person", key="ref")
def person(customer: DataFrame, staff: DataFrame) -> DataFrame:
    return customer.select(ref("c-", "id"), "name").unionByName(staff.select(ref("s-", "code"), "name"))


@mapping.target("account", key="ref", grain="customer.id")
def account(customer: DataFrame, city: DataFrame, payment: DataFrame) -> DataFrame:
    paid = payment.groupBy(F.col("customer_id").alias("id")).agg(
        F.sum("amount").cast("decimal(12,2)").alias("paid"), F.count("*").alias("payments")
    )
    rows = customer.join(city, "city_id", "left").join(paid, "id", "left")
    return rows.select(ref("c-", "id"), "city", "paid", F.coalesce("payments", F.lit(0)).alias("payments"))


@mapping.target("city_sales", key="city_id", grain="customer.city_id")
def city_sales(customer: DataFrame, payment: DataFrame) -> DataFrame:
    known = customer.where("city_id IS NOT NULL")
    rows = known.join(payment, F.col("customer_id") == F.col("id"))
    return rows.groupBy("city_id").agg(F.sum("amount").cast("decimal(12,2)").alias("paid"))


@mapping.target("letter", key="letter", grain=lambda customer: [F.substring(customer.name, 1, 1)])
def letter(customer: DataFrame) -> DataFrame:
    return customer.groupBy(F.substring("name", 1, 1).alias("letter")).agg(F.count("*").alias("customers"))
"""


class GrainProject:
    """Both databases, and the calls a test needs."""

    view = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ"
    schema = "public"
    new_tables, queries, mapping_text = NEW, MADE, MAPPING

    def __init__(self, old: Database, new: Database, spark: SparkSession, directory: Path):
        self.old, self.new, self._spark = old, new, spark
        self.mapping, self.reports = directory / "mapping.py", directory / "reports"
        self.mapping.write_text(self.mapping_text)
        self.place = source_reader(settings_of(old), "judge")
        self.prepare()
        new.execute(
            self.new_tables,
            "CREATE SCHEMA migrator",
            "CREATE TABLE migrator.ledger (migration text PRIMARY KEY, epoch bigint, segment bigint,"
            " position_order numeric(39,0), position_token text, checkpoint jsonb)",
            "INSERT INTO migrator.ledger VALUES ('judge', 1, 1, 0, '', NULL)",
        )
        self.apply(*self.queries)

    def prepare(self) -> None:
        """The old tables, and the pipeline's slot."""
        self.old.execute(OLD, "SELECT pg_create_logical_replication_slot('migrator_judge', 'pgoutput')")

    def apply(self, *tables: str, fault: Sequence[str] = ()) -> None:
        """Makes new tables anew, and moves the ledger with them, in one transaction: what the pipeline claims
        to do.

        ``fault``: what it does wrong, each time.
        """
        with self.old.connect(autocommit=False) as old, self.new.connect(autocommit=False) as new:
            rows = {}
            with old.cursor() as cursor:
                cursor.execute(self.view)
                for table in tables:
                    cursor.execute(self.made(self.queries[table]))
                    rows[table] = cursor.fetchall()
            at = self.place.position()
            for table, made in rows.items():
                new.execute(f"DELETE FROM {table}")
                with new.cursor() as cursor:
                    cursor.executemany(
                        f"INSERT INTO {table} VALUES ({', '.join(['%s'] * len(made[0]))})", made
                    )
            for statement in fault:
                new.execute(statement)
            self._ledger(new, at.order, self.token(at))
            new.commit()

    def _ledger(self, new: object, order: int, token: str) -> None:
        """The ledger's row."""
        dumps = tuple(TableDump(TableId(self.schema, name), done=True) for name in TABLES)
        checkpoint = checkpoint_to_json(Checkpoint(Position(order, token), dumps=dumps))
        new.execute(  # type: ignore[attr-defined]
            "UPDATE migrator.ledger SET position_order = %s, position_token = %s, checkpoint = %s",
            (order, token, json.dumps(checkpoint)),
        )

    def verify(
        self,
        rows: int,
        tables: list[str] | None = None,
        rounds: int = 12,
        step: Callable[[str], None] = lambda _: None,
        only: Mapping[str, pa.Table] | None = None,
        at_rest: bool = False,
    ) -> VerifyResult:
        """The judge's answer with so many rows in a chunk; of some keys alone."""
        sides = settings_of(self.old), settings_of(self.new)
        return verify(
            *sides,
            "judge",
            self.mapping,
            tables,
            lambda: self._spark,
            self.reports,
            wait_s=20,
            max_rounds=rounds,
            chunk_rows=rows,
            step=step,
            named=None if only is None else NamedKeys(only, at_rest),
        )

    def table(self, name: str, rows: int, rounds: int = 12) -> TableResult:
        """The judge's answer about one table."""
        (found,) = self.verify(rows, [name], rounds).tables
        return found

    def found(self) -> set[tuple[str, str, str]]:
        """What the last report names as not equal: table, status and key."""
        keys = read_differing(self.reports / "verify.json").keys
        return {(each.table, each.status, each.key[0]) for each in keys}

    @staticmethod
    def made(query: str) -> str:
        """A query of ``MADE`` as the old server has it."""
        return query

    @staticmethod
    def token(at: LogPlace) -> str:
        """The ledger's words for a place in the log."""
        return f"{at.state}@1"


class BinlogProject(GrainProject):
    """The same with old tables on MySQL or MariaDB, which are there already."""

    view = "START TRANSACTION WITH CONSISTENT SNAPSHOT"

    def prepare(self) -> None:
        """The schema part of table names is the database."""
        self.schema = self.old.database

    @staticmethod
    def made(query: str) -> str:
        """It has no ``||``."""
        return re.sub(r"('[cs]-') \|\| (\w+)", r"concat(\1, \2)", query)

    @staticmethod
    def token(at: LogPlace) -> str:
        """The ledger's words for a place in the log."""
        return json.dumps({"gtid": at.state, "file": "", "offset": 0})


class Shoppers(threading.Thread):
    """Change customers, cities and payments, and bring each transaction over at once, with the ledger.

    Args:
        project: the two databases.
        tables: the new tables that are judged: no other is made anew.
        fault: what is done wrong, each time.
    """

    def __init__(self, project: GrainProject, tables: Sequence[str], fault: Sequence[str] = ()):
        super().__init__(daemon=True)
        self._project, self._tables, self._fault = project, tables, fault
        self._ended = threading.Event()
        self.commits = 0

    def __enter__(self) -> Shoppers:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self.join(60)
        assert not self.is_alive()

    def run(self) -> None:
        project = self._project
        for key in cycle(range(1, 30, 3)):
            if self._ended.is_set():
                return
            with project.old.connect(autocommit=False) as old:
                old.execute("UPDATE customer SET name = %s WHERE id = %s", (f"a {self.commits}", key))
                old.execute("UPDATE payment SET amount = amount + 1 WHERE payment_id = %s", (key,))
                old.execute("UPDATE city SET city = %s WHERE city_id = 2", (f"city {self.commits}",))
                old.commit()
            project.apply(*self._tables, fault=self._fault)
            self.commits += 1
            self._ended.wait(PAUSE_S)
