"""The mark of a migration's own transactions in PostgreSQL's log: a logical message before all that they write."""

from __future__ import annotations

APPLIED = "migrator.applied"
"""Prefix of the message; its content is the migration's name."""
