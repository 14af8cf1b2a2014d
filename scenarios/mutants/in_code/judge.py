"""Mutants of the judge (``verify``): its rules for values that are equal, different, or settled."""

from __future__ import annotations

from scenarios.mutants.in_code.change import mutants_of

_WITHIN = ("tests/unit/verify/test_verify_within.py",)
_KEYS = (
    "tests/unit/verify/test_chunk_keys.py",
    "tests/unit/verify/test_cuts.py",
    "tests/unit/verify/test_lanes.py",
)

_TWO_SIDES = ("tests/unit/verify/two_sides/test_two_sides.py", "tests/unit/verify/two_sides/test_drawn.py")

JUDGE = (
    *mutants_of(
        "verify/two_sides/checks.py", _TWO_SIDES,
        ("reads that nobody pointed aren't judged", "if history.reads or history.pointed else []", "if history.pointed else []"),
        ("pointed reads that nobody did aren't judged", "if history.reads or history.pointed else []", "if history.reads else []"),
        ("numbers aren't judged", "if history.numbered else []", "if False else []"),
        ("a side may lack what it has answered", "        *_overdue(history),\n", ""),
        ("a state of the other side is held against it", "                continue\n            there = set(state.keys)\n            late", "                pass\n            there = set(state.keys)\n            late"),
        ("a write that is answered later is overdue", "if at < state.at and one.key not in there), None)", "if one.key not in there), None)"),
        ("two rows that are equal count as one", "rows = Counter(old.rows), Counter(new.rows)", "rows = Counter({*old.rows}), Counter({*new.rows})"),
        ("what only the new side has is equal", "only += [(new.side, row)", "str() or [(new.side, row)"),
        ("a read is wherever it likes", "        if one.side not in sides:\n            headline", "        if False:\n            headline"),
        ("reads that nobody did on a side prove it", "    if missed and not cases:\n", "    if False:\n"),
        ("the first word counts for good", "before[-1] if before else OLD", "before[0] if before else OLD"),
        ("a word counts only once it is carried out", "{before[-1] if before else OLD, *meanwhile}", "{before[-1] if before else OLD}"),
        ("a word counts before it is said", "if word.asked <= read.ended and word.answered > read.asked", "if word.answered > read.asked"),
        ("a number that is taken is no collision", "for one in collided]\n", "for one in collided if False]\n"),
        ("a number that was given before goes on", "if highest is not None and int(one.key) <= int(highest.key):", "if highest is not None and int(one.key) < int(highest.key) - 10**9:"),
        ("a number is held against writes beside it", "known[ended].ended < one.committing:", "known[ended].ended <= one.ended and known[ended] is not one:"),
    ),
    *mutants_of(
        "verify/tables/rounds/progress.py", ("tests/unit/verify/test_verify_ruling.py",),
        ("a round counts before the target has reached it", "counts=reached)", "counts=True)"),
        ("a duplicate of two views counts", "duplicates=one_view", "duplicates=True"),
        ("no duplicate counts at once", "duplicates=one_view", "duplicates=False"),
        ("a round that moved settles everything", "Ruling(all=still,", "Ruling(all=True,"),
        ("a round that stood still settles nothing", "Ruling(all=still,", "Ruling(all=False,"),
        ("a round that hides a corrected row counts", "if not still and not {", "if False and not {"),
        ("a grain is taken for the row of its key", "return one.grain, one.columns, one.key", "return False, (), one.key"),
        ("a round that stood still proves nothing", "if not still and not {", "if not {"),
    ),
    *mutants_of(
        "verify/tables/hashed_by_servers/digest.py", ("tests/unit/verify/test_chunk_keys.py", "tests/unit/verify/test_verify_digest_rules.py"),
        ("rows that nobody can have reckoned with are hashed all the same", "if unknown:  #", "if False:  #"),
        ("the same beside another engine", "False, unknown)", "False, [])"),
        ("unlike columns have a digest", "if not pairs or len(classes) < len(pairs):", "if not pairs:"),
        ("types of one engine count as those of another", 'if source.startswith("mysql ") and not same:\n        return None', "pass"),
        ("numbers of another scale are compared as text", "if kind == \"numeric\" and not pair.scales_differ():", "if kind == \"numeric\":"),
        ("texts are hashed as the column collates them", "_DIGITS.format(old.by_bytes.format(name))", "_DIGITS.format(name)"),
        ("any integer is a small one", "if self.source.type in WHOLE else", "if False else"),
    ),
    *mutants_of(
        "verify/readers/chunk_keys.py", _KEYS,
        ("the end of a piece belongs to the next one too", '_literals(piece.upto, kinds, dialect), "<", "<=", dialect', '_literals(piece.upto, kinds, dialect), "<", "<", dialect'),
        ("the beginning of a piece belongs to it", '_literals(piece.after, kinds, dialect), ">", ">", dialect', '_literals(piece.after, kinds, dialect), ">", ">=", dialect'),
        ("of a composite key the last column decides alone", "before = [f\"{columns[i]} = {values[i]}\" for i in range(n)]", "before: list[str] = []"),
        ("a cut range leaves its end out", "yield KeyRange(after, whole.upto)\n            return", "return"),
        ("a cut range begins at the start of the table", "after = whole.after\n", "after = None\n"),
        ("what is no key becomes SQL", "_WRITTEN[kind].fullmatch(value) is not None", "_WRITTEN[kind].match(value) is not None"),
        ("a list of keys loses its rest", "for n in range(0, len(keys), size)]", "for n in range(0, len(keys) - size + 1, size)]"),
    ),
    *mutants_of(
        "verify/tables/unsettled.py", _WITHIN,
        ("a table of which a part was read in time is equal", "if table.rounds and not table.cut:", "if table.rounds:"),
        ("a table of which nothing was read in time is equal", "if table.rounds and not table.cut:", "if not table.cut:"),
        ("the reason doesn't say that the time was up", "if table.late:\n        return f\"{counts", "if False:\n        return f\"{counts"),
    ),
    *mutants_of(
        "verify/tables/rounds/watch.py", _WITHIN,
        ("the time is never up", ">= self.within_s", "> self.within_s * 1e9"),
        ("the last read of a sweep is dropped", "if name != TARGET_READ:", "if True:"),
        ("no sweep is ended", "if name != TARGET_READ:", "if False:"),
        ("each poll prints a line", "if now - self._said < SAY_EVERY_S:", "if now < self._said:"),
    ),
    *mutants_of(
        "verify/tables/rounds/live.py", _WITHIN,
        ("rounds go on when the time is up", "or self.watch.over():\n                break", ":\n                break"),
        ("a wait takes all the time that is left", "patience_s = watch.patience_s(self.limits.wait_s)", "patience_s = self.limits.wait_s"),
        ("a table that is settled in time is late", "late = [table for table in tables if table.open]", "late = list(tables)"),
    ),
    *mutants_of(
        "verify/tables/sweeps/pairing.py", _WITHIN,
        ("all pieces read meanwhile wait for the highest place", "upto = highest if self._idle else high", "upto = highest"),
        ("each piece asks a log that holds nothing", "self._idle = self._passed < upto.order", "self._idle = False"),
        ("nothing is read while the target is waited for", "            self._ahead.further()", "            pass"),
        ("all is read while the target is waited for", "if len(ahead) < AHEAD_WAITING and", "if"),
        ("no piece waits", "if not self._views.waited.reached or high.order <= known:", "if True:"),
    ),
    *mutants_of(
        "verify/tables/sweeps/cuts.py", _KEYS,
        ("pieces are reckoned from what is no number", 'and all(re.fullmatch(r"-?\\d+", end) for end in ends)', ""),
        ("pieces beyond the largest number are reckoned", "return (str(upto),) if upto <= _LARGEST else None", "return (str(upto),)"),
        ("pieces are reckoned of any keys", "self._whole = tuple(kinds) == (INTEGER,)", "self._whole = len(kinds) == 1"),
        ("the last piece is handed out again", "self._after, self._done = upto, upto is None", "self._after = upto"),
    ),
    *mutants_of(
        "verify/tables/sweeps/lanes.py", _KEYS,
        ("a lane's failure is forgotten", "if failures:\n            raise", "if False:\n            raise"),
        ("what other lanes left is forgotten", "left += pieces", "pass"),
        ("one lane's failure lets the others go on", "lane.add_done_callback(lambda done: own.stop() if done.exception() else None)", "pass"),
    ),
    *mutants_of(
        "verify/readers/pending.py", ("tests/unit/verify/test_verify_parts.py",),
        ("what is applied waits", "if self._commit <= self._applied:", "if self._commit < self._applied:"),
        ("changes of any table wait", "if table in self._tables:", "if table is not None:"),
        ("a GTID state that can't be read is no reason to wait", "if applied is None or found is None:\n        return Pending(PendingAnswer.UNKNOWN",
            "if applied is None or found is None:\n        return Pending(PendingAnswer.NO"),
        ("one domain of GTIDs decides", "if all(applied.get(domain, 0) >= number for domain, number in found.items()):",
            "if any(applied.get(domain, 0) >= number for domain, number in found.items()):"),
        ("a smaller number of a domain counts", "max(int(words[2]), state.get(int(words[0]), 0))", "int(words[2])"),
    ),
)  # fmt: skip
