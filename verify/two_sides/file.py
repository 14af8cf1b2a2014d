"""The history of a cut-over as a JSON file, so that it can be judged again without servers.

Its format is the bundle's: no number of its own.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from migrator.errors import VerifyError
from verify.two_sides.history import Moment, Pointed, Read, State, TwoSides, Write

NAME = "two_sides.json"


def save(history: TwoSides, folder: Path) -> None:
    """Writes the file into a folder."""
    (folder / NAME).write_text(json.dumps(asdict(history)) + "\n")


def load(folder: Path) -> TwoSides:
    """Reads the file of a folder. Raises ``VerifyError`` where there is none, or another version's."""
    path = folder / NAME
    try:
        document: dict[str, Any] = json.loads(path.read_text())
        return TwoSides(
            writes=tuple(Write(**one) for one in document["writes"]),
            seen=tuple(map(_state, document["seen"])),
            last=tuple(map(_state, document["last"])),
            moments=tuple(Moment(**one) for one in document["moments"]),
            stuck=tuple(document["stuck"]),
            looks=document["looks"],
            numbered=document.get("numbered", False),
            reads=tuple(Read(**one) for one in document.get("reads", ())),
            pointed=tuple(Pointed(**one) for one in document.get("pointed", ())),
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise VerifyError(
            "no history of a cut-over can be read there",
            where=str(path),
            cause=f"{type(error).__name__}: {error}",
            remedy="name a folder that `migrator scenario run` has written",
        ) from error


def _state(document: dict[str, Any]) -> State:
    lists = {name: tuple(document[name]) for name in ("keys", "wrong", "rows")}
    return State(document["side"], document["at"], **lists)
