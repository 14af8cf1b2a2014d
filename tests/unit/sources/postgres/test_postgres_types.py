"""Logical types of PostgreSQL types, keys from indexes, settings, and the names given to failed logins."""

from __future__ import annotations

import pytest

from migrator.adapters.sources.postgres.connection import connect_failure, conninfo, named_failure
from migrator.adapters.sources.postgres.log.slot import SlotState
from migrator.adapters.sources.postgres.reflection import choose_key
from migrator.adapters.sources.postgres.settings import PostgresSource
from migrator.adapters.sources.postgres.types import base_type, logical_type
from migrator.errors import ConfigError, ConnectionFailed, SourceError
from migrator.model.server import Server
from tests.servers import Database, server_and_rest

NUMERIC, INT4, UUID, DOMAIN, OUTER = 1700, 23, 2950, 90_001, 90_002
SOURCE = PostgresSource(
    Server(
        kind="postgresql",
        host="db",
        port=5432,
        database="old",
        schema="public",
        user="reader",
        password="hush",
    ),
    migration="flights",
)


def modifier(precision: int, scale: int) -> int:
    """``numeric(p,s)`` as its type modifier."""
    return ((precision << 16) | (scale & 0x7FF)) + 4


@pytest.mark.parametrize(
    ("oid", "type_modifier", "logical"),
    [
        (NUMERIC, modifier(12, 2), "decimal(12,2)"),
        (NUMERIC, modifier(38, 0), "decimal(38,0)"),
        (NUMERIC, modifier(38, 38), "decimal(38,38)"),
        (NUMERIC, modifier(39, 2), "string"),
        (NUMERIC, modifier(5, -2), "string"),
        (NUMERIC, modifier(3, 5), "string"),
        (NUMERIC, -1, "string"),
        (INT4, -1, "int32"),
        (UUID, -1, "string"),
    ],
)
def test_logical_types(oid: int, type_modifier: int, logical: str) -> None:
    assert logical_type(oid, type_modifier) == logical


def test_a_domain_is_what_it_is_made_of() -> None:
    domains = {DOMAIN: (NUMERIC, modifier(10, 3)), OUTER: (DOMAIN, -1)}
    assert logical_type(*base_type(OUTER, -1, domains)) == "decimal(10,3)"


def test_the_key_is_the_first_index_without_nulls() -> None:
    rows = [(1, "a", True, "", 70), (1, "b", True, "", 80), (2, "c", False, "", 80), (1, "d", True, "", 90)]
    assert choose_key(rows) == ("a",)
    assert choose_key(rows[1:]) == ("d",)
    assert choose_key(rows[1:3]) == ()
    assert choose_key([(1, "g", True, "s", 70)]) == ()


@pytest.mark.parametrize(
    ("state", "lost"),
    [
        (("0/10", "reserved", None), ""),
        (("0/10", "extended", "false"), ""),
        ((None, "lost", None), "wal_status is 'lost'"),
        (("0/10", "lost", "wal_removed"), "it was invalidated (wal_removed)"),
        (("0/10", "reserved", "true"), "it conflicts with what the primary removed"),
    ],
)
def test_slot_states(state: tuple[str | None, str | None, str | None], lost: str) -> None:
    assert SlotState.of(*state, None).lost == lost


@pytest.mark.parametrize(
    ("field", "value"), [("migration", "Flights"), ("tls", "maybe"), ("placement", "x"), ("part_rows", 0)]
)
def test_wrong_settings_are_named(field: str, value: object) -> None:
    server, rest = server_and_rest(Database("h", 1, "d", "u", "", "postgresql"), {field: value})
    with pytest.raises(ConfigError) as caught:
        PostgresSource(server, **{"migration": "m", **rest})
    assert caught.value.where == field
    assert caught.value.remedy


def test_the_password_is_used_but_never_shown() -> None:
    assert "password=hush" in conninfo(SOURCE, "log")
    assert "hush" not in repr(SOURCE)
    assert "hush" not in str(connect_failure(SOURCE, "connection refused", ""))


@pytest.mark.parametrize(
    ("words", "sqlstate", "says", "retryable"),
    [
        ("FATAL: nope", "28P01", "refuses the password", False),
        ("FATAL: nope", "3D000", "no such database", False),
        ("FATAL: nope", "28000", "refuses the login", False),
        ("FATAL: nope (pg_hba.conf)", "28000", "admits no such login", False),
        ("FATAL: nope", "42501", "refuses the login", False),
        ("FATAL: nope", "22023", "the environment asks for", False),
        ("FATAL: nope", "53300", "no free connection", True),
        ('FATAL: nope "max_wal_senders"', "53300", "no free WAL sender", True),
        ("FATAL: nope", "57P03", "is starting up", True),
        ("FATAL: nope", "0A000", "refuses the login", False),
        ("server certificate for db doesn't match host name", "", "TLS handshake", False),
        ("fe_sendauth: no password supplied", "", "asks for a password", False),
        ("connection to server failed: Connection refused", "", "can't be reached", True),
    ],
)
def test_failed_logins_have_names(words: str, sqlstate: str, says: str, retryable: bool) -> None:
    """By the server's code: words are in any language (``integration/connections/test_server_language.py``)."""
    error = connect_failure(SOURCE, words, sqlstate)
    assert says in error.what
    assert error.retryable == retryable
    assert error.remedy
    assert error.where == "reader@db:5432/old"


def test_a_lost_connection_is_told_from_a_refusal() -> None:
    assert isinstance(named_failure(SOURCE, "x", None, "server closed the connection"), ConnectionFailed)
    assert isinstance(named_failure(SOURCE, "x", "57P01", "terminating"), ConnectionFailed)
    refusal = named_failure(SOURCE, "x", "42501", "permission denied for table t")
    assert isinstance(refusal, SourceError)
    assert "migrator check" in refusal.remedy
