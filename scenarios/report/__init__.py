"""What scenario runs say, for people (HTML page, terminal) and for machines (JUnit XML, JSON)."""

from scenarios.report.files import write

__all__ = ["write"]
