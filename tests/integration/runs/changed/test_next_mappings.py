"""A row-wise target that gets rows of its next function: beside the stream, in one switch, or given up."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from migrator.config import project as configuration
from migrator.errors import MappingError, RequestError
from migrator.model.progress import Phase, Remap
from migrator.wiring import parts as wiring
from migrator.wiring.coordination import look
from migrator.wiring.target import peek
from scenarios.bench.orders.old_schema import OrderWriters, create
from tests.integration import run_project
from tests.integration.run_project import Project, scenario_database
from tests.integration.waiting import await_true
from tests.servers import Database

pytestmark = [pytest.mark.integration, pytest.mark.spark]

ROWS = 300
SMALL = "[capture]\nchunk_rows = 50\nchunk_rows_max = 50\ndump_share = 1.0\n"
MADE = "CREATE TABLE late (id bigint PRIMARY KEY, customer bigint, kept int DEFAULT 7)"
NOW = """
@mapping.target("late", key="id")
def late(orders):
    return orders.where("id % 3 > 0").select("id", "customer")
"""
# Rows go (id % 5 = 0) and come (id % 3 = 0), others get another value.
NEXT = """
@mapping.next("late", key="id")
def next_late(orders):
    return orders.where("id % 5 > 0").select("id", (F.col("customer") * 10).alias("customer"))
"""
BEFORE = "SELECT id, customer FROM orders WHERE id % 3 > 0"
AFTER = "SELECT id, customer * 10 FROM orders WHERE id % 5 > 0"
BESIDE = "late_migrator_next"


@pytest.fixture
def project(tmp_path: Path, old_pg: Database, request: pytest.FixtureRequest, spark: SparkSession) -> Project:
    """A migration that has dumped everything; ``late`` has a next function."""
    create(scenario_database(old_pg), ROWS)
    made = run_project.make(
        tmp_path / "project", old_pg, request.getfixturevalue(getattr(request, "param", "new_pg"))
    )
    made.config.write_text(made.config.read_text() + SMALL)
    made.new.execute(MADE)
    mapped(made, NOW)
    made.run_here()
    mapped(made, NOW, NEXT)
    return made


def mapped(project: Project, *more: str) -> None:
    """The mapping has these functions, beside purchase's."""
    file = project.config.parent / "mapping.py"
    file.write_text(file.read_text().partition("# -- more\n")[0] + "# -- more\n" + "".join(more))


def rows(project: Project) -> set[tuple[object, ...]]:
    return set(map(tuple, project.new.query("SELECT id, customer FROM late")))


def made_by(project: Project, query: str) -> set[tuple[object, ...]]:
    found = set(map(tuple, project.old.query(query)))
    assert found
    return found


def remaps(project: Project) -> tuple[Remap, ...]:
    ledger = peek(configuration.load(project.config))
    assert ledger is not None
    assert ledger.checkpoint is not None
    return ledger.checkpoint.remaps


def tables(project: Project) -> set[str]:
    query = f"SELECT table_name FROM information_schema.tables WHERE table_name IN ('late', '{BESIDE}')"
    return {str(name) for (name,) in project.new.query(query)}


@pytest.mark.parametrize(
    "project",
    [
        "new_pg",
        pytest.param("new_maria", marks=pytest.mark.slow),
        pytest.param("new_mysql", marks=pytest.mark.slow),
    ],
    indirect=True,
)
def test_a_next_function_comes_into_force_under_writers_and_stays(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    project.run_here()  # declared, and not asked for: nothing happens
    assert rows(project) == made_by(project, BEFORE)
    capsys.readouterr()
    assert project.command("remap", "late", "--reason", "tenfold") == 0
    said = capsys.readouterr().out
    assert f"the run fills {BESIDE} by the next function" in said
    assert "MB now: the target needs about as much again" in said
    assert rows(project) == made_by(project, BEFORE)
    assert remaps(project) == (Remap("late", BESIDE, Phase.FILLING),)
    writers = OrderWriters(scenario_database(project.old), ROWS, rate_per_s=200)
    writers.start()
    project.run_here()
    assert writers.stop().row_changes > 0
    project.run_here()
    assert project.differences() == []
    assert rows(project) == made_by(project, AFTER)
    assert remaps(project) == (Remap("late", "", Phase.IN_FORCE),)
    assert tables(project) == {"late"}
    assert project.command("verify", "--wait", "20") == 0
    project.old.execute("UPDATE orders SET customer = customer + 1 WHERE id % 2 = 0")
    mapped(project, NEXT.replace("mapping.next", "mapping.target").replace("next_late", "late"))
    project.run_here()
    assert rows(project) == made_by(project, AFTER)
    assert remaps(project) == ()


UNTIL = ("run", "--plain", "--until", "caught-up")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("project", "point", "switched"),
    [
        *(
            pytest.param("new_pg", point, switched, id=f"pg {point}")
            for point, switched in (
                ("run.led", False),
                ("capture.requested:1", False),
                ("capture.requested:4", False),
                ("target.moved:1", False),
                ("remap.merged", False),
                ("remap.moved", False),
                ("remap.switched", True),
            )
        ),
        pytest.param("new_maria", "remap.merged", False, id="maria remap.merged"),
        pytest.param("new_maria", "remap.switched", True, id="maria remap.switched"),
    ],
    indirect=["project"],
)
def test_killed_at_any_point_readers_see_one_mapping_and_the_next_start_ends_it(
    project: Project, point: str, switched: bool
) -> None:
    asked = project.process("remap", "late", crash_at="remap.asked")
    asked.communicate(timeout=120)
    assert asked.returncode == -9
    assert tables(project) == {"late"}, "the ledger says it first"
    killed = project.process(*UNTIL, crash_at=point)
    said, _ = killed.communicate(timeout=180)
    assert killed.returncode == -9, said
    assert rows(project) == made_by(project, AFTER if switched else BEFORE)
    project.old.execute("UPDATE orders SET customer = customer + 1 WHERE id % 2 = 0")
    project.run_here()
    assert project.differences() == []
    assert rows(project) == made_by(project, AFTER)
    assert tables(project) == {"late"}
    assert remaps(project) == (Remap("late", "", Phase.IN_FORCE),)


class Stopped(Exception):
    """What ends a run at a point."""


def stop_at(name: str) -> None:
    """Ends a run where the rows are merged: a kill there is in the slow test above."""
    if name == "remap.merged":
        raise Stopped


def test_a_next_function_is_given_up_and_asked_for_again(
    project: Project, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(RequestError, match="no next mapping of late is on its way"):
        project.command("remap", "late", "--abort")
    project.command("remap", "late")
    project.command("remap", "late")  # the same once more
    capsys.readouterr()
    project.command("status")
    assert f"late: asked for; the next start begins to fill {BESIDE}" in capsys.readouterr().out
    with monkeypatch.context() as patched:
        patched.setattr(wiring, "step_hook", lambda _: stop_at)
        with pytest.raises(Stopped):
            project.run_here()
    project.command("status")
    assert "its rows are about to be merged into late" in capsys.readouterr().out
    assert tables(project) == {"late", BESIDE}
    project.command("remap", "late", "--abort", "--reason", "tenfold was wrong")
    assert "its rows stay those of the function that made them" in capsys.readouterr().out
    assert tables(project) == {"late"}
    assert remaps(project) == ()
    project.old.execute("UPDATE orders SET customer = customer + 1 WHERE id % 2 = 0")
    project.run_here()
    assert rows(project) == made_by(project, BEFORE)
    project.command("history")
    assert "remap aborted" in capsys.readouterr().out
    project.new.execute(f"CREATE TABLE {BESIDE} (whose int)")
    with pytest.raises(RequestError, match="has a table 'late_migrator_next' already"):
        project.command("remap", "late")
    project.new.execute(f"DROP TABLE {BESIDE}")
    project.command("remap", "late")
    project.run_here()
    assert rows(project) == made_by(project, AFTER)
    with pytest.raises(RequestError, match="is in force already"):
        project.command("remap", "late")
    with pytest.raises(RequestError, match="on its way"):
        project.command("remap", "late", "--abort")
    capsys.readouterr()
    assert project.command("check", "--value-seconds", "0") == 0
    mapped(project, NOW, NEXT.replace("* 10", "* 11"))
    with pytest.raises(MappingError, match="mapping of a target was changed") as caught:
        project.run_here()
    assert "Of late the function that is declared as next was taken" in caught.value.cause


def cancelled(project: Project) -> None:
    """A table beside that has some rows, and whose request for all is given up."""
    project.command("remap", "late")
    killed = project.process(*UNTIL, crash_at="apply.committed:2")
    said, _ = killed.communicate(timeout=180)
    assert killed.returncode == -9, said
    assert project.new.query(f"SELECT count(*) FROM {BESIDE}") != [(0,)]
    (request,) = look(configuration.load(project.config)).book.requests
    assert project.command("dump", "cancel", request.id) == 0


@pytest.mark.slow
@pytest.mark.parametrize("project", ["new_pg", "new_maria", "new_mysql"], indirect=True)
def test_one_whose_request_was_cancelled_is_emptied_and_asked_for_again_by_the_next_start(
    project: Project,
) -> None:
    """What that start has removed itself isn't missed by its first batch (``test_carried_emptied.py``)."""
    cancelled(project)
    project.run_here()
    assert project.differences() == []
    assert rows(project) == made_by(project, AFTER)


def test_what_cannot_come_into_force_is_refused_by_name(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    assert project.command("check", "--value-seconds", "0") == 0
    said = capsys.readouterr().out
    assert (
        "next: late: its next function differs from the one in force: column customer is computed otherwise"
        in said
    )
    mapped(project, NOW, NEXT.replace('"id", (', '"id", F.lit(1).alias("unknown"), ('))
    assert project.command("check", "--value-seconds", "0") == 0, "nobody asked for it"
    assert "warning  next: " in capsys.readouterr().out
    with pytest.raises(MappingError, match="unknown"):
        project.command("remap", "late")
    mapped(project, NOW, NEXT.replace('key="id"', 'key="customer"'))
    with pytest.raises(MappingError, match="can't follow") as caught:
        project.command("remap", "late")
    assert caught.value.cause == "its key columns are customer, those of the present one id"
    mapped(project, NOW)
    with pytest.raises(MappingError, match="no next function of target table 'late'") as caught:
        project.command("remap", "late")
    assert '@mapping.next("late", ...)' in caught.value.remedy
    mapped(project, NOW, NEXT)
    project.command("remap", "late")
    mapped(project, NOW)
    with pytest.raises(MappingError, match="isn't declared any more") as caught:
        project.run_here()
    assert "migrator remap late --abort" in caught.value.remedy
    project.command("remap", "late", "--abort")
    project.run_here()
    assert rows(project) == made_by(project, BEFORE)


@pytest.mark.slow
def test_a_standby_that_takes_over_ends_it(project: Project) -> None:
    settings = configuration.load(project.config)
    project.command("remap", "late")
    first = project.process("run", "--plain", "--ha", crash_at="remap.merged")
    await_true(lambda: bool(look(settings).leader), "somebody leads")
    second = project.process(*UNTIL, "--ha")
    first.communicate(timeout=180)
    said, _ = second.communicate(timeout=180)
    assert (first.returncode, second.returncode) == (-9, 0), said
    assert rows(project) == made_by(project, AFTER)
    assert remaps(project) == (Remap("late", "", Phase.IN_FORCE),)


@pytest.mark.slow
def test_beside_a_leader_it_is_asked_for_and_given_up_and_the_next_start_sees_it(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = configuration.load(project.config)
    leads = project.process("run", "--plain")
    try:
        await_true(lambda: bool(look(settings).leader), "somebody leads")
        capsys.readouterr()
        project.command("remap", "late")
        assert "leads, and doesn't know of it: stop the run and start it again" in capsys.readouterr().out
        project.old.execute("UPDATE orders SET customer = customer + 1 WHERE id % 2 = 0")
        await_true(lambda: rows(project) == made_by(project, BEFORE), "the change is there")
        assert remaps(project) == (Remap("late", BESIDE, Phase.FILLING),), "batches keep it"
        project.command("remap", "late", "--abort")
        assert "fills the table beside until it starts again" in capsys.readouterr().out
        with pytest.raises(RequestError, match="its table beside is still there"):
            project.command("remap", "late")
    finally:
        leads.terminate()
        leads.communicate(timeout=120)
    project.run_here()
    assert tables(project) == {"late"}
    assert remaps(project) == ()
    assert rows(project) == made_by(project, BEFORE)


SWAPPED = """
@mapping.next("late", key="id")
def next_late(orders):
    return orders.where("id % 5 > 0").select("id", (F.lit(301) - F.col("id")).alias("customer"))
"""


@pytest.mark.slow
@pytest.mark.parametrize("project", ["new_pg", "new_maria"], indirect=True)
def test_what_hangs_on_the_table_stays_and_no_reader_sees_a_mix(project: Project) -> None:
    """A unique column whose values swap, a view, rows of another owner that point at rows."""
    mapped(project, NOW.replace('"id", "customer"', '"id", F.col("id").alias("customer")'), SWAPPED)
    project.command("reset", "--table", "late", "--yes")
    project.run_here()
    project.new.execute(
        "ALTER TABLE late ADD CONSTRAINT one UNIQUE (customer)",
        "UPDATE late SET kept = 8",
        "CREATE VIEW seen AS SELECT id, customer FROM late",
        "CREATE TABLE theirs (late_id bigint, CONSTRAINT points FOREIGN KEY (late_id) REFERENCES late (id))",
        "INSERT INTO theirs VALUES (1), (5)",
    )
    before = set(map(tuple, project.old.query("SELECT id, id FROM orders WHERE id % 3 > 0")))
    after = set(map(tuple, project.old.query("SELECT id, 301 - id FROM orders WHERE id % 5 > 0")))
    project.command("remap", "late")
    (warning,) = project.run_here().warnings
    assert "points at a row" in warning
    assert "late_id='5'" in warning
    assert "migrator remap late --abort" in warning
    assert rows(project) == before
    project.new.execute("DELETE FROM theirs WHERE late_id = 5")
    looks: list[set[tuple[object, ...]]] = []
    ended = threading.Event()

    def read() -> None:
        while not ended.is_set():
            looks.append(set(map(tuple, project.new.query("SELECT id, customer FROM seen"))))

    reader = threading.Thread(target=read)
    reader.start()
    try:
        project.run_here()
    finally:
        ended.set()
        reader.join()
    assert {frozenset(look) for look in looks} <= {frozenset(before), frozenset(after)}
    assert before in looks
    assert rows(project) == after
    stayed = "SELECT DISTINCT kept FROM late WHERE id % 3 > 0 AND id <= 300"
    assert project.new.query(stayed) == [(8,)], "no mapping writes it"
    assert project.new.query("SELECT late_id FROM theirs") == [(1,)]
    with pytest.raises(Exception, match=r"(?i)foreign key"):
        project.new.execute("DELETE FROM late WHERE id = 1")
