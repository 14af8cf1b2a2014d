"""Mutants of the decisions of capture (``migrator/core``)."""

from __future__ import annotations

from scenarios.mutants.in_code.change import equivalent, mutants_of

_CORE = (
    "tests/unit/core/test_core.py",
    "tests/unit/core/test_core_rules.py",
    "tests/unit/core/test_partial.py",
)
_DUMPS = ("tests/unit/core/test_parallel_dump.py", "tests/unit/core/test_dump_requests.py", *_CORE)
_HOLDS = ("tests/unit/core/test_hold.py", "tests/unit/core/test_emptied.py", *_DUMPS)

PARTIAL = mutants_of(
    "migrator/core/partial.py", _CORE,
    ("what is left to skip goes below nothing after a run", "left = max(0, left - len(run.items))",
        "left = left - len(run.items)"),
    ("the rest of a part claims the place of the whole", "first_index=part.first_index + known, runs", "runs"),
    ("more is cut off than the part has", "min(index - part.first_index, part.size())", "index - part.first_index"),
    ("a run that was delivered as a whole is kept empty", "if left < len(run.items):", "if left <= len(run.items):"),
    ("one change too few is cut off", "items=run.items[left:]", "items=run.items[max(0, left - 1):]"),
)  # fmt: skip

TOUCHED = mutants_of(
    "migrator/core/touched.py", ("tests/unit/core/test_touched.py", *_HOLDS),
    ("inherited transactions aren't stored again", "return (*sorted(self._inherited), *self._transactions)",
        "return tuple(self._transactions)"),
    ("transactions of now aren't stored", "return (*sorted(self._inherited), *self._transactions)",
        "return tuple(sorted(self._inherited))"),
    ("one witness is enough to forget", "return all(witness.contains(transaction) for witness in bounds)",
        "return any(witness.contains(transaction) for witness in bounds)"),
    ("inherited transactions are forgotten at once",
        "self._inherited = {item for item in self._inherited if not surely_visible(item)}",
        "self._inherited = set()"),
    ("inherited transactions are remembered for ever",
        "self._inherited = {item for item in self._inherited if not surely_visible(item)}", "pass"),
    ("a chunk that misses an inherited transaction is placed",
        "if any(not witness.contains(item) for item in self._inherited):\n            return True", "pass"),
    ("a chunk waits for transactions that it has", "for transaction, touched in self._transactions.items()\n"
        "            if not witness.contains(transaction)", "for transaction, touched in self._transactions.items()\n"
        "            if witness.contains(transaction)"),
    ("a large transaction that is forgotten still counts", "self._large.discard(transaction)", "pass"),
    ("keys of before images are not noted", "known.update(images)", "known.update(images[-1:])"),
    ("a TRUNCATE touches nothing", "touched.tables[run.codec.schema.id] = EVERY_KEY\n"
        "                self._large.add(transaction)", "pass"),
    ("a large transaction counts as a small one", "if touched.count > self._max_keys:\n            touched.tables",
        "if touched.count > 9_999_999:\n            touched.tables"),
    ("what is held undecoded is not bounded", "if self._pending_bytes > self._held_bytes:", "if False:"),
    ("bytes of what was forgotten still count",
        "self._pending_bytes -= sum(run.bytes for run in self._transactions.pop(transaction).pending)",
        "self._transactions.pop(transaction)"),
    ("keys of other tables are dropped too", "keys |= touched.tables.get(table) or set()",
        "keys |= set().union(*(found or set() for found in touched.tables.values()))"),
)  # fmt: skip

CAPTURE = mutants_of(
    "migrator/core/capture.py", _HOLDS,
    ("a reconnection keeps the newest witness", "self._newest_witness = None\n        self._bounds = dict.fromkeys",
        "self._bounds = dict.fromkeys"),
    ("a reconnection keeps the bounds of reads under way", "self._bounds = dict.fromkeys(self._bounds)\n        self",
        "self"),
    ("a reconnection keeps chunks that wait", "self._plan.begin_again()\n        self._drop_unwanted()", "pass"),
    ("held chunk rows aren't counted", "if chunk.request.doubting:\n            self._held(kept)",
        "if chunk.request.doubting:"),
    ("held changes aren't counted", "if self._hold.name:\n            self._held(part.size())", "if False:\n            pass"),
    ("a log that stands still goes on", "if order is None and part.position.order <= self._position.order:",
        "if order is None and part.position.order < self._position.order:"),
    ("the rest of another transaction is cut", "stored = index if order == part.position.order else 0",
        "stored = index"),
    ("parts are delivered again", "part = rest_of(part, stored)", "pass"),
    ("visible transactions are noted, others not", "part.runs and not self._surely_visible(part.id)",
        "part.runs and self._surely_visible(part.id)"),
    ("a transaction that one reader sees counts as visible to all", "return not self._bounds or all(",
        "return not self._bounds or any("),
    ("a read under way without a known view counts for nothing",
        "bound is not None and bound.contains(transaction) for bound", "bound is None or bound.contains(transaction) for bound"),
    ("the last part of a transaction leaves it open", "if part.last:\n            self._partial = (None, 0)",
        "if part.last:\n            self._partial = (part.position.order, 0)"),
    ("a part that is read again sets the place back", "max(stored, part.first_index + part.size())",
        "part.first_index + part.size()"),
    ("the position goes backwards", "if position.order > self._position.order:\n            self._position = position",
        "self._position = position"),
    ("a chunk goes out one position too early", "return self._position >= chunk.high",
        "return self._position.order >= chunk.high.order - 1"),
    ("a chunk waits for the low watermark only", "return window.high_seen", "return window.keys is not None"),
    ("chunks go out in whichever order", "self._plan.is_head(chunk) and self._reached(chunk)", "self._reached(chunk)"),
    ("a chunk in an older row schema goes out",
        "if stale.reread or missed or chunk.schema_version != schema.version():", "if stale.reread or missed:"),
    ("a chunk that must be read again goes out", "if stale.reread or missed or chunk", "if missed or chunk"),
    ("a held chunk without what came before the mark goes out", "if stale.reread or missed or chunk", "if stale.reread or chunk"),
    ("no row is dropped", "self._drop_keys(schema, chunk.rows, stale.keys)", "self._drop_keys(schema, chunk.rows, frozenset())"),
    ("dropped rows count as delivered", "self._plan.emitted(chunk, chunk.row_count - kept)", "self._plan.emitted(chunk, 0)"),
    ("other dumps go out within a hold", "if self._hold.name and request.dump != self._hold.name:\n            return (\n"
        "                False", "if self._hold.name and request.dump != self._hold.name:\n            return (\n                True"),
    ("a batch begins within a transaction", "if self._collected or self.in_transaction():", "if self._collected:"),
    ("a batch begins with what was collected already", "if self._collected or self.in_transaction():",
        "if self.in_transaction():"),
    ("nobody notes whose rows a batch holds", "self._passes.note(request.table, request.brings())", "pass"),
    ("a window with too many keys counts as one with none",
        "if window is not None and window.keys is EVERY_KEY:", "if False and window is not None:"),
    ("the keys of the window are forgotten beside a witness", "replace(missed, keys=missed.keys | keys)", "missed"),
    ("the witness is forgotten beside a window", "if chunk.witness is None:\n            return", "if chunk.witness is None or keys:\n            return"),
    ("a request that is cancelled leaves its hold", "self._let_go()  # cancelled, or given up", "pass"),
    ("a hold begins within a transaction", "if self._hold.wanted and not self.in_transaction():", "if self._hold.wanted:"),
    ("the mark forgets transactions that are not visible", "self._hold.begin(frozenset(self._touched.unconfirmed()))",
        "self._hold.begin(frozenset())"),
    ("a chunk that nobody expects goes out", "if not self._plan.arrived(chunk):\n            self._forget(chunk)\n            return []",
        "self._plan.arrived(chunk)"),
    ("a read is bounded by what it has read", "self._bounds[request.id] = self._newest_witness", "pass"),
    ("the newest change of a table is its oldest", "self._last_changes[table] = part.committed_at_us",
        "self._last_changes.setdefault(table, part.committed_at_us)"),
    ("a segment of its own isn't asked for", "self._wants_segment = not self._hold.name\n            return []", "return []"),
    ("a request is refused and read on", "self._plan.refuse(request.dump)\n", "pass\n"),
)  # fmt: skip

DUMP = mutants_of(
    "migrator/core/dump.py", _HOLDS,
    ("the rest of a range that has grown is lost", "elif chunk.last_key != piece.until:", "elif False:"),
    ("the rest of a range comes behind all others", "reading.pieces.insert(reading.pieces.index(piece) + 1, rest)",
        "reading.pieces.append(rest)"),
    ("an empty chunk sets the place back", "after=chunk.last_key if chunk.last_key is not None else old.after,",
        "after=chunk.last_key,"),
    ("an empty chunk begins the table anew",
        "reading.after = chunk.last_key if chunk.last_key is not None else reading.after", "reading.after = chunk.last_key"),
    ("a table ends with any chunk", "reading.exhausted = chunk.final", "reading.exhausted = True"),
    ("a refused request comes back", "if one.is_open() and one.name() not in self._refused", "if one.is_open()"),
    ("a cancelled request goes on", "self._give_up([job for job in self._dumps if job[0] not in opened and job[0] != FIRST])",
        "pass"),
    ("the first dump is given up with the requests", "if job[0] not in opened and job[0] != FIRST]", "if job[0] not in opened]"),
    ("a paused request goes on", "if request.state is RequestState.RUNNING", "if request"),
    ("a hold keeps what was emitted before", "self._reading[job] = _begun(self._dumps[job])\n\n    def open", "pass\n\n    def open"),
    ("a request with doubts is read without a hold",
        'return "" if job is None or job[0] not in self._doubting or job[0] == self._held else job[0]', 'return ""'),
    ("too many chunks wait", "room = asked < self._max_waiting + self._workers - 1", "room = True"),
    ("one dump is always first", "start = dumps.index(self._served) + 1 if self._served in dumps else 0", "start = 0"),
    ("during a hold all dumps take turns", "dumps = [self._held] if self._held and self._held in self._running else self._running",
        "dumps = self._running"),
    ("the place goes on though the piece is open", "piece.until, piece.open, reading.after = request.until, False, request.until",
        "piece.until, piece.open = request.until, False"),
    ("the end of a table that was found is forgotten", "self._reading[name, table] = replace(_begun(self._dumps[name, table]), end=end)",
        "self._reading[name, table] = _begun(self._dumps[name, table])"),
    ("a chunk is read again from the start", "return _Reading(dump.after, exhausted=dump.done)", "return _Reading(None, exhausted=dump.done)"),
    ("a dump that is done is read again", "return _Reading(dump.after, exhausted=dump.done)", "return _Reading(dump.after)"),
    ("more reads than workers", "if len(self._in_flight) < self._workers else None", "if True else None"),
    ("a given up read still takes its worker", "self._in_flight.discard(request.id)", "pass"),
    ("listed keys with doubts come in several chunks", "MOST_LISTED if listed else 0", "0"),
)  # fmt: skip

SMALL = (
    *mutants_of(
        "migrator/core/passes.py", _HOLDS,
        ("any dump's rows come into a batch", "return self._names.get(table, name) == name", "return True"),
        ("an unknown past admits every dump", "return name == FIRST", "return True"),
        ("a batch that begins still knows the one before", "self._names = {}", "pass"),
    ),
    *mutants_of(
        "migrator/core/windows.py", ("tests/unit/core/test_windows.py", *_HOLDS),
        ("a low watermark keeps the keys of before", "window.keys = set()\n            return False", "return False"),
        ("keys of other tables count", "if window.table == table and window.keys is not EVERY_KEY", "if window.keys is not EVERY_KEY"),
        ("a window before its low watermark notes nothing", "window.keys = keys | (window.keys or set())",
            "window.keys = keys | window.keys if window.keys else window.keys"),
        ("a window remembers any number of keys", "if run.empties or len(window.keys) > self._max_keys:", "if run.empties:"),
        ("a TRUNCATE in a window touches nothing", "if run.empties or len(window.keys) > self._max_keys:", "if len(window.keys) > self._max_keys:"),
        ("a watermark of an earlier attempt ends a window", "if window is None:\n            return False\n        if seen",
            "if window is None:\n            return True\n        if seen"),
    ),
    *mutants_of(
        "migrator/core/hold.py", ("tests/unit/core/test_hold.py", "tests/unit/core/test_core_rules.py"),
        ("a hold has no bound", "return bool(self.name) and self.rows > self.max_rows", "return False"),
        ("a hold keeps the count of the one before", 'self.name, self.wanted, self.before, self.rows = self.wanted, "", before, 0',
            'self.name, self.wanted, self.before = self.wanted, "", before'),
        ("one transaction of before is enough", "all(witness.contains(transaction) for transaction in self.before)",
            "any(witness.contains(transaction) for transaction in self.before)"),
        ("chunks of any request are the held one's", "return name == self.name and contains", "return contains"),
    ),
)  # fmt: skip

ALIKE = (
    equivalent(
        "migrator/core/partial.py", "a part is cut where it begins",
        "if index <= part.first_index:", "if index < part.first_index:",
        "with nothing to cut off, the rest is built from the same runs at the same place",
    ),
    equivalent(
        "migrator/core/capture.py", "chunks from before the mark stay",
        "self._plan.hold(self._hold.name)\n            self._drop_unwanted()", "self._plan.hold(self._hold.name)",
        "no chunk of the request is asked for before its mark (DumpPlan.must_hold), so none can wait",
    ),
)  # fmt: skip

CORE = (*PARTIAL, *TOUCHED, *CAPTURE, *DUMP, *SMALL, *ALIKE)
