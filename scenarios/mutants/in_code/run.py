"""Mutants of the loops that apply, release and acknowledge segments, and go on after a crash."""

from __future__ import annotations

from scenarios.mutants.in_code.change import mutants_of

_APPLY = ("tests/unit/run/apply/test_apply_loop.py",)
_CAPTURE = (
    "tests/unit/core/test_notes_to_keep.py",
    "tests/unit/run/lead/test_lead.py",
    "tests/simulation/test_requests.py",
    "tests/unit/run/capture/test_load_pump.py",
)

_STRUCTURE = (
    "tests/unit/run/apply/test_fitting.py",
    "tests/unit/sources/postgres/test_postgres_structure_notes.py",
    "tests/unit/sources/postgres/test_postgres_schema_change.py",
    "tests/unit/sources/binlog/test_altered_columns.py",
)

_ASIDE = ("tests/unit/run/apply/test_set_aside.py",)
_GRAINS = (
    "tests/unit/run/apply/test_grains_in_the_ledger.py",
    "tests/unit/columnar/test_grains.py",
    "tests/unit/run/apply/test_halving.py",
)

_GRAINS_ASIDE = ("tests/unit/run/apply/test_grains_aside.py",)
_KEPT = ("tests/unit/transforms/test_kept.py",)

RUN = (
    *mutants_of(
        "migrator/run/kept_plans.py", _KEPT,
        ("a kept plan is taken for proved", "if not plan.kept or name in self._proved:", "if True:"),
        ("a plan of other tables is taken over", 'if kept is None or kept.get("signature") != signed:', "if kept is None:"),
        ("what was proved wrong stays", "self._path.unlink(missing_ok=True)", "pass"),
        ("another format is read as ours", 'if kept["format"] != _FORMAT:', "if False:"),
        ("what was proved wrong is taken from a file that stays", "if plan.kept in self._wrong:", "if False:"),
    ),
    *mutants_of(
        "transforms/analysis/kept.py", _KEPT,
        ("a plan with computed values is kept", "if computed or not content.text:", "if not content.text:"),
        ("a plan that can't be proved is kept", "if computed or not content.text:", "if computed:"),
        ("foreign keys don't matter", "        sorted(references),\n", ""),
        ("a damaged record is taken over", 'if kept["digest"] != _digest(kept):', "if False:"),
        ("whether a grain is computed doesn't matter", '"computed" if callable(target.grain) else repr(target.grain)', "None if callable(target.grain) else target.grain"),
    ),
    *mutants_of(
        "migrator/run/lead/read_again.py", ("tests/unit/run/lead/test_read_again.py",),
        ("a swap is met for ever", "if said == self._answered:", "if False:"),
        ("what was met is forgotten before it is answered", "(self.tables if segments == self._answered_at else frozenset())", "frozenset()"),
        ("whoever wants to be asked isn't", "if not self._wanted:", "if False:"),
    ),
    *mutants_of(
        "migrator/run/apply/emptied.py", ("tests/unit/run/apply/test_emptied_targets.py",),
        ("a table that joins takes rows of others", "if rest and not gone & there:", "if rest and not gone:"),
        ("what was dumped isn't known", "{dump.table.name for dump in known.dumps}", "set()"),
        ("rows that are there still go", "if gone and rest:", "if False:"),
    ),
    *mutants_of(
        "migrator/columnar/bad_rows.py", _ASIDE,
        ("a later version that fits leaves the record", "one.key in self._named[one.target]", "False"),
        ("a delete leaves the record", "parts = (here(rows.chunk), rows.before, rows.after,", "parts = (here(rows.chunk), None, rows.after,"),
        ("a table that is emptied keeps its records", "if one.target in self._emptied:", "if False:"),
        ("rows of a target that left the mapping stay aside", "if targets is None or one.target in targets", "if True"),
        ("rows that wait for each other wait for ever", "if one.parent is not None and (one.target, one.key) in waiting", "if False"),
        ("a text that may stand for another value names a row", "if kind is None or text is None or _NULL in text:", "if text is None:"),
        ("what was refused leaves no record", "kept), *map(self._as_accepted, self.new))", "kept),)"),
        ("a target that is filled anew keeps its records", "if rows.emptied or rows.replaces:", "if rows.emptied:"),
        ("the old row of a bad one is kept", "if not vanishes and not rows.replaces:", "if False:"),
        ("a dump row that was deleted since goes aside", "if dumped and (logged or vanishes):", "if dumped and logged:"),
        ("an older dump row is taken for the newest version", "if dumped and (logged or vanishes):", "if dumped and vanishes:"),
        ("of two rows of one key the first is bad", "if len(dumped) + len(logged) != 1:", "if not dumped and not logged:"),
        ("NULL in a key looks like a text", "_NULL if text is None else text", '"" if text is None else text'),
        ("a key of bytes is told by its ends", "None if value is None else value.hex()", "None if value is None else value[:8].hex()"),
        ("other rows go with the bad one", "kept[list(places)] = False", "kept[list(places)[0] :] = False"),
    ),
    *mutants_of(
        "migrator/columnar/bad_rows.py", _GRAINS[:1],
        ("a grain that is mapped again keeps its record", "(one.target, (one.columns, one.key)) in self._mapped_again", "False"),
        ("a row of a grain's name settles the grain", "if one.grain:", "if False:"),
    ),
    *mutants_of(
        "migrator/run/apply/set_aside.py", _GRAINS[:1],
        ("a grain's record has no place", "part = _placed(part, self._place)", "pass"),
        ("any number of grains goes aside", "if any(one.grain for one in part.bad_rows):", "if False:"),
    ),
    *mutants_of(
        "migrator/columnar/grains.py", _GRAINS[1:2],
        ("no value is a text", "NULL_TEXT if null else text for text, null", "text for text, null"),
        ("a row goes with the grain of others", "one is not None and one in values", "one is not None"),
        ("numbers of two types never link", "_plain(text) if number else text for text, number", "text for text, number"),
        ("a hierarchy's grains are told apart", "for reach in reaches) and not entangled(self._reaches)", "for reach in reaches)"),
        ("two zeros are two grains", '{"-0": "0", "-nan": "nan"}', "{}"),
    ),
    *mutants_of(
        "migrator/run/apply/grains_aside.py", _GRAINS_ASIDE,
        ("rows of another half are mapped", "not wanted < self._wholes[-1][0]:", "False:"),
        ("a transaction inherits what another found", "        self._again.clear()\n        self._found.clear()\n", "        pass\n"),
        ("none may go aside, and does", "self._most is not None and self._of(target).apart", "self._of(target).apart"),
        ("a computed grain goes aside", "self._most is not None and self._of(target).apart", "self._most is not None"),
        ("a grain that was set aside has rows", "Sides(grains.without(sides.before, held), grains.without(sides.after, ()), sides.dumped)", "Sides(sides.before, grains.without(sides.after, ()), sides.dumped)"),
        ("a grain is tried again that nobody touched", "        if not touched:\n            return sides\n", ""),
        ("a record stays of a grain that is right again", "frozenset(self._again.pop(name, ()))", "frozenset()"),
        ("a grain without a key goes into the target", "_fault(_after(mapped), plan) is not None", "False"),
        ("rows of before count as those of now", "mapped.filter(pc.equal(mapped[SIDE], 1))", "mapped"),
        ("two rows of one key are no fault", "pc.greater(counted[\"count_all\"], 1)", "pc.greater(counted[\"count_all\"], 2)"),
        ("a key that is NULL is no fault", "        if rows[name].null_count:\n", "        if False:\n"),
        ("grains are blamed for what fails without any", "        if fails(()) is not None:\n            return None", "        if False:\n            return None"),
        ("a grain found too many is set aside", "        if len(found) > most:\n", "        if False:\n"),
        ("what was found leaves no record", "setdefault(target.table.id.name, []).extend(records)", "setdefault(target.table.id.name, [])"),
        ("what fails stays among the rows", "grains.without(sides.after, found.keys()), sides.dumped\n", "grains.without(sides.after, ()), sides.dumped\n"),
        ("a part that only took grains aside is lost", "if last is None and (found or again):", "if False:"),
    ),
    *mutants_of(
        "migrator/columnar/bad_rows.py", ("tests/unit/run/apply/test_grains_in_the_ledger.py",),
        ("what was given up is given up whatever it is now", "if before and same and _LEFT_OUT", "if before and _LEFT_OUT"),
        ("a text that is cut says that a row is the same", "same and _LEFT_OUT not in one.row else", "same else"),
    ),
    *mutants_of(
        "migrator/run/apply/halving.py", _GRAINS[2:],
        ("what fails for all is looked for one by one", "while waiting and len(found) <= most:", "while waiting:"),
        ("one half is never looked at", "[items[half:], items[:half]]", "[items[:half]]"),
    ),
    *mutants_of(
        "migrator/adapters/memory/target.py", _ASIDE,
        ("records are written apart from the rows", "replace(batch.checkpoint, bad_rows=StillBad(held, batch.rows).left(batch.checkpoint))", "batch.checkpoint"),
    ),
    *mutants_of(
        "migrator/run/apply/set_aside.py", _ASIDE,
        ("any number of rows goes aside", "if number > most:", "if False:"),
        ("rows of earlier batches don't count", "self._check_room(name, refusal, StillBad(self._held, rows))", "self._check_room(name, refusal, StillBad((), rows))"),
        ("a run's rows aren't counted", "self._in_run += len(still.new)", "pass"),
        ("the first leader's records are forgotten", "self._held = ledger.checkpoint.bad_rows", "self._held = ()"),
        ("any number of joined rows goes aside", "self._check_room(names[table], list(keys.values())[-1], still)", "pass"),
        ("a joined row that isn't mapped again is forgotten", "for refusal in missing.values():", "for refusal in ():"),
        ("a joined row is tried for ever", "if joined is None or refusal.key in keys:", "if joined is None:"),
        ("joined rows leave no record", "still.see(part)", "pass"),
        ("staged rows are brought in the transaction", "_here(rows) if rows.table.id.name in known else rows", "rows"),
        ("stop sets rows aside", "if limits.bad_rows == SET_ASIDE else target", "if limits.bad_rows else target"),
    ),
    *mutants_of(
        "migrator/run/capture/loop.py", ("tests/unit/run/capture/test_capture_loop.py",),
        ("a halt waits for nothing", "if done or time.monotonic()", "if True or time.monotonic()"),
        ("what was read before a halt is read again", "steps.write(gate.admit)\n                    self._await", "self._await"),
    ),
    *mutants_of(
        "migrator/run/apply/fitting.py", _STRUCTURE,
        ("a needed column that rows lack is NULL", "if needed and rows:", "if False:"),
        ("a column of another type stays", "return [name for name in unfit if name in found.names()]", "return []"),
    ),
    *mutants_of(
        "migrator/adapters/sources/binlog/statements/statements.py", ("tests/unit/sources/binlog/test_mariadb_decoding.py",),
        ("rows that go with a partition stop the run for good", "for clause in filter(moves_rows, clauses):", "for clause in ():"),
    ),
    *mutants_of(
        "migrator/adapters/sources/postgres/log/rewritten.py", _STRUCTURE,
        ("what was noted of columns that nothing needs is forgotten", "if earlier is None:\n            return self", "return self"),
        ("a needed column that was altered goes on", "if needs(name) and now is not None and", "if False and"),
    ),
    *mutants_of(
        "migrator/adapters/sources/postgres/log/schema_change.py", _STRUCTURE,
        ("needed columns may go", "if not known.needs(column.name):\n            continue", "continue"),
        ("a limit may shrink", "wider or (older and", "wider or (True and"),
    ),
    *mutants_of(
        "migrator/adapters/sources/postgres/log/relations.py", _STRUCTURE,
        ("changes under a structure that was passed by are read", "raise self._passed[oid]", "pass"),
        ("changes before all rows are read again come too", "if not passing and self._is_left_out(table, place):", "if False:"),
        ("what was seen before isn't left out", "if found is not None and self._is_left_out(table, place):", "if False:"),
        ("what was left out stays so", "if not self._is_left_out(self._tables[oid], place)]", "if False]"),
        ("partitions' messages bring back what is left out", "if relation.oid in self._left_out:", "if False:"),
    ),
    *mutants_of(
        "migrator/adapters/sources/binlog/tables/captured_tables.py", _STRUCTURE,
        ("any statement of columns goes on", "if needed and not needed <= self._merely_named(table, statement):", "if False:"),
        ("nobody notes what nothing needed", "if unneeded:", "if False:"),
        ("computed columns don't follow others", "or name in computed}", "or False}"),
        ("a dump answers what is done after it was asked for", "and track.position().order < self.answered[table]", ""),
        ("a column of another type is taken for a renamed one", "for old, new in statement.renamed if new in", "for old, new in [statement.columns[:2]] if new in"),
    ),
    *mutants_of(
        "migrator/adapters/sources/binlog/tables/noted.py", _STRUCTURE,
        ("a column changed unneeded is read later all the same", "        if changed:", "        if False:"),
    ),
    *mutants_of(
        "migrator/run/apply/loop.py", _APPLY,
        ("damage ends a run before mapped batches are applied",
            "while mapped.unfinished_tasks and not stopping.wait(_LOOK_S):\n                    pass\n                raise", "raise"),
        ("the end of a run applies nothing", "while self._ahead or self.map_next() is not None:", "while False:"),
        ("the end of a run maps and applies nothing more", "while self._ahead or self.map_next() is not None:", "while self._ahead:"),
        ("a lost answer means a second commit", "if self._failures and not due(", "if False and not due("),
        ("a lost answer means that it is committed", "if self._failures and not due(self._target.open(self._epoch), batch.segment, batch.link):", "if self._failures:"),
        ("any error of the target is tried again", "if not error.retryable:\n                raise", "pass"),
        ("segments are released before they are applied", "self._batches.release(batch.last)", "self._batches.release(batch.last + 1)"),
        ("segments are never released", "self._batches.release(batch.last)\n", "pass\n"),
        ("one batch is mapped again and again", "self._after, self._known = batch.last, batch.checkpoint", "self._known = batch.checkpoint"),
        ("a batch is applied without the one before", "self._ahead.popleft()", "self._ahead.pop()"),
        ("a connection that is back is looked up for ever", "self._failures = 0\n        return True", "return True"),
    ),
    *mutants_of(
        "migrator/run/apply/read_ahead.py", ("tests/unit/run/apply/test_read_ahead.py", *_APPLY),
        ("batches are read long before the target is ready", "return max(0.0, busy_s -", "return 0 * max(0.0, busy_s -"),
        ("the target waits until a batch is mapped", "- _SPARE * max(self._mapped_s, default=0.0) - _SPARE_S", ""),
        ("batches that wait don't count", "+ one_s * (self._waiting - 1)", ""),
        ("a batch that is applied counts for ever", "self._waiting -= 1", "pass"),
        ("who waits isn't told that the target is ready", "self._condition.notify_all()", "pass"),
        ("a stop doesn't end the wait for the target", "while not stopping.requested() and (early_s", "while (early_s"),
    ),
    *mutants_of(
        "migrator/run/lead/resume.py", ("tests/unit/run/lead/test_resume.py",),
        ("an empty event log begins anew", "return ledger.checkpoint", "return None"),
        ("a table that joins is taken for one that was dumped", "if checkpoint.dump_of(schema.id) is None)", "if False)"),
    ),
    *mutants_of(
        "migrator/run/capture/steps.py", ("tests/unit/run/capture/test_dumps_anew.py",),
        ("rows of a dump that begins once more join a batch of before", "**dict.fromkeys(sorted(anew), _BEFORE)}", "}"),
    ),
    *mutants_of(
        "migrator/run/capture/attempt.py", ("tests/unit/run/capture/test_attempt.py",),
        ("a mirror keeps rows of an earlier time", "| (self.joining & self.mirrored)", ""),
        ("a target of several tables is emptied for one that joins", "(found - self.joining)", "found"),
    ),
    *mutants_of(
        "migrator/run/lead/between.py", ("tests/unit/model/test_between.py",),
        ("a table joins within a transaction", "or not gone | new:", "or not gone:"),
    ),
    *mutants_of(
        "migrator/run/capture/steps.py", _CAPTURE,
        ("doubts are dropped", "doubts=self._doubts.get(self._core.settles(), ()),", "doubts=(),"),
        ("notes are not stored", "replace(self._core.checkpoint(), notes=self._notes.kept())", "self._core.checkpoint()"),
        ("a note alone is not written", "(self._dirty or self.noted())", "self._dirty"),
        ("the source never forgets", "self.log.acknowledge(checkpoint.position)\n", "pass\n"),
        ("a transaction that goes on ends with its segment", "ends_transaction=not self._core.in_transaction(),", "ends_transaction=True,"),
        ("the core isn't told of a segment", "self._add(self._core.on_segment())", "pass"),
        ("a refused chunk's request stays open", "self._core.on_refusal(item.request)\n", "pass\n"),
        ("a request for tables that aren't captured is taken", "if request.is_open() and missing:", "if False:"),
    ),
    *mutants_of(
        "migrator/run/lead/recapture.py", ("tests/unit/run/lead/test_recapture.py",),
        ("damage that isn't found again is looked for for ever", "again = not self._sound", "again = True"),
        ("damage is set aside again and again", "self._damage, self._aside = None, self._set_aside(ledger)", "self._aside = self._set_aside(ledger)"),
        ("a gap behind damage is told as a gap", "if not self._aside or not isinstance(error, GapError):", "if True:"),
    ),
    *mutants_of(
        "migrator/run/capture/room_gate.py", ("tests/unit/run/capture/test_room_gate.py",),
        ("a full disk is no reason to wait", "lacks_space = free - size_bytes < floor", "lacks_space = False"),
        ("the bound of size is no reason to wait", "too_large = bool(bound) and self._room.used_bytes() + size_bytes > bound", "too_large = False"),
        ("within a transaction the bound of size waits for ever", "if not shrinks:\n            return \"\"", "pass"),
        ("within a transaction a full disk waits for ever", "if lacks_space and not shrinks and not ends_transaction:", "if False:"),
        ("a stop doesn't end the waiting", "if self._stopping.wait(_LOOK_EVERY_S):\n                return False", "if self._stopping.wait(_LOOK_EVERY_S):\n                return True"),
        ("the warning stays when there is room", "self._progress.warn(_WHAT)\n            self._shut = False", "self._shut = False"),
        ("a floor above the disk is waited for", "if chosen >= disk:", "if False:"),
    ),
    *mutants_of(
        "migrator/run/apply/emptied.py", ("tests/unit/core/test_emptied.py", "tests/unit/run/apply/test_emptied_targets.py"),
        ("a TRUNCATE of one of several tables empties the target", "if gone and rest:", "if False:"),
        ("a TRUNCATE empties no target", "return bool(gone)", "return False"),
    ),
    *mutants_of(
        "migrator/run/commands/reset.py", ("tests/unit/run/commands/test_reset.py",),
        ("a reset isn't noted before it removes", "        places.state.note(said)\n", ""),
        ("a reset isn't marked in the ledger before it removes", "            places.target.mark(lease.epoch, said)\n", ""),
        ("the ledger's row that the mark made stays", "            found = _with_ledger(places, found)\n", ""),
        ("a ledger that was let go is marked again and again", "if place is not places.state):", "):"),
        ("what came since is removed unseen", "        _refuse_more(shown, found)\n", ""),
        ("rows of the application are taken for the migration's", "if any(left.proves() for one in found for left in one.left):", "if True:"),
        ("the lead isn't given back", "    finally:\n        leadership.release()", "    finally:\n        pass"),
        ("tables are emptied one by one", "if kind is Kind.ROWS and those:", "if False:"),
        ("the note stays behind all", "        places.state.finish()\n", ""),
    ),
    *mutants_of(
        "migrator/adapters/event_log/files/remains.py", ("tests/unit/event_log/test_state_remains.py",),
        ("a later note hides when the first part was removed", "if self.begun():\n            return", "if False:\n            return"),
        ("files of others go, too", "            if name in _WORKING or name.startswith(_TEMPORARY):\n", "            if True:\n"),
        ("a note that can't be read is none", "return f\"{self._note} says so, and can't be read\"", "return \"\""),
    ),
)  # fmt: skip
