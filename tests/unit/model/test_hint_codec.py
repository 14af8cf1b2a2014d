"""What a leader tells onlookers may have been written by anybody: what is no hint of ours is none."""

from __future__ import annotations

import json
from typing import Any

import pytest

from migrator.adapters.coordination.local.hints import FileHints
from migrator.model.codecs.hint_codec import hint_of, hint_to_json
from migrator.model.hint import Hint

HINT = Hint(
    epoch=3, at_us=1_700_000_000_000_000, segment=7, event_log_bytes=10, note="waits", warnings=("w",)
)


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[" * 200_000,
        "5",
        '{"format": 4}',
        *(
            json.dumps(hint_to_json(HINT) | {name: "x"})
            for name in ("epoch", "at_us", "segment", "checkpoint")
        ),
        *(json.dumps(hint_to_json(HINT) | {"epoch": number}) for number in (-1, 1.5, True, 10**400, None)),
        json.dumps(hint_to_json(HINT) | {"warnings": 5}),
        b"\xff\xfe\x00",
    ],
)
def test_what_is_no_hint_is_none(tmp_path: Any, content: str | bytes) -> None:
    assert hint_of(content) is None
    raw = content.encode() if isinstance(content, str) else content
    (tmp_path / "progress.json").write_bytes(raw)
    assert FileHints(tmp_path).read() is None


def test_a_hint_is_one() -> None:
    assert hint_of(json.dumps(hint_to_json(HINT))) == HINT
