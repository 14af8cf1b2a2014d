"""Refused logins to PostgreSQL: what each is called, and what to do, by the server's SQLSTATE or libpq's words."""

from __future__ import annotations

from dataclasses import dataclass

from migrator.connections.postgres.refusal import OF_THE_CLIENT, for_good

_REMEDY_ENVIRONMENT = (
    "unset PGTZ, PGDATESTYLE and PGGEQO where migrator runs: they change nothing here but the login"
)
# SQLSTATE -> what, remedy, retryable. The words are the server's language.
_REFUSED = {
    "53300": (
        "the {side} has no free connection",
        "raise max_connections, or the CONNECTION LIMIT of {user} or {database}, or end idle sessions",
        True,
    ),
    "55000": (
        "the {side} admits nobody to the database",
        "ALTER DATABASE {database} ALLOW_CONNECTIONS true",
        True,
    ),
    "28P01": ("the {side} refuses the password", "set the right password, or one that hasn't expired", False),
    "28000": (
        "the {side} refuses the login",
        "ALTER ROLE {user} LOGIN; or, where there is no such role, create it or correct {section}user",
        False,
    ),
    "3D000": ("the {side} has no such database", "correct {section}database", False),
    "22023": ("the {side} refuses a setting that the environment asks for", _REMEDY_ENVIRONMENT, False),
    "42501": ("the {side} refuses the login", "GRANT CONNECT ON DATABASE {database} TO {user}", False),
    "57P03": (
        "the {side} is starting up or shutting down",
        "wait until it accepts connections, or start it again",
        True,
    ),
    "25P04": (
        "the {side} ends the session before it begins",
        "ALTER ROLE {user} RESET transaction_timeout; ALTER DATABASE {database} RESET transaction_timeout",
        False,
    ),
}
# (what stands in the words in any language, SQLSTATE, what, remedy): names of files and settings aren't translated.
_NAMED = (
    (
        "max_wal_senders",
        "53300",
        "the {side} has no free WAL sender",
        "raise max_wal_senders and restart the {side}",
    ),
    (
        "pg_hba.conf",
        "28000",
        "the {side} admits no such login",
        "add a line for this user and host to pg_hba.conf",
    ),
)
_OF_LIBPQ = dict(
    zip(
        OF_THE_CLIENT,
        (
            ("the {side} asks for a password", "set {section}password_env"),
            (
                "the TLS handshake with the {side} failed",
                "check `tls`, `tls_ca` and the host name",
            ),
            ("the TLS handshake with the {side} failed", "check `tls` and `tls_ca`"),
            ("the {side} offers no TLS", "turn it on there, or choose another `tls`"),
        ),
        strict=True,
    )
)
"""Messages of libpq itself -> what, remedy."""


@dataclass(frozen=True, slots=True)
class RefusedLogin:
    """A login that a server has refused, or a server that can't be reached.

    Attributes:
        what: names it.
        remedy: the way out.
        retryable: whether it may pass by itself.
    """

    what: str
    remedy: str
    retryable: bool


def refused_login(words: str, sqlstate: str, side: str, user: str, database: str) -> RefusedLogin:
    """Names a login that failed.

    Args:
        words: the driver's.
        sqlstate: the server's; empty where none has said anything.
        side: source, target, or database where it may be either.
        user, database: names, not quoted.
    """
    names = {
        "side": side,
        "section": "" if side == "database" else f"{side}.",
        "user": _quoted(user),
        "database": _quoted(database),
    }

    def filled(what: str, remedy: str, retryable: bool) -> RefusedLogin:
        return RefusedLogin(what.format(**names), remedy.format(**names), retryable)

    if sqlstate:
        for name, state, what, remedy in _NAMED:
            if name in words and state == sqlstate:
                return filled(what, remedy, not for_good(sqlstate))
        known = _REFUSED.get(sqlstate)
        return filled(*(known or ("the {side} refuses the login", "see the cause", not for_good(sqlstate))))
    for text, (what, remedy) in _OF_LIBPQ.items():
        if text in words.lower():
            return filled(what, remedy, False)
    remedy = "check host, port, network and that the server runs"
    return RefusedLogin(f"the {side} can't be reached", remedy, True)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
