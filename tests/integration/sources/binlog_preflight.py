"""Asking preflight of MySQL and MariaDB in tests."""

from __future__ import annotations

from migrator.model.finding import Finding
from tests.integration.binlog_engine import BinlogEngine
from tests.integration.binlog_reading import source_of
from tests.servers import Database


def obstacles(engine: BinlogEngine, database: Database, *tables: str, **settings: object) -> dict[str, str]:
    """The problem of each fatal finding, by "check: subject"; every finding has a problem and a remedy."""
    findings = engine.catalog(source_of(database, **settings)).preflight(tables)
    assert all(finding.problem and finding.remedy for finding in findings)
    return {f"{finding.check}: {finding.subject}": finding.problem for finding in findings if finding.fatal}


def found_besides_accounts(
    engine: BinlogEngine, database: Database, *tables: str, **settings: object
) -> list[Finding]:
    """All findings, without those who may write past the log: every server has somebody."""
    findings = engine.catalog(source_of(database, **settings)).preflight(tables)
    return [finding for finding in findings if finding.check != "sql_log_bin"]


def expect_setting_checked(
    engine: BinlogEngine, database: Database, setting: str, wrong: str, right: str
) -> None:
    """A wrong global setting is the one finding, and its remedy sets it; afterwards it is right again."""
    database.execute(f"SET GLOBAL {setting} = {wrong}")
    try:
        findings = found_besides_accounts(engine, database)
    finally:
        database.execute(f"SET GLOBAL {setting} = {right}")
    (finding,) = findings
    assert finding.check in (setting, "expire_logs")
    assert finding.fatal is (finding.check != "expire_logs")
    assert f"SET GLOBAL {setting}" in finding.remedy


def without_watermark(database: Database) -> Database:
    """The database, on a server that lacks our own: other tests may have left it."""
    database.execute("DROP DATABASE IF EXISTS migrator")
    return database
