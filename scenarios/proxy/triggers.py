"""Events that are to happen once to one connection of a proxy: a reset at a byte or around a COMMIT, a flipped
byte."""

from __future__ import annotations

from typing import Literal

from scenarios.proxy.link import Direction, Link, Stream, Trigger


class AfterBytes(Trigger):
    """Cuts the first connection in which ``size_bytes`` more have gone in a direction, exactly behind them."""

    def __init__(self, direction: Direction, size_bytes: int, stream: Stream):
        super().__init__(f"reset after {size_bytes} bytes {direction}", stream)
        self.direction = direction
        self.size_bytes = size_bytes
        self.seen_bytes: dict[Link, int] = {}


class FlipByte(Trigger):
    """Changes one byte of the first connection in which that many more have gone in a direction."""

    def __init__(self, direction: Direction, at_byte: int, stream: Stream):
        super().__init__(f"byte {at_byte} {direction} flipped", stream)
        self.direction = direction
        self.at_byte = at_byte
        self.seen_bytes: dict[Link, int] = {}


class AroundCommit(Trigger):
    """Cuts before the COMMIT reaches the server, or after it was answered, the answer withheld."""

    def __init__(self, when: Literal["before", "after"], count: int, stream: Stream, silent: bool):
        super().__init__(f"{'silence' if silent else 'reset'} {when} COMMIT", stream)
        self.when = when
        self.silent = silent
        self.left = count


class Triggers:
    """The triggers that wait; used in the proxy's loop only."""

    def __init__(self) -> None:
        self._waiting: list[Trigger] = []

    def arm(self, trigger: Trigger) -> None:
        """Lets it wait for its moment."""
        self._waiting.append(trigger)

    def disarm(self, trigger: Trigger) -> None:
        """Removes a trigger that has happened, or isn't wanted any more."""
        self._waiting = [other for other in self._waiting if other is not trigger]

    def clear(self) -> None:
        """Disarms all."""
        self._waiting.clear()

    def around_commit(self, link: Link, data: bytes) -> tuple[Trigger | None, bytes]:
        """The trigger that cuts before a COMMIT in the data, if one does, and the data before it.

        One that cuts after the COMMIT is left with the link, to cut when the server's answer arrives.
        """
        for commit in link.scanner.feed(data):
            for trigger in self._waiting:
                if isinstance(trigger, AroundCommit) and link.is_of(trigger.stream):
                    trigger.left -= 1
                    if trigger.left == 0 and trigger.when == "before":
                        return trigger, data[: commit.begin]
                    if trigger.left == 0:
                        link.at_answer = trigger
        return None, data

    def after_bytes(self, link: Link, direction: Direction, data: bytes) -> tuple[Trigger | None, bytes]:
        """The trigger that cuts within the data, if one does, and the data up to there."""
        for trigger in self._waiting:
            if (
                isinstance(trigger, AfterBytes)
                and trigger.direction == direction
                and link.is_of(trigger.stream)
            ):
                seen_bytes = trigger.seen_bytes.get(link, 0)
                trigger.seen_bytes[link] = seen_bytes + len(data)
                if seen_bytes + len(data) >= trigger.size_bytes:
                    return trigger, data[: trigger.size_bytes - seen_bytes]
        return None, data

    def flipped(self, link: Link, direction: Direction, data: bytes) -> tuple[Trigger | None, bytes]:
        """The trigger that changes a byte of the data, if one does, and the data after that."""
        for trigger in self._waiting:
            if (
                isinstance(trigger, FlipByte)
                and trigger.direction == direction
                and link.is_of(trigger.stream)
            ):
                place = trigger.at_byte - trigger.seen_bytes.get(link, 0)
                trigger.seen_bytes[link] = trigger.seen_bytes.get(link, 0) + len(data)
                if place < len(data):
                    return trigger, data[:place] + bytes((data[place] ^ 1,)) + data[place + 1 :]
        return None, data
