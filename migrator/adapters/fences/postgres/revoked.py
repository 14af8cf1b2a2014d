"""Rights taken from named roles on PostgreSQL, and given back with their grantors, options and columns.

A REVOKE waits for no lock and holds from each session's next statement on. Everything is one transaction: rights
are never half taken. Grants are taken away and made by the roles that made them: only so a grant made with a grant
option looks afterwards as it did before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from migrator.adapters.fences.postgres.relations import ROOTS, names
from migrator.adapters.fences.postgres.session import PostgresFenceSession, quoted
from migrator.adapters.fences.shared.kept_fence import Before
from migrator.adapters.fences.shared.notes import Noted, Notes
from migrator.adapters.fences.shared.session import Limit
from migrator.errors import CutoverError
from migrator.model.cutover.fence import PUBLIC, FencePlan, FenceState, LateWriters, Standing

WRITES = ("INSERT", "UPDATE", "DELETE", "TRUNCATE")
_GRANTS = (
    ROOTS + ", lists AS (SELECT c.oid, NULL::name AS part, c.relowner, c.relacl AS acl"
    " FROM pg_catalog.pg_class c WHERE c.oid IN (SELECT oid FROM family)"
    " UNION ALL SELECT c.oid, a.attname, c.relowner, a.attacl FROM pg_catalog.pg_class c"
    " JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid WHERE c.oid IN (SELECT oid FROM family)"
    " AND NOT a.attisdropped AND a.attacl IS NOT NULL)"
    " SELECT n.nspname::text, c.relname::text, coalesce(l.part::text, ''), x.privilege_type,"
    " pg_catalog.pg_get_userbyid(x.grantor)::text,"
    " CASE x.grantee WHEN 0 THEN 'public' ELSE pg_catalog.pg_get_userbyid(x.grantee)::text END,"
    " x.is_grantable, x.grantor = l.relowner"
    " FROM lists l JOIN pg_catalog.pg_class c ON c.oid = l.oid"
    " JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace,"
    " LATERAL pg_catalog.aclexplode(l.acl) x WHERE x.privilege_type = ANY(%s)"
    " AND x.grantee <> l.relowner ORDER BY 1, 2, 3, 4, 5, 6"
)


MAY_WRITE = (
    ROOTS + " SELECT bool_and(pg_catalog.has_table_privilege(r.oid, f.oid, 'INSERT')"
    " AND pg_catalog.has_table_privilege(r.oid, f.oid, 'UPDATE')"
    " AND pg_catalog.has_table_privilege(r.oid, f.oid, 'DELETE'))"
    " FROM family f, pg_catalog.pg_roles r WHERE r.rolname = %s AND r.rolcanlogin AND f.oid = f.root"
)
"""One value: whether a login may write all the tables; NULL where there is no such login."""


@dataclass(frozen=True, slots=True)
class Grant:
    """One right of one role on one table, or one column of it.

    Attributes:
        schema, table, column: on what; ``column`` is empty for the whole table.
        privilege: one of ``WRITES``.
        grantor, grantee: roles; ``PUBLIC`` for everybody.
        option: whether the grantee may grant it on.
        by_owner: whether the table's owner made it.
    """

    schema: str
    table: str
    column: str
    privilege: str
    grantor: str
    grantee: str
    option: bool
    by_owner: bool

    def what(self) -> str:
        """Returns the right and its table, as GRANT and REVOKE name them."""
        column = f" ({quoted(self.column)})" if self.column else ""
        return f"{self.privilege}{column} ON TABLE {quoted(self.schema)}.{quoted(self.table)}"

    def whom(self) -> str:
        """Returns the grantee as statements name it."""
        return "PUBLIC" if self.grantee == PUBLIC else quoted(self.grantee)

    def as_grantor(self, statement: str) -> list[str]:
        """Returns the statement as its grantor runs it."""
        if self.by_owner:  # whoever owns the table, or may do as its owner, makes grants in the owner's name
            return [statement]
        return [f"SET ROLE {quoted(self.grantor)}", statement, "RESET ROLE"]

    def granting(self) -> list[str]:
        """Returns the statements that make it."""
        option = " WITH GRANT OPTION" if self.option else ""
        return self.as_grantor(f"GRANT {self.what()} TO {self.whom()}{option}")

    def revoking(self) -> list[str]:
        """Returns the statements that take it away."""
        return self.as_grantor(f"REVOKE {self.what()} FROM {self.whom()}")

    def rests_on(self, other: Grant) -> bool:
        """Tells whether it was made by the option of another one."""
        same = (self.schema, self.table, self.privilege) == (other.schema, other.table, other.privilege)
        return not self.by_owner and same and other.option and other.grantee == self.grantor


class Revoked:
    """``Means`` by REVOKE.

    Args:
        notes: their row is forgotten in the transaction that gives the rights back.
    """

    def __init__(self, notes: Notes):
        self._notes = notes

    def before(self, session: PostgresFenceSession, plan: FencePlan) -> Before:
        """Returns the grants of the plan's roles. Raises ``CutoverError`` where others got theirs from one of
        these."""
        every = grants(session, plan)
        ours = [one for one in every if one.grantee in plan.roles]
        further = [one for one in every if one not in ours and any(one.rests_on(other) for other in ours)]
        if further:
            one = further[0]
            raise CutoverError(
                f"{one.privilege} of {one.grantee} on {one.schema}.{one.table} was granted by {one.grantor}",
                where=f"{one.schema}.{one.table}",
                cause=f"what {one.grantor} granted ends with its own right, which the fence takes away",
                remedy=f"name {one.grantee} in the plan too, or have the table's owner grant it the right",
            )
        return {"grants": [_listed(one) for one in in_order(ours)]}

    def put_up(self, session: PostgresFenceSession, noted: Noted, limit: Limit) -> None:
        """Takes the rights away, all at once."""
        if not noted.before["grants"]:
            raise CutoverError(
                "the roles of the plan have no right to take away",
                where=", ".join(noted.plan.roles),
                cause="none of them was granted a right to write the tables",
                remedy="name the roles that the survey names",
            )

        now = [one for one in grants(session, noted.plan) if one.grantee in noted.plan.roles]
        if now:
            taken = [statement for one in reversed(in_order(now)) for statement in one.revoking()]
            limit.change(session, *taken)
        self._check_ours(session, noted.plan)
        self._notes.stamp(session, limit)

    def take_down(self, session: PostgresFenceSession, noted: Noted, limit: Limit) -> None:
        """Gives back what was taken, all at once, and forgets the notes with it."""
        limit.change(session, *self._lacking(session, noted), self._notes.forget(noted))

    def state(self, session: PostgresFenceSession, noted: Noted) -> FenceState:
        """Returns which rights of the roles are there."""
        now = [one for one in grants(session, noted.plan) if one.grantee in noted.plan.roles]
        before = _noted(noted)
        if all(one in now for one in before):
            return FenceState(Standing.DOWN, tuple(f"{one.grantee} may {one.what()}" for one in now))
        missing = tuple(f"{one.grantee} may {one.what()}" for one in now)
        return FenceState(Standing.PARTLY if missing else Standing.UP, missing)

    def late(self, session: PostgresFenceSession, noted: Noted) -> LateWriters:
        """Nothing: PostgreSQL counts no refused statements."""
        return LateWriters(
            0, (), "not counted: PostgreSQL writes refused statements to its own log only (permission denied)"
        )

    def by_hand(self, session: PostgresFenceSession, noted: Noted) -> list[str]:
        """Returns the statements that give the rights back."""
        return [statement for one in _noted(noted) for statement in one.granting()]

    def _check_ours(self, session: PostgresFenceSession, plan: FencePlan) -> None:
        """Our login may have had its rights by a role that lost them. Raises ``CutoverError``."""
        if plan.login and not session.rows(MAY_WRITE, (*names(plan.tables), plan.login))[0][0]:
            raise CutoverError(
                f"login {plan.login} can't write behind the fence",
                where=plan.login,
                cause=f"it had its rights by {', '.join(plan.roles)}, from whom they are taken",
                remedy="grant INSERT, UPDATE and DELETE on the tables to it alone, and raise the fence again",
            )

    def _lacking(self, session: PostgresFenceSession, noted: Noted) -> list[str]:
        now = grants(session, noted.plan)
        return [statement for one in _noted(noted) if one not in now for statement in one.granting()]


def grants(session: PostgresFenceSession, plan: FencePlan) -> list[Grant]:
    """The rights to write the plan's tables which were granted to anybody but the owners."""
    return [Grant(*row) for row in session.rows(_GRANTS, (*names(plan.tables), list(WRITES)))]


def in_order(every: Sequence[Grant]) -> list[Grant]:
    """Grants such that none comes before the one that it rests on."""
    left, ordered = list(every), list[Grant]()
    while left:
        ready = [one for one in left if not any(one.rests_on(other) for other in left if other is not one)]
        ordered += ready or left  # a circle can't be: the server refuses it
        left = [one for one in left if ready and one not in ready]
    return ordered


def _listed(one: Grant) -> list[str | bool]:
    return [
        one.schema,
        one.table,
        one.column,
        one.privilege,
        one.grantor,
        one.grantee,
        one.option,
        one.by_owner,
    ]


def _noted(noted: Noted) -> list[Grant]:
    return [Grant(*row) for row in noted.before["grants"]]
