"""Scenarios of cut-overs as files: which way each plays, what is refused in a file, who leaves them alone."""

from __future__ import annotations

import random
import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest

from migrator.errors import ConfigError
from migrator.model.cutover.record import Phase
from migrator.wiring import parts as wiring
from scenarios.chaos.hazards import hazards
from scenarios.database import Database
from scenarios.mutants.catalog import OF_CUT_OVERS
from scenarios.play import bundle, catalog_files, pairs
from scenarios.play.cut_over import course
from scenarios.play.cut_over.play import STEPS
from scenarios.play.replay import replay
from scenarios.play.run_result import RESUMES, RunResult
from scenarios.scenario import CUT_OVER_CHECKS, CutOver, Scenario, Step, cut_over_checks
from scenarios.session import Session
from scenarios.workload import Action
from scenarios.workloads.counters.writers import CLICK, Counters
from scenarios.workloads.rows import Rows
from verify.history.result import Outcome
from verify.two_sides import file
from verify.two_sides.checks import judge
from verify.two_sides.history import NEW, OK, OLD, State, TwoSides, Write

DOCUMENT = Path(__file__).parents[3] / "docs" / "explanation" / "cut-over-ways.md"
REFERENCE = Path(__file__).parents[3] / "docs" / "reference" / "scenarios-reference.md"
CUT_OVERS = [one for one in catalog_files.all() if one.cut_over is not None]
PLAIN = (
    "title: t\nworkload: {name: counters}\ncut_over: {way: 1, steps: [{ask: start}, {ask: back, said: x}]}\n"
)


def by_way(scenarios: list[Scenario]) -> dict[int, str]:
    """What the document says in its last column: names by way, or that there is none."""
    named = {way: list[str]() for way in range(1, 14)}
    for one in scenarios:
        assert one.cut_over is not None
        named[one.cut_over.way].append(f"`{one.name}`")
    return {way: ", ".join(sorted(names)) or "none yet" for way, names in named.items()}


def test_the_document_says_which_way_is_a_scenario() -> None:
    written = re.findall(r"^\| (\d+)\. .*\| ([^|]+) \|$", DOCUMENT.read_text(), re.MULTILINE)
    assert {int(way): names for way, names in written} == by_way(CUT_OVERS)
    assert by_way([])[1] == "none yet"


def test_a_cut_over_is_judged_by_all_its_checks_and_plays_both_ways() -> None:
    assert CUT_OVERS
    for one in CUT_OVERS:
        assert one.cut_over is not None
        assert one.expect.checks == cut_over_checks(one.expect.ending, one.cut_over, one.workload)
        assert catalog_files.path_of(one.name).parent.name == "cut_over"
        assert one.workload.name == Counters.name
        assert one.cut_over.steps
    assert (Counters.project / "reverse.py").exists()


def test_checks_of_a_part_are_asked_where_it_is_there() -> None:
    def asked(code: str) -> set[str]:
        return {one.name for one in CUT_OVERS if code in one.expect.checks}

    everywhere = {one.name for one in CUT_OVERS}
    assert asked("S7") == {"reads_pointed_alone_and_back"}
    assert asked("S8") == {"numbers_given_by_the_servers"}
    assert everywhere - asked("S6") == {"finish_killed_and_taken_again", "column_renamed_on_the_new_side"}
    assert everywhere - asked("S1") == {"column_renamed_on_the_new_side"}


def test_the_block_that_opens_a_side_is_cut_into_its_statements() -> None:
    """MariaDB's driver takes one at a time; a semicolon within one ends none."""
    block = "\nDROP TRIGGER a;\nCALL b('1; 2');\n"
    assert course.statements(block) == ["DROP TRIGGER a", "CALL b('1; 2')"]


def test_a_number_that_the_server_gives_is_noted_and_one_that_is_taken_is_too() -> None:
    """A refused one has no key; a client's next one has the number behind."""
    rows = Rows(CLICK.old)
    session = _Numbering(7)
    rows.insert_numbered(session, 3, tally=1)
    session.taken = True
    with pytest.raises(psycopg.errors.UniqueViolation):
        rows.insert_numbered(session, 3, tally=1)
    found = [(one.number, one.key, one.value) for one in session.notes.writes]
    assert found == [(1, "7", 3), (2, "", 3)]
    assert session.said[0].count("%s") == 4, "amount, client, number and tally: no key"


class _Numbering(Session):
    """A session whose server numbers rows, unless the next number is taken."""

    def __init__(self, key: int) -> None:
        database = Database("postgresql", "localhost", 1, "old", "me")
        super().__init__(None, random.Random(1), database=database)  # type: ignore[arg-type]
        self.key, self.taken, self.said = key, False, list[str]()

    def change(self, statement: str, *parameters: object, bulk: bool = False) -> int:
        """See ``Session``."""
        self.said.append(statement)
        if self.taken:
            raise psycopg.errors.UniqueViolation("duplicate key")
        return 1

    def rows(self, statement: str, *parameters: object) -> list[tuple[Any, ...]]:
        """See ``Session``."""
        return [(self.key,)]


def test_the_new_side_is_written_by_the_same_actions() -> None:
    def names(actions: list[Action]) -> list[tuple[str, int]]:
        return [(one.name, one.weight) for one in actions]

    spec = CUT_OVERS[0].workload
    assert names(list(Counters().actions(spec))) == names(list(Counters().new_actions(spec)))


def test_a_file_says_the_steps(tmp_path: Path) -> None:
    path = tmp_path / "some.yaml"
    path.write_text(PLAIN)
    assert catalog_files.load(path).cut_over == CutOver(1, (Step("start"), Step("back", "opens", "x")))
    for wrong, words in (
        (PLAIN.replace("ask: start", "ask: jump"), "'jump' is none of plan, start, back"),
        (PLAIN.replace("said: x", "ends: well"), "'well' is none of opens, undone"),
        (PLAIN + "faults: [{do: kill_pipeline, after_changes: 3}]\n", "they fire at a point"),
    ):
        path.write_text(wrong)
        with pytest.raises(ConfigError) as raised:
            catalog_files.load(path)
        assert words in raised.value.where


def test_pairs_and_projects_under_hazards_leave_them_alone() -> None:
    names = {one.name for one in CUT_OVERS}
    assert {one.name for one in hazards() if one.left_out.startswith("it is a cut-over")} == names
    assert not any(one.cut_over for one in pairs.pairs(catalog_files.all(), 30, 1))
    assert pairs.pairs(CUT_OVERS, 30, 1) == []


def test_a_bundle_of_a_cut_over_is_judged_again(tmp_path: Path) -> None:
    """What an operator's words came to isn't in the history, and stays as recorded."""
    folder = bundle.create(tmp_path, "some", "postgresql", 1, "", PLAIN)
    scenario = catalog_files.load(folder / "some.yaml")
    rows = ("click 1",)
    last = (State(OLD, 9, ("1",), rows=rows), State(NEW, 9, ("1",), rows=rows))
    history = TwoSides((Write(1, 1, OLD, "1", 1, 2, OK),), (), last, (), (), 1)
    file.save(history, folder)
    checks = (*judge(history), STEPS.verdict(2, 0, (), ""))
    result = RunResult(scenario, "postgresql", 1, RESUMES, "", checks, Outcome.HOLDS, folder, 1.0)
    bundle.write_result(result, {}, "")
    assert replay(folder).same
    assert replay(folder).found.outcome is Outcome.HOLDS
    file.save(replace(history, last=(last[0], State(NEW, 9, (), rows=rows))), folder)
    assert not replay(folder).same
    assert {one.code for one in replay(folder).found.checks if one.outcome is Outcome.VIOLATED} == {"S1"}


@pytest.mark.parametrize(
    ("phase", "open_side", "ways"),
    [
        (Phase.IDLE, NEW, ["there", "back"]),
        (Phase.FINISHED, OLD, ["there"]),
        (Phase.FINISHED, NEW, []),
    ],
)
def test_what_a_finished_old_side_still_takes_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch, phase: Phase, open_side: str, ways: list[str]
) -> None:
    """It passed a fence and is never carried across: a play that waited for it came to no verdict."""
    monkeypatch.setattr(
        course.Course, "_record", lambda self: SimpleNamespace(phase=phase, open_side=open_side)
    )
    asked: list[object] = []
    monkeypatch.setattr(wiring, "source_position", asked.append)
    monkeypatch.setattr(course, "_reached", lambda settings, goal: True)
    sides: Any = SimpleNamespace(there=SimpleNamespace(settings="there"), back="back")
    nobody: Any = None
    played = course.Course(
        sides,
        nobody,
        nobody,
        nobody,
        DOCUMENT,
        lambda: 0,
        lambda: True,
        CutOver(1, (Step("start"),)),
        halted="",
    )
    played.drain()
    assert asked == ways
    assert played.drained


@pytest.mark.parametrize("broken", OF_CUT_OVERS, ids=lambda broken: broken.name)
def test_a_broken_variant_breaks_something_that_is_there(broken: object) -> None:
    (variant,) = [one for one in OF_CUT_OVERS if one is broken]
    assert variant.servers is not None
    assert [patch.name for patch in variant.servers() if patch.name not in patch.owner.__dict__] == []
    assert set(variant.must_catch) <= set(CUT_OVER_CHECKS)
    assert f"| `{variant.name}` |" in REFERENCE.read_text()
