"""Import statements under other names, in the text of a module: everything else stays, character for character.

Used by the build, for this tool's own modules, and for mappings that were written before there was ``dbmigrator``.
Needs nothing but Python, since the build has nothing else.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Sequence

_AFTER_FROM = re.compile(rb"from(?:[ \t\f]|\\\r?\n)+")


def with_prefix(source: str, prefix: str, meant: Callable[[str, Sequence[str]], bool]) -> str:
    """Returns the text with ``prefix.`` before the modules of the imports that are meant.

    ``import a.b``, which binds ``a``, goes on binding it. Lines keep their numbers. Relative imports stay.

    Args:
        source: a module's text.
        prefix: a package.
        meant: gets a module and the names that are imported from it, none where the module itself is.

    Raises ``SyntaxError`` for a text that is no Python.
    """
    text = source.encode()
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    added: list[tuple[int, str]] = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            if meant(node.module, [one.name for one in node.names]):
                begins = _AFTER_FROM.match(text, starts[node.lineno - 1] + node.col_offset)
                if begins is None:  # pragma: no cover - the grammar has no other way to write it
                    raise AssertionError(f"line {node.lineno} imports in an unknown way")
                added.append((begins.end(), f"{prefix}."))
        elif isinstance(node, ast.Import):
            for one in node.names:
                if meant(one.name, ()):
                    added += _of_module(one, starts, prefix)
    for place, words in sorted(added, reverse=True):
        text = text[:place] + words.encode() + text[place:]
    return text.decode()


def _of_module(one: ast.alias, starts: Sequence[int], prefix: str) -> list[tuple[int, str]]:
    """Returns what is added for a module of an ``import`` statement, and where (bytes)."""
    found = [(starts[one.lineno - 1] + one.col_offset, f"{prefix}.")]
    if one.asname is None and one.end_lineno is not None and one.end_col_offset is not None:
        bound = one.name.partition(".")[0]
        end = starts[one.end_lineno - 1] + one.end_col_offset
        found.append((end, f", {prefix}.{bound} as {bound}"))
    return found
