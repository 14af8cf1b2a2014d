"""Import statements under other names: each way to write one, and nothing else."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from migrator.renamed_imports import with_prefix


def ours(module: str, names: Sequence[str]) -> bool:
    return module.partition(".")[0] == "ours"


@pytest.mark.parametrize(
    ("written", "renamed"),
    [
        ("from ours import a", "from top.ours import a"),
        ("from ours.b import (\n  a, c)", "from top.ours.b import (\n  a, c)"),
        ("from \\\n  ours import a", "from \\\n  top.ours import a"),
        ("é = 'ü'; from ours import a", "é = 'ü'; from top.ours import a"),
        ("import ours.b as c, os", "import top.ours.b as c, os"),
        ("import ours", "import top.ours, top.ours as ours"),
        ("import os, ours.b; x = ours.b", "import os, top.ours.b, top.ours as ours; x = ours.b"),
        ("def f():\n\n    from ours import a  # why\n", "def f():\n\n    from top.ours import a  # why\n"),
    ],
)
def test_an_import_is_renamed_where_it_stands(written: str, renamed: str) -> None:
    assert with_prefix(written, "top", ours) == renamed
    compile(renamed, "text", "exec")


@pytest.mark.parametrize(
    "text",
    [
        "from . import ours",
        "from .ours import a",
        "from other import ours",
        "import others.ours",
        '"""from ours import a"""',
        "x = 'ours.b'  # import ours",
        "ours.b = 1",
    ],
)
def test_nothing_else_is_touched(text: str) -> None:
    assert with_prefix(text, "top", ours) == text


def test_the_names_decide_as_well() -> None:
    text = "from ours import a, b\nfrom ours import a"
    assert with_prefix(text, "top", lambda module, names: "b" not in names) == (
        "from ours import a, b\nfrom top.ours import a"
    )


def test_lines_end_as_they_did() -> None:
    assert (
        with_prefix("x = 1\r\nfrom ours import a\r\n", "top", ours) == "x = 1\r\nfrom top.ours import a\r\n"
    )
