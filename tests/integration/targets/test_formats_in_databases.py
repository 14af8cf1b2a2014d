"""What rests in databases beside the ledger carries a number, is read without one, and refused with a newer one."""

from __future__ import annotations

import pytest

from migrator.adapters.sources.postgres.change_tables.catalog import ChangeTableCatalog
from migrator.adapters.targets.postgres.mirror.tables import FILLED, FILLING, SCHEMA, prepare
from migrator.adapters.targets.postgres.remap import forget_filled
from migrator.adapters.targets.postgres.session import Session
from migrator.errors import TargetError
from migrator.model.ledger import Ledger
from tests.fix_change_tables import captured
from tests.integration.target_bench import settings_of
from tests.servers import Database

pytestmark = pytest.mark.integration

NEW = Ledger("m", 1, 0, None)


def test_a_mirror_carries_its_format_and_a_newer_one_is_refused(new_pg: Database) -> None:
    session = Session(settings_of(new_pg))
    try:
        for _ in range(2):
            prepare(session, "m", [], NEW)
        comment = f"SELECT obj_description('{FILLED}'::regclass)"
        assert new_pg.query(comment) == [("migrator mirror, format 3",)]
        new_pg.execute(
            f"COMMENT ON TABLE {FILLED} IS NULL"
        )  # an older version made it: that is the first format
        prepare(session, "m", [], NEW)
        assert new_pg.query(comment) == [("migrator mirror, format 3",)], "it is brought up to date"
        new_pg.execute(f"COMMENT ON TABLE {FILLED} IS 'migrator mirror, format 2'", f"DROP TABLE {FILLING}")
        assert not forget_filled(settings_of(new_pg), "t"), "no target of the second format is being filled"
        prepare(session, "m", [], NEW)
        assert new_pg.query(f"SELECT count(*) FROM {FILLING}") == [(0,)]
        assert new_pg.query(comment) == [("migrator mirror, format 3",)]
        new_pg.execute(f"COMMENT ON TABLE {FILLED} IS 'migrator mirror, format 4'")
        with pytest.raises(TargetError, match="newer version") as caught:
            prepare(session, "m", [], NEW)
        assert caught.value.cause == "its format is 4, this version knows formats up to 3"
        assert SCHEMA in caught.value.where
        assert "newer one" in caught.value.remedy
    finally:
        session.close()


def test_change_tables_carry_their_format_and_newer_ones_are_refused(old_pg: Database) -> None:
    old_pg.execute("CREATE TABLE t (k int PRIMARY KEY, v text)")
    source, _ = captured(old_pg, "t")
    catalog = ChangeTableCatalog(source)
    assert old_pg.query("SELECT obj_description('migrator_cdc'::regnamespace)") == [
        ("migrator change tables, format 1",)
    ]
    old_pg.execute("COMMENT ON SCHEMA migrator_cdc IS NULL")
    assert [each for each in catalog.preflight(["t"]) if each.fatal] == []
    old_pg.execute("COMMENT ON SCHEMA migrator_cdc IS 'migrator change tables, format 2'")
    (fatal,) = [each for each in catalog.preflight(["t"]) if each.fatal]
    assert "format 2, this version knows formats up to 1" in fatal.problem
    assert "newer one" in fatal.remedy
