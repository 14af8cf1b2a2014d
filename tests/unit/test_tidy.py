"""The rules of style that no linter checks for us: sizes, docstrings, names, constructors."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tests.unit.product_modules import SOURCES, broken_by, forgotten, parsed  # noqa: F401

MAX_MODULE_LINES = 400
MAX_WHOLE_LINES = 500

# Modules above 400 lines, each one idea that two files would tear apart.
WHOLE = {
    "migrator/adapters/sources/binlog/statements/statements.py": "which statement of a log does what to a table",
    "migrator/adapters/sources/binlog/transactions/assembler.py": "what each event does to the open transaction",
    "migrator/adapters/sources/postgres/log/log_reader.py": "what each message does to the open transaction",
    "migrator/core/capture.py": "the loop of the paper: chunks between two watermarks",
    "migrator/run/migration.py": "the order in which a run begins, works and ends",
}

MAX_FUNCTION_LINES = 60
MAX_CONSTRUCTOR_ARGUMENTS = 7

# Words that begin no docstring: what follows them is a condition, a question or a remark, and no name for the thing.
NAMES_NOTHING = re.compile(
    r"\s*(?:What|Which|Whether|Who|Whose|Whom|Where|When|Why|How"
    r"|Of|As|From|For|To|By|In|On|With|Without|Until|Up|After|Before|Since"
    r"|This|That|These|Those|It|Its|There|Then|Such|Same|Either|Neither|Both"
    r"|So|If|And|Or|But|Because|Not|No|Also|Likewise|Else|Otherwise)(?=[\s,.:;]|$)"
)

# Modules whose docstring is read by the program, so it is text for users: the description that argparse prints.
PRINTED = {"verify/history/bench.py"}

# Words that name no value: each says only that there is one, or where it came from.
EMPTY_NAMES = frozenset({"each", "made", "told", "given", "mention", "mentions"})


def long_functions(source: str) -> list[str]:
    return [
        f"{node.name} ({node.end_lineno - node.lineno + 1} lines)"
        for node in ast.walk(parsed(source))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        if node.end_lineno is not None and node.end_lineno - node.lineno + 1 > MAX_FUNCTION_LINES
    ]


def raised_stubs(source: str) -> list[str]:
    """Lines that raise ``NotImplementedError``."""
    return [
        f"line {node.lineno}"
        for node in ast.walk(parsed(source))
        if isinstance(node, ast.Raise)
        and node.exc is not None
        and "NotImplementedError" in ast.unparse(node.exc)
    ]


def wide_constructors(source: str) -> list[str]:
    """Classes whose constructor takes too many arguments. A dataclass without one of its own is a record."""
    return [
        f"{owner.name} ({count} arguments)"
        for owner in ast.walk(parsed(source))
        if isinstance(owner, ast.ClassDef)
        for node in owner.body
        if isinstance(node, ast.FunctionDef) and node.name == "__init__"
        for arguments in [node.args]
        for count in [len([*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]) - 1]
        if count > MAX_CONSTRUCTOR_ARGUMENTS
    ]


def docstrings(source: str) -> Iterator[tuple[int, str]]:
    """Lines and texts of the docstrings of a module, its classes, functions and attributes."""
    for node in ast.walk(parsed(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            for statement in node.body:
                match statement:
                    case ast.Expr(value=ast.Constant(value=str(text))):
                        yield statement.lineno, text


def naming_nothing(source: str) -> list[str]:
    """Docstrings that don't begin with what a thing is or does; the first line of each, and where it stands."""
    return [
        f"line {line}: {text.strip().splitlines()[0]}"
        for line, text in docstrings(source)
        if NAMES_NOTHING.match(text)
    ]


def empty_names(source: str) -> list[str]:
    """Variables, parameters, attributes, functions and classes whose name says nothing, and where they stand."""
    found: list[tuple[int, str]] = []
    for node in ast.walk(parsed(source)):
        match node:
            case (
                ast.Name(id=name, ctx=ast.Store())
                | ast.Attribute(attr=name, ctx=ast.Store())
                | ast.arg(arg=name)
            ):
                found.append((node.lineno, name))
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                found.append((node.lineno, name))
            case (
                ast.ExceptHandler(name=str(name))
                | ast.MatchAs(name=str(name))
                | ast.MatchStar(name=str(name))
            ):
                found.append((node.lineno, name))
            case ast.MatchMapping(rest=str(name)):
                found.append((node.lineno, name))
            case ast.alias(asname=str(name)):
                found.append((node.lineno, name))
    return [f"line {line}: {name}" for line, name in sorted(found) if name.strip("_").lower() in EMPTY_NAMES]


def test_there_are_modules_to_check() -> None:
    assert len(SOURCES) > 20


def test_modules_are_short_and_named_for_what_they_do() -> None:
    names_nothing = {"utils.py", "util.py", "helpers.py", "common.py", "misc.py"}
    assert [name for name in SOURCES if name.rpartition("/")[2] in names_nothing] == []
    lines = {name: len(source.splitlines()) for name, source in SOURCES.items()}
    most = {name: MAX_WHOLE_LINES if name in WHOLE else MAX_MODULE_LINES for name in SOURCES}
    assert {name: count for name, count in lines.items() if count > most[name]} == {}
    assert broken_by(long_functions) == {}


def test_a_long_function_is_noticed() -> None:
    assert long_functions("def f():\n" + "    pass\n" * MAX_FUNCTION_LINES) == [
        f"f ({MAX_FUNCTION_LINES + 1} lines)"
    ]
    assert long_functions("def f():\n" + "    pass\n" * (MAX_FUNCTION_LINES - 1)) == []


def test_only_modules_above_the_limit_are_listed_as_whole() -> None:
    sizes = {name: len(SOURCES[name].splitlines()) for name in WHOLE}
    assert {name: size for name, size in sizes.items() if size <= MAX_MODULE_LINES} == {}


def test_a_constructor_takes_few_arguments() -> None:
    """What belongs together is one value with a name, and travels as it."""
    assert broken_by(wide_constructors) == {}


def test_a_constructor_of_many_arguments_is_noticed() -> None:
    most = ", ".join(f"a{number}" for number in range(MAX_CONSTRUCTOR_ARGUMENTS))
    source = f"""class Slot:
    def __init__(self, {most}): ...
class Reader:
    def __init__(self, {most}, more): ...
    def read(self, {most}, more): ...
class Outer:
    class Named:
        def __init__(self, /, {most}, *, more=None): ...
"""
    assert wide_constructors(source) == ["Reader (8 arguments)", "Named (8 arguments)"]


def test_a_docstring_begins_with_what_a_thing_is_or_does() -> None:
    found = broken_by(naming_nothing)
    for name in PRINTED & found.keys():
        found[name] = [docstring for docstring in found[name] if not docstring.startswith("line 1:")]
    assert {name: docstrings for name, docstrings in found.items() if docstrings} == {}


def test_a_docstring_that_names_nothing_is_noticed() -> None:
    source = '''"""What is read."""
LONGEST = 3
"""Of all rows."""
class Slot:
    """Our slot."""
    name: str
    """As the server prints it."""
    def ours(self):
        """Whether: it is ours."""
    async def read(self):
        """Reads what is there, if it is ours."""
'''
    assert naming_nothing(source) == [
        "line 1: What is read.",
        "line 3: Of all rows.",
        "line 7: As the server prints it.",
        "line 9: Whether: it is ours.",
    ]


def test_printed_docstrings_are_read_by_their_module() -> None:
    assert {name for name in PRINTED if "__doc__" not in SOURCES[name]} == set()


def test_a_name_says_which_value_it_holds() -> None:
    assert broken_by(empty_names) == {}


def test_a_name_that_says_nothing_is_noticed() -> None:
    source = """import json as given
class Slot:
    def __init__(self, told, *made, **each):
        self._made = told.mention(each)
        self.rows = [row.given for row in made]
    def mention(self):
        return {key: _each for key, _each in self.made}
async def mentions(rows):
    try:
        rows = (given := read(each=1))
    except OSError as made:
        match rows:
            case [told, *each] | {"a": told, **each}:
                pass
"""
    assert empty_names(source) == [
        "line 1: given",
        "line 3: each",
        "line 3: made",
        "line 3: told",
        "line 4: _made",
        "line 6: mention",
        "line 7: _each",
        "line 8: mentions",
        "line 10: given",
        "line 11: made",
        "line 13: each",
        "line 13: each",
        "line 13: told",
        "line 13: told",
    ]


def test_a_base_leaves_nothing_to_be_found_missing_at_run_time() -> None:
    """What a subclass must give is an abstract method: mypy sees who lacks it."""
    assert broken_by(raised_stubs) == {}


def test_a_stub_that_raises_is_noticed() -> None:
    source = """class Base:
    def a(self): raise NotImplementedError
    def b(self): raise NotImplementedError("later")
    def c(self): raise ValueError
"""
    assert raised_stubs(source) == ["line 2", "line 3"]
