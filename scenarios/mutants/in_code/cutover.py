"""Mutants of cut-overs and of the way back: steps left out, taken too early or not undone, echoes that go back."""

from __future__ import annotations

from scenarios.mutants.in_code.change import mutants_of

_MACHINE = ("tests/unit/run/cutover/test_conductor.py",)
_UNLED = ("tests/unit/run/cutover/test_unled.py", "tests/unit/run/cutover/test_structure.py")
_READS = ("tests/unit/run/cutover/test_reads.py",)
_AT_ONCE = ("tests/unit/run/cutover/test_at_once.py",)
_GATE = ("tests/unit/core/test_reads_gate.py",)
_ECHOES = (
    "tests/integration/cutover/test_both_ways.py::test_changes_go_both_ways_and_none_comes_back[pg-pg]",
)
_BINLOG_ECHOES = (
    "tests/integration/cutover/test_both_ways.py::test_changes_go_both_ways_and_none_comes_back[maria-maria]",
)

_LISTED = ("tests/unit/event_log/test_changed_keys.py", "tests/unit/run/cutover/test_listed_keys.py")

CUTOVER = (
    *mutants_of(
        "migrator/adapters/event_log/changed_keys.py",
        _LISTED,
        ("another leader's changes aren't missed", "begun.epoch != wanted or", ""),
        ("any epoch without a part applied nothing", "wanted = claim.follows if", "wanted = begun.epoch if"),
        ("claims outlive their parts", "if claim.name[:20] <= oldest[:20]:", "if False:"),
        (
            "a list that begins late counts as whole",
            "if begun.after <= segment or not begun.follows:",
            "if True:",
        ),
        ("rows without keys aren't missed", 'one["table"] == table and one["segment"] > segment', "False"),
        (
            "a part is complete for its first segment",
            "Begun(begun.epoch, segment, begun.epoch",
            "Begun(begun.epoch, segment - 1, begun.epoch",
        ),
        ("a power cut is passed over", "or begun.boot != boot", ""),
    ),
    *mutants_of(
        "migrator/wiring/gates/judge.py",
        ("tests/unit/wiring/test_changed_rows.py",),
        ("a verdict by any mapping counts", " and table.judged_by == judge", ""),
        ("a table without a verdict is taken for equal", "(0 if self._settings.reversed else None)", "0"),
        (
            "rows that didn't settle count as equal",
            "if name not in {one.target for one in unsettled}:",
            "if True:",
        ),
        (
            "rows may differ",
            "        if different or (unsettled and effort.all_of_it):",
            "        if unsettled and effort.all_of_it:",
        ),
        (
            "a gap in the list is no changes",
            "if unknown := [name for name, found in keys.items() if found is None]:",
            "if unknown := []:",
        ),
    ),
    *mutants_of(
        "migrator/run/cutover/listed_keys.py",
        _LISTED,
        (
            "keys are listed once they are applied",
            "        for rows in batch.rows:\n            self._list(rows, batch.segment)\n",
            "",
        ),
        (
            "rows of dumps are passed over",
            "            self._keys.unknown(segment, name)\n        for part",
            "            pass\n        for part",
        ),
    ),
    *mutants_of(
        "migrator/run/cutover/conductor.py",
        _MACHINE,
        (
            "the fence is asked for, not raised",
            "            fence.raise_fence(plan, min(self._left_s(record), _AT_ONCE_S), self.epoch)\n",
            "            min(self._left_s(record), _AT_ONCE_S)\n",
        ),
        (
            "open transactions are ignored",
            "        if not found:\n            return True\n",
            "        return True\n",
        ),
        ("the log isn't drained", "return self._has_reached(record, record.open_side)", "return True"),
        (
            "an undo opens nothing",
            "            self.both.fences[side].open_fence(record.plan.fence(side), _AT_ONCE_S, self.epoch)\n",
            "            pass\n",
        ),
        (
            "an undo leaves the application pointed elsewhere",
            "        if record.hooked and not self._under_way.pointed_back:",
            "        if False:",
        ),
        (
            "an undo waits for the new side",
            "if record.open_side is not Side.OLD or record.phase not in (*_OLD_ALONE, Phase.OPENING):",
            "if True:",
        ),
        (
            "what changed isn't compared",
            "        if plan.verify is not Verify.NOTHING:",
            "        if False:",
        ),
        (
            "a comparison begins anew each time",
            ".compare(record.equal(side), effort)",
            ".compare(0, effort)",
        ),
        (
            "a side opened by hand gets a second one beside it",
            '        if self.both.fences[fenced].state(record.plan.fence(fenced)).standing is not Standing.UP:\n            raise CutoverError(\n                f"the {fenced.other} side can\'t be opened",',
            '        if False:\n            raise CutoverError(\n                f"the {fenced.other} side can\'t be opened",',
        ),
        (
            "the new side's copy stays old",
            "        self.book.bring_up(record, self.epoch)\n",
            "",
        ),
        (
            "an undo waits for the hook",
            "        remains: CutoverError | None = None\n",
            "        if record.hooked:\n            with suppress(CutoverError):\n                self._hook(record, side)\n        remains: CutoverError | None = None\n",
        ),
        (
            "writes past the fence are passed over",
            "        if passed := self.both.sides[side].passed():\n            raise",
            '        if passed := "":\n            raise',
        ),
        (
            "the side across isn't fenced at first",
            "        if not self._fenced(record):\n            return _IDLE_S\n",
            "",
        ),
    ),
    *mutants_of(
        "migrator/core/cutover.py",
        _MACHINE,
        ("a pause may last", "if now_s - record.since_s > record.plan.pause_s:", "if False:"),
        (
            "an abort is heard while the other side opens",
            "if record.phase not in UNDONE and record.wanted is Wanted.NOTHING:",
            "if False:",
        ),
        ("the sides don't change", "            open_side=record.opens,\n", ""),
    ),
    *mutants_of(
        "migrator/adapters/hooks/command.py",
        ("tests/unit/hooks/test_hook_command.py",),
        ("a hook that the settings have no more succeeds", "        if not hook:", "        if False:"),
        (
            "reads are pointed by the hook for writes",
            "hook = self._hooks[what]",
            "hook = self._hooks[What.WRITES]",
        ),
    ),
    *mutants_of(
        "migrator/core/reads_gate.py",
        _GATE,
        ("wrong answers are passed over", "    if shape.wrong:", "    if False:"),
        ("what is unknown is taken for equal", "    if shape.unknown:", "    if False:"),
        ("few comparisons are enough", "    if shape.settled < limits.comparisons:", "    if False:"),
        (
            "the new side may be as slow as it is",
            "    if shape.new_p99_ms > max(limits.slower * shape.old_p99_ms, _SLOW_MS_MIN):",
            "    if False:",
        ),
        (
            "another mapping's results count",
            "    if shape.at_s and shape.mapping != mapping:",
            "    if False:",
        ),
        (
            "queries that weren't asked count",
            "    if shape.content != contents.get(shape.file):",
            "    if False:",
        ),
        ("nothing kept is a proof", "    if not shapes:\n", "    if False:\n"),
        (
            "results of other queries count",
            "if shape.at_s or before is None or before.queries != shape.queries:",
            "if shape.at_s or before is None:",
        ),
    ),
    *mutants_of(
        "migrator/core/cutover.py",
        _READS,
        (
            "the gate holds reads on the new side",
            "    if gate and side is Side.NEW and record.open_side is Side.OLD:",
            "    if gate:",
        ),
        (
            "the gate holds nothing",
            "    if gate and side is Side.NEW and record.open_side is Side.OLD:",
            "    if False:",
        ),
        (
            "an undo leaves reads where the switch took them",
            "    return record.open_side if record.follows else record.reads",
            "    return record.reads",
        ),
        (
            "an undo takes back reads that were there before",
            "    return record.open_side if record.follows else record.reads",
            "    return record.open_side",
        ),
        (
            "reads wait for the switch under way",
            "        return record.phase is not Phase.SWITCHING\n",
            "        return record.phase is Phase.IDLE\n",
        ),
        (
            "a plan is finished while reads are elsewhere",
            "    if wanted is Wanted.FINISH and {record.reads, record.reads_wanted or record.reads} != {record.open_side}:",
            "    if False:",
        ),
    ),
    *mutants_of(
        "migrator/run/cutover/conductor.py",
        _UNLED,
        (
            "nobody undoes for a leader that ended",
            "        if record.phase in UNDONE:\n            record = self._written(rules.undoing(record, why))",
            "        if False:\n            record = record",
        ),
        (
            "an abort waits for a leader",
            "        if record.phase is Phase.IDLE and record.wanted is Wanted.ABORT:\n            self._idle(record)\n",
            "",
        ),
        (
            "tables may change in a switch",
            "self._structure() if record.structure else ()",
            "record.structure",
        ),
    ),
    *mutants_of(
        "migrator/core/cutover.py",
        _AT_ONCE,
        ("a switch waits for reads", "    return not record.under_way\n", "    return True\n"),
    ),
    *mutants_of(
        "migrator/run/cutover/conductor.py",
        _AT_ONCE,
        (
            "a reader leaves the application pointed elsewhere",
            "            remains = error ",
            "            raise ",
        ),
        (
            "what tables are like is asked in the switch's time",
            "rules.begun(record, self.clock(), structure)",
            "rules.begun(record, self.clock(), self._structure())",
        ),
    ),
    *mutants_of(
        "migrator/run/cutover/memory.py",
        _AT_ONCE,
        (
            "a clock set back keeps a side closed",
            "max(clock_s, since_s + self.monotonic() - self._from_s)",
            "clock_s",
        ),
    ),
    *mutants_of(
        "migrator/core/cutover.py",
        _UNLED,
        ("what tables are like isn't noted", "        structure=structure,\n", ""),
        ("a table that is gone isn't missed", "known.keys() | found.keys()", "found.keys()"),
    ),
    *mutants_of(
        "migrator/run/cutover/conductor.py",
        _READS,
        (
            "reads stay behind",
            "        if record.follows:\n            self._reads_hook(record, record.opens)\n",
            "",
        ),
        (
            "reads go to a side that lags",
            "why_not = self.ready(record) if asks else",
            'why_not = "" if asks else',
        ),
        (
            "reads are held at the new side",
            "asks = side is Side.NEW and record.open_side is Side.OLD",
            "asks = record.open_side is Side.OLD",
        ),
    ),
    *mutants_of(
        "migrator/model/cutover/record.py",
        _MACHINE,
        ("changes past the fence are carried across", "return self.phase in _DRAINED", "return False"),
    ),
    *mutants_of(
        "migrator/core/capture.py",
        _ECHOES,
        ("echoes are changes like others", "if part.echo:\n            part", "if False:\n            part"),
        (
            "mirrors don't follow echoes",
            "r for r in part.runs if r.codec.schema.id in self._mirrored",
            "r for r in part.runs if False",
        ),
    ),
    *mutants_of(
        "migrator/run/apply/transform_job.py",
        _ECHOES,
        ("echoes go back", "        if batch.echo:\n            return self._followed(batch)\n", ""),
    ),
    *mutants_of(
        "migrator/run/apply/transform_job.py",
        ("tests/integration/apply/test_transform_job.py",),
        ("rows dumped for a mirror go back", "self._changes_only and _first(batch, schema.id)", "False"),
        (
            "rows asked for don't go back",
            "self._changes_only and _first(batch, schema.id)",
            "self._changes_only",
        ),
    ),
    *mutants_of(
        "migrator/adapters/targets/shared/target_writer.py",
        (*_ECHOES, *_BINLOG_ECHOES),
        ("transactions aren't marked", "        session.run(self._ledger.mark, [self._migration])\n", ""),
    ),
    *mutants_of(
        "migrator/adapters/sources/binlog/transactions/own_rows.py",
        _BINLOG_ECHOES,
        (
            "marks of the binlog are nobody's",
            "any(str(row[0]) == self._counterpart for row in after)",
            "False",
        ),
    ),
)
