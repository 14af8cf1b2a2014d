"""Connections to MySQL and MariaDB are made in few places, each of which pins the session that it makes."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
MAKES = {
    "Connection",
    "BufferedConnection",
    "LoadingConnection",
    "_StreamConnection",
    "connection_class",
    "BinLogStreamReader",
    "create_engine",
    "engine_from_config",
}
PINNED = {
    ("migrator/connections/mysql/settings.py", "connection_class"): "pin(",
    ("migrator/adapters/targets/mysql/settings.py", "connection_class"): "pin(",
    ("migrator/adapters/targets/mysql/settings.py", "create_engine"): "creator=",
    ("migrator/adapters/sources/mariadb/log_request.py", "BinLogStreamReader"): "pymysql_wrapper=",
    ("migrator/schema/engines.py", "create_engine"): "pin(",
    ("verify/readers/mysql/session.py", "Connection"): "pin_judge(",
    ("verify/dual_read/engine_side.py", "create_engine"): "creator=",
}
"""Where connections are made, and what pins them there."""


def ways_in(folder: Path, root: Path = ROOT) -> Iterator[tuple[str, str]]:
    for path in sorted(folder.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.Call):
                continue
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            of_driver = isinstance(node.func, ast.Attribute) and ast.unparse(node.func.value).startswith(
                "pymysql"
            )
            if name in MAKES or (of_driver and name.lower() == "connect"):
                yield path.relative_to(root).as_posix(), name


def found() -> set[tuple[str, str]]:
    folders = [ROOT / name for name in ("migrator", "transforms", "verify")]
    return {
        way for folder in folders for way in ways_in(folder) if not way[0].startswith("migrator/embedded/")
    }


def test_connections_are_made_where_sessions_are_pinned_and_nowhere_else() -> None:
    """A new way to connect fails here: go through one of these places, or pin the session
    (``mysql_session.pin``)."""
    assert found() == PINNED.keys()
    for (name, _), pins in PINNED.items():
        assert pins in (ROOT / name).read_text(), name


def test_a_new_way_in_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "new.py").write_text(
        "import pymysql\npymysql.connect()\npymysql.connections.Connection()\ncreate_engine('')\nother()\n"
    )
    names = [name for _, name in ways_in(tmp_path, tmp_path)]
    assert sorted(names) == ["Connection", "connect", "create_engine"]


def test_no_value_of_a_pin_is_the_servers_to_define() -> None:
    for name in ("migrator/connections/mysql/session.py", "verify/readers/mysql/pins.py"):
        text = (ROOT / name).read_text()
        assert "= DEFAULT" not in text.replace("SET GLOBAL system_versioning_asof = DEFAULT", "")
