"""The judge knows columns that were declared JSON on MariaDB, which makes texts of them: it compares documents."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.judged import settings_of
from tests.servers import Database
from verify.readers.mysql.target import MySQLTarget
from verify.settings import ServerSettings
from verify.tables.compare.normalise import kind_of

pytestmark = pytest.mark.integration

TABLE = """
CREATE TABLE item (id int PRIMARY KEY, document json, `odd "name` json, note longtext,
 checked longtext CHECK (json_valid(note)), named longtext, CONSTRAINT named CHECK (json_valid(named)))
"""


@pytest.mark.parametrize("mode", ["", "ANSI_QUOTES"])
def test_only_what_was_declared_json_is_compared_as_documents(
    new_maria: Database, tmp_path: Path, mode: str
) -> None:
    connection = new_maria.connect()
    with connection.cursor() as cursor:
        cursor.execute("SET sql_mode = %s", [mode])
        cursor.execute(TABLE.replace('`odd "name`', '"odd ""name"') if mode else TABLE)
    connection.close()
    settings: ServerSettings = settings_of(new_maria)
    rows = MySQLTarget(settings, "shop").snapshot(["item"], tmp_path).tables["item"]
    assert {column.name: kind_of(column) for column in rows.columns} == {
        "id": "integer",
        "document": "json",
        'odd "name': "json",
        "note": "text",
        "checked": "text",
        "named": "text",
    }
