"""An incident under pseudonyms, and the search that proves that no original value is in the file."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from secrets import token_bytes

from migrator.errors import ConfigError, MigratorError
from scenarios.chaos.incident import failure as failures
from scenarios.chaos.incident import structure as structures
from scenarios.chaos.incident.incident_file import Incident
from scenarios.chaos.incident.pseudonyms import constants, treatment
from scenarios.chaos.incident.pseudonyms.apply import TELLS, Pseudonyms
from scenarios.chaos.incident.pseudonyms.constants import Constants

_SEARCHED = 6
"""Texts with fewer characters may be in any file by chance."""
_TRIALS = 5
_FIELDS = "table before after changes order target status columns missing different wrong halted checked"
"""Words that the file's own documents have."""
_PUBLIC = ("structure/", "log/segments.json")
"""Parts that have no values."""


@dataclass(frozen=True)
class Privacy:
    """The treatment that the user asks for.

    Attributes:
        wishes: treatments by (table, column).
        links: links that the mapping declares.
        places: names of hosts, logins and folders, which are replaced.
        key: of the pseudonyms; a random one unless a test gives another.
    """

    wishes: Mapping[tuple[str, str], str] = field(default_factory=dict)
    links: Sequence[str] = ()
    places: Sequence[str] = ()
    key: bytes = b""


def pseudonymised(incident: Incident, privacy: Privacy) -> Incident:
    """The incident under pseudonyms.

    Raises ``ConfigError`` for columns that nothing but a wish can settle, and ``MigratorError`` where an original
    value is left: no such file is to be had.
    """
    treatments = treatment.chosen(incident.structure, privacy.links, privacy.wishes)
    known = _mentioned(incident)
    found: Sequence[str] = ()
    for _ in range(1 if privacy.key else _TRIALS):
        pseudonyms = Pseudonyms(
            incident.structure, treatments, incident.history, known, privacy.key or token_bytes(32)
        )
        result = _replaced(incident, pseudonyms, treatments)
        found = left_over(result, pseudonyms.originals())
        if not found:
            return result
    raise MigratorError(
        "the incident can't be pseudonymised",
        where=f"{len(found)} value(s) with {', '.join(map(str, sorted({len(one) for one in found})[:5]))} characters",
        cause="they would still be in the file: as a part of other values, or by chance",
        remedy="try again, or take a smaller part with --keys or --around",
    )


def left_over(incident: Incident, originals: set[str]) -> list[str]:
    """Original values that occur in the parts of a file that have values."""
    text = "\n".join(
        part for name, part in incident.content().items() if not name.startswith((*_PUBLIC, "project/"))
    )
    text += json.dumps(incident.facts.get("kept", {}), ensure_ascii=False)
    heads = defaultdict[str, list[tuple[str, str]]](list)
    for one in originals:
        if len(one) >= _SEARCHED:
            written = json.dumps(one, ensure_ascii=False)[1:-1]
            heads[written[:_SEARCHED]].append((written, one))
    found = dict.fromkeys(
        one
        for place in range(len(text))  # one pass over the text, however many values there are
        for written, one in heads.get(text[place : place + _SEARCHED], ())
        if text.startswith(written, place)
    )
    return sorted(found)


def _mentioned(incident: Incident) -> Constants:
    """The constants of the code, and values of the rows that stand in the code, in comments too: there they stay."""
    found = constants.of_code(incident.project)
    code = "\n".join(text for name, text in incident.project.items() if not name.endswith(".toml"))
    code += json.dumps(structures.to_json(incident.structure), ensure_ascii=False) + _FIELDS
    values = {
        one
        for _, row in incident.history.every()
        for one in row.values()
        if isinstance(one, str) and len(one) >= _SEARCHED
    }
    return replace(found, texts=found.texts | {one for one in values if one in code})


def _replaced(
    incident: Incident, pseudonyms: Pseudonyms, treatments: Sequence[treatment.Treatment]
) -> Incident:
    done = pseudonyms.history()
    facts = {
        **incident.facts,
        "anonymised": True,
        "treatments": [
            {"column": f"{one.table}.{one.column}", "treatment": one.kind, "why": one.why}
            for one in treatments
        ],
        "kept": {place: list(values) for place, values in done.kept.items()},
        "no_room": dict(done.lacking),
        "tells": list(TELLS),
    }
    unknown = [one for one in incident.failure.expected if one.value and pseudonyms.text(one.value) is None]
    if unknown:
        raise ConfigError(
            "an expected value has no pseudonym",
            where=", ".join(f"{one.target}.{one.column}" for one in unknown),
            cause="it is the value of no old row, as it stands",
            remedy="expect a value that the old side has, or collect without --anonymise",
        )
    seen = failures.renamed(incident.failure, pseudonyms.text, failures.words_of)
    return replace(incident, history=done.history, failure=seen, facts=facts)
