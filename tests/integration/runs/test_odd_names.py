"""Names with quotes, dots, blanks, placeholders, reserved words: a whole migration, requests and verification."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.integration.runs.odd_names import COUNTED, DOTTED, KEY, TABLE, VALUE, Odd

pytestmark = [pytest.mark.integration, pytest.mark.spark]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("old", "new", "table"),
    [
        ("old_pg", "new_pg", DOTTED),
        ("old_mysql", "new_pg", DOTTED),
        ("old_maria", "new_mysql", DOTTED),
        ("old_pg", "new_maria", TABLE),
    ],
    ids=["postgresql", "mysql to postgresql", "mariadb to mysql", "postgresql to mariadb"],
)
def test_every_name_may_be_odd(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    spark: SparkSession,
    capsys: pytest.CaptureFixture[str],
    old: str,
    new: str,
    table: str,
) -> None:
    odd = Odd(request.getfixturevalue(old), request.getfixturevalue(new), table)
    odd.fill()
    project = odd.project(tmp_path / "project")
    assert project.command("check") == 0, capsys.readouterr().out
    project.run_here()
    name = odd.of_old(table)
    key, value = odd.name(odd.old, KEY), odd.name(odd.old, VALUE)
    odd.old.execute(
        f"UPDATE {name} SET {value} = 'new' WHERE {key} = 3",
        f"UPDATE {name} SET {key} = 30 WHERE {key} = 4",
        f"DELETE FROM {name} WHERE {key} = 5",
        f"INSERT INTO {name} VALUES (40, 'k', 'forty', 7)",
    )
    project.command("dump", "start", "--table", table, "--from", "1,", "--to", "4,")
    project.command("dump", "start", "--table", table, "--where", f"{value} LIKE 'v%'")
    project.run_here()
    wanted, found = odd.rows()
    assert found == wanted
    assert len(found) >= 9
    for command, code in (("verify", 0), ("explain", 0), ("status", 5)):
        assert project.command(command) == code, capsys.readouterr().out
    if odd.joined:
        assert project.command("remap", COUNTED) == 0
        project.run_here()
        assert odd.rows()[1] == wanted
