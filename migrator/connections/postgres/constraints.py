"""Constraints that PostgreSQL has and doesn't keep: what the catalog says of a table, and what its rows may be.

From 18 on a NOT NULL may be NOT VALID: ``pg_attribute.attnotnull`` is true, and old rows may have NULL all the same.
A foreign key may be NOT ENFORCED: rows that it would refuse are there, and nothing acts by it.
"""

from __future__ import annotations

from typing import LiteralString

NOT_NULL: LiteralString = """(a.attnotnull AND NOT EXISTS (
  SELECT FROM pg_catalog.pg_constraint unproven WHERE unproven.conrelid = a.attrelid AND unproven.contype = 'n'
    AND NOT unproven.convalidated AND a.attnum = ANY (unproven.conkey)))"""
"""A condition that no row has NULL in a column, as SQL over ``a``, its row of ``pg_attribute``."""
ENFORCED: LiteralString = "coalesce(pg_catalog.to_jsonb(c) ->> 'conenforced', 'true') = 'true'"
"""A condition that a constraint is kept, as SQL over ``c``, its row of ``pg_constraint``."""
