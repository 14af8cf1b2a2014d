"""Named points: whole runs pass through every one that is listed, and may be killed at every one."""

from __future__ import annotations

import random
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from migrator.run.steps import POINTS
from migrator.wiring import parts as wiring
from migrator.wiring import remap as wiring_remap
from migrator.wiring import reset as wiring_reset
from scenarios.bench.orders.old_schema import create
from scenarios.play import catalog_files
from scenarios.play.run_result import RESUMES
from scenarios.play.runner import run
from scenarios.proxy.proxy import TcpProxy
from tests.integration import run_project, shop
from tests.integration.run_project import Project, scenario_database
from tests.servers import Database, PostgresServer, fresh_database
from verify.history.result import Outcome

pytestmark = [pytest.mark.integration, pytest.mark.spark]

REMAP = "test_next_mappings.py: test_killed_at_any_point_readers_see_one_mapping_and_the_next_start_ends_it"
NEXT = """
@mapping.next("label", key="category_id")
def next_label(category):
    return category.select("category_id", "name")
"""
RESET = "test_reset.py: test_killed_between_any_two_steps_no_run_goes_on_and_a_reset_finishes"
# Points of other setups than the kills' scenario, each with a test of its own where processes are killed.
CUTOVER = "cutover/test_cutover_killed.py: test_killed_at_every_step_one_side_is_open_in_the_end"
READS = "unit/run/cutover/test_reads.py: test_killed_at_any_point_the_record_says_in_the_end_where_reads_go"
FENCE = "fences: the contract of the port, with a stop at each statement"
KILLED_ELSEWHERE = {
    "changes.poll": "test_a_run_on_change_tables_may_be_killed_before_a_poll",
    "capture.requested": "test_dump_requests.py: test_killed_in_the_middle_a_request_goes_on_where_it_was",
    "target.mirrored": "test_joined_points_may_be_killed",
    "joined.mapped": "test_joined_points_may_be_killed",
    "joined.filled": "test_joined_points_may_be_killed",
    "joined.aside": "test_failing_grains_run.py: test_killed_at_any_point_exactly_the_grains_that_fail_are_aside",
    "fill.mapped": "test_points_of_pieces_may_be_killed",
    "fill.committed": "test_points_of_pieces_may_be_killed",
    "target.refused": "test_bad_rows.py: test_killed_at_any_point_exactly_the_bad_rows_are_aside",
    "target.unknown": "test_killed_before_a_lost_commit_is_looked_up",
    "remap.asked": REMAP,
    "remap.merged": REMAP,
    "remap.moved": REMAP,
    "remap.switched": REMAP,
    **{point: CUTOVER for point in POINTS if point.startswith("cutover.")},
    "cutover.reads": READS,
    "cutover.reads_done": READS,
    **{point: FENCE for point in POINTS if point.startswith("fence.")},
    "reset.noted": RESET,
    "reset.marked": RESET,
    "reset.removed": RESET,
}
OF_CUTOVERS = [point for point in POINTS if point.startswith(("cutover.", "fence."))]
TABLES = ("label", "order_summary")
"""One row by row, and one joined."""
PIECES = "\n[apply]\nslice_grains = 10\n"
"""So many of its orders are a piece of the joined one."""
ONCE_A_PROCESS = {"run.led", "log.connected"}
KILLS_A_RUN = 4
SEEDS = (1, 2, 3)
KILLED = """\
title: Killed at {names}
workload: {{name: registers, keys: 100, changes: 600, rate_per_s: 100, sessions: 2}}
settings: {{source: {{placement: message}}}}
faults:
"""


@pytest.fixture
def joined(tmp_path: Path, old_pg: Database, new_pg: Database) -> Project:
    shop.create(old_pg, 50)
    return shop.make(tmp_path / "shop", old_pg, new_pg, TABLES)


@pytest.fixture
def polled(
    tmp_path: Path,
    postgres: PostgresServer,
    postgres_target: PostgresServer,
    capfd: pytest.CaptureFixture[str],
) -> Iterator[Project]:
    with fresh_database(postgres, "old") as old, fresh_database(postgres_target, "new") as new:
        create(scenario_database(old), 300)
        made = run_project.make(tmp_path / "orders", old, new)
        text = made.config.read_text().replace("[target]", 'log = "change_tables"\n\n[target]', 1)
        made.config.write_text(text)
        capfd.readouterr()
        assert made.command("changetables") == 0
        with old.connect() as owner:
            owner.execute(capfd.readouterr().out)
        yield made


class Passed:
    """The points that runs of this process pass through; ``first[point]`` is done when one is passed first."""

    def __init__(self) -> None:
        self.points: set[str] = set()
        self.first: dict[str, Callable[[], object]] = {}

    def step(self, name: str) -> None:
        self.points.add(name)
        self.first.pop(name, lambda: None)()


@pytest.fixture
def passed(monkeypatch: pytest.MonkeyPatch) -> Passed:
    found = Passed()
    for module in (wiring, wiring_remap, wiring_reset):
        monkeypatch.setattr(module, "step_hook", lambda environment: found.step)
    return found


def test_runs_pass_through_every_point_that_is_listed(
    joined: Project, polled: Project, passed: Passed, spark: SparkSession
) -> None:
    source, target = joined.config.read_text().split("[target]", 1)
    joined.command("dump", "start", "--table", "category")
    with TcpProxy(joined.new.host, joined.new.port, kind="postgresql") as proxy:
        target = target.replace(f"port = {joined.new.port}", f"port = {proxy.port}", 1)
        joined.config.write_text(f'{source}placement = "message"\n[target]{target}{PIECES}')
        # the COMMIT that comes next
        passed.first["target.moved"] = lambda: proxy.reset_around_commit("after")
        joined.run_here()
        left = {
            "changes.poll",
            "joined.mapped",
            "joined.filled",
            "reset.noted",
            "reset.marked",
            "reset.removed",
            "target.refused",
            "target.orphaned",
            "joined.aside",
            "remap.asked",
            "remap.merged",
            "remap.moved",
            "remap.switched",
            *OF_CUTOVERS,
        }
        assert set(POINTS) - passed.points == left
        assert joined.command("remap", "order_summary") == 0  # rows are there: it is filled as a whole
        with (joined.config.parent / "mapping.py").open("a") as mapping:
            mapping.write(NEXT)
        assert joined.command("remap", "label") == 0
        joined.old.execute("UPDATE product SET price = price + 1")
        joined.run_here()
        assert shop.differences(joined, TABLES) == {}
        assert joined.command("reset", "--yes") == 0
    of_bad_rows = {"target.refused", "target.orphaned", "joined.aside"}
    assert set(POINTS) - passed.points == {"changes.poll", *of_bad_rows, *OF_CUTOVERS}
    with polled.config.open("a") as file:
        file.write('\n[apply]\nbad_rows = "set_aside"\n')
    polled.new.execute(
        "ALTER TABLE purchase ADD CHECK (purchase_id <> 77)",
        "CREATE TABLE billed (id bigint PRIMARY KEY)",
        "INSERT INTO billed SELECT n FROM generate_series(1, 10000) n WHERE n <> 78",
        "ALTER TABLE purchase ADD FOREIGN KEY (purchase_id) REFERENCES billed",
    )
    polled.run_here()
    with polled.old.connect() as writer:
        writer.execute("UPDATE orders SET total = total + 1 WHERE id <= 10")
    polled.run_here()  # a server on which nothing was written since the dump began isn't polled
    assert [row[0] for row in polled.differences()] == [77, 78]
    # of mappings that fail, which test_failing_grains_run.py has
    assert passed.points == set(POINTS) - {"joined.aside", *OF_CUTOVERS}


def test_every_point_is_killed_somewhere() -> None:
    assert set(KILLED_ELSEWHERE) <= set(POINTS)
    for seed in SEEDS:
        placed = [point for group in groups(seed) for point, _ in group]
        assert sorted([*placed, *KILLED_ELSEWHERE]) == sorted(POINTS)


def groups(seed: int) -> list[list[tuple[str, int]]]:
    """The points of a seed in its order, some to a run, each with how often it is reached before the kill."""
    dice = random.Random(seed)
    points = sorted(set(POINTS) - set(KILLED_ELSEWHERE))
    dice.shuffle(points)
    placed = [(point, 1 if point in ONCE_A_PROCESS else dice.randint(1, 3)) for point in points]
    return [placed[at : at + KILLS_A_RUN] for at in range(0, len(placed), KILLS_A_RUN)]


@pytest.mark.long
@pytest.mark.parametrize(
    ("seed", "number"), [(seed, number) for seed in SEEDS for number in range(len(groups(seed)))]
)
def test_killed_at_every_point_every_checker_holds(seed: int, number: int, tmp_path: Path) -> None:
    group = groups(seed)[number]
    names = ", ".join(f"{point}:{count}" for point, count in group)
    faults = [f'  - {{do: kill_pipeline, at: "{point}:{count}"}}\n' for point, count in group]
    held(tmp_path, f"killed_{seed}_{number}", KILLED.format(names=number) + "".join(faults), seed, names)


@pytest.mark.long
@pytest.mark.parametrize("seed", SEEDS)
def test_killed_before_a_lost_commit_is_looked_up(seed: int, tmp_path: Path) -> None:
    """Whether it arrived or not: nobody but the ledger knows, and the next process asks it."""
    when = ("before", "after")[seed % 2]
    faults = (
        f"  - {{do: reset_around_commit, side: target, when: {when}, count: 1, at: 'target.begun:{seed + 1}'}}\n"
        '  - {do: kill_pipeline, at: "target.unknown:1"}\n'
    )
    held(tmp_path, f"unknown_{seed}", KILLED.format(names=when) + faults, seed, f"target.unknown, {when}")


def held(folder: Path, name: str, yaml: str, seed: int, what: str) -> None:
    """Plays a scenario; all its faults must fire and every checker hold."""
    path = folder / f"{name}.yaml"
    path.write_text(yaml)
    result = run(catalog_files.load(path), "postgresql", seed, folder / "out", yaml)
    assert (result.ending, result.outcome) == (RESUMES, Outcome.HOLDS), (
        f"{what}: {result.error or result.reason}"
    )
    assert result.counts["processes"] > 1, what


@contextmanager
def writing(project: Project, statement: str) -> Iterator[None]:
    """Runs a statement again and again for as long as the block runs: some points are passed for a change only."""
    stop = threading.Event()

    def write() -> None:
        while not stop.wait(0.3):
            project.old.execute(statement)

    thread = threading.Thread(target=write)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def killed(project: Project, point: str) -> None:
    """Lets a run begin, which ends at the point."""
    process = project.process("run", "--plain", crash_at=point)
    output, _ = process.communicate(timeout=240)
    assert process.returncode == -signal.SIGKILL, f"{point} was never reached:\n{output}"


@pytest.mark.long
@pytest.mark.parametrize("seed", SEEDS)
def test_joined_points_may_be_killed(joined: Project, spark: SparkSession, seed: int) -> None:
    with writing(joined, f"UPDATE product SET price = price + {seed} WHERE product_id % 3 = 0"):
        for point in ("joined.mapped", "joined.filled", f"target.mirrored:{seed}"):
            killed(joined, point)
    joined.run_here()
    assert shop.differences(joined, TABLES) == {}


@pytest.mark.long
@pytest.mark.parametrize("seed", SEEDS)
def test_a_run_on_change_tables_may_be_killed_before_a_poll(
    polled: Project, spark: SparkSession, seed: int
) -> None:
    with writing(polled, "UPDATE orders SET items = items + 1 WHERE id % 5 = 0"):
        killed(polled, f"changes.poll:{seed}")
    polled.run_here()
    assert polled.differences() == []


@pytest.mark.long
@pytest.mark.parametrize("seed", SEEDS)
def test_points_of_pieces_may_be_killed(joined: Project, spark: SparkSession, seed: int) -> None:
    with joined.config.open("a") as config:
        config.write(PIECES)
    with writing(joined, f"UPDATE product SET price = price + {seed} WHERE product_id % 3 = 0"):
        for point in (f"fill.mapped:{seed}", "fill.committed"):
            killed(joined, point)
            assert 0 < joined.new.query("SELECT count(*) FROM order_summary")[0][0] + (seed == 1) < 51
    joined.run_here()
    assert shop.differences(joined, TABLES) == {}
