"""SQL files are cut at the ends of statements only, and what a rehearsal can't use is left out by name."""

from __future__ import annotations

import pytest

from migrator.errors import ConfigError
from migrator.schema.sql_text import script

PG_DUMP = r"""
--
-- PostgreSQL database dump
--
\restrict abc
SET statement_timeout = 0;
SELECT pg_catalog.set_config('search_path', '', false);
CREATE DATABASE shop;
\connect shop
CREATE FUNCTION public.f() RETURNS int LANGUAGE sql AS $_$
  SELECT 1; -- a semicolon
$_$;
ALTER FUNCTION public.f() OWNER TO "Shop Owner";
CREATE TABLE public.a (id int, said text DEFAULT 'it''s; \' NOT NULL);
ALTER TABLE public.a OWNER TO shop;
COPY public.a (id, said) FROM stdin;
1	one; two
2	\N
\.
CREATE FUNCTION g() RETURNS int BEGIN ATOMIC SELECT 1; SELECT CASE WHEN true THEN 2 END; END;
GRANT SELECT ON public.a TO reader;
\unrestrict abc
"""
MYSQLDUMP = """
/*!999999\\- enable the sandbox mode */
-- MySQL dump
/*!40101 SET NAMES utf8mb4 */;
CREATE TABLE `a;b` (id int /* not; here */, t varchar(9) DEFAULT 'o\\'; k', PRIMARY KEY (id)); # rest; of it
LOCK TABLES `a;b` WRITE;
DELIMITER ;;
CREATE TRIGGER t BEFORE INSERT ON `a;b` FOR EACH ROW BEGIN SET @a = 1; SET @b = 2; END ;;
DELIMITER ;
USE other;
SET @@GLOBAL.GTID_PURGED=/*!80000 '+'*/ '';
"""


def test_a_dump_of_postgresql() -> None:
    found = script(PG_DUMP, "postgresql", "old.sql")
    assert (found.statements[0].line, found.statements[0].text) == (6, "SET statement_timeout = 0")
    assert sum(one.text.startswith("CREATE FUNCTION") for one in found.statements) == 2
    [table] = [one for one in found.statements if one.text.startswith("CREATE TABLE")]
    assert table.text.endswith("NOT NULL)")
    [copy] = [one for one in found.statements if one.rows is not None]
    assert copy.rows == "1\tone; two\n2\t\\N\n"
    assert found.owners() == ["Shop Owner", "shop"]
    assert dict(found.left_out) == {
        "databases": 1,
        "changes of the database": 1,
        "rights: the logins get what `migrator grants` prints": 1,
    }


def test_a_dump_of_mysql() -> None:
    found = script(MYSQLDUMP, "mysql", "old.sql")
    texts = [one.text for one in found.statements]
    assert any("CREATE TABLE `a;b`" in text and text.endswith("PRIMARY KEY (id))") for text in texts)
    assert any("CREATE TRIGGER" in text and text.endswith("END") for text in texts)
    assert dict(found.left_out) == {"changes of the database": 1, "the dump's own log settings": 1}


@pytest.mark.parametrize(
    ("text", "line", "cause"),
    [
        ("CREATE TABLE a (id int);\n\\i more.sql\n", "line 2: \\i more.sql", "command of psql"),
        ("CREATE TABLE a (id int);\nSELECT 'open;\n", "line 2: 'open;", "has no end"),
        ("CREATE TABLE a (id int);\nCOPY a FROM stdin;\n1\n", "line 2: COPY", "is missing"),
        ("SET a = 1;", "old.sql", "none of them is a CREATE"),
    ],
)
def test_what_cannot_be_read_is_refused_by_line(text: str, line: str, cause: str) -> None:
    with pytest.raises(ConfigError) as refused:
        script(text, "postgresql", "old.sql")
    assert line in refused.value.where
    assert cause in refused.value.cause
    assert "pg_dump -s" in refused.value.remedy
