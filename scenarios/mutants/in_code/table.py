"""All single changes to the code, station by station."""

from __future__ import annotations

from scenarios.mutants.in_code.core import CORE
from scenarios.mutants.in_code.event_log import EVENT_LOG
from scenarios.mutants.in_code.judge import JUDGE
from scenarios.mutants.in_code.mapping import MAPPING
from scenarios.mutants.in_code.run import RUN

CODE_MUTANTS = (*CORE, *EVENT_LOG, *RUN, *JUDGE, *MAPPING)
"""The changes of all stations. ``tests/unit/scenarios/test_code_mutants.py`` checks that each still fits the code."""
