"""Mutants of the code that makes and reads segments: netting, the segment builder, the event log on files."""

from __future__ import annotations

from scenarios.mutants.in_code.change import mutants_of

_COLUMNAR = (
    "tests/unit/columnar/test_columnar.py",
    "tests/unit/columnar/test_netting_rules.py",
    "tests/unit/core/test_emptied.py",
)
_FILES = (
    "tests/contract/event_log/test_eventlog.py", "tests/contract/event_log/test_held_batches.py", "tests/unit/event_log/test_files_crash.py",
    "tests/unit/event_log/test_files_damage.py", "tests/unit/event_log/test_fresh_segments.py", "tests/unit/event_log/test_event_log_rules.py",
    "tests/unit/run/lead/test_recapture.py",
)  # fmt: skip

COLUMNAR = (
    *mutants_of(
        "migrator/columnar/netting.py", (*_COLUMNAR, "tests/contract/event_log/test_eventlog.py"),
        ("the net rows lose their order", "return found.take(pc.sort_indices(found))", "return found.take(pc.sort_indices(found, [('x', 'descending')])) if False else found[::-1]"),
        ("before and after come from the same end", 'grouped[f"{place}_max"], 1', 'grouped[f"{place}_min"], 1'),
        ("the last before image counts", 'grouped[f"{place}_min"], -1', 'grouped[f"{place}_max"], -1'),
        ("every before image is left out beside dump rows", "if every_before:", "if False:"),
        ("before images are netted as after images", "before = data.filter(pc.equal(sign, -1))", "before = data.filter(pc.equal(sign, 1))"),
    ),
    *mutants_of(
        "migrator/columnar/keys.py", _COLUMNAR,
        ("rows of composite keys lose their order", "return rows.take(places.take(pc.sort_indices(places)))",
            "return rows.take(places[::-1])"),
        ("rows with touched keys are kept", "rows.filter(pc.invert(pc.is_in", "rows.filter((pc.is_in"),
        ("of a composite key one column decides", "numbered.join(touched, list(schema.key), join_type",
            "numbered.join(touched.select(list(schema.key)[:1]).append_column('x', touched[list(schema.key)[0]]), list(schema.key)[:1], join_type"),
        ("touched keys are compared as text", "pc.is_in(rows[name], touched[name].combine_chunks())",
            "pc.is_in(pc.cast(rows[name], pa.string()), pa.array([key[0] for key in keys], pa.string()))"),
    ),
    *mutants_of(
        "migrator/columnar/emptied.py", (*_COLUMNAR, "tests/contract/event_log/test_eventlog.py"),
        ("the first TRUNCATE counts, not the last", "last = pc.max(pc.indices_nonzero", "last = pc.min(pc.indices_nonzero"),
        ("the TRUNCATE itself stays among the images", "images.slice(last + 1)", "images.slice(last)"),
        ("dump rows from before a TRUNCATE stay", "del chunks[key]", "pass"),
        ("images from before a TRUNCATE stay", "known.pop(schema.id, None)", "pass"),
        ("dump rows of other tables go with it", "[key for key in chunks if key[0] == schema.id]", "list(chunks)"),
        ("nobody is told that a table was emptied", "return left is not None", "return False"),
    ),
    *mutants_of(
        "migrator/columnar/versions.py", ("tests/unit/columnar/test_versions.py", "tests/contract/event_log/test_eventlog.py", "tests/unit/columnar/test_netting_rules.py"),
        ("a changed type counts as the same column", "and types == before", "and types.keys() == before.keys()"),
        ("an added column is NULL in rows of before", "and types == before", "and types.items() >= before.items()"),
        ("a changed key counts as the same", "and newer.key == older.key and types", "and types"),
        ("rows stay in an older schema's order", "return whole.select(image_schema(newest).names)", "return whole"),
        ("columns of another type are united as they come", "if not all(alike(newer, older)", "if False and not all(alike(newer, older)"),
        ("rows of different keys are united", "if not all(same_key(newest, schema)", "if False and not all(same_key(newest, schema)"),
    ),
    *mutants_of(
        "migrator/adapters/sources/postgres/log/row_codec.py", ("tests/unit/sources/postgres/test_gathered_slices.py",),
        ("values are taken from the gaps", "picks * 2,", "picks * 2 + 1,"),
        ("missing values are empty", "mask=missing", "mask=None"),
    ),
)  # fmt: skip

BUILDER = mutants_of(
    "migrator/run/capture/segment_builder.py", ("tests/unit/run/capture/test_segment_builder.py", "tests/unit/core/test_emptied.py", "tests/contract/event_log/test_held_batches.py"),
    ("images of two codecs are not put in order", "if (\n                len(images) > 1\n            ):", "if (\n                False\n            ):"),
    ("a change has the place of its run", "positions[run_of], firsts[run_of] + places", "positions[run_of], firsts[run_of]"),
    ("the places of a later run count on from all before", "firsts -= np.cumsum(counts) - counts", "firsts -= 0"),
    ("runs behind a TRUNCATE have its place", "index += len(items)\n                    continue", "continue"),
    ("dump rows of an emptied table stay", "if schema.id not in emptied\n", "if True\n"),
    ("an open transaction counts as one", "if part.last:\n            self.transactions += 1", "if True:\n            self.transactions += 1"),
    ("bytes aren't counted", "self.bytes += size_bytes", "pass"),
    ("what was written is written again", "        self._clear()\n        return content", "        return content"),
    ("dump rows without a row make a file", "if output.kept_rows:\n", "if True:\n"),
    ("the doubts are left out", "            continues,\n            doubts,\n", "            continues,\n            (),\n"),
)  # fmt: skip

WRITER = mutants_of(
    "migrator/adapters/event_log/files/segment_writer.py", _FILES,
    ("a later epoch in the newest segment is no fence", "if self._last is not None and self._last.epoch > self._epoch:", "if False:"),
    ("opening doesn't raise the epoch", "durable.raise_number(layout.epoch, self._epoch)\n", "pass\n"),
    ("a later epoch on disk is no fence", "if highest > self._epoch:", "if False:"),
    ("the epoch is not looked at before the number is taken", "self._check_epoch()\n            self._check_created", "self._check_created"),
    ("a number that was taken counts as ours", "if created and durable.read_number(self._layout.released) < number:\n            return",
        "return"),
    ("a number released long ago counts as ours", "if created and durable.read_number(self._layout.released) < number:", "if created:"),
    ("a manifest below what was released stays", "self._layout.manifest(number).unlink()\n            raise", "raise"),
    ("numbering falls below the ledger's", "after if after > newest else 0", "0"),
    ("numbering begins at the newest", "self._next = max(newest, released) + 1", "self._next = newest + 1"),
    ("temporaries of a leader of now are removed", "if epoch < self._epoch:\n                path.unlink", "if True:\n                path.unlink"),
    ("files of an older leader go before their number is taken", "(known is None and number <= released)", "known is None"),
    ("orphans stay for ever", "for path in orphans:\n            path.unlink(missing_ok=True)", "pass"),
    ("data isn't synced", "durable.sync_all(handles, self._threads)", "pass"),
    ("after an error beyond the name, appends go on", "self._broken = durable.disk_refused(what, path, error)\n            return self._broken",
        "return durable.disk_refused(what, path, error)"),
    ("what a refused append left stays", "self._remove(written)\n        try:\n            self._check_epoch()", "try:\n            self._check_epoch()"),
    ("a fenced writer tries again", "self._broken = error\n            raise", "raise"),
    ("an empty table has a file", "if data.rows.num_rows:\n                    check_layout", "if True:\n                    check_layout"),
)  # fmt: skip

LAYOUT = mutants_of(
    "migrator/columnar/segment_rows.py", _FILES,
    ("a file of another layout is written", "if not rows.schema.equals(expected):", "if False:"),
)  # fmt: skip

READER = (
    *mutants_of(
        "migrator/adapters/event_log/files/batch_reader.py", _FILES,
        ("a batch ends within a transaction", "return found[:ready], number", "return found, number"),
        ("a batch ends within a hold", "if manifest.ends_transaction and not manifest.continues:", "if manifest.ends_transaction:"),
        ("a segment that begins a batch joins the one before", "if ready and (manifest.begins_batch or rows", "if ready and (rows"),
        ("a batch has no bound of rows", "(manifest.begins_batch or rows > max_rows or size_bytes > self._max_bytes)",
            "(manifest.begins_batch or size_bytes > self._max_bytes)"),
        ("a batch has no bound of bytes", "(manifest.begins_batch or rows > max_rows or size_bytes > self._max_bytes)",
            "(manifest.begins_batch or rows > max_rows)"),
        ("a replaced leader's segment is read", "if found and manifest.epoch < found[-1].epoch:", "if False:"),
        ("a damaged file ends everything", "good = self._before_damage(manifests)\n            if not good:\n                raise\n            return self._batch(good)", "raise"),
        ("half a transaction before damage is read", "if manifest.ends_transaction:\n                ready = place", "ready = place"),
        ("files of dump rows aren't checked", "read_checked(file, manifest.number)\n                key", "key"),
        ("the newest segment is released", "for n in numbers[:-1] if n <= up_to", "for n in numbers if n <= up_to"),
        ("what is to be kept is released", "doomed[: len(doomed) - self._newest(doomed, keep_bytes)]", "doomed"),
        ("what another reader needs is released", "if n <= up_to and (needed is None or n < needed)]", "if n <= up_to]"),
        ("what isn't applied is released", "if n <= up_to and (needed is None or n < needed)]", "if (needed is None or n < needed)]"),
        ("released segments that the ledger lacks are passed over",
            'self._sequence.check_released(after, f"the target\'s ledger stands at segment {after}", remedy)', "pass"),
        ("a lost manifest ends the log quietly", "self._sequence.check_gap(end + 1)\n            if not", "if not"),
        ("any change of columns is netted", "if before is not None and not alike(file.schema, before):", "if False:"),
        ("beside dump rows images are netted by their ends", "every_before=schema.id in dumped", "every_before=False"),
        ("doubts are forgotten", "doubts=tuple(doubt for manifest in manifests for doubt in manifest.doubts)", "doubts=()"),
        ("a TRUNCATE is forgotten", "emptied.add(file.schema.id)", "pass"),
    ),
    *mutants_of(
        "migrator/adapters/event_log/files/manifest_file.py", _FILES,
        ("a torn manifest is read", 'if rest != b\'{"sha256":"\' + identity.encode() + b\'"}\\n\':', "if False:"),
        ("another segment's manifest is read", "if manifest.number != number:", "if False:"),
        ("a file outside of the event log is read", "if found is None:\n            raise", "if False:\n            raise"),
    ),
    *mutants_of(
        "migrator/adapters/event_log/files/fresh_segments.py", _FILES,
        ("rows of a file that is gone are used", "return table if os.stat(file.path).st_size == file.size_bytes else None", "return table"),
        ("rows are held without bound", "if rows and self.held_bytes() + size_bytes <= self._most_bytes:", "if rows:"),
        ("what was read is held", "{number: held for number, held in self._held.items() if number > up_to}", "self._held"),
        ("nobody waits before the first read", "return self._taken is None or self._taken >= self._newest", "return self._taken is not None and self._taken >= self._newest"),
    ),
    *mutants_of(
        "migrator/adapters/event_log/files/sequence.py", _FILES,
        ("a lost manifest is waited for", "if above and self.manifest(number) is None", "if False and self.manifest(number) is None"),
        ("a released manifest counts as lost", "and durable.read_number(self._layout.released) < number:", "and True:"),
        ("what was released one ago is asked for", "if after < released:", "if after < released - 1:"),
    ),
)  # fmt: skip

EVENT_LOG = (*COLUMNAR, *BUILDER, *WRITER, *LAYOUT, *READER)
