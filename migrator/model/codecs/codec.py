"""JSON form of checkpoints, row schemas, manifests and dump requests: lossless, numbered, the same wherever kept.

``*_to_json`` returns plain dicts of str, int, bool, None, list; ``*_from_json`` is its exact inverse. A document
carries ``format``; one written by a newer version is refused by name with ``FormatError``, never half understood.
The callers name the file or ledger row: they turn ``FormatError`` into their own ``MigratorError``.

Text that JSON or PostgreSQL's ``jsonb`` can't hold (NUL, lone surrogates) travels as ``{"u8": base64}``, bytes as
``{"b64": base64}``; everything else stays readable.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping, Sequence
from typing import Any

from migrator.model.codecs.fed_codec import ledgers_from_json, ledgers_to_json
from migrator.model.event import Key, Value
from migrator.model.position import Position
from migrator.model.progress import Checkpoint, TableDump
from migrator.model.requests.request import (
    Doubt,
    DumpRequest,
    Pace,
    RequestBook,
    RequestState,
    Scope,
)
from migrator.model.segment import FileKind, Manifest, SegmentFile
from migrator.model.table import Column, TableId, TableSchema

FORMAT = 4
"""Number of the present layout of all documents of this module, and of the event log's data files.

Older ones are read, too: format 1 knew no dump requests, format 2 neither doubts nor TRUNCATE among images,
format 3 no lineage (see ``migrator.model.lineage``).
"""

_NOT_IN_JSONB = re.compile("[\x00\ud800-\udfff]")

Json = Mapping[str, Any]


NEWER = "start the version of the migrator that wrote it, or a newer one"
"""The remedy for a format that this version doesn't know."""


class FormatError(ValueError):
    """A stored document was written by a newer version, or isn't one of ours."""


class NewerFormatError(FormatError):
    """A stored document was written by a newer version: nothing is wrong with it."""


def check_number(what: str, found: int, supported: int) -> None:
    """Raises ``NewerFormatError`` for the format of a newer version."""
    if found > supported:
        raise NewerFormatError(f"the {what} has format {found}, this version knows formats up to {supported}")


def checkpoint_to_json(checkpoint: Checkpoint) -> dict[str, Any]:
    """The document of a checkpoint."""
    return {
        "format": FORMAT,
        "position": _position(checkpoint.position),
        "partial_order": checkpoint.partial_order,
        "partial_index": checkpoint.partial_index,
        "unconfirmed": [list(transaction) for transaction in checkpoint.unconfirmed],
        "dumps": [_dump(dump) for dump in checkpoint.dumps],
        "requests": [_dump(dump) | {"request": dump.request} for dump in checkpoint.requests],
        "passes": None
        if checkpoint.passes is None
        else [[_table(table), name] for table, name in checkpoint.passes],
        "last_changes": [[_table(table), at_us] for table, at_us in checkpoint.last_changes],
        "notes": [[_table(table), text_to_json(text)] for table, text in checkpoint.notes],
        **ledgers_to_json(checkpoint),
    }


def checkpoint_from_json(document: Json) -> Checkpoint:
    """Inverse of ``checkpoint_to_json``. Raises ``FormatError``."""
    check_format("checkpoint", document)
    try:
        return Checkpoint(
            position=_to_position(document["position"]),
            partial_order=document["partial_order"],
            partial_index=document["partial_index"],
            unconfirmed=tuple(tuple(transaction) for transaction in document["unconfirmed"]),
            dumps=tuple(_to_dump(dump) for dump in document["dumps"]),
            requests=tuple(_to_dump(dump) for dump in document.get("requests", ())),
            passes=_to_passes(document.get("passes")),
            last_changes=tuple(
                (_to_table(table), int(at_us)) for table, at_us in document.get("last_changes", ())
            ),
            notes=tuple(
                (_to_table(table), text_from_json(text)) for table, text in document.get("notes", ())
            ),
            **ledgers_from_json(document),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise damaged("checkpoint", error) from error


def schema_to_json(schema: TableSchema) -> dict[str, Any]:
    """The document of a row schema."""
    return {
        "format": FORMAT,
        "table": _table(schema.id),
        "key": [text_to_json(name) for name in schema.key],
        "columns": [
            {
                "name": text_to_json(column.name),
                "type": column.type,
                "nullable": column.nullable,
                "source_type": text_to_json(column.source_type),
                "collation": text_to_json(column.collation),
            }
            for column in schema.columns
        ],
    }


def schema_from_json(document: Json) -> TableSchema:
    """Inverse of ``schema_to_json``. Raises ``FormatError``."""
    check_format("row schema", document)
    try:
        return TableSchema(
            id=_to_table(document["table"]),
            key=tuple(text_from_json(name) for name in document["key"]),
            columns=tuple(
                Column(
                    name=text_from_json(column["name"]),
                    type=column["type"],
                    nullable=column["nullable"],
                    source_type=text_from_json(column["source_type"]),
                    collation=text_from_json(column["collation"]),
                )
                for column in document["columns"]
            ),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise damaged("row schema", error) from error


def manifest_to_json(manifest: Manifest) -> dict[str, Any]:
    """The document of a manifest, with its checkpoint and the row schema of each file inside."""
    return {
        "format": FORMAT,
        "number": manifest.number,
        "epoch": manifest.epoch,
        "checkpoint": checkpoint_to_json(manifest.checkpoint),
        "ends_transaction": manifest.ends_transaction,
        "committed_at_us": manifest.committed_at_us,
        "transactions": manifest.transactions,
        "row_changes": manifest.row_changes,
        "begins_batch": manifest.begins_batch,
        "previous": manifest.previous,
        **({"continues": True} if manifest.continues else {}),
        **({"echo": True} if manifest.echo else {}),
        **({"doubts": [_doubt(doubt) for doubt in manifest.doubts]} if manifest.doubts else {}),
        "files": [
            {
                "schema": schema_to_json(file.schema),
                "kind": file.kind.value,
                "path": text_to_json(file.path),
                "rows": file.rows,
                "size_bytes": file.size_bytes,
                "sha256": file.sha256,
                "held_bytes": file.held_bytes,
            }
            for file in manifest.files
        ],
    }


def manifest_from_json(document: Json) -> Manifest:
    """Inverse of ``manifest_to_json``. Raises ``FormatError``."""
    check_format("manifest", document)
    try:
        return Manifest(
            number=document["number"],
            epoch=document["epoch"],
            checkpoint=checkpoint_from_json(document["checkpoint"]),
            ends_transaction=document["ends_transaction"],
            committed_at_us=document["committed_at_us"],
            transactions=document["transactions"],
            row_changes=document["row_changes"],
            files=tuple(_to_file(file) for file in document["files"]),
            begins_batch=document.get("begins_batch", False),
            continues=document.get("continues", False),
            echo=document.get("echo", False),
            doubts=_to_doubts(document),
            previous=document.get("previous", ""),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise damaged("manifest", error) from error


def requests_to_json(book: RequestBook) -> dict[str, Any]:
    """The document of a book of dump requests."""
    return {
        "format": FORMAT,
        "started": book.started,
        "pace": _pace(book.pace),
        "requests": [
            {
                "id": request.id,
                "tables": [_table(table) for table in request.tables],
                "keys": [_key(key) for key in request.scope.keys],
                "low": _key(request.scope.low),
                "high": _key(request.scope.high),
                "predicate": text_to_json(request.scope.predicate),
                "state": request.state.value,
                "generation": request.generation,
                "reason": text_to_json(request.reason),
                **({"doubts": [_doubt(doubt) for doubt in request.doubts]} if request.doubts else {}),
                **({"token": request.token} if request.token else {}),
            }
            for request in book.requests
        ],
    }


def requests_from_json(document: Json) -> RequestBook:
    """Inverse of ``requests_to_json``. Raises ``FormatError``."""
    check_format("book of dump requests", document)
    try:
        return RequestBook(
            requests=tuple(_to_request(request) for request in document["requests"]),
            pace=Pace(**document["pace"]),
            started=document["started"],
        ).well_formed()
    except (KeyError, TypeError, ValueError) as error:
        raise damaged("book of dump requests", error) from error


def _pace(pace: Pace) -> dict[str, Any]:
    """Encodes a pace; leaves out default values of fields that older versions don't know."""
    document = {"chunk_rows": pace.chunk_rows, "delay_s": pace.delay_s, "p95_s": pace.p95_s}
    later = {
        "workers": pace.workers,
        "active_sessions": pace.active_sessions,
        "replica_lag_s": pace.replica_lag_s,
        "share": pace.share,
    }
    return document | {name: value for name, value in later.items() if value}


def _to_request(document: Json) -> DumpRequest:
    keys = tuple(key for key in map(_to_key, document["keys"]) if key is not None)
    low, high = _to_key(document["low"]), _to_key(document["high"])
    return DumpRequest(
        id=document["id"],
        tables=tuple(_to_table(table) for table in document["tables"]),
        scope=Scope(keys, low, high, text_from_json(document["predicate"])),
        state=RequestState(document["state"]),
        generation=document["generation"],
        reason=text_from_json(document["reason"]),
        doubts=_to_doubts(document),
        token=document.get("token", ""),
    )


def _doubt(doubt: Doubt) -> dict[str, Any]:
    return {
        "target": text_to_json(doubt.target),
        "keys": [[text_to_json(part) for part in key] for key in doubt.keys],
    }


def _to_doubts(document: Json) -> tuple[Doubt, ...]:
    return tuple(
        Doubt(
            text_from_json(doubt["target"]), tuple(tuple(map(text_from_json, key)) for key in doubt["keys"])
        )
        for doubt in document.get("doubts", ())
    )


def check_format(what: str, document: Json) -> None:
    """Raises ``FormatError`` for a document without a number of ours, or with a newer one."""
    found = document.get("format") if isinstance(document, Mapping) else None
    if not isinstance(found, int) or isinstance(found, bool) or found < 1:
        raise FormatError(f"this is no {what} of ours: it carries no format number (found {found!r})")
    check_number(what, found, FORMAT)


def damaged(what: str, error: Exception) -> FormatError:
    """The error for a document that can't be taken apart."""
    if isinstance(error, FormatError):
        return error
    return FormatError(f"the {what} is damaged: {type(error).__name__}: {error}")


def _to_file(document: Json) -> SegmentFile:
    return SegmentFile(
        schema=schema_from_json(document["schema"]),
        kind=FileKind(document["kind"]),
        path=text_from_json(document["path"]),
        rows=document["rows"],
        size_bytes=document["size_bytes"],
        sha256=document["sha256"],
        held_bytes=document.get("held_bytes", 0),
    )


def _dump(dump: TableDump) -> dict[str, Any]:
    return {
        "table": _table(dump.table),
        "after": _key(dump.after),
        "done": dump.done,
        "rows": dump.rows,
        "dropped_rows": dump.dropped_rows,
        "chunks": dump.chunks,
        "estimated_rows": dump.estimated_rows,
        **({"key": list(map(text_to_json, dump.key))} if dump.key else {}),
    }


def _to_dump(document: Json) -> TableDump:
    return TableDump(
        table=_to_table(document["table"]),
        after=_to_key(document["after"]),
        done=document["done"],
        rows=document["rows"],
        dropped_rows=document["dropped_rows"],
        chunks=document["chunks"],
        estimated_rows=document["estimated_rows"],
        request=document.get("request", ""),
        key=tuple(map(text_from_json, document.get("key", ()))),
    )


def _to_passes(document: Any) -> tuple[tuple[TableId, str], ...] | None:
    return None if document is None else tuple((_to_table(table), name) for table, name in document)


def _position(position: Position) -> dict[str, Any]:
    return {"order": position.order, "token": text_to_json(position.token)}


def _to_position(document: Json) -> Position:
    return Position(order=document["order"], token=text_from_json(document["token"]))


def _table(table: TableId) -> list[Any]:
    return [text_to_json(table.schema), text_to_json(table.name)]


def _to_table(document: Sequence[Any]) -> TableId:
    schema, name = document
    return TableId(schema=text_from_json(schema), name=text_from_json(name))


def text_to_json(text: str) -> str | dict[str, str]:
    """A text as any JSON column holds it, U+0000 and lone surrogates too."""
    if _NOT_IN_JSONB.search(text):
        return {"u8": base64.b64encode(text.encode("utf-8", "surrogatepass")).decode("ascii")}
    return text


def text_from_json(document: Any) -> str:
    """Inverse of ``text_to_json``."""
    if isinstance(document, Mapping):
        return base64.b64decode(document["u8"], validate=True).decode("utf-8", "surrogatepass")
    if isinstance(document, str):
        return document
    raise FormatError(f"expected text, found {document!r}")


def _key(key: Key | None) -> list[Any] | None:
    return None if key is None else [_value(value) for value in key]


def _to_key(document: Any) -> Key | None:
    return None if document is None else tuple(_to_value(value) for value in document)


def _value(value: Value) -> Any:
    if isinstance(value, bytes):
        return {"b64": base64.b64encode(value).decode("ascii")}
    return None if value is None else text_to_json(value)


def _to_value(document: Any) -> Value:
    if document is None:
        return None
    if isinstance(document, Mapping) and "b64" in document:
        return base64.b64decode(document["b64"], validate=True)
    return text_from_json(document)
