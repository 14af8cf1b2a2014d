"""``ports.fence.Fence`` on MariaDB."""

from __future__ import annotations

from migrator.adapters.fences.mysql.counting import Counting, Sequences
from migrator.adapters.fences.mysql.fence import MysqlFence, notes_place
from migrator.adapters.fences.mysql.session import Words
from migrator.adapters.fences.shared.kept_fence import Side
from migrator.connections.mysql.sql import quote

_WORDS = Words(
    xa="XA RECOVER FORMAT='SQL'",
    roles="SELECT CONCAT(Role, '@'), CONCAT(User, '@', Host) FROM mysql.roles_mapping",
    channels="SHOW ALL SLAVES STATUS",
    read_only=("read_only",),
    keep="",
    kept="",
    exempt="READ_ONLY ADMIN",
    sees=("PROCESS",),
    innodb_tables="INNODB_SYS_TABLES",
)


class MariaFence(MysqlFence):
    """The fence of a MariaDB database (see ``MysqlFence``)."""

    words = _WORDS

    def _counting(self, side: Side) -> Counting:
        return Sequences(f"{quote(notes_place(side)[0])}.`{side.name()}")
