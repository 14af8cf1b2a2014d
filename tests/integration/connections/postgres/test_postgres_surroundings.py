"""Surroundings that made values wrong, or rows vanish, without a word: encodings, row security, names that
shadow."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from psycopg import sql

from migrator.adapters.targets.postgres.structure import Equality
from migrator.connections.postgres import session as postgres_session
from migrator.errors import TargetError, VerifyError
from migrator.schema import control
from tests.fix_hostile_postgres import plain, set_at
from tests.integration.judged import settings_of as judged
from tests.integration.target_bench import Bench, bench, ints, settings_of, texts
from tests.servers import Database
from verify.readers.chunk_keys import TEXT, Key, KeyColumn, KeyRange, condition, cut
from verify.readers.postgres import pins as judge
from verify.readers.postgres.chunks import PostgresSourceChunks, PostgresTargetChunks
from verify.readers.postgres.source import PostgresSource
from verify.readers.postgres.target import PostgresTarget

pytestmark = pytest.mark.integration

NOTES = ("Müller", "naïve €", "später")


def _notes() -> pa.Table:
    return pa.table(ints("id", 1, 2, 3) | texts("note", *NOTES))


def _stored(database: Database) -> list[tuple[int, str]]:
    with plain(database) as session:
        return session.execute("SELECT id, note FROM public.t ORDER BY id").fetchall()


def _judged(database: Database, folder: Path, user: str = "") -> list[str]:
    seen = Database(database.host, database.port, database.database, user or database.user, "", database.kind)
    with PostgresTarget(judged(seen), "bench").chunks("t") as chunks:
        chunks.read("1 = 1", folder / "rows.parquet")
    return [str(value) for value in pq.read_table(folder / "rows.parquet").sort_by("id")["note"].to_pylist()]


@pytest.mark.parametrize("where", ["DATABASE", "ROLE", "environment"])
def test_a_client_encoding_set_elsewhere_encodes_nothing_twice(
    hostile: Database, where: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    name = {"DATABASE": hostile.database, "ROLE": "postgres"}.get(where)
    with plain(hostile) as session:
        session.execute("CREATE TABLE public.t (id int PRIMARY KEY, note text)")
        if name is not None:
            set_at(session, where, sql.Identifier(name), {"client_encoding": "LATIN1"})
    if name is None:
        monkeypatch.setenv("PGCLIENTENCODING", "LATIN1")
    with bench(hostile) as it:
        it.apply(it.part("t", chunk=_notes().slice(0, 2)))
        it.apply(it.part("t", after=_notes().slice(2)))
    assert _stored(hostile) == list(enumerate(NOTES, 1))
    assert _judged(hostile, tmp_path) == list(NOTES)


def test_a_source_in_latin1_is_judged_by_its_characters(hostile: Database, tmp_path: Path) -> None:
    name = f"{hostile.database}_l1"
    latin = Database(hostile.host, hostile.port, name, hostile.user, "", hostile.kind)
    with plain(hostile) as session:
        session.execute(
            f"CREATE DATABASE {name} ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0"
        )
    try:
        with plain(latin) as session:
            session.execute("CREATE TABLE public.t (id int PRIMARY KEY, note text)")
            session.execute("INSERT INTO public.t VALUES (1, 'é'), (2, 'plain')")
        with PostgresSource(judged(latin), "bench").chunks("t") as chunks:
            chunks.read("1 = 1", tmp_path / "rows.parquet")
        assert sorted(pq.read_table(tmp_path / "rows.parquet")["note"].to_pylist()) == ["plain", "é"]
    finally:
        with plain(hostile) as session:
            session.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture
def tenant(hostile: Database) -> Iterator[Database]:
    """The database as a role sees it from whom row security hides half the rows."""
    with plain(hostile) as session:
        session.execute("CREATE TABLE public.t (id int PRIMARY KEY, note text)")
        session.execute("INSERT INTO public.t SELECT g, 'n' || g FROM generate_series(1, 20) g")
        session.execute("ALTER TABLE public.t ENABLE ROW LEVEL SECURITY")
        session.execute("CREATE POLICY tenant ON public.t USING (id <= 10)")
        session.execute("CREATE ROLE tenant LOGIN")
        session.execute("GRANT SELECT ON public.t TO tenant")
    yield Database(hostile.host, hostile.port, hostile.database, "tenant", "", hostile.kind)
    with plain(hostile) as session:
        session.execute("DROP OWNED BY tenant")
        session.execute("DROP ROLE tenant")


def _reads(database: Database, folder: Path) -> list[Callable[[], int]]:
    """Each way in which the judge reads rows; gives how many it saw."""

    def source(work: Callable[[PostgresSourceChunks], int]) -> Callable[[], int]:
        def opened() -> int:
            with PostgresSource(judged(database), "bench").chunks("t") as chunks:
                return work(chunks)

        return opened

    def target(work: Callable[[PostgresTargetChunks], int]) -> Callable[[], int]:
        def opened() -> int:
            with PostgresTarget(judged(database), "bench").chunks("t") as chunks:
                return work(chunks)

        return opened

    numbers = "count(*), count(*), 0::text"
    whole = PostgresSource(judged(database), "bench")
    return [
        source(lambda chunks: chunks.read("1 = 1", folder / "a.parquet")[1]),
        source(lambda chunks: chunks.digest(numbers, "1 = 1")[1].rows),
        target(lambda chunks: chunks.read("1 = 1", folder / "b.parquet")[1]),
        target(lambda chunks: chunks.digest(numbers, "1 = 1")[1].rows),
        target(lambda chunks: chunks.count(100)),
        lambda: whole.snapshot(["t"], folder).tables["t"].rows,
    ]


def test_row_security_is_an_error_for_the_judge_and_the_remedy_helps(
    hostile: Database, tenant: Database, tmp_path: Path
) -> None:
    for read in _reads(tenant, tmp_path):
        with pytest.raises(VerifyError) as caught:
            read()
        assert "BYPASSRLS" in caught.value.remedy
    with plain(hostile) as session:
        session.execute("ALTER ROLE tenant BYPASSRLS")
    assert [read() for read in _reads(tenant, tmp_path)] == [20] * 6


def test_row_security_hides_rows_from_a_judge_that_is_not_pinned(
    tenant: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(judge, "PINS", {**judge.PINS, "row_security": "on"})
    monkeypatch.setattr(judge.connect_postgres, "__defaults__", (judge.PINS, None))
    monkeypatch.setattr(judge.conninfo, "__defaults__", (judge.PINS, None))
    assert [read() for read in _reads(tenant, tmp_path)] == [10] * 6


PATHS = pytest.mark.parametrize("path", ["evil, pg_catalog", "pg_catalog, evil", "evil"])


@PATHS
def test_an_operator_of_somebody_elses_decides_nothing_when_rows_are_written(
    hostile: Database, path: str
) -> None:
    """Every text is equal to every other by that operator: one row's end would be the end of all."""
    with plain(hostile) as session:
        session.execute("CREATE TABLE public.t (id varchar PRIMARY KEY, note varchar)")
        set_at(session, "ROLE", sql.Identifier("postgres"), {"search_path": path})
    with bench(hostile) as it:
        it.apply(it.part("t", chunk=pa.table(texts("id", "a", "b", "c") | texts("note", "1", "2", "3"))))
        it.apply(it.part("t", before=pa.table(texts("id", "a"))))
        it.apply(
            it.part(
                "t", before=pa.table(texts("id", "b")), after=pa.table(texts("id", "b") | texts("note", "4"))
            )
        )
    with plain(hostile) as session:
        assert session.execute("SELECT id, note FROM public.t ORDER BY id").fetchall() == [
            ("b", "4"),
            ("c", "3"),
        ]


@pytest.mark.parametrize(("named", "left"), [(True, ["b", "c"]), (False, [])])
def test_without_our_path_the_operators_names_guard_and_without_both_nothing_does(
    hostile: Database, monkeypatch: pytest.MonkeyPatch, named: bool, left: list[str]
) -> None:
    """The negative control."""
    with plain(hostile) as session:
        session.execute("CREATE TABLE public.t (id varchar PRIMARY KEY, note varchar)")
        set_at(session, "ROLE", sql.Identifier("postgres"), {"search_path": "pg_catalog, evil"})
    monkeypatch.setattr("migrator.adapters.targets.postgres.settings._PINS", dict(postgres_session.REVISIONS))
    if not named:
        monkeypatch.setattr(Equality, "of", lambda _, one, other: f"{one} = {other}")
    with bench(hostile) as it:
        it.apply(it.part("t", chunk=pa.table(texts("id", "a", "b", "c") | texts("note", "1", "2", "3"))))
        it.apply(it.part("t", before=pa.table(texts("id", "a"))))
    with plain(hostile) as session:
        assert session.execute("SELECT id FROM public.t ORDER BY id").fetchall() == [(key,) for key in left]


@PATHS
def test_a_damaged_row_is_seen_whatever_stands_before_pg_catalog(hostile: Database, path: str) -> None:
    with plain(hostile) as session:
        session.execute("CREATE TABLE public.t (id int PRIMARY KEY, note varchar)")
        session.execute("INSERT INTO public.t VALUES (1, 'right'), (2, 'right')")
        set_at(session, "ROLE", sql.Identifier("postgres"), {"search_path": path})
    numbers = "count(*), count(*), sum(hashtextextended(note::text, id))::text"
    with PostgresTarget(judged(hostile), "bench").chunks("t") as chunks:
        before = chunks.digest(numbers, "note <> 'wrong'")[1]
        with plain(hostile) as session:
            session.execute("UPDATE public.t SET note = 'wrong' WHERE id = 2")
        after = chunks.digest(numbers, "1 = 1")[1]
        assert before.rows == 2
        assert before != after
        assert chunks.digest(numbers, "note = 'right'")[1].rows == 1


def test_a_foreign_key_holds_though_the_login_is_a_replica(hostile: Database) -> None:
    with plain(hostile) as session:
        session.execute("CREATE TABLE public.parent (id int PRIMARY KEY)")
        session.execute("CREATE TABLE public.child (id int PRIMARY KEY, p int REFERENCES public.parent)")
        set_at(session, "ROLE", sql.Identifier("postgres"), {"session_replication_role": "replica"})
    with bench(hostile) as it:
        with pytest.raises(TargetError, match="child"):
            it.apply(it.part("child", after=pa.table(ints("id", 1) | ints("p", 7))))
        it.apply(it.part("parent", after=pa.table(ints("id", 7))), it.part("child", after=_child()))
    with plain(hostile) as session:
        assert session.execute("SELECT id, p FROM public.child").fetchall() == [(1, 7)]


def _child() -> pa.Table:
    return pa.table(ints("id", 1) | ints("p", 7))


def test_a_login_that_only_reads_by_default_writes_all_the_same(hostile: Database) -> None:
    with plain(hostile) as session:
        session.execute("CREATE TABLE public.t (id int PRIMARY KEY, note text)")
        for level, name in (("DATABASE", hostile.database), ("ROLE", "postgres")):
            set_at(session, level, sql.Identifier(name), {"default_transaction_read_only": "on"})
    assert control.control_problem(settings_of(hostile).url()) is None
    made = Bench(hostile)
    made.apply(made.part("t", chunk=_notes()))
    made.target.close()
    assert _stored(hostile) == list(enumerate(NOTES, 1))


WORDS = (
    "CREATE TYPE public.word AS (t text)",
    *(
        f"CREATE FUNCTION public.word_{name}(public.word, public.word) RETURNS {kind} IMMUTABLE LANGUAGE sql AS"
        f" $$ SELECT {body} $$"
        for name, kind, body in (
            ("lt", "bool", "lower(($1).t) < lower(($2).t)"),
            ("le", "bool", "lower(($1).t) <= lower(($2).t)"),
            ("eq", "bool", "lower(($1).t) = lower(($2).t)"),
            ("ge", "bool", "lower(($1).t) >= lower(($2).t)"),
            ("gt", "bool", "lower(($1).t) > lower(($2).t)"),
            ("cmp", "int", "bttextcmp(lower(($1).t), lower(($2).t))"),
        )
    ),
    *(
        f"CREATE OPERATOR public.{sign} (FUNCTION = public.word_{name},"
        " LEFTARG = public.word, RIGHTARG = public.word)"
        for sign, name in (("<", "lt"), ("<=", "le"), ("=", "eq"), (">=", "ge"), (">", "gt"))
    ),
    "CREATE OPERATOR CLASS public.word_ops DEFAULT FOR TYPE public.word USING btree AS OPERATOR 1 public.<,"
    " OPERATOR 2 public.<=, OPERATOR 3 public.=, OPERATOR 4 public.>=, OPERATOR 5 public.>,"
    " FUNCTION 1 public.word_cmp(public.word, public.word)",
    "CREATE TABLE public.t (id public.word PRIMARY KEY, note varchar)",
    "INSERT INTO public.t SELECT ROW(chr((CASE WHEN g % 2 = 0 THEN 97 ELSE 65 END) + g))::public.word, g"
    " FROM generate_series(0, 25) g",
)
"""A type that its own operators compare, without regard to case: in neither text's order nor a record's."""


def _pieces(database: Database) -> list[int]:
    """How many rows each of the pieces has into which the judge cuts the target's table."""
    key = [KeyColumn("id", "id", TEXT)]
    with PostgresTarget(judged(database), "bench").chunks("t") as chunks:

        def end(after: Key | None) -> Key | None:
            return chunks.end(key, condition(KeyRange(after), ["id"], [TEXT], chunks.dialect), 4)

        wheres = [condition(piece, ["id"], [TEXT], chunks.dialect) for piece in cut(end)]
        return [chunks.digest("count(*), count(*), 0::text", where)[1].rows for where in wheres]


def test_a_type_s_own_operators_put_each_row_in_one_piece(hostile: Database) -> None:
    with plain(hostile) as session:
        for statement in WORDS:
            session.execute(statement)
        set_at(session, "ROLE", sql.Identifier("postgres"), {"search_path": "evil, public"})
    assert _pieces(hostile) == [4, 4, 4, 4, 4, 4, 2]


def test_those_of_pg_catalog_would_not(hostile: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """The negative control."""
    with plain(hostile) as session:
        for statement in WORDS:
            session.execute(statement)
    monkeypatch.setattr("verify.readers.postgres.target.operator_path", lambda *_: "")
    with pytest.raises(VerifyError, match="was refused"):
        _pieces(hostile)


@pytest.mark.parametrize(
    "shadow",
    [
        "CREATE OPERATOR public.= (FUNCTION = evil.same, LEFTARG = varchar, RIGHTARG = varchar)",
        "CREATE FUNCTION public.num_nulls(public.word) RETURNS int IMMUTABLE LANGUAGE sql AS 'SELECT 1'",
    ],
)
def test_what_shadows_beside_such_operators_is_refused_and_the_remedy_helps(
    hostile: Database, shadow: str
) -> None:
    with plain(hostile) as session:
        for statement in (*WORDS, shadow):
            session.execute(statement)
        with pytest.raises(VerifyError) as caught:
            _pieces(hostile)
        session.execute(caught.value.remedy)
    assert sum(_pieces(hostile)) == 26
