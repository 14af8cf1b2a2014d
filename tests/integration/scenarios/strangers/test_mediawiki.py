"""MediaWiki's schema, 58 tables as Debian packages them, in both forms: a project of ours holds under hazards.

The schema is MediaWiki's (GPL-2.0-or-later). It is taken out of the package when the test runs, and kept nowhere.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.integration.scenarios.strangers.survives import survives

pytestmark = [pytest.mark.integration, pytest.mark.slow]

PROJECT = Path(__file__).parent / "wiki_project"
FORMS = {
    "postgresql": ("postgres/tables-generated.sql", "postgres/tables.sql"),
    "mariadb": ("tables-generated.sql",),
    "mysql": ("tables-generated.sql",),
}


@pytest.fixture(scope="module")
def maintenance(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package's folder with the schemas."""
    folder = tmp_path_factory.mktemp("mediawiki")
    if shutil.which("apt-get") is None:
        pytest.skip("this machine has no apt-get")
    got = subprocess.run(
        ["apt-get", "download", "mediawiki"], cwd=folder, capture_output=True, text=True, check=False
    )
    found = list(folder.glob("mediawiki_*.deb"))
    if not found:
        pytest.skip(f"Debian's package mediawiki can't be had: {got.stderr.strip()[-200:]}")
    subprocess.run(["dpkg-deb", "-x", found[0], folder / "root"], check=True)
    return folder / "root" / "usr" / "share" / "mediawiki" / "maintenance"


@pytest.mark.parametrize("kind", FORMS)
def test_a_wiki_survives(kind: str, maintenance: Path, tmp_path: Path) -> None:
    schema = "\n".join((maintenance / name).read_text() for name in FORMS[kind])
    assert schema.count("CREATE TABLE") == 58
    survives(PROJECT, tmp_path, schema, kind)
