"""The table of single changes to the code: each still fits and is legal Python; no survivor is called killed."""

from __future__ import annotations

import ast
import json
from collections import Counter
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pytest
from click.testing import CliRunner

from migrator.errors import ConfigError
from scenarios.commands import scenario
from scenarios.mutants.in_code import change
from scenarios.mutants.in_code.change import ROOT, CodeMutant, Copy
from scenarios.mutants.in_code.commands import CODE_MUTANTS
from scenarios.mutants.in_code.trial import CodeRow, TestsRun, outcome_of, overall, tried, unbroken
from scenarios.report import tables_beside
from verify.history.result import Outcome

HOLDS, VIOLATED, UNKNOWN = Outcome.HOLDS, Outcome.VIOLATED, Outcome.UNKNOWN
RULE = CodeMutant("a sum is a difference", "scenarios/rule.py", "a + b", "a - b", ("tests/test_rule.py",))


@cache
def source_and_tree(path: str) -> tuple[str, str]:
    source = (ROOT / path).read_text(encoding="utf-8")
    return source, ast.dump(ast.parse(source))


@pytest.mark.parametrize("mutant", CODE_MUTANTS, ids=lambda mutant: f"{mutant.path}: {mutant.name}")
def test_every_mutant_fits_the_code(mutant: CodeMutant) -> None:
    source, tree = source_and_tree(mutant.path)
    changed = mutant.changed(source)
    assert ast.dump(ast.parse(changed)) != tree, "it changes nothing"
    for test in mutant.tests:
        assert (ROOT / test.partition("::")[0]).exists(), test
    assert bool(mutant.tests) != bool(mutant.equivalent)


def test_there_are_enough_mutants_and_no_name_stands_for_two() -> None:
    assert len([each for each in CODE_MUTANTS if not each.equivalent]) >= 150
    assert [key for key, count in Counter((e.path, e.name) for e in CODE_MUTANTS).items() if count > 1] == []


def test_a_mutant_whose_text_is_gone_or_stands_twice_is_refused() -> None:
    for source in ("a * b", "a + b; a + b"):
        with pytest.raises(ConfigError, match="doesn't fit"):
            RULE.changed(source)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project of one rule, with a test that notices its loss and one that doesn't."""
    root = tmp_path / "project"
    for package in change.PACKAGES:
        (root / package).mkdir(parents=True)
    (root / "scenarios" / "rule.py").write_text("def total(a, b):\n    return a + b\n")
    (root / "tests" / "test_rule.py").write_text(
        "from scenarios.rule import total\ndef test_it(): assert total(2, 3) == 5\n"
    )
    (root / "tests" / "test_blind.py").write_text(
        "from scenarios.rule import total\ndef test_it(): assert total(2, 0) == 2\n"
    )
    monkeypatch.setattr(change, "ROOT", root)
    return root


@pytest.mark.parametrize(
    ("tests", "after", "expected"),
    [
        ("tests/test_rule.py", "a - b", HOLDS),
        ("tests/test_blind.py", "a - b", VIOLATED),
        ("tests/test_rule.py", "a +", UNKNOWN),  # nothing can be imported: that is no test's merit
        ("tests/test_gone.py", "a - b", UNKNOWN),
    ],
)
def test_only_a_failing_test_kills(project: Path, tests: str, after: str, expected: Outcome) -> None:
    mutant = CodeMutant("broken", "scenarios/rule.py", "a + b", after, (tests,))
    scratch = project.parent / "scratch"
    scratch.mkdir()
    (row,) = tried([mutant], scratch, 1, lambda _: None)
    assert row.run.outcome is expected
    assert "a + b" in (project / "scenarios" / "rule.py").read_text(), "the code itself stays as it is"


def test_each_change_is_taken_back_before_the_next(project: Path) -> None:
    copy = Copy(project.parent / "copy")
    with copy.broken(RULE):
        assert "a - b" in (copy.folder / RULE.path).read_text()
        assert "a + b" in (project / RULE.path).read_text()
    assert "a + b" in (copy.folder / RULE.path).read_text()


def test_tests_that_never_end_have_noticed(tmp_path: Path) -> None:
    (tmp_path / "test_slow.py").write_text("import threading\ndef test_it(): threading.Event().wait(60)\n")
    assert outcome_of(tmp_path, ["test_slow.py"], bound_s=0.5).outcome is HOLDS


def rows(*outcomes: Outcome) -> list[CodeRow]:
    return [CodeRow(RULE, TestsRun(outcome, "", 0.0)) for outcome in outcomes]


@pytest.mark.parametrize(
    ("outcomes", "expected"),
    [
        ([HOLDS] * 20, HOLDS),
        ([HOLDS] * 19 + [VIOLATED], HOLDS),
        ([HOLDS] * 18 + [VIOLATED] * 2, VIOLATED),
        ([HOLDS] * 19 + [UNKNOWN], UNKNOWN),
        ([], UNKNOWN),
    ],
)
def test_a_twentieth_may_survive_and_nothing_tried_proves_nothing(
    outcomes: list[Outcome], expected: Outcome
) -> None:
    assert overall(rows(*outcomes), 0.05) is expected


def test_equivalent_mutants_are_neither_run_nor_asked_for() -> None:
    alike = CodeMutant("alike", RULE.path, "a", "b", (), equivalent="it is the same")
    asked: list[Sequence[str]] = []

    def run(folder: Path, tests: Sequence[str]) -> TestsRun:
        asked.append(tests)
        return TestsRun(VIOLATED, "", 0.0)

    unbroken([alike, RULE], run)
    assert asked == [list(RULE.tests)]


def test_the_command_lists_them_and_refuses_words_that_none_has() -> None:
    said = CliRunner().invoke(scenario, ["code-mutants", "core/partial", "--list"])
    assert "migrator/core/partial.py: what is left to skip goes below nothing after a run" in said.output
    found = CliRunner().invoke(scenario, ["code-mutants", "no such word"])
    assert isinstance(found.exception, ConfigError)


def test_the_report_counts_files_and_names_survivors(tmp_path: Path) -> None:
    told = [
        {**row.document(), "name": name}
        for row, name in zip(rows(HOLDS, VIOLATED), ("dies", "lives"), strict=True)
    ]
    document = {
        "outcome": "holds",
        "mutants": told,
        "equivalent": [{"name": "alike", "why": "it is the same"}],
    }
    (tmp_path / "code_mutants.json").write_text(json.dumps(document))
    table = tables_beside(tmp_path).code
    assert table is not None
    assert [row.cells[:3] for row in table.rows] == [
        ("caught: all files", "2", "1"), (RULE.path, "2", "1"), (f"SURVIVED: {RULE.path}", "", ""),
    ]  # fmt: skip
    assert table.rows[-1].cells[3].startswith("lives")
    assert [row.outcome for row in table.rows] == [HOLDS, None, None]
