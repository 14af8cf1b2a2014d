"""The history of a cut-over as a JSON file, so that it can be judged again without servers."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from migrator.errors import VerifyError
from migrator.model.codecs.codec import NEWER, NewerFormatError, check_number
from verify.two_sides.history import Moment, State, TwoSides, Write

FORMAT = 1
NAME = "two_sides.json"


def save(history: TwoSides, folder: Path) -> None:
    """Writes the file into a folder."""
    (folder / NAME).write_text(json.dumps({"format": FORMAT, **asdict(history)}) + "\n")


def load(folder: Path) -> TwoSides:
    """Reads the file of a folder. Raises ``VerifyError`` where there is none, or another version's."""
    path = folder / NAME
    try:
        document: dict[str, Any] = json.loads(path.read_text())
        check_number("history of a cut-over", document["format"], FORMAT)
        return TwoSides(
            writes=tuple(Write(**one) for one in document["writes"]),
            seen=tuple(map(_state, document["seen"])),
            last=tuple(map(_state, document["last"])),
            moments=tuple(Moment(**one) for one in document["moments"]),
            stuck=tuple(document["stuck"]),
            looks=document["looks"],
        )
    except NewerFormatError as error:
        raise VerifyError(
            "the history was written by a newer version", where=str(path), cause=str(error), remedy=NEWER
        ) from error
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
