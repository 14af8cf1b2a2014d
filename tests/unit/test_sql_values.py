"""No SQL with values pasted into it: they are bound, or made literals by the driver.

Identifiers can't be bound, so statements are put together from text with quoted names; what this looks for is a
value's place in such a text. That is inside of single quotes, or after a comparison, VALUES, LIMIT and the like.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MODULES = sorted(
    path
    for package in ("migrator", "transforms", "verify", "scenarios")
    for path in (ROOT / package).rglob("*.py")
)
_STATEMENT = re.compile(
    r"^\s*(SELECT|INSERT INTO|UPDATE|DELETE FROM|SET|GRANT|CREATE|ALTER|DROP|KILL|CALL|XA|WITH|EXPLAIN|COPY|LOCK)\s",
    re.I,
)
_BEFORE_A_VALUE = re.compile(
    r"(=|<|>|\b(VALUES|IN)\s*\(|\b(LIKE|LIMIT|OFFSET|BETWEEN|KILL|INTERVAL)\s)\s*$", re.I
)
_HARMLESS = {"int", "len", "float", "hex"}
_HOLE = "\0"


def pasted(source: str) -> list[tuple[int, str]]:
    """Line and expression of each value that is put into a statement's text."""
    tree = ast.parse(source)
    for_people = {id(node) for text in _texts_for_people(tree) for node in ast.walk(text)}
    return [
        (node.lineno, ast.unparse(value))
        for node in ast.walk(tree)
        if isinstance(node, ast.expr) and id(node) not in for_people
        for text, values in [_template(node)]
        if _STATEMENT.match(text)
        for value in _values(text, values)
    ]


def _texts_for_people(tree: ast.AST) -> Iterator[ast.AST]:
    """Remedies hold statements that somebody else runs."""
    for node in ast.walk(tree):
        if (
            (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Finding")
            or (isinstance(node, ast.keyword) and node.arg == "remedy")
            or (isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "remedy")
        ):
            yield node


def _template(node: ast.AST) -> tuple[str, list[ast.expr]]:
    """An f-string, or a text with ``%``: its text with holes, and what goes into them."""
    if isinstance(node, ast.JoinedStr):
        text = "".join(str(part.value) if isinstance(part, ast.Constant) else _HOLE for part in node.values)
        holes = [part for part in node.values if isinstance(part, ast.FormattedValue)]
        return text, [_number(hole) or hole.value for hole in holes]
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod) and isinstance(node.left, ast.Constant):
        given = node.right.elts if isinstance(node.right, ast.Tuple) else [node.right]
        return re.sub(r"%[sdr]", _HOLE, str(node.left.value)), list(given)
    return "", []


def _number(hole: ast.FormattedValue) -> ast.expr | None:
    """``{value:d}`` takes whole numbers only, and stands for one."""
    is_number = hole.format_spec is not None and ast.unparse(hole.format_spec) == "f'd'"
    return ast.Constant(0) if is_number else None


def _harmless(value: ast.expr) -> bool:
    """A number for sure, or a constant of the module."""
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Name):
        return value.func.id in _HARMLESS
    return isinstance(value, ast.Constant) or (
        isinstance(value, ast.Name) and re.fullmatch(r"_?[A-Z][A-Z0-9_]*", value.id) is not None
    )


def _values(text: str, values: list[ast.expr]) -> Iterator[ast.expr]:
    for before, value in zip(_befores(text), values, strict=False):
        inside = before.count("'") % 2 == 1
        if not _harmless(value) and (inside or _BEFORE_A_VALUE.search(before)):
            yield value


def _befores(text: str) -> Iterator[str]:
    """The text before each hole."""
    for place, letter in enumerate(text):
        if letter == _HOLE:
            yield text[:place].replace(_HOLE, "x")


ALLOWED = {
    # quoted names, and queries that were put together by these rules
    "migrator/adapters/targets/mysql/checks/preflight.py": {"one"},
    "migrator/adapters/targets/shared/mirror/reach_sql.py": {"number"},
    # the name of the table that a temporary one is LIKE
    "migrator/adapters/targets/mysql/checks/dry_run.py": {"original"},
    "migrator/adapters/targets/postgres/checks/dry_run.py": {"original"},
    # statements for people to read and run: names and values quoted as the server's own words are; whole numbers
    "migrator/adapters/targets/mysql/checks/grants.py": {"database", "ours"},
    "migrator/adapters/targets/mysql/target.py": {"user"},
    "migrator/schema/dialects.py": {"user"},
    "migrator/adapters/fences/postgres/fence.py": {"literal(self._kept.name)", "table"},
    "migrator/adapters/fences/mysql/fence.py": {"session.literal(self._kept.name)"},
    "migrator/adapters/fences/postgres/read_only.py": {"literal(value)"},
    # an expression of the server's clock
    "migrator/adapters/fences/shared/notes.py": {"self.clock"},
    "migrator/adapters/sources/binlog/remains.py": {"self._source.migration"},
    "migrator/adapters/sources/postgres/remains.py": {"left.name", "self._source.migration"},
    "migrator/adapters/targets/shared/remains.py": {"_COUNTED + 1"},
    # the name of a table of ours, and our own words
    "migrator/schema/acts.py": {"leads", "now"},
    "migrator/schema/bad_rows.py": {"dialect.stored_document"},
    "migrator/adapters/targets/mysql/sequences.py": {"advance.following"},
    "migrator/adapters/targets/postgres/sequences.py": {"literal"},
    "migrator/connections/mysql/session.py": {"wanted[name]"},
    "verify/readers/mysql/statements.py": {"values"},
    # a number for sure: its format takes nothing else
    "verify/dual_read/engines.py": {"number(timeout_s)"},
    # all bytes, as hexadecimal digits
    "migrator/adapters/sources/binlog/rows/charsets.py": {"bytes(range(256)).hex()"},
    # statements that take no parameters, on servers of our own: quotes are doubled, or the words are ours
    "scenarios/faults/logins.py": {"user", "host", "value"},
    "scenarios/torture/course.py": {"value"},
    "scenarios/torture/standby.py": {"name"},
    # the name of a table that another one is made like
    "migrator/adapters/targets/mysql/besides.py": {"qualified(self._table(target))"},
    "migrator/adapters/targets/postgres/besides.py": {"qualified(self._table(target))"},
    "scenarios/chaos/shadow.py": {"old_name"},
    # places for parameters, and whole numbers
    "migrator/adapters/fences/mysql/transactions.py": {"places"},
    "migrator/adapters/targets/mysql/mirror/keeper.py": {"marks"},
    "scenarios/flights/new_writers.py": {"places"},
    "scenarios/flights/writers.py": {"places"},
    "scenarios/workloads/moves/writers.py": {"', '.join(map(str, found))"},
    "scenarios/workloads/rows.py": {"', '.join(['%s'] * len(row))"},
}
"""Expressions that are no values, or can't be bound; a file that needs none any more must go from here."""


def test_no_value_is_pasted_into_a_statement() -> None:
    found: dict[str, set[str]] = {}
    for path in MODULES:
        for _, what in pasted(path.read_text()):
            found.setdefault(path.relative_to(ROOT).as_posix(), set()).add(what)
    assert found == ALLOWED


@pytest.mark.parametrize(
    "line",
    [
        """run(f"SELECT 1 FROM t WHERE name = '{name}'")""",
        """run(f"SELECT 1 FROM {table} WHERE id = {value}")""",
        """run("UPDATE t SET v = '%s'" % value)""",
        """run(f"INSERT INTO t VALUES ({value}, {int(n)})")""",
        """run(f"DELETE FROM t WHERE id IN ({keys})")""",
        """run(f"select * from t limit {rows}")""",
    ],
)
def test_a_pasted_value_is_found(line: str) -> None:
    assert len(pasted(line)) == 1


@pytest.mark.parametrize(
    "line",
    [
        """run(f"SELECT {columns} FROM {quoted(table)} WHERE id = %s LIMIT {rows:d}", [value])""",
        """run(f"SELECT 1 FROM t WHERE id = {int(value)} AND kind = '{_KIND}'")""",
        """MigratorError("no", remedy=f"DROP SLOT '{slot}'")""",
        """print(f"Selected: a = {value}")""",
    ],
)
def test_what_pastes_nothing_is_left_alone(line: str) -> None:
    assert pasted(line) == []
