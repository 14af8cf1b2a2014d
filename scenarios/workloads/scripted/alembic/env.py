"""Runs the revisions of the new schema."""

from __future__ import annotations

from scenarios.workloads.revisions import run

run()
