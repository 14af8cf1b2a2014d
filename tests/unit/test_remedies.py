"""What a remedy refers to is there for whoever reads it: documents, and commands with their options."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from itertools import takewhile
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from migrator.cli import cli
from migrator.cli.docs import documents, files_to_take
from migrator.errors import MigratorError

ROOT = Path(__file__).parents[2]
PACKAGES = ("migrator", "verify", "transforms")


@cache
def texts() -> tuple[tuple[str, str], ...]:
    """Each text in the code that isn't a docstring, with its place; of a formatted one the parts that are fixed."""
    return tuple(_texts())


def _texts() -> Iterator[tuple[str, str]]:
    for package in PACKAGES:
        for file in sorted((ROOT / package).rglob("*.py")):
            tree = ast.parse(file.read_text("utf-8"))
            for node in ast.walk(tree):
                for field in ast.iter_child_nodes(node):
                    if (
                        isinstance(field, ast.Constant)
                        and isinstance(field.value, str)
                        and not isinstance(node, ast.Expr)
                    ):
                        yield f"{file.relative_to(ROOT)}:{field.lineno}", field.value


def cited(text: str) -> list[str]:
    return re.findall(r"([a-z-]+)\.md\b", text)


def test_every_document_that_a_text_cites_is_printed_by_a_command() -> None:
    found = {(place, name) for place, text in texts() for name in cited(text)}
    assert len({name for _, name in found}) >= 3, "the texts are not found any more"
    assert [each for each in sorted(found) if each[1] not in documents()] == []
    error = MigratorError("x", remedy="start the migration anew (docs/how-to/start-anew.md)")
    assert "docs/how-to/start-anew.md, printed by `migrator docs start-anew`" in error.lines()[-1]
    printed = CliRunner().invoke(cli, ["docs", "start-anew"])
    assert "# Start a migration anew" in printed.output
    error = MigratorError("x", remedy="see docs/reference/settings.md")
    assert "docs/reference/settings.md, printed by `migrator docs settings`" in error.lines()[-1]


def anew_without_the_steps(text: str) -> bool:
    """Whether a text tells to start the migration anew, and not where the steps of that are."""
    told = re.search(r"start(ing)? (the migration |(the )?migration of \w+ \w+ )?anew", text)
    return told is not None and "docs/how-to/start-anew.md" not in text


def test_who_is_told_to_start_anew_is_told_how() -> None:
    """It takes five steps, which ``integration/runs/ddl/test_ddl_way_out.py`` follows; a slot alone isn't enough."""
    told = [place for place, text in texts() if "start the migration anew" in text]
    assert len(told) > 30, "the texts are not found any more"
    assert [place for place, text in texts() if anew_without_the_steps(text)] == []
    assert anew_without_the_steps("undo the change, or start the migration anew")
    assert anew_without_the_steps("start anew")


def test_a_text_that_cites_what_nobody_ships_would_be_found() -> None:
    assert cited("see docs/nowhere.md") == ["nowhere"]
    assert "nowhere" not in documents()


def test_a_citation_is_written_as_the_command_is_found_from_it() -> None:
    """Any other way to write it would be left as it is."""
    bare = [place for place, text in texts() if re.search(r"(?<![a-z/-])[a-z-]+\.md\b", text)]
    assert [place for place in bare if not place.startswith("migrator/cli/docs.py")] == []


def in_the_wheel() -> set[tuple[str, Path]]:
    """Folder below that of the documents, and file, of all that is shipped beside the code."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["setuptools"]["data-files"]
    return {
        (folder.removeprefix("share/doc/dbmigrator").strip("/"), file)
        for folder, patterns in settings.items()
        for pattern in patterns
        for file in ROOT.glob(pattern)
    }


def test_the_wheel_has_each_file_that_a_document_tells_to_take() -> None:
    """Whoever installed it has no checkout: rules, unit, schemas and scripts are in the wheel, and are printed."""
    shipped = {(folder, file) for folder, file in in_the_wheel() if file.suffix != ".md"}
    assert {file for _, file in shipped} == set(files_to_take().values()), "one of two of a name is hidden"
    linked = {
        (page.parent / link).resolve()
        for page in (*documents().values(), ROOT / "docs" / "README.md")
        for link in re.findall(r"\]\(([^)#:]+\.(?:yml|yaml|json|sh|py|service))[)#]", page.read_text("utf-8"))
    }
    taken = {one for one in linked if "docs" in one.parts}
    assert len(taken) > 20, "the links are not found any more"
    assert sorted(taken - {file for _, file in shipped}) == []
    printed = CliRunner().invoke(cli, ["docs", "alerts.yml"])
    assert printed.output == (ROOT / "docs" / "how-to" / "observe" / "alerts.yml").read_text("utf-8")
    for name in ("migrator@.service", "status.schema.json", "proxysql.sh", "dashboard.json"):
        assert name in CliRunner().invoke(cli, ["docs"]).output.splitlines()


def test_the_wheel_has_the_documents() -> None:
    shipped = {(folder, file) for folder, file in in_the_wheel() if file.suffix == ".md"}
    assert {file for _, file in shipped} == set(documents().values()), (
        "one of two with the same name is hidden"
    )
    assert {ROOT / "docs" / folder / file.name for folder, file in shipped} == {file for _, file in shipped}


def test_a_text_names_a_document_where_it_is() -> None:
    """Whoever has the folder opens it there."""
    told = {(place, path) for place, text in texts() for path in re.findall(r"\bdocs/[a-z/-]+\.md\b", text)}
    assert len(told) > 30, "the texts are not found any more"
    assert [each for each in sorted(told) if not (ROOT / each[1]).is_file()] == []


def test_the_index_of_a_folder_has_the_folders_name() -> None:
    assert documents()["how-to"] == ROOT / "docs" / "how-to" / "README.md"
    assert documents()["README"] == ROOT / "docs" / "README.md"


def test_the_index_names_every_page_of_the_folder_and_pages_are_short() -> None:
    folder = ROOT / "docs" / "how-to"
    pages = {page.name: len(page.read_text("utf-8").splitlines()) for page in folder.glob("*.md")}
    index = (folder / "README.md").read_text("utf-8")
    assert len(pages) <= 20
    assert {name: lines for name, lines in pages.items() if lines > 400} == {}
    assert [name for name in pages if name != "README.md" and f"]({name})" not in index] == []


def test_the_table_of_commands_has_every_command() -> None:
    table = documents()["commands"].read_text("utf-8")
    named = {
        word
        for line in table.splitlines()
        if line.startswith("| `migrator ")
        for quoted in re.findall(r"`([^`]+)`", line.split(" | ")[0])
        for word in quoted.removeprefix("migrator ").split()[:1]
    }
    assert set(cli.list_commands(click.Context(cli))) == named


def test_a_document_that_is_not_there_is_named_with_those_that_are() -> None:
    with pytest.raises(MigratorError, match="no document 'nowhere'") as caught:
        cli.main(["docs", "nowhere"], standalone_mode=False)
    assert "start-anew" in caught.value.cause


def commands(text: str) -> Iterator[tuple[list[str], list[str]]]:
    """Commands of ours that a text tells to run: words and options."""
    for words, options in re.findall(r"`?migrator ((?:[a-z][a-z-]+(?: |\b))+)((?:--[a-z-]+[^`;,.]*)?)", text):
        yield words.split(), re.findall(r"--[a-z][a-z-]+", options)


def problem(words: list[str], options: list[str]) -> str:
    """What is wrong with a command that a text names, if anything."""
    found: click.Command | None = cli.get_command(click.Context(cli), words[0])
    if found is None:
        return f"there is no command {words[0]}"
    if isinstance(found, click.Group):
        if len(words) < 2 or (sub := found.get_command(click.Context(found), words[1])) is None:
            return f"there is no command {' '.join(words[:2])}"
        found = sub
    known = {option for parameter in found.params for option in (*parameter.opts, *parameter.secondary_opts)}
    return ", ".join(option for option in options if option not in {*known, "--help"})


def test_every_command_that_a_text_tells_to_run_exists_with_its_options() -> None:
    told = [
        (place, words, options)
        for place, text in texts()
        for words, options in commands(text)
        if "`migrator" in text or "migrator dump" in text
    ]
    assert len(told) >= 15, "the texts are not found any more"
    assert [(place, wrong) for place, words, options in told if (wrong := problem(words, options))] == []


def shown(page: str) -> Iterator[tuple[list[str], list[str]]]:
    """Commands of ours that a document quotes or shows to be typed: words and options. A group alone is none."""
    lines = re.findall(r"(?:^(?:\$ )?|`)migrator ([a-z][^`#\n]*)", page, re.MULTILINE)
    for line in lines:
        words = list(takewhile(re.compile(r"[a-z][a-z-]*").fullmatch, line.split()))
        group = isinstance(cli.get_command(click.Context(cli), words[0]) if words else None, click.Group)
        if len(words) > group:
            yield words, re.findall(r"(?<!\S)--[a-z][a-z0-9-]*", line)


def test_every_command_that_a_document_shows_exists_with_its_options() -> None:
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
    found = [(page.name, *command) for page in pages for command in shown(page.read_text("utf-8"))]
    assert len(found) > 200, "the commands are not found any more"
    assert [(page, wrong) for page, words, options in found if (wrong := problem(words, options))] == []
    page = "`migrator dump pace --p95 1`, not `migrator dump`\n\n$ migrator check --more  # looks\nmigrator undo\n"
    assert [problem(words, options) for words, options in shown(page)] == [
        "",
        "--more",
        "there is no command undo",
    ]


def test_commands_and_options_that_do_not_exist_would_be_found() -> None:
    assert problem(["undo"], []) == "there is no command undo"
    assert problem(["dump", "undo"], []) == "there is no command dump undo"
    assert problem(["dump", "start"], ["--table", "--everything"]) == "--everything"
