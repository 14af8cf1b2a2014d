"""Preflight findings."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing preflight saw.

    Attributes:
        check: short name of the check, e.g. ``wal_level``.
        subject: the server, table or column concerned.
        problem: what is wrong, with the value found.
        remedy: what to do, with the exact statement where there is one.
        fatal: a fatal finding refuses the migration, others are warnings.
    """

    check: str
    subject: str
    problem: str
    remedy: str
    fatal: bool = True
