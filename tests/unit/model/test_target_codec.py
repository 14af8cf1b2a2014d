"""The JSON codec of checkpoints, row schemas and manifests loses nothing and refuses what it doesn't know."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from migrator.model.codecs.codec import (
    FORMAT,
    FormatError,
    checkpoint_from_json,
    checkpoint_to_json,
    manifest_from_json,
    manifest_to_json,
    schema_from_json,
    schema_to_json,
)
from migrator.model.position import Position
from migrator.model.progress import Checkpoint, TableDump
from migrator.model.segment import FileKind, Manifest, SegmentFile
from migrator.model.table import Column, TableId, TableSchema

TEXT = st.text(st.characters(), max_size=12)  # with NUL and lone surrogates
TABLES = st.builds(TableId, TEXT, TEXT)
VALUES = st.one_of(st.none(), TEXT, st.binary(max_size=12))
COUNTS = st.integers(0, 2**63)
DUMPS = st.builds(
    TableDump,
    table=TABLES,
    after=st.one_of(st.none(), st.lists(VALUES, max_size=3).map(tuple)),
    done=st.booleans(),
    rows=COUNTS,
    dropped_rows=COUNTS,
    chunks=COUNTS,
    estimated_rows=COUNTS,
    key=st.lists(TEXT, max_size=2).map(tuple),
)
CHECKPOINTS = st.builds(
    Checkpoint,
    position=st.builds(Position, order=st.integers(0, 2**70), token=TEXT),
    partial_order=st.one_of(st.none(), st.integers(0, 2**70)),
    partial_index=COUNTS,
    unconfirmed=st.lists(st.lists(COUNTS, max_size=2).map(tuple), max_size=3).map(tuple),
    dumps=st.lists(DUMPS, max_size=3).map(tuple),
)
SCHEMAS = st.builds(
    TableSchema,
    id=TABLES,
    columns=st.lists(st.builds(Column, TEXT, TEXT, st.booleans(), TEXT, TEXT), max_size=3).map(tuple),
    key=st.lists(TEXT, max_size=2).map(tuple),
)
FILES = st.builds(SegmentFile, SCHEMAS, st.sampled_from(FileKind), TEXT, COUNTS, COUNTS, TEXT)
MANIFESTS = st.builds(
    Manifest,
    number=COUNTS,
    epoch=COUNTS,
    checkpoint=CHECKPOINTS,
    ends_transaction=st.booleans(),
    committed_at_us=st.integers(-(2**63), 2**63),
    transactions=COUNTS,
    row_changes=COUNTS,
    files=st.lists(FILES, max_size=2).map(tuple),
)
EXAMPLE = Checkpoint(Position(7, "0/7"), dumps=(TableDump(TableId("s", "t"), after=("a", b"\xff", None)),))


def through_text(document: dict[str, Any]) -> Any:
    """The document after having been stored as JSON text."""
    return json.loads(json.dumps(document))


@given(CHECKPOINTS)
def test_a_checkpoint_survives_json(checkpoint: Checkpoint) -> None:
    back = checkpoint_from_json(through_text(checkpoint_to_json(checkpoint)))
    assert back == checkpoint
    assert back.position.token == checkpoint.position.token  # not compared by ==


@given(SCHEMAS)
def test_a_row_schema_survives_json(schema: TableSchema) -> None:
    assert schema_from_json(through_text(schema_to_json(schema))) == schema


@given(MANIFESTS)
def test_a_manifest_survives_json(manifest: Manifest) -> None:
    assert manifest_from_json(through_text(manifest_to_json(manifest))) == manifest


@given(CHECKPOINTS)
def test_the_text_holds_nothing_that_jsonb_refuses(checkpoint: Checkpoint) -> None:
    text = json.dumps(checkpoint_to_json(checkpoint), ensure_ascii=False)
    assert "\\u0000" not in text.replace("\\\\", "")
    text.encode("utf-8")  # no lone surrogates


def test_bytes_and_text_of_the_same_letters_stay_apart() -> None:
    dumps = tuple(TableDump(TableId("s", "t"), after=(value,)) for value in ("YQ==", b"a", "a", None))
    back = checkpoint_from_json(checkpoint_to_json(Checkpoint(Position(1, ""), dumps=dumps)))
    assert [dump.after for dump in back.dumps] == [("YQ==",), (b"a",), ("a",), (None,)]


def test_a_higher_format_is_refused_by_name() -> None:
    document = checkpoint_to_json(EXAMPLE) | {"format": FORMAT + 1}
    with pytest.raises(FormatError, match=f"checkpoint has format {FORMAT + 1}"):
        checkpoint_from_json(document)


@pytest.mark.parametrize("document", [{}, {"format": True}, {"format": "1"}, {"format": 0}])
def test_a_foreign_document_is_refused(document: dict[str, Any]) -> None:
    with pytest.raises(FormatError, match="no format number"):
        manifest_from_json(document)


def test_a_damaged_document_is_refused() -> None:
    document = checkpoint_to_json(EXAMPLE)
    del document["dumps"]
    with pytest.raises(FormatError, match=r"damaged.*dumps"):
        checkpoint_from_json(document)
