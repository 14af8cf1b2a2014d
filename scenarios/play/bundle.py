"""A run as one folder, which holds everything needed to judge it again without servers.

::

    <scenario>.yaml   the scenario as it was run, verbatim
    history/          the recorded history (``verify.history.history``)
    two_sides.json    in place of it, the history of a cut-over (``verify.two_sides``)
    result.json       ending, verdicts with witnesses, counts, versions, the command that runs it again
    pipeline.log      what the pipeline printed, all its processes
    segments/         the event log's segments as delivered; only where the verdict isn't *holds*
"""

from __future__ import annotations

import json
import platform
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

from migrator.errors import MigratorError, VerifyError
from migrator.model.codecs.codec import NEWER, NewerFormatError, check_number
from scenarios.database import Database
from scenarios.play import catalog_files
from scenarios.play.run_result import RunResult
from verify.history.result import CheckResult, Moment, Outcome, WitnessCase

FORMAT = 1
RESULT, HISTORY, LOG, SEGMENTS = "result.json", "history", "pipeline.log", "segments"
FAULTS = "faults.json"
"""The faults of a run without a history."""
_TRACK = "lane"
"""The name of ``Moment.track`` in bundles of this format."""
_PACKAGES = ("dbmigrator", "pyspark", "pyarrow", "psycopg", "pymysql", "mysql-replication")


def create(out: Path, name: str, engine: str, seed: int, mutant: str, yaml: str) -> Path:
    """An empty bundle with its scenario. A bundle of the same run is replaced.

    Raises ``MigratorError`` for a folder of that name that is no bundle.
    """
    folder = out / "-".join(filter(None, [name, engine, str(seed), mutant]))
    if folder.exists():
        if any(folder.iterdir()) and not any(folder.glob("*.yaml")):
            raise MigratorError(f"{folder} is no bundle", remedy="choose another folder with --out")
        shutil.rmtree(folder)
    folder.mkdir(parents=True)
    (folder / f"{name}.yaml").write_text(yaml)
    return folder.absolute()


def command(name: str, engine: str, seed: int, mutant: str) -> str:
    """The command that runs the same scenario again."""
    broken = f" --mutant {mutant}" if mutant else ""
    return f"migrator scenario run {name} --engine {engine} --seed {seed}{broken}"


def versions(source: Database, target: Database) -> dict[str, str]:
    """Returns the versions of the tool and what it runs on. Raises ``ConnectionFailed``."""
    found = {"python": platform.python_version()}
    found.update({name: version(name) for name in _PACKAGES})
    found.update({"source": _server_version(source), "target": _server_version(target)})
    try:
        done = subprocess.run(
            ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short", "HEAD"],
            capture_output=True,
            text=True,
            check=False,
        )
    except OSError:  # no git on this machine
        return found
    return {**found, "commit": done.stdout.strip()} if done.returncode == 0 else found


def write_result(result: RunResult, versions_: Mapping[str, str], command_: str) -> None:
    """Writes ``result.json`` into the result's bundle."""
    document = {
        "format": FORMAT,
        "scenario": result.scenario.name,
        "engine": result.engine,
        "seed": result.seed,
        "mutant": result.mutant,
        "outcome": result.outcome.value,
        "reason": result.reason,
        "ending": result.ending,
        "error": result.error,
        "elapsed_s": result.elapsed_s,
        "counts": dict(result.counts),
        "versions": dict(versions_),
        "command": command_,
        "checks": list(map(_check_document, result.checks)),
    }
    (result.bundle / RESULT).write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n")


def read_result(folder: Path) -> RunResult:
    """The result that a bundle holds. Raises ``VerifyError`` for a folder that is no complete bundle."""
    try:
        document = json.loads((folder / RESULT).read_text())
        check_number("bundle", document["format"], FORMAT)
        return RunResult(
            scenario=catalog_files.load(folder / f"{document['scenario']}.yaml"),
            engine=document["engine"],
            seed=document["seed"],
            ending=document["ending"],
            error=document["error"],
            checks=tuple(map(_check, document["checks"])),
            outcome=Outcome(document["outcome"]),
            bundle=folder,
            elapsed_s=document["elapsed_s"],
            mutant=document["mutant"],
            reason=document["reason"],
            counts=document["counts"],
        )
    except NewerFormatError as error:
        raise VerifyError(
            "the bundle was written by a newer version of the migrator",
            where=str(folder),
            cause=str(error),
            remedy=NEWER,
        ) from error
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise VerifyError(
            "no bundle can be read there",
            where=str(folder),
            cause=f"{type(error).__name__}: {error}",
            remedy="name a folder that `migrator scenario run` has written",
        ) from error


def _check_document(check: CheckResult) -> dict[str, Any]:
    document = {**asdict(check), "outcome": check.outcome.value}
    for witness in document["witnesses"]:
        witness["timeline"] = [{_TRACK: moment.pop("track"), **moment} for moment in witness["timeline"]]
    return document


def _check(document: Mapping[str, Any]) -> CheckResult:
    witnesses = tuple(
        WitnessCase(
            witness["headline"],
            tuple(witness["because"]),
            tuple(
                Moment(moment[_TRACK], moment["place"], moment["text"], moment["guilty"])
                for moment in witness["timeline"]
            ),
        )
        for witness in document["witnesses"]
    )
    return CheckResult(**{**document, "outcome": Outcome(document["outcome"]), "witnesses": witnesses})


def _server_version(database: Database) -> str:
    connection = database.connect()
    try:
        cursor = connection.cursor()
        cursor.execute("SELECT version()")
        return f"{database.kind} {cursor.fetchall()[0][0]}".split(" on ")[0]
    finally:
        connection.close()
