"""What the server says of a row that it refuses: never all of the row, which has columns that no mapping fills."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from migrator.adapters.targets.postgres.refusal import Refusal, explained
from migrator.adapters.targets.postgres.session import Session
from tests.integration.target_bench import settings_of
from tests.servers import Database

pytestmark = pytest.mark.integration

SECRET = "Kb7Yt4Rn1"
REFUSED = {
    "a CHECK": ("INSERT INTO public.t (k, age) VALUES (1, 200)", 'violates check constraint "young"'),
    "NULL": ("INSERT INTO public.t (k) VALUES (1)", 'null value in column "age"'),
    "an update": ("UPDATE public.t SET age = 201 WHERE k = 7", 'violates check constraint "young"'),
    "a view's option": ("INSERT INTO public.v (k, age) VALUES (2, 3)", 'violates check option for view "v"'),
    "a partition's bound": ("INSERT INTO public.p1 (k, age) VALUES (90, 3)", "violates partition constraint"),
}


@pytest.fixture
def session(new_pg: Database) -> Iterator[Session]:
    new_pg.execute(
        f"CREATE TABLE t (k int PRIMARY KEY, secret text NOT NULL DEFAULT '{SECRET}', age int NOT NULL,"
        " CONSTRAINT young CHECK (age < 150))",
        "INSERT INTO public.t (k, age) VALUES (7, 7)",
        "CREATE VIEW v AS SELECT * FROM t WHERE age > 10 WITH CHECK OPTION",
        f"CREATE TABLE p (k int, secret text DEFAULT '{SECRET}', age int) PARTITION BY RANGE (k)",
        "CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (1) TO (10)",
    )
    opened = Session(settings_of(new_pg))
    yield opened
    opened.close()


@pytest.mark.parametrize(("statement", "said"), REFUSED.values(), ids=list(REFUSED))
def test_a_refused_row_is_told_without_its_columns(
    session: Session, new_pg: Database, statement: str, said: str
) -> None:
    with pytest.raises(Refusal) as refused:
        session.run(statement)
    assert said in str(refused.value)
    assert SECRET not in repr(refused.value)
    with pytest.raises(psycopg.Error) as driver:
        new_pg.execute(statement)
    assert SECRET in str(driver.value), "the control: the server says it"
    ours = explained(driver.value)
    assert said in str(ours)
    assert SECRET not in repr(ours)


def test_details_of_keys_stay(session: Session) -> None:
    with pytest.raises(Refusal, match=r"Key \(k\)=\(7\) already exists"):
        session.run("INSERT INTO public.t (k, age) VALUES (7, 3)")
    with pytest.raises(Refusal, match="no partition of relation"):
        session.run("INSERT INTO public.p (k, age) VALUES (90, 3)")
