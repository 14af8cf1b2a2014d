"""An incident that is there already, under pseudonyms: of a failed run, or collected with its values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from migrator.errors import ConfigError
from scenarios.chaos.incident import project_files
from scenarios.chaos.incident.incident_file import Incident
from scenarios.chaos.incident.privacy import Privacy, pseudonymised
from scenarios.chaos.incident.replay import unpacked_project
from scenarios.rehearsal import copied
from transforms.load import load_mapping

_SETTINGS = "settings.toml"
_KEPT = "structure/"
"""Parts for people that have no values; others are left out."""


def anonymised(incident: Incident, treatments: Mapping[tuple[str, str], str], key: bytes = b"") -> Incident:
    """The incident under pseudonyms.

    Args:
        incident: with the values of its rows.
        treatments: by (table, column), where others than the usual ones are wanted.
        key: of the pseudonyms; a random one unless a test gives another.

    Raises ``ConfigError`` for one that is under pseudonyms, and what ``privacy.pseudonymised`` raises.
    """
    if incident.facts.get("anonymised"):
        raise ConfigError("the incident is under pseudonyms", remedy="hand it on as it is")
    with TemporaryDirectory() as folder:
        config = unpacked_project(incident, Path(folder))
        mapping = config.parent / copied.wanted(config).text("migration", "mapping", "mapping.py")
        links = [link for one in load_mapping(mapping).targets for link in one.links or ()]
        if _SETTINGS in incident.parts:
            config.write_text(incident.parts[_SETTINGS])
        places = project_files.names_of_places(copied.wanted(config))
    files = {name: project_files.without_addresses(text, places) for name, text in incident.project.items()}
    gone = [name for name in incident.parts if not name.startswith(_KEPT)]
    facts = {
        **incident.facts,
        "missing": [
            {name: project_files.without_places(text, places) for name, text in one.items()}
            for one in incident.facts.get("missing", [])
        ],
        "left_out": [
            *incident.facts.get("left_out", []),
            *(f"{name}: it may tell of places and values" for name in gone),
        ],
    }
    clean = replace(
        incident,
        project=files,
        parts={name: text for name, text in incident.parts.items() if name not in gone},
        facts=facts,
    )
    return pseudonymised(clean, Privacy(treatments, links, places, key))
