"""The generated parts of docs/reference say what the code says now."""

from __future__ import annotations

from dataclasses import dataclass

import click
import pytest

from migrator.cli import cli
from migrator.cli.exit_codes import EXIT_CODES, exit_codes
from migrator.config.sections import SECTIONS
from tests.reference import records
from tests.reference.blocks import mark, relative, replaced
from tests.reference.commands import leaves
from tests.reference.errors import PAGES, entries
from tests.reference.pages import BLOCKS, DOCS, wanted
from tests.reference.records import Document
from tests.reference.state_formats import nodes

_END = "<!-- end of generated part -->"


@pytest.mark.parametrize("page", BLOCKS)
def test_a_page_is_as_the_code(page: str) -> None:
    assert (DOCS / page).read_text("utf-8") == wanted(page), "run: make reference"


def test_a_block_that_is_stale_would_be_noticed() -> None:
    page = f"# Page\n\n{mark('x')}\n\nold\n\n{_END}\n\nend\n"
    assert replaced(page, "x", ["old"]) == page
    assert replaced(page, "x", ["new"]) != page
    with pytest.raises(ValueError, match="no block"):
        replaced(page, "y", ["new"])


def test_every_setting_every_command_every_error_is_there() -> None:
    assert sum(map(len, SECTIONS.values())) > 70
    assert len(entries()) > 450
    text = "".join((DOCS / page).read_text("utf-8") for page in BLOCKS)
    assert [
        f"{section}.{name}" for section in SECTIONS for name in SECTIONS[section] if f"`{name}`" not in text
    ] == []
    paths = [context.command_path for _, context in leaves(click.Context(cli, info_name="migrator"))]
    assert len(paths) > 30
    assert [path for path in paths if f"## `{path}`" not in text] == []


def test_every_anchor_of_an_error_is_its_own() -> None:
    for page in PAGES:
        anchors = [
            line.split('"')[1] for line in (DOCS / page).read_text("utf-8").splitlines() if "<a id=" in line
        ]
        assert len(anchors) == len(set(anchors))
        assert len(anchors) > 30


def test_exit_codes_are_of_commands_that_exist() -> None:
    known = set(cli.list_commands(click.Context(cli)))
    assert EXIT_CODES.keys() - known == set()
    assert exit_codes("verify").startswith("Exit codes: 0 equal, 1 different")
    verify = cli.get_command(click.Context(cli), "verify")
    assert verify is not None
    assert verify.epilog == exit_codes("verify")


def test_links_lead_from_the_page_that_shows_them() -> None:
    assert (
        relative("see [it](how-to/pace.md#pace)", "reference/settings.md")
        == "see [it](../how-to/pace.md#pace)"
    )
    assert (
        relative("see [it](https://example.org/a)", "reference/settings.md")
        == "see [it](https://example.org/a)"
    )


@dataclass(frozen=True, slots=True)
class Kept:
    """A record.

    Attributes:
        low, high: bounds of ``x``, at
            most.
        name: what it is; None where nobody knows.
    """

    low: int = 1
    high: int = 2
    name: str | None = "a"


def test_a_field_that_a_format_gains_or_loses_is_noticed() -> None:
    told = list(records.lines(Document("Kept", {"low": 1, "high": 2, "name": "a"}, Kept)))
    assert told[4:7] == [
        "| `low` | whole number | bounds of `x`, at most |",
        "| `high` | whole number | bounds of `x`, at most |",
        "| `name` | text or null | what it is; null where nobody knows |",
    ]
    with pytest.raises(ValueError, match=r"lacks \['name'\]"):
        list(records.lines(Document("Kept", {"low": 1, "high": 2}, Kept)))
    with pytest.raises(ValueError, match=r"what \['more'\] are"):
        list(records.lines(Document("Kept", {"low": 1, "high": 2, "name": "a", "more": 1}, Kept)))
    with pytest.raises(ValueError, match="empty list"):
        list(records.lines(Document("Kept", {"low": [], "high": 2, "name": "a"}, Kept)))


def test_every_node_of_zookeeper_is_found() -> None:
    assert nodes() == ["epoch", "leader", "progress", "requests", "standbys"]
