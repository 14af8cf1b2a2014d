"""The clauses of an ALTER TABLE, and which of them leave rows and columns as the log tells them."""

from __future__ import annotations

import re
from collections.abc import Sequence

_STRING = re.compile(r"""'(?:[^'\\]|''|\\.)*'|"(?:[^"\\]|""|\\.)*\"""", re.DOTALL)
_HARMLESS_CLAUSES = (
    r"ADD (COLUMN )?(IF NOT EXISTS )?(?!(COLUMN|INDEX|KEY|UNIQUE|FULLTEXT|SPATIAL|CONSTRAINT|FOREIGN|CHECK|PRIMARY|"
    r"SYSTEM|PERIOD|PARTITION)\b)\S",
    r"ADD (INDEX|KEY|UNIQUE|FULLTEXT|SPATIAL|CHECK|PARTITION)\b",
    r"ADD (CONSTRAINT (IF NOT EXISTS )?(?!(FOREIGN|UNIQUE|CHECK|PRIMARY)\b)(`[^`]*`|\S+) |CONSTRAINT )?"
    r"(UNIQUE|CHECK|FOREIGN KEY)\b",
    r"DROP (INDEX|KEY|CONSTRAINT|FOREIGN KEY|CHECK)\b",
    r"ALTER (COLUMN )?(IF EXISTS )?(`[^`]*`|\S+) (SET DEFAULT|DROP DEFAULT)\b",
    r"ALTER (INDEX|KEY) ",
    r"RENAME (INDEX|KEY) ",
    r"(DEFAULT )?(CHARACTER SET|CHARSET|COLLATE)\b",
    r"(AUTO_INCREMENT|COMMENT|ENGINE = INNODB|ENGINE INNODB|ROW_FORMAT|KEY_BLOCK_SIZE|ALGORITHM|LOCK|FORCE|ORDER BY|"
    r"ENABLE KEYS|DISABLE KEYS|STATS_\w+|AVG_ROW_LENGTH|MAX_ROWS|MIN_ROWS|CHECKSUM|PACK_KEYS|DELAY_KEY_WRITE|"
    r"NOWAIT|WAIT|PARTITION BY|REMOVE PARTITIONING|REORGANIZE PARTITION|COALESCE PARTITION|ANALYZE PARTITION|"
    r"CHECK PARTITION|OPTIMIZE PARTITION|REBUILD PARTITION|REPAIR PARTITION|PAGE_\w+|ENCRYPTED|ENCRYPTION_KEY_ID)\b",
)
_HARMLESS = re.compile("|".join(f"(?:{clause})" for clause in _HARMLESS_CLAUSES), re.IGNORECASE)
SILENT_CASCADE = re.compile(r"\bON (DELETE|UPDATE) (CASCADE|SET (NULL|DEFAULT))\b", re.IGNORECASE)
_OTHER_ENGINE = re.compile(r"\bENGINE (?!= INNODB\b|INNODB\b)\S", re.IGNORECASE)
"""Table options may follow each other without a comma."""
_PRIMARY = re.compile(r"\bPRIMARY KEY\b", re.IGNORECASE)
_OF_PARTITIONS = re.compile(
    r"((DROP|TRUNCATE|EXCHANGE|CONVERT|DISCARD|IMPORT) PARTITION|CONVERT TABLE)\b", re.IGNORECASE
)


_NAME = r"(`(?:[^`]|``)*`|\"(?:[^\"]|\"\")*\"|\S+)"
_NO_COLUMN = r"(?!(?:INDEX|KEY|CONSTRAINT|FOREIGN|PRIMARY|CHECK|PARTITION|PERIOD|SYSTEM|TO|AS|=)\b)"
_OF_COLUMNS = (
    rf"DROP (?:COLUMN )?(?:IF EXISTS )?{_NO_COLUMN}{_NAME}(?: RESTRICT| CASCADE)?$",
    rf"CHANGE (?:COLUMN )?(?:IF EXISTS )?{_NAME} {_NAME} ",
    rf"MODIFY (?:COLUMN )?(?:IF EXISTS )?{_NAME} ",
    rf"RENAME COLUMN (?:IF EXISTS )?{_NAME} TO {_NAME}$",
)
_COLUMNS = tuple(re.compile(clause, re.IGNORECASE) for clause in _OF_COLUMNS)


def columns_of(clause: str) -> tuple[str, ...]:
    """The names of the columns that a clause drops, redefines or renames, old and new; none of another clause.

    They stand as they were written, in their quotes.
    """
    return next((found.groups() for one in _COLUMNS if (found := one.match(clause))), ())


def renamed_by(clause: str) -> tuple[str, str] | None:
    """The old and the new name of a column that a clause renames, and leaves as it is; None of another clause."""
    found = _COLUMNS[-1].match(clause)
    return None if found is None else (found[1], found[2])


def moves_rows(clause: str) -> bool:
    """Tells whether rows come or go with a partition, or are exchanged for others, without row events."""
    return _OF_PARTITIONS.match(clause) is not None


def clauses_of(words: Sequence[str]) -> list[str]:
    """The clauses of an ALTER TABLE: split at commas outside parentheses."""
    clauses: list[list[str]] = [[]]
    depth = 0
    for word in words:
        depth += (word == "(") - (word == ")")
        if word == "," and depth == 0:
            clauses.append([])
        else:
            clauses[-1].append(word)
    return [" ".join(clause) for clause in clauses if clause]


def why_refused(clause: str, logs_cascades: bool) -> str:
    """Returns why a clause of an ALTER TABLE can't be carried on, whoever needs its columns; empty when it can."""
    shown = clause[:120]
    known = _HARMLESS.match(clause) is not None or columns_of(clause)
    if not known or _OTHER_ENGINE.search(_STRING.sub("''", clause)):
        return may_change(clause)
    if not logs_cascades and SILENT_CASCADE.search(clause):
        return f"ALTER TABLE ... {shown}: the server doesn't log the rows that a foreign key cascades to"
    if _PRIMARY.search(clause):
        return f"ALTER TABLE ... {shown}: it changes the key"
    return ""


def may_change(clause: str) -> str:
    """Returns why a clause can't be carried on that changes what rows are made of."""
    return f"ALTER TABLE ... {clause[:120]}: it may change rows or columns without row events"
