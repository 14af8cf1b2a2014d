"""A damaged event log: what it lost is captured again, from where the target stands.

Safe because nothing new happens. The target's ledger stands at the end of a whole transaction and carries the
checkpoint to go on from, dump progress included: from there a migration goes on whose event log was lost, or
written on another machine. What the damaged log held beyond that was seen by nobody: while an output of
change events reads the log, it is refused. Whether the source still has its log from there, only reading it
will tell.
"""

from __future__ import annotations

from collections.abc import Callable

from migrator.errors import DamageError, EventLogError, GapError, MigratorError
from migrator.model.ledger import Ledger

SetAside = Callable[[Ledger], str]


class Recapture:
    """One process's dealings with damage.

    Args:
        set_aside: given the ledger, puts an empty event log in a damaged one's place; where that one is now, empty
            if it isn't damaged after all.
    """

    def __init__(self, set_aside: SetAside):
        self._set_aside = set_aside
        self._damage: DamageError | None = None
        self._sound = False
        self._aside = ""

    def met(self, error: DamageError) -> bool:
        """Damage stopped a run; whether it makes sense to start again."""
        # What was found sound after the first error isn't what stops it now: looking again would go on for ever.
        again = not self._sound
        self._damage = error
        return again

    def prepare(self, ledger: Ledger) -> str:
        """Under the lead, before the event log is opened: what was done, for people; empty: nothing.

        Looks anew whether there is damage: another leader may have seen to it meanwhile.
        """
        damage = self._damage
        if damage is None:
            return ""
        self._damage, self._aside = None, self._set_aside(ledger)
        self._sound = not self._aside
        if self._sound:
            return ""
        self._last_damage = damage
        return f"{damage.what} ({damage.cause}): what it held is captured again; the damaged log is {self._aside}"

    def explained(self, error: MigratorError) -> MigratorError:
        """A gap of the source's log, if it is damage that needs what lies in the gap."""
        if not self._aside or not isinstance(error, GapError):
            return error
        return EventLogError(
            self._last_damage.what,
            where=self._last_damage.where,
            cause=f"{self._last_damage.cause}. It can't be captured again: {error.what}; {error.cause}",
            remedy=f"put a sound copy of the event log in its place (the damaged one is {self._aside}), or start the"
            " migration anew (docs/how-to/start-anew.md); [source] keep_until_applied = true lets the"
            " source keep its log for such a case",
        )
