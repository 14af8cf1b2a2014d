"""Nothing in the product stands there unused: what neither it nor a test names is found by vulture."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from vulture import Vulture

ROOT = Path(__file__).parents[2]
PRODUCT = ("migrator", "transforms", "verify", "scenarios")
FRAMEWORKS = {
    "click": ("@*.command", "@*.command(*", "@*.group*"),
    "mappings, read by their registry": ("@*.target*",),
    "pytest": ("@pytest.fixture",),
}
OTHERS_CALL_IT = {
    "click": ("format_commands",),
    "importlib": ("get_code", "create_module", "exec_module", "loader_state"),
    "alembic": ("down_revision", "branch_labels", "depends_on"),
    "pytest": ("pytestmark", "test_*", "pytest_addoption", "pytest_terminal_summary"),
    "http.server, socketserver": (
        "daemon_threads", "block_on_close", "address_family", "server_port", "handle_error", "sys_version", "timeout",
        "do_HEAD", "do_POST", "log_message",
    ),
    "prometheus_client": ("describe",),
    "Python, of a module": ("__getattr__", "__dir__"),
    "http.client": ("response_class",),
    "urllib": ("redirect_request", "http_open", "https_open"),
    "pymysql": ("_read_query_result", "_read_load_local_packet", "unbuffered_active", "first_packet"),
    "psycopg": ("itersize", "nonblocking", "isolation_level"),
    "mysql-replication": ("auto_position",),
    "Debezium": ("handleJsonBatch",),
    "queue.Queue": ("_qsize",),
    "pyspark": ("_activeSession", "_instantiatedSession"),
    "typing": ("__annotations__",),
    "entry points and packages of commands": (
        "changetables", "docs", "list_requests", "init", "sequences", "try_", "verifybench", "code_mutants",
    ),
    "JSON documents, of all fields": (
        "captured_transactions", "restarts", "catalogue", "ended_s", "source_row", "ledger_order", "differing_*",
    ),
    "codes of a format, listed whole": ("LOAD", "SLAVE", "PARTIAL_UPDATE_ROWS"),
    "enumerations whose members are read by their values": (
        "DELETES_DROPPED", "NET_BY_ENDS", "FIRST_IMAGE", "SPLIT_BRAIN", "POSITION_APART", "TABLES_APART",
        "STARTS_AT_LOG_END",
    ),
}  # fmt: skip


def unused(folders: Sequence[Path], of: Sequence[Path]) -> list[str]:
    """Names of the definitions below ``of`` that nothing in ``folders`` uses."""
    vulture = Vulture(ignore_decorators=[name for names in FRAMEWORKS.values() for name in names])
    vulture.scavenge([str(folder) for folder in folders], exclude=["*/.venv/*"])
    found = vulture.get_unused_code(min_confidence=60)
    # Vulture itself would compare the name of each definition with each of these, a quarter of its time.
    called = [name for names in OTHERS_CALL_IT.values() for name in names]
    return [
        f"{item.filename}:{item.first_lineno}: {item.typ} {item.name}"
        for item in found
        if any(Path(item.filename).is_relative_to(folder) for folder in of)
        and not any(fnmatchcase(item.name, name) for name in called)
    ]


def test_every_definition_is_used() -> None:
    product = [ROOT / folder for folder in PRODUCT]
    assert unused([*product, ROOT / "tests"], product) == []


def test_an_unused_function_is_noticed(tmp_path: Path) -> None:
    product, tests = tmp_path / "product", tmp_path / "tests"
    for folder in (product, tests):
        folder.mkdir()
    (product / "one.py").write_text("def used():\n    pass\n\n\ndef forgotten():\n    pass\n")
    (tests / "test_one.py").write_text("from product.one import used\n\n\ndef test_it():\n    used()\n")
    [found] = unused([product, tests], [product])
    assert found.endswith("one.py:5: function forgotten")
