"""A look at who can write tables on PostgreSQL, and by which ways that a fence may not close."""

from __future__ import annotations

from collections.abc import Sequence

from migrator.adapters.fences.postgres.read_only import WAY_ROUND
from migrator.adapters.fences.postgres.relations import ROOTS, names, relations
from migrator.adapters.fences.postgres.revoked import MAY_WRITE, WRITES
from migrator.adapters.fences.postgres.session import PostgresFenceSession
from migrator.model.cutover.fence import PUBLIC, Choice, FenceKind, Survey, WayRound, Writer
from migrator.model.table import TableId

_HOLDERS = (
    ROOTS + ", rights AS (SELECT c.relowner AS holder, 'owner' AS kind FROM pg_catalog.pg_class c"
    " WHERE c.oid IN (SELECT oid FROM family)"
    " UNION SELECT x.grantee, 'role' FROM pg_catalog.pg_class c, LATERAL pg_catalog.aclexplode(c.relacl) x"
    " WHERE c.oid IN (SELECT oid FROM family) AND x.privilege_type = ANY(%s) AND x.grantee <> c.relowner"
    " UNION SELECT x.grantee, 'role' FROM pg_catalog.pg_class c JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid,"
    " LATERAL pg_catalog.aclexplode(a.attacl) x WHERE c.oid IN (SELECT oid FROM family)"
    " AND NOT a.attisdropped AND x.privilege_type = ANY(%s) AND x.grantee <> c.relowner"
    " UNION SELECT oid, 'superuser' FROM pg_catalog.pg_roles WHERE rolsuper"
    " UNION SELECT oid, 'role' FROM pg_catalog.pg_roles WHERE rolname = 'pg_write_all_data')"
    " SELECT r.kind, CASE r.holder WHEN 0 THEN 'public' ELSE pg_catalog.pg_get_userbyid(r.holder)::text END,"
    " m.rolname::text FROM rights r JOIN pg_catalog.pg_roles m ON m.rolcanlogin AND (r.holder = 0"
    " OR m.oid = r.holder OR (r.kind <> 'superuser' AND NOT m.rolsuper"
    " AND pg_catalog.pg_has_role(m.oid, CASE r.holder WHEN 0 THEN m.oid ELSE r.holder END, 'MEMBER')))"
    " ORDER BY 1, 2, 3"
)
_OWNERS = (
    ROOTS + " SELECT DISTINCT pg_catalog.pg_get_userbyid(c.relowner)::text,"
    " pg_catalog.pg_has_role(c.relowner, 'USAGE') FROM pg_catalog.pg_class c WHERE c.oid IN (SELECT oid FROM family)"
)
_FUNCTIONS = (
    ROOTS + " SELECT p.oid::pg_catalog.regprocedure::text, pg_catalog.pg_get_userbyid(p.proowner)::text"
    " FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace WHERE p.prosecdef"
    " AND n.nspname NOT IN ('pg_catalog', 'information_schema') AND p.proname NOT LIKE 'migrator\\_fence\\_%%'"
    " AND EXISTS (SELECT FROM family WHERE pg_catalog.has_table_privilege(p.proowner, oid, %s)) ORDER BY 1"
)
_RULES = (
    ROOTS
    + " SELECT DISTINCT r.ev_class::pg_catalog.regclass::text, pg_catalog.pg_get_userbyid(v.relowner)::text"
    " FROM pg_catalog.pg_depend d JOIN pg_catalog.pg_rewrite r ON d.classid = 'pg_catalog.pg_rewrite'::regclass"
    " AND r.oid = d.objid JOIN pg_catalog.pg_class v ON v.oid = r.ev_class"
    " WHERE d.refclassid = 'pg_catalog.pg_class'::regclass AND d.refobjid IN (SELECT oid FROM family)"
    " AND r.ev_class <> d.refobjid AND v.relkind <> 'm' AND (r.ev_type <> '1' OR (v.relkind = 'v'"
    " AND pg_catalog.pg_relation_is_updatable(v.oid, true) <> 0"
    " AND NOT coalesce(v.reloptions && ARRAY['security_invoker=true', 'security_invoker=on'], false)))"
    " AND EXISTS (SELECT FROM family WHERE pg_catalog.has_table_privilege(v.relowner, oid, %s)) ORDER BY 1"
)
_CASCADES = (
    ROOTS + " SELECT DISTINCT k.confrelid::pg_catalog.regclass::text, k.conrelid::pg_catalog.regclass::text"
    " FROM pg_catalog.pg_constraint k WHERE k.contype = 'f' AND k.conrelid IN (SELECT oid FROM family)"
    " AND k.confrelid NOT IN (SELECT oid FROM family)"
    " AND (k.confdeltype IN ('c', 'n', 'd') OR k.confupdtype IN ('c', 'n', 'd')) ORDER BY 1, 2"
)
_DEFAULTS = (
    ROOTS
    + " SELECT DISTINCT pg_catalog.pg_get_userbyid(a.defaclrole)::text FROM pg_catalog.pg_default_acl a,"
    " LATERAL pg_catalog.aclexplode(a.defaclacl) x WHERE a.defaclobjtype = 'r' AND x.privilege_type = ANY(%s)"
    " AND x.grantee <> a.defaclrole AND a.defaclnamespace IN (0, (SELECT DISTINCT c.relnamespace"
    " FROM pg_catalog.pg_class c JOIN family f ON f.oid = c.oid WHERE c.relkind = 'p' LIMIT 1))"
    " AND EXISTS (SELECT FROM family f JOIN pg_catalog.pg_class c ON c.oid = f.oid WHERE c.relkind = 'p') ORDER BY 1"
)
_LOGIN = (
    "SELECT r.rolsuper, r.rolsuper OR pg_catalog.pg_has_role('pg_signal_backend', 'USAGE'),"
    " r.rolsuper OR pg_catalog.pg_has_role(d.datdba, 'USAGE'),"
    " r.rolsuper OR pg_catalog.pg_has_role('pg_read_all_stats', 'USAGE')"
    " FROM pg_catalog.pg_roles r, pg_catalog.pg_database d WHERE r.rolname = current_user"
    " AND d.datname = pg_catalog.current_database() AND %s = 1"
)
_ANY_WRITE = "INSERT, UPDATE, DELETE, TRUNCATE"
_WHY = {
    "owner": "an owner keeps all rights, and may grant itself what is revoked",
    "superuser": "a superuser passes every check of rights",
    "role": "it was granted a right to write",
}


def survey(session: PostgresFenceSession, tables: Sequence[TableId], our_login: str) -> Survey:
    """Returns what the server would let us do (see ``ports.fence``)."""
    found = relations(session, tables)
    holders = session.rows(_HOLDERS, (*names(tables), list(WRITES), list(WRITES)))
    writers: dict[str, list[str]] = {}
    for kind, holder, login in holders:
        if login != our_login:
            writers.setdefault(login, []).append(f"{kind} {holder}")
    unfit = [f"{one.table} is no table whose rows a trigger sees" for one in found if one.kind not in "rp"]
    ours = _missing_login(session, tables, our_login)
    not_owned = [
        f"the fence's login isn't {owner}, who owns tables: GRANT {owner} to it, or use a superuser"
        for owner, as_owner in session.rows(_OWNERS, names(tables))
        if not as_owner
    ]
    superuser, may_end, owns_database, sees_others = session.rows(_LOGIN, (1,))[0]
    # Without it, the server hides when the sessions and transactions of others began.
    unseen = (
        []
        if sees_others
        else ["the fence's login can't see when others' transactions began: GRANT pg_read_all_stats to it"]
    )
    ending = [] if may_end else ["the fence's login may not end sessions: GRANT pg_signal_backend to it"]
    altering = [] if owns_database else ["the fence's login doesn't own the database: use its owner"]
    foreign = (
        [] if superuser else [f"sessions of superuser {one} can't be ended" for one in _superusers(holders)]
    )
    return Survey(
        tuple(tables),
        tuple(Writer(login, tuple(by)) for login, by in sorted(writers.items())),
        (
            Choice(FenceKind.TRIGGERS, (*unfit, *not_owned, *unseen, *ours)),
            Choice(
                FenceKind.REVOKE,
                (*not_owned, *unseen, *ours),
                _ways_past_rights(session, tables, our_login, holders),
                lets_us_write=_writes_without_public(holders, our_login),
                says_where=False,
            ),
            Choice(
                FenceKind.READ_ONLY,
                (*altering, *ending, *unseen, *foreign, *ours),
                (WAY_ROUND,),
                says_where=False,
            ),
        ),
    )


def _missing_login(session: PostgresFenceSession, tables: Sequence[TableId], login: str) -> list[str]:
    if not login:
        return []
    (may,) = session.rows(MAY_WRITE, (*names(tables), login))[0]
    if may is None:
        return [f"there is no login {login}, which is to go on writing"]
    return [] if may else [f"login {login}, which is to go on writing, has no right to write all tables"]


def _superusers(holders: Sequence[tuple[str, str, str]]) -> list[str]:
    return sorted({login for kind, _, login in holders if kind == "superuser"})


def _writes_without_public(holders: Sequence[tuple[str, str, str]], login: str) -> bool:
    by = [holder for _, holder, who in holders if who == login]
    return not login or any(holder != PUBLIC for holder in by)


def _ways_past_rights(
    session: PostgresFenceSession,
    tables: Sequence[TableId],
    our_login: str,
    holders: Sequence[tuple[str, str, str]],
) -> tuple[WayRound, ...]:
    """Everything by which rows change although rights were taken from roles."""
    ways: dict[str, WayRound] = {}
    for kind, holder, login in holders:
        if login != our_login:
            closed_by = holder if kind == "role" and holder != "pg_write_all_data" else ""
            way = WayRound(kind, holder, f"{_WHY[kind]}; login {login}", closed_by)
            ways.setdefault(way.label, way)
    for kind, query, values, why in (
        ("function", _FUNCTIONS, (_ANY_WRITE,), "it runs with the rights of {}, who can write"),
        ("view", _RULES, (_ANY_WRITE,), "writes through it have the rights of {}, who can write"),
        ("cascade", _CASCADES, (), "changes of its rows are carried on to {} with the owner's rights"),
        ("default", _DEFAULTS, (list(WRITES),), "new partitions get rights by default privileges of {}"),
    ):
        for name, *of in session.rows(query, (*names(tables), *values)):
            ways.setdefault(f"{kind} {name}", WayRound(kind, name, why.format(of[0] if of else name)))
    return tuple(ways.values())
