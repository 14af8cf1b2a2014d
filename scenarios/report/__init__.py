"""Reports on scenario runs, for people (HTML page, terminal) and for machines (JUnit XML, JSON)."""

from scenarios.report.beside import tables_beside
from scenarios.report.files import write
from scenarios.report.waiting import waiting

__all__ = ["tables_beside", "waiting", "write"]
