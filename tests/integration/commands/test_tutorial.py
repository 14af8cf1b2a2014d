"""The tutorial, followed to the letter on the servers that it starts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tests.integration.commands.tutorial import Reader, Step, missing, steps
from tests.integration.waiting import await_true

TUTORIAL = Path(__file__).parents[3] / "docs" / "tutorial.md"


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    someone = Reader(tmp_path)
    yield someone
    someone.close()


@pytest.mark.slow
def test_every_command_does_what_the_tutorial_says(reader: Reader) -> None:
    playground, *rest = steps(TUTORIAL.read_text("utf-8"))
    reader.follow(playground)
    addresses = dict(
        line.removeprefix("export ").split("=", 1)
        for line in (reader.folder / "playground.env").read_text().splitlines()
    )
    for step in rest:
        reader.follow(step)

    def newest(table: str) -> int:
        with psycopg.connect(addresses["NEW_URL"]) as connection:
            [(key,)] = connection.execute(f"SELECT max({table}_id) FROM {table}").fetchall()
            return int(key)

    person, purchase = newest("person"), newest("purchase")
    await_true(lambda: newest("person") > person and newest("purchase") > purchase, "rows of the application")
    assert "fails" not in reader.terminals["playground"].printed()
    reader.terminals["playground"].stop()
    assert "stopped and removed" in reader.terminals["playground"].printed()


def test_what_a_tutorial_shows_and_no_command_prints_is_noticed(reader: Reader) -> None:
    reader.follow(Step("run", "", "$ echo one; echo two\none\ntwo\n"))
    for block in ("$ echo one\ntwo\n", "$ echo two; echo one\none\ntwo\n", "$ false\n"):
        with pytest.raises(AssertionError):
            reader.follow(Step("run", "", block))


def test_a_block_that_nothing_is_done_with_is_an_error() -> None:
    with pytest.raises(ValueError, match="no comment says"):
        list(steps("```console\n$ echo one\n```\n"))


def test_lines_are_found_in_their_order() -> None:
    assert missing(["a", "b"], "a\nb\n") == []
    assert missing(["b", "a"], "a\nb\n") == ["a"]
