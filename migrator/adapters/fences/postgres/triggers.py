"""Triggers that refuse rows on PostgreSQL.

They are made while everybody goes on writing: until then their function lets everything pass. Then one transaction
replaces the function, and all tables are closed at once, without any lock on them. Opening is the same the other way
round; the triggers, whose removal has to wait for readers too, are dropped afterwards.

ENABLE ALWAYS, as replication and ``session_replication_role = replica`` pass other triggers; for each row, as the
worker of a subscription fires no others; and ``session_user``, as ``current_user`` changes inside of functions with
their owner's rights. TRUNCATE has a trigger of its own, on each partition. Refused writers are counted by sequences,
which no rollback turns back.
"""

from __future__ import annotations

from collections.abc import Sequence

from migrator.adapters.fences.postgres.relations import HOLDING, WRITING, Relation, at_work, relations
from migrator.adapters.fences.postgres.session import PostgresFenceSession, literal, quoted, quoted_table
from migrator.adapters.fences.shared.kept_fence import Before
from migrator.adapters.fences.shared.notes import Noted, Notes
from migrator.adapters.fences.shared.session import Limit
from migrator.model.cutover.fence import FencePlan, FenceState, LateWriters, OpenTransaction, Standing

_MOST_NAMES = 100
_ARMED = "/* armed */"
_WAITS = "/* not armed yet */"
_LOGINS = (
    "SELECT rolname::text FROM pg_catalog.pg_roles WHERE rolcanlogin AND rolname <> %s"
    " ORDER BY rolsuper, pg_catalog.left(rolname, 3) = 'pg_', rolname LIMIT %s"
)
_TRIGGERS = (
    "SELECT t.tgrelid::bigint, t.tgtype & 127, t.tgenabled::text FROM pg_catalog.pg_trigger t"
    " WHERE t.tgfoid = pg_catalog.to_regprocedure(%s)"
)
_OURS = (
    "SELECT n.nspname::text, c.relname::text, t.tgname::text FROM pg_catalog.pg_trigger t"
    " JOIN pg_catalog.pg_class c ON c.oid = t.tgrelid JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace"
    " WHERE t.tgfoid = pg_catalog.to_regprocedure(%s) AND t.tgparentid = 0 ORDER BY 1, 2, 3"
)
_BODY = "SELECT prosrc FROM pg_catalog.pg_proc WHERE oid = pg_catalog.to_regprocedure(%s)"
_ROW, _TRUNCATE = 31, 34
"""``pg_trigger.tgtype``: for each row, before, insert, delete and update; before a truncate."""


class Triggers:
    """``Means`` by triggers.

    Args:
        name: of what is made, of plain letters.
        notes: their row is moved and forgotten together with the function.
    """

    def __init__(self, name: str, notes: Notes):
        self._name, self._notes = name, notes
        self._function = f"migrator.{name}"

    def before(self, session: PostgresFenceSession, plan: FencePlan) -> Before:
        """Returns the logins whose refusals are counted by name: nothing that is there is changed."""
        return {"logins": [login for (login,) in session.rows(_LOGINS, (plan.login, _MOST_NAMES))]}

    def put_up(self, session: PostgresFenceSession, noted: Noted, limit: Limit) -> None:
        """Makes the function, then the triggers in short tries, and closes all tables at once."""
        plan, logins = noted.plan, noted.before["logins"]
        if not self._armed(session):
            limit.change(
                session,
                *(
                    f"CREATE SEQUENCE IF NOT EXISTS {sequence} MINVALUE 0 START 0"
                    for sequence in self._sequences(logins)
                ),
                self._function_that(_WAITS, _passes()),
            )
        lacking = [one for one in relations(session, plan.tables) if self._lacks(session, one)]
        limit.all_of(
            lacking,
            lambda one: session.change(*self._creating(session, one, plan)),
            lambda left: at_work(session, [one.table for one in left], modes=WRITING),
        )
        limit.change(session, self._function_that(_ARMED, self._refuses(plan, logins), definer=True))
        self._notes.stamp(session, limit)

    def take_down(self, session: PostgresFenceSession, noted: Noted, limit: Limit) -> None:
        """Lets everybody pass at once, then drops what was made in short tries, and forgets the notes with it."""
        if session.rows(_BODY, (self._called,)):
            limit.change(session, self._function_that(_WAITS, _passes()))
        limit.all_of(
            session.rows(_OURS, (self._called,)),
            lambda one: session.change(
                f"DROP TRIGGER IF EXISTS {quoted(one[2])} ON {quoted(one[0])}.{quoted(one[1])}"
            ),
            lambda left: self._in_the_way(session, noted, left),
        )
        limit.change(session, *self._dropped(noted), self._notes.forget(noted))

    def state(self, session: PostgresFenceSession, noted: Noted) -> FenceState:
        """Returns which of the triggers the server has, and what their function does."""
        found = session.rows(_TRIGGERS, (self._called,))
        body = session.rows(_BODY, (self._called,))
        if not found and not body:
            return FenceState(Standing.DOWN, ("there are no triggers",))
        missing = [] if self._armed(session) else ["the triggers let everybody pass"]
        for one in relations(session, noted.plan.tables):
            enabled = {(kind, as_) for oid, kind, as_ in found if int(oid) == one.oid}
            lacking = [kind for kind in (_ROW, _TRUNCATE) if (kind, "A") not in enabled]
            if lacking:
                missing.append(f"{one.table} lacks a trigger that fires always")
        return FenceState(Standing.PARTLY if missing else Standing.UP, tuple(missing))

    def late(self, session: PostgresFenceSession, noted: Noted) -> LateWriters:
        """Returns the counts of the sequences."""
        counts = []
        for login, sequence in zip(
            ["", *noted.before["logins"]], self._sequences(noted.before["logins"]), strict=True
        ):
            if session.rows("SELECT pg_catalog.to_regclass(%s) IS NOT NULL", (sequence,))[0][0]:
                ((last, called),) = session.rows(f"SELECT last_value, is_called FROM {sequence}")
                counts.append((login, int(last) + 1 if called else 0))
        return LateWriters(
            sum(count for _, count in counts),
            tuple((login, count) for login, count in counts if count),
            "refused statements, by the login of the session; logins made since the fence was raised have no name",
        )

    def by_hand(self, session: PostgresFenceSession, noted: Noted) -> list[str]:
        """Returns statements that let everybody pass at once, and then remove what was made."""
        passes = literal(self._function_that(_WAITS, _passes()))
        there = f"pg_catalog.to_regprocedure({literal(self._called)}) IS NOT NULL"
        return [
            "DO " + literal(f"BEGIN IF {there} THEN EXECUTE {passes}; END IF; END"),
            f"DROP FUNCTION IF EXISTS {self._function}() CASCADE",
            *self._dropped(noted),
        ]

    @property
    def _called(self) -> str:
        return f"{self._function}()"

    def _armed(self, session: PostgresFenceSession) -> bool:
        return any(_ARMED in body for (body,) in session.rows(_BODY, (self._called,)))

    def _lacks(self, session: PostgresFenceSession, one: Relation) -> bool:
        found = session.rows(_TRIGGERS + " AND t.tgrelid = %s", (self._called, one.oid))
        return {(kind, as_) for _, kind, as_ in found} != {(_ROW, "A"), (_TRUNCATE, "A")}

    def _creating(self, session: PostgresFenceSession, one: Relation, plan: FencePlan) -> list[str]:
        """The statements that make what lacks: a partition has its row trigger from the table above it."""
        there = {
            kind for _, kind, _ in session.rows(_TRIGGERS + " AND t.tgrelid = %s", (self._called, one.oid))
        }
        table = quoted_table(one.table)
        # Whose session it is, whatever role a function took on meanwhile.
        who = f" WHEN (session_user OPERATOR(pg_catalog.<>) {literal(plan.login)}::pg_catalog.name)"
        does = f"{who if plan.login else ''} EXECUTE FUNCTION {self._function}()"
        statements = []
        if _ROW not in there and not one.below:
            statements.append(
                f"CREATE TRIGGER {self._name} BEFORE INSERT OR UPDATE OR DELETE ON {table} FOR EACH ROW{does}"
            )
        if _TRUNCATE not in there:
            statements.append(
                f"CREATE TRIGGER {self._name}_t BEFORE TRUNCATE ON {table} FOR EACH STATEMENT{does}"
            )
        statements.append(f"ALTER TABLE {table} ENABLE ALWAYS TRIGGER {self._name}")
        statements.append(f"ALTER TABLE {table} ENABLE ALWAYS TRIGGER {self._name}_t")
        return statements

    def _function_that(self, mark: str, does: str, definer: bool = False) -> str:
        # With its maker's rights and a path of its own, as it counts in a sequence that nobody else may use.
        rights = " SECURITY DEFINER SET search_path = pg_catalog, pg_temp" if definer else ""
        return (
            f"CREATE OR REPLACE FUNCTION {self._called} RETURNS trigger LANGUAGE plpgsql{rights}"
            f" AS {literal(f'{mark} BEGIN {does} END')}"
        )

    def _refuses(self, plan: FencePlan, logins: Sequence[str]) -> str:
        others, *known = self._sequences(logins)
        whens = "".join(
            f" WHEN {literal(login)} THEN {literal(sequence)}"
            for login, sequence in zip(logins, known, strict=True)
        )
        counter = f"CASE session_user{whens} ELSE {literal(others)} END" if whens else literal(others)
        hint = "This database is fenced off; migrator put up the fence."
        return (
            f"PERFORM pg_catalog.nextval(({counter})::pg_catalog.regclass);"
            f" RAISE EXCEPTION USING ERRCODE = '25006', MESSAGE = {literal(plan.message)}, HINT = {literal(hint)};"
        )

    def _sequences(self, logins: Sequence[str]) -> list[str]:
        return [f"{self._function}_{number}" for number in range(len(logins) + 1)]

    def _dropped(self, noted: Noted) -> list[str]:
        return [
            f"DROP FUNCTION IF EXISTS {self._function}()",
            *(f"DROP SEQUENCE IF EXISTS {sequence}" for sequence in self._sequences(noted.before["logins"])),
        ]

    def _in_the_way(
        self, session: PostgresFenceSession, noted: Noted, left: Sequence[object]
    ) -> list[OpenTransaction]:
        return at_work(session, noted.plan.tables, modes=HOLDING)


def _passes() -> str:
    return "IF TG_LEVEL = 'STATEMENT' THEN RETURN NULL; ELSIF TG_OP = 'DELETE' THEN RETURN OLD; END IF; RETURN NEW;"
