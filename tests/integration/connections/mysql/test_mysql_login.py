"""How MySQL's users log in."""

from __future__ import annotations

import pytest

from migrator.adapters.sources.mysql.catalog import MysqlCatalog
from migrator.errors import ConnectionFailed
from tests.integration.binlog_reading import source_of
from tests.servers import Database

pytestmark = pytest.mark.integration


def test_a_password_is_never_sent_without_tls(old_mysql: Database) -> None:
    user = f"u{old_mysql.database[-8:]}"
    old_mysql.execute(f"CREATE USER '{user}'@'%' IDENTIFIED WITH caching_sha2_password BY 'secret word'")
    login = {"user": user, "password": "secret word"}
    with pytest.raises(ConnectionFailed) as refused:
        MysqlCatalog(source_of(old_mysql, **login, tls="disable")).position()
    assert "tls" in refused.value.remedy
    assert "secret word" not in str(refused.value)
    old_mysql.execute(f"DROP USER '{user}'@'%'")
