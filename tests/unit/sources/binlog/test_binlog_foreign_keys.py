"""Which changes of which tables change captured rows unseen."""

from __future__ import annotations

import pytest

from migrator.adapters.sources.binlog.statements.altered import Altered, altered
from migrator.adapters.sources.binlog.statements.foreign_keys import (
    Cascades,
    ForeignKey,
    Trigger,
    find_cascades,
    rules,
)
from migrator.adapters.sources.binlog.statements.query_event import QueryText
from migrator.model.table import TableId

A, B, C = (TableId("old", name) for name in "abc")


def key(
    child: TableId, parent: TableId, on_delete: str = "NO ACTION", on_update: str = "NO ACTION"
) -> ForeignKey:
    return ForeignKey(
        f"{child.name}_{parent.name}", child, parent, (f"{parent.name}_id",), ("id",), on_delete, on_update
    )


def watched(*keys: ForeignKey, triggers: tuple[Trigger, ...] = ()) -> Cascades:
    return find_cascades(keys, [C], triggers)


def test_parents_of_captured_children_are_watched_by_what_acts() -> None:
    found = watched(key(C, A, "CASCADE"), key(C, B, "RESTRICT", "SET NULL"), key(B, A, "CASCADE")).watched
    assert bool(found[A].delete) is True
    assert found[A].update == {}
    assert found[B].delete == ""
    assert list(found[B].update) == ["id"]
    assert watched(key(C, A)).watched == {}


def test_chains_through_tables_that_nobody_captures_count_where_they_reach_a_captured_row() -> None:
    deleted = watched(key(B, A, "CASCADE"), key(C, B, "SET NULL"))
    assert deleted.watched[A].delete == (
        "old.b constraint b_a ON DELETE CASCADE, old.c constraint c_b ON DELETE SET NULL"
    )
    assert deleted.concerned == {A, B, C}
    # b's rows are changed, not deleted, and in a column that c does not refer to
    assert A not in watched(key(B, A, "SET NULL"), key(C, B, "CASCADE")).watched
    assert A not in watched(key(B, A, "SET NULL", "CASCADE"), key(C, B, on_update="CASCADE")).watched
    refers = ForeignKey("c_b", C, B, ("x",), ("a_id",), "NO ACTION", "CASCADE")
    assert watched(key(B, A, "SET NULL", "CASCADE"), refers).watched[A].delete
    assert list(watched(key(B, A, "SET NULL", "CASCADE"), refers).watched[A].update) == ["id"]


def test_a_trigger_stands_in_for_its_own_action_only() -> None:
    foreign = key(C, B, "SET NULL", "CASCADE")
    assert foreign.trigger() == "UPDATE `old`.`c` SET `b_id` = NULL WHERE `b_id` = OLD.`id`"
    trigger = Trigger("tr", B, "update old.c set b_id=NULL where b_id = old.id")
    found = watched(foreign, key(B, A, "CASCADE"), triggers=(trigger,))
    assert found.watched[B].delete == ""
    assert list(found.watched[B].update) == ["id"]
    assert found.triggers == {"tr"}
    assert found.watched[A].delete  # InnoDB deletes b's rows by itself then, and no trigger runs
    plain = Trigger("tr", B, "UPDATE c SET b_id = NULL WHERE b_id = OLD.id")
    assert watched(foreign, triggers=(plain,)).watched[B].delete == ""
    elsewhere = Trigger("tr", B, "UPDATE new.c SET b_id = NULL WHERE b_id = OLD.id")
    assert watched(foreign, triggers=(elsewhere,)).watched[B].delete
    other = Trigger("tr", B, "update old.c set b_id=NULL where b_id = old.id and b_id > 5")
    assert watched(foreign, triggers=(other,)).watched[B].delete


def test_the_digest_tells_what_is_watched() -> None:
    assert watched(key(C, A)).digest() == ""
    digests = {
        watched(key(C, A, "CASCADE")).digest(),
        watched(key(C, B, "CASCADE")).digest(),
        watched(key(C, A, "CASCADE", "CASCADE")).digest(),
    }
    assert len(digests) == 3


@pytest.mark.parametrize(
    ("text", "change"),
    [
        ("DROP TRIGGER IF EXISTS `old`.`tr`", Altered(dropped_trigger="tr")),
        (
            "CREATE OR REPLACE DEFINER=`root`@`%` TRIGGER tr BEFORE DELETE ON a FOR EACH ROW SET @x = 1",
            Altered(dropped_trigger="tr"),
        ),
        ("CREATE TRIGGER tr BEFORE DELETE ON a FOR EACH ROW SET @x = 1", Altered()),
        ("RENAME TABLE a TO x, y TO b", Altered(moved=(A, TableId("old", "x"), TableId("old", "y"), B))),
        ("DROP TABLE a", Altered(moved=(A,))),
        ("ALTER TABLE a RENAME TO x", Altered(A, ("RENAME TO x",), moved=(A,))),
        ("ALTER TABLE a RENAME COLUMN x TO y", Altered(A, ("RENAME COLUMN x TO y",))),
        ("ALTER TABLE a RENAME x", Altered(A, ("RENAME x",), moved=(A,))),
        (
            "ALTER TABLE a ADD FOREIGN KEY (x) REFERENCES b (id) ON DELETE CASCADE",
            Altered(A, ("ADD FOREIGN KEY ( x ) REFERENCES b ( id ) ON DELETE CASCADE",), cascades=True),
        ),
    ],
)
def test_statements_that_change_what_cascades_are_understood(text: str, change: Altered) -> None:
    assert altered(QueryText("old", text)) == change


@pytest.mark.parametrize(
    ("end", "wanted"),
    [
        ("", ("RESTRICT", "RESTRICT")),
        (",", ("RESTRICT", "RESTRICT")),
        (" ON DELETE CASCADE", ("CASCADE", "RESTRICT")),
        (" ON DELETE NO ACTION ON UPDATE SET NULL,", ("NO ACTION", "SET NULL")),
        (" ON UPDATE CASCADE", ("RESTRICT", "CASCADE")),
        (" ON DELETE WHATEVER", ("CASCADE", "CASCADE")),
    ],
)
def test_what_a_key_does_is_read_from_its_tables_statement(end: str, wanted: tuple[str, str]) -> None:
    other = "  CONSTRAINT `other` FOREIGN KEY (`k`) REFERENCES `q` (`id`) ON DELETE SET NULL,\n"
    statement = (
        f"CREATE TABLE `t` (\n{other}  CONSTRAINT `a``b` FOREIGN KEY (`c`) REFERENCES `p` (`id`){end}\n) x"
    )
    assert rules(statement, "a`b") == wanted
    assert rules(statement, "not there") == ("CASCADE", "CASCADE")
