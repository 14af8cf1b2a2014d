"""Batches of JSON lines to an API, one after the other, each under a key by which the API drops what it has."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Protocol

from migrator.adapters.outputs.http_api.refusal import Request, TooLarge
from migrator.adapters.outputs.http_api.spool import Batch
from migrator.errors import OutputError
from migrator.ports.output import Held, SegmentEvents

Numbered = Callable[[SegmentEvents], list[tuple[int, bytes]]]
"""A segment's events in order: number, and line of JSON with its line break."""
_ANEW = (
    "begin it anew: `migrator events --forget` with the same --output, where the API can begin anew as well"
)


class Sender(Protocol):
    """Sends a batch until it is taken, as ``Api`` does."""

    def send(self, request: Request, body: bytes, headers: Mapping[str, str]) -> None:
        """Returns once it is taken. Raises ``OutputError``."""
        ...

    def close(self) -> None:
        """Frees what is open."""
        ...


class Kept(Protocol):
    """Keeps the batch that is on its way, as ``Spool`` does."""

    def read(self) -> Batch | None:
        """The batch that was kept last."""
        ...

    def write(self, batch: Batch) -> None:
        """Keeps a batch instead, durably."""
        ...

    def remove(self) -> None:
        """Keeps none."""
        ...


@dataclass(frozen=True, slots=True)
class Bounds:
    """The most that a batch holds; one event may be larger than ``bytes``, and is a batch of its own then."""

    events: int = 1000
    bytes: int = 1 << 20


class HttpOutput:
    """An ``EventOutput`` to an API; the mark is the number of the last batch that was taken.

    A batch is kept on disk before it is sent, and the next one takes its place once it was taken. So after a kill at
    most one batch may have been taken without our knowledge: it is sent again, the same bytes under the same key.

    Args:
        request: address and secrets.
        api: sends a batch.
        spool: keeps it.
        numbered: makes lines of events.
        bounds: of a batch.
    """

    def __init__(
        self, request: Request, api: Sender, spool: Kept, numbered: Numbered, bounds: Bounds
    ) -> None:
        self._request = request
        self._api = api
        self._spool = spool
        self._numbered = numbered
        self._bounds = bounds
        self._stream = secrets.token_hex(8)
        self._taken, self._last = 0, (0, 0)
        self._waiting: list[bytes] = []
        self._waiting_bytes, self._waiting_last = 0, (0, 0)

    def open(self, mark: int | None) -> Held | None:
        """Sends a batch again that may or may not have been taken (see the port)."""
        kept = self._spool.read()
        if kept is None:
            if mark:
                raise self._gone(f"{mark:,} batches were taken, and the last one isn't kept here")
            return None
        if mark is None:
            raise OutputError(
                "the output isn't empty, and not known as an output of this migration",
                where=self._request.where(),
                cause=f"batch {kept.number:,} of an earlier one is kept",
                remedy=_ANEW,
            )
        if kept.number - kept.unwanted < mark:
            raise self._gone(f"{mark:,} batches were taken, and batch {kept.number:,} is kept here")
        self._stream = kept.stream
        if kept.unwanted:
            self._taken, self._last = kept.number - 1, kept.before
        elif kept.number > mark:
            self._deliver(kept)
        else:
            self._taken, self._last = kept.number, kept.last
        return Held(*self._last) if self._taken > mark else None

    def write(self, events: SegmentEvents) -> None:
        """Sends what fills batches, and keeps the rest. Raises ``OutputError`` when the API refuses."""
        for number, line in self._numbered(events):
            if self._waiting and self._waiting_bytes + len(line) > self._bounds.bytes:
                self._send()
            self._waiting.append(line)
            self._waiting_bytes += len(line)
            self._waiting_last = (events.segment, number)
            if len(self._waiting) >= self._bounds.events:
                self._send()

    def commit(self, segment: int) -> int:
        """Sends the rest; returns the number of the last batch."""
        if self._waiting:
            self._send()
        return self._taken

    def close(self) -> None:
        """Drops what wasn't sent."""
        self._waiting, self._waiting_bytes = [], 0
        self._api.close()

    def forget(self) -> None:
        """Removes the batch that is kept."""
        self._spool.remove()

    def _send(self) -> None:
        lines, self._waiting, self._waiting_bytes = self._waiting, [], 0
        batch = Batch(
            self._stream, self._taken + 1, self._last, self._waiting_last, len(lines), b"".join(lines)
        )
        self._spool.write(batch)
        self._deliver(batch)

    def _deliver(self, batch: Batch) -> None:
        key = batch.key()
        headers = {
            "Content-Type": "application/x-ndjson",
            "Idempotency-Key": key,
            "Migrator-Batch": str(batch.number),
            "Migrator-Events": str(batch.events),
        }
        try:
            self._api.send(replace(self._request, key=key, events=batch.events), batch.body, headers)
        except TooLarge:
            self._spool.write(replace(batch, unwanted=True))
            raise
        self._taken, self._last = batch.number, batch.last

    def _gone(self, cause: str) -> OutputError:
        return OutputError(
            "what was sent to the API isn't known any more",
            where=self._request.where(),
            cause=cause,
            remedy=f"put the state folder back as it was, or {_ANEW}",
        )
