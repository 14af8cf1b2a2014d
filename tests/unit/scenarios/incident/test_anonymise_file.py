"""A file with values becomes one under pseudonyms, that names no place either; a second time it is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from migrator.errors import ConfigError, MigratorError
from scenarios.chaos.incident import anonymised as module
from scenarios.chaos.incident.anonymised import anonymised
from scenarios.chaos.incident.commands import incident as commands
from scenarios.chaos.incident.incident_file import Incident, packed, unpacked
from scenarios.chaos.incident.privacy import Privacy
from tests.unit.scenarios.chaos.test_plugin import SETTINGS
from tests.unit.scenarios.incident.made_up import INCIDENT, MAPPING
from tests.unit.scenarios.incident.test_anonymised import content, occurring

PLACE = "db7.internal.example"
WITH_VALUES = replace(
    INCIDENT,
    project={"migration.toml": SETTINGS, "mapping.py": f"# copied from {PLACE}\n{MAPPING}"},
    parts={
        "settings.toml": SETTINGS.replace('user = "m"', f'user = "m"\nhost = "{PLACE}"', 1),
        "verify/verify.json": '{"of": "Bartholomew Quince"}',
        "structure/new.json": "{}",
    },
    facts={
        "anonymised": False,
        "missing": [{"part": "target", "why": f"{PLACE} doesn't answer"}],
        "left_out": [],
    },
)


def test_no_value_and_no_place_is_left(tmp_path: Path) -> None:
    file, out = tmp_path / "small.zip", tmp_path / "public.zip"
    file.write_bytes(packed(WITH_VALUES))
    assert len(occurring(content(unpacked(file)))) > 10, "the search finds nothing at all"
    assert PLACE.encode() in content(unpacked(file))
    words = ["anonymise", str(file), "--treat", "customer.address=blank", "-o", str(out)]
    done = CliRunner().invoke(commands, words)
    assert done.exit_code == 0, done.output
    found = unpacked(out)
    assert occurring(content(found)) == []
    assert PLACE.encode() not in content(found)
    assert [*found.parts] == ["structure/new.json"]
    assert any(one.startswith("settings.toml: ") for one in found.facts["left_out"])
    assert len(found.history.transactions) == len(WITH_VALUES.history.transactions)
    assert "customer.address: blank" in done.output
    assert out.stat().st_mode & 0o077 == 0
    with pytest.raises(ConfigError, match="is under pseudonyms"):
        anonymised(found, {})


def test_without_pseudonyms_the_test_would_see_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative control: a step that replaces nothing leaves values, which the search of the test above finds."""

    def nothing(incident: Incident, _: Privacy) -> Incident:
        return incident

    monkeypatch.setattr(module, "pseudonymised", nothing)
    assert occurring(content(anonymised(WITH_VALUES, {})))


def test_a_mapping_that_cannot_be_loaded_is_named() -> None:
    broken = replace(WITH_VALUES, project={"migration.toml": SETTINGS, "mapping.py": "import gone_for_ever"})
    with pytest.raises(MigratorError, match="gone_for_ever"):
        anonymised(broken, {})
