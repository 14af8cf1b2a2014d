"""Servers that are too old, or another product, are refused by preflight; all later ones are taken."""

from __future__ import annotations

import pytest

from migrator.adapters.sources.binlog.preflight_checks import version
from migrator.adapters.sources.mariadb import preflight as mariadb
from migrator.adapters.sources.mysql import preflight as mysql
from migrator.adapters.sources.postgres.preflight import version as postgres_version
from migrator.model.finding import Finding

LEAST = {"MySQL": mysql.MINIMUM_VERSION, "MariaDB": mariadb.MINIMUM_VERSION}


def binlog(product: str, found: str) -> list[Finding]:
    return list(version(found, "db:3306", product, LEAST[product]))


@pytest.mark.parametrize(
    ("product", "found"),
    [
        ("MySQL", "8.0.17"),
        ("MySQL", "8.0.42-0ubuntu0.24.04.1"),
        ("MySQL", "8.4.6"),
        ("MySQL", "9.7.4-2"),
        ("MySQL", "10.0.0"),
        ("MariaDB", "10.11.2-MariaDB-log"),
        ("MariaDB", "10.11.19-MariaDB-0+deb12u1-log"),
        ("MariaDB", "11.4.8-MariaDB"),
        ("MariaDB", "12.0.1-MariaDB-ubu2404"),
    ],
)
def test_servers_from_the_least_version_on_are_taken(product: str, found: str) -> None:
    assert binlog(product, found) == []


@pytest.mark.parametrize(
    ("product", "found", "needed"),
    [
        ("MySQL", "5.7.44-log", "a MySQL server of version 8.0.17 or later"),
        ("MySQL", "8.0.16", "a MySQL server of version 8.0.17 or later"),
        ("MySQL", "10.11.19-MariaDB", 'kind = "mariadb" in [source]'),
        ("MariaDB", "10.6.22-MariaDB-log", "a MariaDB server of version 10.11 or later"),
        ("MariaDB", "10.3.39-MariaDB", "a MariaDB server of version 10.11 or later"),
        ("MariaDB", "9.7.4", 'kind = "mysql" in [source]'),
        ("MariaDB", "12.0.1", "a MariaDB server"),
    ],
)
def test_older_servers_and_another_product_are_refused_by_name(product: str, found: str, needed: str) -> None:
    (refused,) = binlog(product, found)
    assert (refused.check, refused.subject, refused.fatal) == ("version", "db:3306", True)
    assert refused.problem == f"the server is {found}"
    assert needed in refused.remedy


@pytest.mark.parametrize(
    ("number", "shown", "checks"),
    [
        ("140020", "14.20", ["server_version"]),
        ("130004", "13.4", ["server_version"]),
        ("150000", "15.0", []),
        ("160014", "16.14", []),
        ("180004", "18.4", []),
    ],
)
def test_postgresql_is_taken_from_15_on(number: str, shown: str, checks: list[str]) -> None:
    found = {"server_version_num": number, "server_version": shown, "server_encoding": "UTF8"}
    refused = list(postgres_version(found))
    assert [finding.check for finding in refused] == checks
    assert all(finding.fatal and shown in finding.problem and "15" in finding.remedy for finding in refused)


def test_a_database_whose_text_has_no_characters_is_refused() -> None:
    found = {"server_version_num": "180004", "server_version": "18.4", "server_encoding": "SQL_ASCII"}
    assert [finding.check for finding in postgres_version(found)] == ["server_encoding"]
