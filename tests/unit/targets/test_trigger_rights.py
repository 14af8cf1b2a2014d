"""Which lines of SHOW GRANTS, of MySQL and MariaDB, let a login see the triggers of a table."""

from __future__ import annotations

import pytest

from migrator.adapters.targets.mysql.checks.preflight_triggers import sees_triggers
from migrator.model.table import TableId

TABLE = TableId("shop_1", "orders")


@pytest.mark.parametrize(
    "grant",
    [
        "GRANT ALL PRIVILEGES ON *.* TO `a`@`%` WITH GRANT OPTION",
        "GRANT SELECT, TRIGGER, INSERT ON *.* TO `a`@`%`",
        "GRANT TRIGGER ON `shop_1`.* TO `a`@`%`",
        "GRANT TRIGGER ON `shop%`.* TO `a`@`%`",
        r"GRANT TRIGGER ON `shop\_1`.* TO `a`@`%`",
        "GRANT SELECT (`a`, `TRIG)GER`), TRIGGER ON `shop_1`.`orders` TO `a`@`%`",
        "GRANT ALL PRIVILEGES ON TABLE `shop_1`.`orders` TO `a`@`%`",
    ],
)
def test_the_right_is_found(grant: str) -> None:
    assert sees_triggers(["GRANT USAGE ON *.* TO `a`@`%`", grant], TABLE)


@pytest.mark.parametrize(
    "grant",
    [
        "GRANT USAGE ON *.* TO `a`@`%`",
        "GRANT SELECT, INSERT, CREATE TEMPORARY TABLES ON *.* TO `a`@`%`",
        "GRANT TRIGGER ON `shop`.* TO `a`@`%`",
        r"GRANT TRIGGER ON `shop\_2`.* TO `a`@`%`",
        "GRANT TRIGGER ON `shop_1`.`customers` TO `a`@`%`",
        "GRANT TRIGGER ON `shop__`.`orders` TO `a`@`%`",
        "GRANT SELECT (`x TRIGGER x`) ON `shop_1`.`orders` TO `a`@`%`",
        "GRANT `TRIGGER`@`%` TO `a`@`%`",
        "GRANT TRIGGER_ADMIN ON *.* TO `a`@`%`",
    ],
)
def test_no_other_right_is_taken_for_it(grant: str) -> None:
    assert not sees_triggers([grant], TABLE)
