"""The document lists the rights on a MySQL or MariaDB target that `migrator grants` prints, word for word."""

from __future__ import annotations

import re
from pathlib import Path

from migrator.adapters.targets.mysql.checks.grants import target_grants
from migrator.adapters.targets.mysql.settings import MysqlTarget
from migrator.model.server import Server

DOCUMENT = Path(__file__).parents[3] / "docs" / "how-to" / "grants-mysql.md"


def unquoted(text: str) -> set[str]:
    """The GRANT statements of a text, without quotes."""
    return set(re.findall(r"GRANT [^;\n]+", re.sub(r"[`\\]", "", text)))


def undocumented(document: str) -> set[str]:
    target = MysqlTarget(Server("mariadb", "host", 3306, "new", "migrator"), migration="shop")
    printed = "\n".join(target_grants(target, ["person"], joined=True, both_ways=True).needed)
    return unquoted(printed) - unquoted(document)


def test_every_printed_right_on_a_target_is_documented() -> None:
    text = DOCUMENT.read_text()
    assert undocumented(text) == set()
    without = text.replace(
        "SELECT, INSERT, UPDATE, CREATE ON new.migrator_version", "SELECT ON new.migrator_version"
    )
    assert undocumented(without) == {
        "GRANT SELECT, INSERT, UPDATE, CREATE ON new.migrator_version TO migrator@'%'"
    }


def test_the_record_of_cut_overs_needs_rights_where_there_is_a_way_back_alone() -> None:
    target = MysqlTarget(Server("mariadb", "host", 3306, "new", "migrator"), migration="shop")
    one, both = (
        set(target_grants(target, ["person"], joined=False, both_ways=both_ways).needed)
        for both_ways in (False, True)
    )
    assert one < both
    assert both - one == {
        "GRANT SELECT, INSERT, UPDATE, DELETE, CREATE ON `new`.`migrator_cutover` TO `migrator`@'%'"
    }
