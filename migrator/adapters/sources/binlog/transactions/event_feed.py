"""Hands the events of the log to who understands them: one by one, also those that stand inside of others."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence

from migrator.adapters.sources.binlog.events.events import Event, EventParser
from migrator.adapters.sources.binlog.statements import refusals
from migrator.errors import MigratorError

_DAMAGED = (IndexError, KeyError, ValueError, struct.error)


class EventFeed:
    """Parses raw events and names what is wrong with them.

    Args:
        handle: takes an event. Its ``IndexError``, ``KeyError``, ``ValueError`` and ``struct.error`` are those of
            damaged bytes.
        ahead: may take some events at once, from a place on; gives the place behind them.
        place: where in the log everything is understood up to, in words.

    ``parser`` is what it parses with.
    """

    def __init__(
        self,
        handle: Callable[[Event], None],
        ahead: Callable[[Sequence[bytes], int], int],
        place: Callable[[], str],
    ):
        self._handle = handle
        self._ahead = ahead
        self._place = place
        self.parser = EventParser()
        self._inner: list[Iterator[Event]] = []

    def enter(self, inside: Iterator[Event]) -> None:
        """The events that follow next: those inside of the present one."""
        self._inner.append(inside)

    def holds_more(self) -> bool:
        """Returns whether ``step`` has something to do."""
        return bool(self._inner)

    def feed(self, raw: Sequence[bytes], at: int, full: Callable[[], bool]) -> int:
        """Takes raw events from ``at`` on, each with those inside of it, until there are no more or it is ``full``.

        Returns the place of the next one. Raises ``SourceError`` naming what and where.
        """
        parse, handle, ahead, event = self.parser.parse, self._handle, self._ahead, None
        try:
            while not full():
                if self._inner:
                    self.step()
                elif at < len(raw):
                    at = ahead(raw, at)
                    if at == len(raw):
                        break
                    event = parse(raw[at])
                    at += 1
                    handle(event)
                else:
                    break
        except _DAMAGED as error:
            raise self._placed(_undecodable(error, event)) from error
        except MigratorError as error:
            self._placed(error)
            raise
        return at

    def step(self) -> bool:
        """Takes the next event out of one that holds many (compressed or held transactions); False without any.

        Raises as ``feed`` does.
        """
        event = None
        try:
            while self._inner:
                event = next(self._inner[-1], None)
                if event is not None:
                    self._handle(event)
                    return True
                self._inner.pop()
        except _DAMAGED as error:
            raise self._placed(_undecodable(error, event)) from error
        except MigratorError as error:
            self._placed(error)
            raise
        return False

    def _placed(self, error: MigratorError) -> MigratorError:
        place = self._place()
        if place not in error.where:
            error.where = "; ".join(filter(None, (error.where, f"after {place}")))
        return error


def _undecodable(error: Exception, event: Event | None) -> MigratorError:
    if event is None:
        raise error
    return refusals.undecodable(event, error)
