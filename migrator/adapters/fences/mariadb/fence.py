"""``ports.fence.Fence`` on MariaDB."""

from __future__ import annotations

from migrator.adapters.fences.mysql.fence import MysqlFence
from migrator.adapters.fences.mysql.session import MysqlFenceSession, Words
from migrator.adapters.fences.mysql.triggers import ErrorsByLogin

_WORDS = Words(
    xa="XA RECOVER FORMAT='SQL'",
    roles="SELECT CONCAT(Role, '@'), CONCAT(User, '@', Host) FROM mysql.roles_mapping",
    channels="SHOW ALL SLAVES STATUS",
    read_only=("read_only",),
    keep="",
    kept="",
    exempt="READ_ONLY ADMIN",
)


class MariaFence(MysqlFence):
    """The fence of a MariaDB database (see ``MysqlFence``)."""

    words = _WORDS

    def _errors(self) -> ErrorsByLogin:
        return _not_counted


def _not_counted(session: MysqlFenceSession, number: int) -> dict[str, int] | None:
    return None
