"""Each remedy that the tool can print is of a kind, and one of nearly every kind is followed to the letter."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.integration.cutover.ways import WAYS
from tests.remedies.kind import Kind
from tests.remedies.kinds import KINDS
from tests.remedies.texts import Remedy, remedies, texts

TESTS = Path(__file__).parents[1]
NOT_FOLLOWED = {
    "report a defect": "nothing is to be done but to write to us",
    "give access to files, or another folder": "what the operating system then allows is its affair",
    "correct a file of query pairs": "each message names the field or line",
    "look at a log, a sample or a server": "what is to be done is found there",
}
"""Kinds that no test follows, and why."""


def kind_of(remedy: Remedy) -> Kind | None:
    return next((kind for kind in KINDS if kind.covers(remedy)), None)


def test_every_remedy_is_of_a_kind() -> None:
    found = remedies()
    assert len(found) > 550, "the texts are not found any more"
    assert [remedy for remedy in found if kind_of(remedy) is None] == []


def test_every_kind_has_a_remedy_and_its_own_name() -> None:
    used = {kind.name for remedy in remedies() if (kind := kind_of(remedy)) is not None}
    assert [kind.name for kind in KINDS if kind.name not in used] == [], "no such remedy is printed any more"
    assert len({kind.name for kind in KINDS}) == len(KINDS)


def missing(test: str) -> bool:
    """Whether there is no such test."""
    file, _, name = test.partition("::")
    path = TESTS / file
    return not path.exists() or name not in {
        node.name
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.FunctionDef)
    }


def test_the_tests_that_follow_them_are_there() -> None:
    assert [test for kind in KINDS for test in kind.followed if missing(test)] == []
    assert {kind.name for kind in KINDS if not kind.followed} == set(NOT_FOLLOWED)


def test_a_test_that_is_gone_would_be_noticed() -> None:
    assert missing("unit/test_remedy_kinds.py::test_nothing")
    assert missing("unit/nowhere.py::test_nothing")
    assert not missing("unit/test_remedy_kinds.py::test_a_test_that_is_gone_would_be_noticed")


@pytest.mark.parametrize(
    "source",
    [
        "raise SourceError('x', remedy='dance')",
        "raise SourceError('x', remedy=f'dance with {partner}')",
        "yield Finding('check', 'subject', 'problem', 'dance')",
        "remedy = 'dance' if wet else 'dance'",
        "problem, remedy = 'wet', 'dance'",
        "_REMEDIES = {1: ('wet', 'dance')}",
        "def _remedy(code):\n    return 'dance'",
        "raise SourceError('x', remedy='dance ' + ', '.join(f'with {one}' for one in all_of_them))",
    ],
)
def test_a_remedy_of_no_kind_would_be_found(source: str) -> None:
    found = [text for _, text in texts(source)]
    assert found
    assert all("dance" in text for text in found)
    assert kind_of(Remedy("migrator/run/lead/lead.py:1", found[0])) is None


def test_what_only_puts_remedies_together_is_none_itself() -> None:
    assert list(texts("raise SourceError('x', remedy=f'{first}, then {second}')")) == []


def test_the_tests_of_the_thirteen_ways_are_there() -> None:
    assert list(WAYS) == list(range(1, 14))
    assert [test for tests in WAYS.values() for test in tests if missing(test)] == []
