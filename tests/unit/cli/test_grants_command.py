"""`migrator grants`: what it prints for a project, without any server."""

from __future__ import annotations

import json
from pathlib import Path

from click.testing import CliRunner

from migrator.cli import cli

CONFIG = """
[migration]
name = "shop"
[source]
kind = "mysql"
database = "old"
user = "o`r"
[target]
kind = "postgresql"
database = "new"
user = 'n"w'
"""
MAPPING = """
from transforms import Mapping

mapping = Mapping()


@mapping.target("person", key="id"{grain})
def person(customer):
    return customer
"""


def printed(folder: Path, *options: str, grain: str = "", login: str = 'n"w') -> str:
    (folder / "migration.toml").write_text(CONFIG.replace("'n\"w'", json.dumps(login)))
    (folder / "mapping.py").write_text(MAPPING.format(grain=grain))
    command = ["grants", "--print", "--config", str(folder / "migration.toml"), *options]
    result = CliRunner().invoke(cli, command, catch_exceptions=False)
    assert result.exit_code == 0
    return result.output


def test_names_are_quoted_and_logins_made_by_a_person(tmp_path: Path) -> None:
    text = printed(tmp_path)
    assert "\nGRANT SELECT ON `old`.`customer` TO `o``r`@'%';\n" in text
    assert '\nGRANT SELECT, INSERT, UPDATE, DELETE ON "public"."person" TO "n""w";\n' in text
    made = [line for line in text.splitlines() if "CREATE USER" in line or "CREATE ROLE" in line]
    assert len(made) == 2
    assert all(line.startswith("-- ") for line in made)


def test_a_name_stays_what_it_is_and_ends_no_comment(tmp_path: Path) -> None:
    colours = printed(tmp_path, login="n\x1b[31mw")
    assert 'TO "n\x1b[31mw";\n' in colours
    text = printed(tmp_path, login="n\nDROP TABLE x; --")
    (made,) = [part for part in text.split("\n-- ") if "CREATE ROLE" in part]
    assert "DROP TABLE" not in made
    assert '\n-- DROP TABLE x; --"' in text


def test_a_mirror_is_for_joined_mappings_only(tmp_path: Path) -> None:
    assert "migrator_mirror" not in printed(tmp_path)
    assert "\nCREATE SCHEMA migrator_mirror" in printed(tmp_path, grain=', grain="customer.id"')


def test_one_side_only(tmp_path: Path) -> None:
    assert "MySQL source" not in printed(tmp_path, "--side", "target")
    assert "PostgreSQL target" not in printed(tmp_path, "--side", "source")


def test_a_login_for_dual_reads_only_reads(tmp_path: Path) -> None:
    text = printed(tmp_path, "--dual-read", 'a"p`p')
    statements = [line for line in text.splitlines() if line and not line.startswith("-- ")]
    assert statements == [
        "GRANT SELECT ON `old`.`customer` TO `a\"p``p`@'%';",
        'GRANT CONNECT ON DATABASE "new" TO "a""p`p";',
        'GRANT USAGE ON SCHEMA "public" TO "a""p`p";',
        'GRANT SELECT ON "public"."person" TO "a""p`p";',
        'GRANT USAGE ON SCHEMA migrator TO "a""p`p";',
        'GRANT SELECT ON migrator.ledger TO "a""p`p";',
    ]


def test_as_json_both_sides_have_the_same_statements(tmp_path: Path) -> None:
    text = printed(tmp_path)
    found = json.loads(printed(tmp_path, "--json"))
    assert [side["side"] for side in found["sides"]] == ["source", "target"]
    statements = [f"{one};" for side in found["sides"] for one in side["needed"]]
    assert statements == [line for line in text.splitlines() if not line.startswith("--") and line]
    assert f"-- Only {found['sides'][0]['perhaps'][0]['only']}:" in text
    (target,) = json.loads(printed(tmp_path, "--json", "--side", "target"))["sides"]
    assert target["side"] == "target"
