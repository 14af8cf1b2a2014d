"""Source rows that the mapping fails on, set aside by their target keys in whole runs."""

from __future__ import annotations

import json
import random
import signal
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from migrator.config import project as configuration
from migrator.errors import MappingError, TargetError
from migrator.wiring.target import bad_rows
from scenarios.bench.orders.old_schema import create
from tests.integration import run_project
from tests.integration.run_project import Project, scenario_database
from transforms.analysis.plan import MappingPlan
from transforms.frames import computed_late
from transforms.on_spark.pipeline import FailingRow, failing_row

pytestmark = [pytest.mark.integration, pytest.mark.spark]
WAYS = [("old_maria", "new_pg"), ("old_pg", "new_maria")]
HEAD = """
from pyspark.sql import functions as F
from pyspark.sql import types as T
from transforms import Mapping

mapping = Mapping()
"""
SAID = """

@F.udf(T.StringType())
def shouted(text):
    if text == "mute":
        raise ValueError("nobody shouts this")
    return text.upper()


@mapping.target("said", key="id")
def said(talk):
    return talk.select("id", F.col("number").cast("int").alias("number"), shouted("words").alias("words"))
"""
HEARD = """

@mapping.target("heard", key="id")
def heard(talk):
    return talk.select((KEY).alias("id"), "words")
"""
PLAIN = """

@mapping.target("said", key="id")
def said(talk):
    key = (F.col("id") + F.lit(0)).cast("int").alias("id")
    return talk.select(key, F.col("number").cast("int").alias("number"), "words")
"""
"""Without a function of Python's: Spark could compute whole rows in memory while it plans."""
ROWS = 12
"""Few: to find one that fails takes as many Spark jobs as they can be halved, and some more."""
BAD = ("number = 'none'", "number = '9999999999'", "number = '70000'", "words = 'mute'")
"""What a cast, a number too large for int and for the column, and a function fail on."""


@pytest.fixture
def project(request: pytest.FixtureRequest, tmp_path: Path, spark: SparkSession) -> Project:
    """Talk, of which one target takes all, and the other what can be mapped."""
    old, new = (request.getfixturevalue(name) for name in request.param)
    create(scenario_database(old), 1)
    made = run_project.make(tmp_path / "project", old, new)
    old.execute("CREATE TABLE talk (id int PRIMARY KEY, number varchar(20), words varchar(20) NOT NULL)")
    if old.kind == "postgresql":
        old.execute("ALTER TABLE talk REPLICA IDENTITY FULL")
    for key in range(1, ROWS + 1):
        old.execute(f"INSERT INTO talk VALUES ({key}, '{key}', 'w{key}')")
    new.execute(
        "CREATE TABLE said (id int PRIMARY KEY, number smallint, words varchar(20) NOT NULL)",
        "CREATE TABLE heard (id int PRIMARY KEY, words varchar(20) NOT NULL)",
    )
    (made.config.parent / "mapping.py").write_text(HEAD + SAID + HEARD.replace("KEY", "F.col('id')"))
    made.config.write_text(made.config.read_text() + '\n[apply]\nbad_rows = "set_aside"\n')
    return made


def aside(project: Project) -> dict[int, str]:
    return {int(one.key[0]): one.reason for one in bad_rows(configuration.load(project.config))}


def counts(project: Project, capfd: pytest.CaptureFixture[str], code: int) -> dict[str, dict[str, int]]:
    """What `migrator verify`, which ends with this code, counts of each target."""
    capfd.readouterr()
    assert project.command("verify", "--json") == code
    return {one["target"]: one["counts"] for one in json.loads(capfd.readouterr().out)["tables"]}


def holds(project: Project) -> None:
    """All of both targets but what fails, by plain Python."""
    talk = [
        (int(one[0]), str(one[1]), str(one[2]))
        for one in project.old.query("SELECT id, number, words FROM talk")
    ]
    good = [one for one in talk if one[1].isdigit() and int(one[1]) < 2**15 and one[2] != "mute"]
    said = project.new.query("SELECT id, number, words FROM said ORDER BY id")
    assert said == [(key, int(number), words.upper()) for key, number, words in sorted(good)]
    heard = project.new.query("SELECT id, words FROM heard ORDER BY id")
    assert heard == [(key, words) for key, _, words in sorted(talk)], "a target that takes them has them"
    assert set(aside(project)) == {key for key, _, _ in talk} - {key for key, _, _ in good}


@pytest.mark.parametrize(
    "project", [WAYS[0], pytest.param(WAYS[1], marks=pytest.mark.slow)], indirect=True, ids=str
)
def test_rows_that_cannot_be_mapped_go_aside_by_their_keys_and_come_back(project: Project) -> None:
    _, _, too_large, mute = BAD
    for key, bad in ((2, BAD[0]), (3, mute), (4, too_large)):
        project.old.execute(f"UPDATE talk SET {bad} WHERE id = {key}")
    project.run_here()
    holds(project)
    assert "nobody shouts this" in aside(project)[3]
    assert "number" in aside(project)[4]
    project.old.execute(f"UPDATE talk SET {BAD[0]} WHERE id = 6")
    project.old.execute("UPDATE talk SET number = '1' WHERE id = 2", "DELETE FROM talk WHERE id = 3")
    project.old.execute("UPDATE talk SET number = '2', words = 'mute' WHERE id = 4")
    project.run_here()
    holds(project)
    assert "nobody shouts this" in aside(project)[4], "the newest version is the one that is named"
    project.old.execute("UPDATE talk SET number = '3', words = 'good'")
    project.run_here()
    holds(project)
    assert aside(project) == {}


@pytest.mark.parametrize(
    "project", [WAYS[0], pytest.param(WAYS[1], marks=pytest.mark.slow)], indirect=True, ids=str
)
def test_verify_counts_rows_that_cannot_be_mapped_apart(
    project: Project, capfd: pytest.CaptureFixture[str]
) -> None:
    """The judge calls the mapping over whole tables: it would fail on such a row, and end without any verdict."""
    project.old.execute(*(f"UPDATE talk SET {bad} WHERE id = {key}" for key, bad in enumerate(BAD, 5)))
    project.run_here()
    counted = counts(project, capfd, 1)
    said = {name: number for name, number in counted["said"].items() if number}
    assert said == {"compared": ROWS - len(BAD), "equal": ROWS - len(BAD), "bad_rows": len(BAD)}
    assert counted["heard"]["equal"] == ROWS
    project.old.execute("UPDATE talk SET number = '3', words = 'good'")
    project.run_here()
    project.old.execute("UPDATE talk SET number = 'none' WHERE id = 9")
    assert project.command("verify", "--wait", "0") == 3, "the run is behind: unknown"
    project.new.execute("UPDATE said SET number = 4 WHERE id = 5")
    project.run_here()
    assert counts(project, capfd, 1)["said"]["different"] == 1, "the control"


@pytest.mark.parametrize("project", WAYS[:1], indirect=True, ids=str)
def test_more_than_may_be_stop_by_name(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    searches: list[str] = []

    def noted(spark: SparkSession, plan: MappingPlan, source: str, rows: pa.Table) -> FailingRow | None:
        searches.append(source)
        return failing_row(spark, plan, source, rows)

    monkeypatch.setattr("migrator.run.apply.unmapped.failing_row", noted)
    project.config.write_text(project.config.read_text() + "bad_rows_per_table = 1\n")
    project.old.execute("UPDATE talk SET words = 'mute' WHERE id < 3")
    with pytest.raises((MappingError, TargetError), match="bad_rows_per_table"):
        project.run_here()
    assert searches == ["talk", "talk"], "one for each row"


@pytest.mark.parametrize(
    "project", [WAYS[0], pytest.param(WAYS[1], marks=pytest.mark.slow)], indirect=True, ids=str
)
def test_rows_go_aside_where_a_mapping_has_casts_alone(
    project: Project, capfd: pytest.CaptureFixture[str]
) -> None:
    (project.config.parent / "mapping.py").write_text(HEAD + PLAIN)
    project.old.execute(f"UPDATE talk SET {BAD[0]} WHERE id IN (2, 3)")
    project.run_here()
    assert set(aside(project)) == {2, 3}
    assert counts(project, capfd, 1)["said"]["bad_rows"] == 2
    project.old.execute("UPDATE talk SET number = '1' WHERE id = 2", "DELETE FROM talk WHERE id = 3")
    project.old.execute(f"UPDATE talk SET {BAD[0]} WHERE id IN (4, 5)")
    project.run_here()  # in one batch some are mended, or go, and others fail
    assert set(aside(project)) == {4, 5}
    assert project.new.query("SELECT id, number FROM said ORDER BY id") == [
        (key, 1 if key == 2 else key) for key in (1, 2, *range(6, ROWS + 1))
    ]


def test_of_rows_in_memory_the_key_alone_is_mapped(spark: SparkSession) -> None:
    """Without ``computed_late`` a column that fails fails the key as well."""
    rows = spark.createDataFrame(pa.table({"id": [3], "number": ["none"]}))

    def key_of(frame: DataFrame) -> pa.Table:
        mapped = frame.select((F.col("id") + F.lit(1)).alias("id"), F.col("number").cast("int").alias("n"))
        return mapped.select("id").toArrow()

    assert key_of(computed_late(rows)).to_pylist() == [{"id": 4}]
    with pytest.raises(PySparkException, match="none"):
        key_of(rows)


@pytest.mark.parametrize("project", WAYS[:1], indirect=True, ids=str)
def test_a_key_that_cannot_be_mapped_stops_by_name(project: Project) -> None:
    key = "F.col('number').cast('int')"
    (project.config.parent / "mapping.py").write_text(HEAD + HEARD.replace("KEY", key))
    project.old.execute("UPDATE talk SET number = 'none' WHERE id = 9")
    with pytest.raises(MappingError, match=r"'heard' fails on a row; .*id=9") as stopped:
        project.run_here()
    assert "correct the row in the source, or the mapping" in stopped.value.remedy
    assert project.new.query("SELECT count(*) FROM heard") == [(0,)]


@pytest.mark.slow
@pytest.mark.parametrize("project", WAYS, indirect=True, ids=str)
def test_killed_at_any_point_exactly_the_rows_that_fail_are_aside(project: Project) -> None:
    drawn, killed = random.Random(3), 0
    for point in ("target.merged", "target.moved", "apply.mapped", "target.committed"):
        for key in drawn.sample(range(1, ROWS), 6):
            project.old.execute(
                f"UPDATE talk SET {drawn.choice((*BAD, BAD[0], 'number = 4'))} WHERE id = {key}"
            )
        project.old.execute(
            f"UPDATE talk SET words = 'good', number = '5' WHERE id = {drawn.randint(1, ROWS)}"
        )
        process = project.process("run", "--until", "caught-up", crash_at=f"{point}:{drawn.randint(1, 2)}")
        output, _ = process.communicate(timeout=240)
        assert process.returncode in (0, -signal.SIGKILL), output
        killed += process.returncode != 0
        project.run_here()
        holds(project)
    assert killed, "no point was reached"
