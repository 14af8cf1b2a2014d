"""No cause is told by a server's words, which are in its own language: each match on words has its reason here."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = ("migrator", "verify", "transforms")

_WORDS = re.compile(
    r"\b(message|said|printed|words|cause|error|detail|context|notice|caught|exception)\b|\bdiag\."
)
_METHODS = ("startswith", "endswith", "search", "match", "fullmatch", "findall", "index", "find")

_BY_CODE = "beside a code of the server's; "
_NAMES = "names of settings and files, which aren't translated"
_PINNED = (
    "MySQL and MariaDB, whose sessions have lc_messages = en_US (mysql_session, read back after it is set)"
)
_LIBPQ = "libpq's own words: it translates nothing unless its process asks for that"
_PUNCTUATION = "punctuation and names only; without them the row isn't named, and nothing else is decided"
_CSVLOG = "csvlog has no code for what it logs; the documents ask for lc_messages in English"
_OUR_OWN = "a text of ours, or SQL, and no server's message"
_PYTHON = "words of Python, Spark or Java, which are in English (transforms/on_spark/surroundings.py)"

MATCHES = {
    "migrator/connections/postgres/logins.py": {
        "name in words": _BY_CODE + _NAMES,
        "text in words.lower()": _LIBPQ,
    },
    "migrator/adapters/sources/postgres/log/slot.py": {"_WAL_FILE.search(words)": _BY_CODE + _NAMES},
    "migrator/adapters/targets/mysql/rows/explain.py": {
        "_LOADED_ROW.search(refusal.message)": _PINNED,
        "_LOADED_COLUMN.search(refusal.message)": _PINNED,
        "_BAD_NULL.match(refusal.message)": _PINNED,
    },
    "migrator/adapters/targets/mysql/mirror/tables.py": {"_MARIADB_TOO_WIDE in refusal.message": _PINNED},
    "migrator/adapters/targets/mysql/checks/preflight_rights.py": {
        "re.match('([A-Z, ]+) command denied', str(error.args[1]))": _PINNED
    },
    "migrator/adapters/targets/mysql/refusal.py": {
        "_CONSTRAINT.search(self.message)": _PINNED,
        "_DUPLICATE.match(self.message)": _PINNED,
    },
    "migrator/adapters/targets/postgres/rows/explain.py": {
        "_DETAIL_KEY.search(refusal.detail)": _PUNCTUATION,
        "re.search('COPY migrator_stage_\\\\d+,', refusal.context)": _PUNCTUATION,
    },
    "migrator/adapters/targets/postgres/refusal.py": {"_COPY_LINE.search(self.context)": _PUNCTUATION},
    "migrator/run/commands/fits.py": {"_COLUMN.search(cause)": _OUR_OWN},
    "migrator/adapters/sources/binlog/wire/packet_stream.py": {
        "'GTID' in message": _BY_CODE + _PINNED,
        "'anonymous transaction' in message": _BY_CODE + _PINNED,
    },
    "migrator/connections/mysql/states.py": {
        "_OPTION.search(message)": _BY_CODE + _NAMES,
        "_SCHEMA.search(message)": _BY_CODE + _NAMES,
        "_ENGINE_READ_ONLY.search(message)": _BY_CODE + "the engine's number, which no language changes",
    },
    "migrator/connections/postgres/refusal.py": {"said in words.lower()": _LIBPQ, "said in words": _LIBPQ},
    "migrator/connections/postgres/session.py": {"re.findall('[A-Za-z_]+', cause)": _BY_CODE + _NAMES},
    "verify/readers/postgres/pins.py": {"re.findall('[A-Za-z_]+', cause)": _BY_CODE + _NAMES},
    "migrator/adapters/sources/binlog/statements/query_event.py": {
        "re.match('(?:5\\\\.5\\\\.5-)?(\\\\d+)\\\\.(\\\\d+)\\\\.(\\\\d+)', words)": _OUR_OWN,
    },
    "migrator/adapters/sources/binlog/transactions/event_feed.py": {"place not in error.where": _OUR_OWN},
    "migrator/adapters/sources/postgres/log/row_codec.py": {"UNCHANGED in message.old": _OUR_OWN},
    "migrator/schema/control.py": {"head.revision in context.get_current_heads()": _OUR_OWN},
    "migrator/schema/sql_text.py": {"'ATOMIC' not in words": _OUR_OWN},
    "transforms/load.py": {
        "'pyspark' in traceback.extract_tb(error.__traceback__)[-1].filename": _BY_CODE + _NAMES,
    },
    "transforms/analysis/plan.py": {"(error.getCondition() or '').startswith(unknown)": "Spark's code"},
    "verify/dual_read/log_files.py": {
        "_POSTGRES.match(message)": _CSVLOG,
        "message.startswith('disconnection: ')": _CSVLOG,
    },
    "verify/dual_read/query_log.py": {"token.text in words": _OUR_OWN},
    "verify/history/story.py": {"line not in said": _OUR_OWN},
    "transforms/on_spark/executors.py": {"_VERSION in str(error)": _PYTHON, "_VERSION in cause": _PYTHON},
    "transforms/on_spark/session.py": {"_UNCAUGHT.findall(said)": _PYTHON},
    "transforms/on_spark/unstarted.py": {
        "said in printed": _PYTHON,
        "'java' in str(error.filename)": _BY_CODE + _NAMES,
    },
}


def matches(source: str) -> Iterator[str]:
    """Expressions that look for something in what a server, library or process has said."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.In | ast.NotIn):
            searched = node.comparators[0]
            if isinstance(searched, ast.Name | ast.Attribute | ast.Call) and _WORDS.search(
                ast.unparse(searched)
            ):
                yield ast.unparse(node)
        elif (
            isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _METHODS
        ):
            given = [node.func.value] if node.func.attr.endswith("with") else node.args
            if any(_WORDS.search(ast.unparse(each)) for each in given):
                yield ast.unparse(node)


def test_every_match_on_words_has_a_reason() -> None:
    found = {
        (file.relative_to(ROOT).as_posix(), said)
        for package in PACKAGES
        for file in (ROOT / package).rglob("*.py")
        if "embedded" not in file.parts  # throw-away servers, which are started in English
        for said in matches(file.read_text("utf-8"))
        if "sqlstate" not in said
    }
    listed = {(file, said) for file, reasons in MATCHES.items() for said in reasons}
    assert found - listed == set(), "decide by SQLSTATE or errno"
    assert listed - found == set(), "no longer there"


def test_a_new_match_would_be_found() -> None:
    for line in (
        "'slot' in said",
        "any(word in message for word in WORDS)",
        "'does not exist' in str(error)",
        "'x' in error.diag.message_primary",
        "re.search('denied', str(error))",
        "str(error).startswith('FATAL')",
    ):
        assert list(matches(f"if {line}:\n    pass\n")), line
