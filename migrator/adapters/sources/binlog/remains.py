"""Remains of a migration at a MySQL or MariaDB source: its row among the watermarks, and nothing else."""

from __future__ import annotations

from collections.abc import Sequence

from migrator.connections.mysql.settings import BinlogSource, connect, named_errors
from migrator.errors import SourceError
from migrator.ports.remains import Found, Kind, Left

_EXISTS = (
    "SELECT 1 FROM information_schema.tables WHERE table_schema = 'migrator' AND table_name = 'watermark'"
)
_MARK = "SELECT 1 FROM `migrator`.`watermark` WHERE `migration` = %s"
_DELETE = "DELETE FROM `migrator`.`watermark` WHERE `migration` = %s"
_TRY = "DELETE FROM `migrator`.`watermark` WHERE 1 = 0"
_WHAT = "the source can't be asked what is left"


class BinlogRemains:
    """``ports.remains.Remains`` at a MySQL or MariaDB source. The server's own log was only read."""

    def __init__(self, source: BinlogSource):
        self._source = source

    def found(self) -> Found:
        """See the port."""
        place = f"source {self._source.server.url()}"
        try:
            if not self._rows(_EXISTS) or not self._rows(_MARK, self._source.migration):
                return Found(place)
            self._rows(_TRY)
        except SourceError:  # the run itself needs neither SELECT nor DELETE there, and the row does no harm
            by_hand = f"DELETE FROM migrator.watermark WHERE migration = '{self._source.migration}'"
            return Found(place, kept=(f"the watermark row: {by_hand}",))
        return Found(
            place, (Left(Kind.WATERMARK, "watermark", "the watermark row in migrator.watermark"),), ()
        )

    def remove(self, lefts: Sequence[Left]) -> None:
        """See the port."""
        if lefts:
            self._rows(_DELETE, self._source.migration)

    def _rows(self, statement: str, *parameters: str) -> list[object]:
        connection = connect(self._source)
        try:
            with named_errors(self._source, _WHAT), connection.cursor() as cursor:
                cursor.execute(statement, parameters or None)
                return list(cursor.fetchall())
        finally:
            connection.close()
