"""Every setting of ``migration.toml``, by section: the one place of types, defaults, choices and meanings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields

from migrator.config import back, coordination, cutover, observe
from migrator.config.engines import ENGINES
from migrator.config.secret import settings_of
from migrator.config.setting import Setting, choice, needed
from migrator.model.limits import MOST_WORKERS, SET_ASIDE, STOP, ApplyLimits, CaptureLimits
from migrator.model.server import TLS_MODES

FORMAT = 1
"""Number of the present layout of ``migration.toml``; a file without one has the first."""
_MIGRATION = {
    "name": needed(
        "`[a-z][a-z0-9_]{0,30}`. Names slot, publication (`migrator_<name>`) and ledger row. Do not change it during"
        " a migration"
    ),
    "format": Setting(int, "the layout of this file ([Formats](how-to/upgrade.md#formats))", FORMAT),
    "mapping": Setting(str, "the mapping file", "mapping.py"),
    "state": Setting(
        str,
        "folder of event log, reports, lock and Spark's log. On a local disk of this machine. Executors of a"
        " [Spark cluster](how-to/spark-cluster.md) must see it under the same path, as the same user",
        ".migrator",
    ),
    "alembic": Setting(str, "script location of the new schema's revisions", "alembic"),
}
_PREFER = "prefer"
_TLS = choice(
    "whether the connection is encrypted, and who is believed: see [TLS](how-to/secrets.md#tls)",
    _PREFER,
    *(mode for mode in TLS_MODES if mode != _PREFER),
)
_SERVER = {
    "kind": needed("which engine the server is", tuple(ENGINES)),
    "host": Setting(str, "the primary server; PostgreSQL 16 or later: or a standby", "127.0.0.1"),
    "port": Setting(int, "where the server listens", 0, "5432 or 3306, by kind"),
    "database": needed("the database"),
    "schema": Setting(str, "PostgreSQL only: the tables' schema", "", "`public`"),
    "user": needed("login"),
    **settings_of("password", "where the password is ([Passwords](how-to/secrets.md#passwords))"),
    "tls": _TLS,
    "tls_ca": Setting(str, "PEM file with the certificate authority, for the verifying modes"),
    "silence_s": Setting(
        float,
        "how long the server may be silent where it should speak. MySQL, MariaDB: a log without a heartbeat for so"
        " long is read anew, a chunk's SELECT may send nothing three times as long. PostgreSQL: the server is asked"
        " over another connection whether it still works for us, and the line given up after as long again",
        20.0,
    ),
}
_TARGET_ONLY = {
    "host": Setting(str, "the server", "127.0.0.1"),
    "owner": Setting(
        str,
        "login of the new tables' owner, for `migrator schema upgrade`: [New schema](how-to/mapping/new-schema.md)",
        "",
        "that of `user`",
    ),
    **settings_of(
        "owner_password", "where its password is; read by `migrator schema upgrade` and its like alone"
    ),
}
_SOURCE_ONLY = {
    "placement": choice(
        "`witness` writes nothing to the source, needs no further grant and is safe by itself. `watermark` also"
        " writes DBLog's watermark row around every chunk, `message` (PostgreSQL only) the same mark as a logical"
        " message, without a table. Marks alone would not do (see"
        " [why a witness](explanation/paper-map.md#a-witness-instead-of-the-watermark)), so the witness decides with"
        " each of them",
        "witness",
        "watermark",
        "message",
    ),
    "failover": Setting(
        bool,
        "PostgreSQL 17 or later: the slot may be taken over by"
        " [a promoted standby](how-to/standby.md#postgresql-when-a-standby-is-promoted)",
        True,
    ),
    "streaming": Setting(
        bool,
        "PostgreSQL only. The server sends a large transaction while it still runs; it is collected in"
        " `<state>/spill` until its outcome is known, so the source spills nothing to its own disk. Needs as much"
        " space there as the open large transactions have changes. `false` leaves them to the source until they"
        " commit",
        True,
    ),
    "text_columns": Setting(
        dict,
        "PostgreSQL only. Columns of type `numeric(p,s)`, `timestamp`, `timestamptz` that travel as text because"
        " they have [values that no native type holds](reference/mapping-reference.md#types-that-arrive):"
        ' `{ prices = ["amount"] }`. Choose before the first run: a migration that has begun stops by name if this'
        " changes",
        {},
    ),
    "log": choice(
        "`server` reads the server's own log. `change_tables` (PostgreSQL only) polls tables that triggers fill:"
        " see [Change tables](how-to/change-tables.md)",
        "server",
        "change_tables",
    ),
    "forget_changes": Setting(
        bool, "with `change_tables`: delete what was read and is in the event log", False
    ),
    "keep_until_applied": Setting(
        bool,
        "the source keeps its log until the target holds it, not only until the event log does; see"
        " [A damaged event log](reference/errors.md#a-damaged-event-log). Always so with `[coordination]` and an"
        " event log on each machine",
        False,
    ),
    "replaced_tables": choice(
        "what a run does when another table has the name of a captured one, as after gh-ost: `read_again` takes the"
        " former one's rows out of the target and reads all rows of the new one, in order with the log; `stop` waits"
        " for your word. See [Change the old schema](how-to/schema-changes.md#another-table-under-the-name)",
        "read_again",
        "stop",
    ),
    "server_id": Setting(
        int,
        "MySQL and MariaDB only: what the log reader calls itself as a replica. 0 derives a number above 2^31 from"
        " the name. No other replica may have it",
        0,
    ),
}
_CAPTURE = {
    "chunk_rows": "rows of a table's chunks at first (the very first has at most 1000); later ones adapt to"
    " `chunk_target_s`",
    "chunk_rows_min": "least rows of a chunk that is adapted",
    "chunk_rows_max": "most rows of a chunk that is adapted",
    "chunk_target_s": "how long one chunk SELECT should take; bounds how long a snapshot is held",
    "chunk_bytes": "how large one chunk should be at most in memory, by the rows that its table had so far; about"
    " `dump_workers` + 2 are held",
    "dump_workers": "chunks read at the same time, of several tables or of one, each over a connection of its own;"
    f" at most {MOST_WORKERS}. 1: one after the other",
    "chunk_reading": "who reads chunks: `driver`, or `executors`, each chunk by one Spark task over a connection of"
    " its own, still `dump_workers` at a time; needs a way from executors to the source"
    " ([Chunks read by executors](how-to/spark-cluster.md#chunks-read-by-executors))",
    "dump_share": "while others work on the source, or nobody knows yet, chunks are read by one worker, in smaller"
    " pieces, for this share of the time; with nobody else at work, or 1, all the time. See"
    " [Pace](how-to/pace.md#pace-of-dumps)",
    "max_active_sessions": "while more sessions of others are active on the source, one worker reads, ever more"
    " slowly. See [Pace](how-to/pace.md#pace-of-dumps)",
    "max_replica_lag_s": "the same while a replica is further behind",
    "table_silence_s": "a table that had changes, and has had none for so many seconds while other tables had, is"
    " warned of",
    "segment_rows": "a segment is written at the latest when it holds this many rows",
    "linger_s": "how long rows wait for others to share their segment, four times as long while earlier segments"
    " weren't read yet. Larger: fewer fsyncs, more lag",
    "heartbeat_s": "how often the position moves on while there are no rows",
    "backlog_bytes": "chunks wait while the event log holds more than this. Log changes do not wait",
    "event_log_bytes": "log changes wait as well while the event log would hold more than this"
    " ([Room for the event log](how-to/watch.md#room-for-the-event-log))",
    "event_log_free_bytes": "everything waits while less than this would be free on the event log's disk",
    "keep_applied_bytes": "the newest segments that the target holds stay in the event log up to this size, half of"
    " `backlog_bytes` at most, for [incidents](how-to/incidents/incidents.md); they go where room is needed",
}
_APPLY = {
    "batch_rows": "rows mapped and applied in one target transaction. A larger source transaction is still applied"
    " whole",
    "interval_s": "least time from the start of one batch to the start of the next. A batch costs one Spark job, and"
    " a few statements for each target table it touches, whatever it holds: a longer interval leaves more of the"
    " machine to others, and lag grows by as much",
    "staging": "who loads the dump rows of large batches: `driver`, over the connection that merges them;"
    " `executors`, in parallel into unlogged tables `migrator.stage_*`, which need a way from executors to the"
    " target, and psycopg there; `auto`: executors, unless `master` is one local process. MySQL and MariaDB targets:"
    " always the driver",
    "staging_rows": "from how many dump rows on a batch is large",
    "slice_grains": "how many grains of a joined target are read and mapped at a time, where one change reaches"
    " more",
    "bad_rows": "what happens where the target refuses a row for what it holds: `stop` stops the run and names the"
    " row; `set_aside` leaves its key out of the target, names it in the ledger, and goes on with all others: see"
    " [Bad rows](how-to/mapping/bad-rows.md). Not yet with foreign keys between targets",
    "bad_rows_per_table": "with `set_aside`: rows of one target table that may be set aside at a time; one more stops"
    " the run",
    "bad_rows_per_run": "with `set_aside`: rows of all tables that one run may set aside; one more stops it",
    "upkeep": "have the target look at a table once a dump has filled it: see"
    " [After a dump](how-to/pace.md#after-a-dump)",
}
_CHOICES = {
    "chunk_reading": ("driver", "executors"),
    "staging": ("auto", "driver", "executors"),
    "bad_rows": (STOP, SET_ASIDE),
}
_NO_BOUND = {
    "max_active_sessions": "no bound",
    "max_replica_lag_s": "no bound",
    "table_silence_s": "no warning",
    "event_log_bytes": "no bound",
    "event_log_free_bytes": "a fiftieth of the disk, 256 MiB at most",
    "keep_applied_bytes": "nothing is kept",
}
_SPARK = {
    "master": Setting(str, "Spark master URL", "local[*]"),
    "conf": Setting(dict, "table of `spark.*` options, passed through", {}),
    "py_files": Setting(
        list,
        "on a cluster: list of `.py`, `.zip`, `.egg`, `.whl` files for executors, beside the mapping's own modules",
        [],
    ),
    "wait_s": Setting(float, "on a cluster: how long to wait for the first executor", 60.0),
}


def _limits(bounds: type, meanings: Mapping[str, str]) -> dict[str, Setting]:
    """The settings of a dataclass of bounds, with its defaults."""
    return {
        bound.name: Setting(
            type(bound.default),
            meanings[bound.name],
            bound.default,
            _NO_BOUND.get(bound.name, ""),
            _CHOICES.get(bound.name, ()),
        )
        for bound in fields(bounds)
    }


SECTIONS: Mapping[str, Mapping[str, Setting]] = {
    "migration": _MIGRATION,
    "source": {**_SERVER, **_SOURCE_ONLY},
    "target": {**_SERVER, **_TARGET_ONLY},
    "capture": _limits(CaptureLimits, _CAPTURE),
    "apply": _limits(ApplyLimits, _APPLY),
    back.SECTION: back.SETTINGS,
    cutover.SECTION: cutover.SETTINGS,
    "coordination": coordination.SETTINGS,
    observe.SECTION: observe.SETTINGS,
    "spark": _SPARK,
}
"""The sections of the file in the order of the documents, each with its settings by name."""
