"""The file of query pairs, ``queries.yaml``: read, checked, and all its problems reported together.

format: 1
queries:
  - name: departures of a carrier        # unique
    old: SELECT ... WHERE carrier = :carrier ORDER BY flight     # :name is a parameter
    new: SELECT ... WHERE c.code = :carrier ORDER BY f.number
    order: partial          # total, partial (the default with ORDER BY) or none (the default without)
    accept: [scale]         # causes by name that are no fault
    slower_than: 2          # warn when the new p95 is more than twice the old one
    parameters:             # every combination, in random order, at most --limit
      carrier: [UA, AA]                       # a list
      month: {from: 1, to: 12, step: 1}       # a range of whole numbers, both ends included
    draw: {from: old, query: "SELECT ..."}    # or: drawn by a query, whose columns are the parameters
    log: SELECT ... WHERE carrier = :carrier  # or: from a captured query log, what such statements look like
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from sqlalchemy import TextClause, text

from migrator.errors import ConfigError
from migrator.model.codecs.codec import NEWER
from verify.dual_read.difference import CAUSES, ORDERS
from verify.dual_read.verdict import Rules

FORMAT = 1
_FIELDS: dict[str, type | tuple[type, ...]] = {
    "name": str, "old": str, "new": str, "order": str, "accept": list, "slower_than": (int, float),
    "parameters": dict, "draw": dict, "log": str,
}  # fmt: skip
_READS = re.compile(r"\s*(SELECT|WITH|VALUES|TABLE|\()\b|\s*\(", re.IGNORECASE)
_LOCKS = re.compile(
    r"\bfor\s+(no\s+key\s+)?update\b|\bfor\s+(key\s+)?share\b|\block\s+in\s+share\b|\binto\s+(outfile|dumpfile|@)",
    re.IGNORECASE,
)
"""Clauses that a read-only transaction of MySQL or MariaDB doesn't refuse, although they lock rows or write a
file."""
_PARAMETER = re.compile(r"(?<![:\w\\]):([A-Za-z_]\w*)(?!:)")
_QUOTED = re.compile(r"'(?:[^']|'')*'")
_ANY_QUOTES = re.compile(r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|`[^`]*`""")


@dataclass(frozen=True, slots=True)
class Draw:
    """Parameters drawn by a query on the ``old`` or the ``new`` side."""

    side: str
    query: str


@dataclass(frozen=True, slots=True)
class QueryPair:
    """One entry of the file, checked."""

    name: str
    old: str
    new: str
    rules: Rules
    slower_than: float = 2.0
    parameters: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    draw: Draw | None = None
    log: str = ""

    def old_clause(self) -> TextClause:
        """The old query for SQLAlchemy."""
        return text(self.old)

    def new_clause(self) -> TextClause:
        """The new one."""
        return text(self.new)

    def names(self) -> set[str]:
        """The parameters that the two queries need."""
        return names_in(self.old) | names_in(self.new)


def names_in(query: str) -> set[str]:
    """Names of ``:name`` parameters, outside quotes."""
    return set(_PARAMETER.findall(_QUOTED.sub("''", query)))


def only_reads(query: str) -> bool:
    """Returns whether this looks like one plain SELECT; the server has the last word, in a read-only transaction."""
    several = ";" in _ANY_QUOTES.sub("''", query).rstrip().removesuffix(";")
    return bool(_READS.match(query)) and not several and not _LOCKS.search(_QUOTED.sub("''", query))


def load_queries(file: Path) -> tuple[QueryPair, ...]:
    """Reads and checks the file. Raises ``ConfigError`` with everything that is wrong with it."""
    try:
        document = yaml.safe_load(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(
            f"{file} can't be read",
            cause=error.strerror or str(error),
            remedy="name a file of query pairs; docs/how-to/dual-read.md shows one",
        ) from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"{file} is no valid YAML", cause=str(error), remedy="correct the line named"
        ) from error
    return pairs_of(document, str(file))


def pairs_of(document: Any, where: str) -> tuple[QueryPair, ...]:
    """The pairs of a parsed file. Raises ``ConfigError``."""
    checked = _Checked()
    pairs = checked.pairs(document)
    if checked.problems:
        raise ConfigError(
            f"{len(checked.problems)} problem(s) in {where}",
            where="; ".join(checked.problems),
            remedy="correct the fields named; docs/reference/dual-read-reference.md lists all of them",
        )
    return pairs


class _Checked:
    """Turns the document into pairs, collecting problems instead of stopping at the first."""

    def __init__(self) -> None:
        self.problems: list[str] = []

    def pairs(self, document: Any) -> tuple[QueryPair, ...]:
        if not isinstance(document, dict):
            self.problems.append("the file is no mapping with format and queries")
            return ()
        found = document.get("format")
        if found != FORMAT:
            self.problems.append(
                f"format: {found!r} is not {FORMAT}: {NEWER if found else f'begin with format: {FORMAT}'}"
            )
            if found is not None:
                return ()
        self.problems += [
            f"{key}: unknown; there are format, queries" for key in set(document) - {"format", "queries"}
        ]
        entries = document.get("queries")
        if not isinstance(entries, list) or not entries:
            self.problems.append("queries: a list of at least one pair is needed")
            return ()
        pairs = [pair for i, entry in enumerate(entries) if (pair := self._pair(i, entry)) is not None]
        names = [pair.name for pair in pairs]
        self.problems += [
            f"{name}: there are several pairs of this name"
            for name in {n for n in names if names.count(n) > 1}
        ]
        return tuple(pairs)

    def _pair(self, index: int, entry: Any) -> QueryPair | None:
        before = len(self.problems)
        if not isinstance(entry, dict):
            self.problems.append(f"queries[{index}]: {entry!r} is no mapping")
            return None
        label = str(entry.get("name") or f"queries[{index}]")

        def wrong(field_: str, value: Any, cause: str) -> None:
            self.problems.append(f"{label}.{field_}: {value!r} {cause}")

        for key, value in entry.items():
            if key not in _FIELDS:
                wrong(str(key), value, f"is of no known field; there are {', '.join(_FIELDS)}")
            elif not isinstance(value, _FIELDS[key]) or isinstance(value, bool):
                wrong(key, value, "has the wrong type")
        for key in ("name", "old", "new"):
            if not entry.get(key):
                wrong(key, entry.get(key), "is missing: each pair has name, old and new")
        if len(self.problems) > before:
            return None
        for key in ("old", "new", "log"):
            if key in entry and not only_reads(entry[key]):
                wrong(key, entry[key], "is no plain SELECT: only reading is compared, without locks")
        self._rules(entry, wrong)
        pair = QueryPair(
            name=entry["name"],
            old=entry["old"].strip().rstrip(";"),
            new=entry["new"].strip().rstrip(";"),
            rules=Rules(entry.get("order") or _order(entry["old"]), tuple(entry.get("accept", ()))),
            slower_than=float(entry.get("slower_than", 2.0)),
            parameters=self._parameters(entry.get("parameters", {}), wrong),
            draw=self._draw(entry.get("draw"), wrong),
            log=entry.get("log", "").strip().rstrip(";"),
        )
        self._complete(pair, wrong)
        return pair

    def _rules(self, entry: dict[str, Any], wrong: Any) -> None:
        if "order" in entry and entry["order"] not in ORDERS:
            wrong("order", entry["order"], f"is none of {', '.join(ORDERS)}")
        for cause in entry.get("accept", ()):
            if cause not in CAUSES:
                wrong("accept", cause, f"is no named cause; there are {', '.join(CAUSES)}")
        if entry.get("slower_than", 1) <= 0:
            wrong("slower_than", entry["slower_than"], "is not above 0")

    def _parameters(self, parameters: dict[Any, Any], wrong: Any) -> dict[str, tuple[Any, ...]]:
        found: dict[str, tuple[Any, ...]] = {}
        for name, values in parameters.items():
            if isinstance(values, list) and values:
                found[str(name)] = tuple(values)
            elif (
                isinstance(values, dict)
                and set(values) <= {"from", "to", "step"}
                and {"from", "to"} <= set(values)
            ):
                low, high, step = values["from"], values["to"], values.get("step", 1)
                if all(type(number) is int for number in (low, high, step)) and step > 0 and low <= high:
                    found[str(name)] = tuple(range(low, high + 1, step))
                else:
                    wrong(f"parameters.{name}", values, "is no range of whole numbers from low to high")
            else:
                wrong(f"parameters.{name}", values, "is neither a list of values nor {from: 1, to: 9}")
        return found

    def _draw(self, draw: Any, wrong: Any) -> Draw | None:
        if draw is None:
            return None
        side, query = draw.get("from"), draw.get("query")
        if set(draw) != {"from", "query"} or side not in ("old", "new") or not only_reads(str(query)):
            wrong("draw", draw, "is not {from: old, query: SELECT ...} (or from: new)")
            return None
        return Draw(side, str(query).strip().rstrip(";"))

    def _complete(self, pair: QueryPair, wrong: Any) -> None:
        ways = [name for name in ("parameters", "draw", "log") if getattr(pair, name)]
        if len(ways) > 1 and set(ways) != {"parameters", "log"} and set(ways) != {"draw", "log"}:
            wrong("draw", ways, "can't be combined: give parameters or a query that draws them")
        if pair.parameters and pair.names() != set(pair.parameters):
            odd = sorted(pair.names() ^ set(pair.parameters))
            wrong("parameters", odd, "are named on one side only: in the queries or under parameters")
        if pair.names() and not ways:
            wrong("parameters", sorted(pair.names()), "have no values: give parameters, draw or log")
        if pair.log and names_in(pair.log) != pair.names():
            wrong(
                "log",
                sorted(names_in(pair.log) ^ pair.names()),
                "are named in the log's template or the queries only",
            )


def _order(query: str) -> str:
    return "partial" if re.search(r"\border\s+by\b", _QUOTED.sub("''", query), re.IGNORECASE) else "none"
