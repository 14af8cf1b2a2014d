"""Mutants of the rules for mappings that may run on changes alone (``transforms.analysis.row_wise``), and of the
reach of a change (``mirror``).

Their tests start Spark or a server, so they take longest.
"""

from __future__ import annotations

from scenarios.mutants.in_code.change import mutants_of

_PLAN = ("tests/integration/transforms/test_transforms_plan.py",)
_CARRIED = (
    "tests/unit/model/test_carried.py",
    "tests/unit/model/test_carried_made_again.py",
    "tests/unit/model/test_carried_emptied.py",
    "tests/unit/model/test_emptied_joined.py",
)
_LOOKS = ("tests/unit/targets/test_looks.py",)
_REMAPPING = ("tests/unit/run/lead/test_remapping.py",)
_BESIDES = ("tests/integration/targets/test_besides.py",)
_DIFFERING = ("tests/integration/transforms/test_differing.py",)
_FLAT = ("tests/integration/spark/test_flat.py",)
_ARCHIVE = ("tests/unit/transforms/test_class_archive.py",)
_AHEAD = ("tests/unit/transforms/test_planned_ahead.py",)
_SHARED = ("tests/integration/joined/test_shared_grains.py",)
_QUIET = ("tests/integration/targets/test_mirror_quiet.py",)
_TEMPORARY = ("tests/unit/targets/test_temporary_tables.py",)
_FILLS = ("tests/integration/joined/test_fills.py",)
_REACH = ("tests/integration/targets/test_mirror.py", "tests/integration/joined/test_joined_bench.py")

MAPPING = (
    *mutants_of(
        "transforms/analysis/row_wise.py", _PLAN,
        ("an aggregate is row-wise", '"RepartitionByExpression", "RebalancePartitions"', '"RepartitionByExpression", "Aggregate", "RebalancePartitions"'),
        ("a window is row-wise", '"Project", "Filter",', '"Project", "Window", "Filter",'),
        ("a join of two tables is row-wise", "        if left and right:\n", "        if False:\n"),
        ("a join that keeps constant rows is row-wise", "elif (left and kind not in _LEFT_SIDE) or (right and kind not in _RIGHT_SIDE):", "elif False:"),
        ("a right join is a left one", '_LEFT_SIDE = {"INNER",', '_LEFT_SIDE = {"RIGHT OUTER", "INNER",'),
        ("constant rows of a union come with each batch", "if over and not all(children):", "if False:"),
        ("a copy of source rows is a constant", "if self._marker in node.rdd().toDebugString():", "if False:"),
        ("other data is a constant", "elif kind not in _CONSTANT_LEAVES:", "elif False:"),
        ("a subquery over a table is row-wise", "            if over:\n                self._refuse(f\"subquery", "            if False:\n                self._refuse(f\"subquery"),
        ("a table function of any kind is row-wise", 'and _kind(node.generator()) not in _GENERATORS:', "and False:"),
        ("what chance gives can be repeated", "chance = not expression.deterministic() and all(c.deterministic() for c in children)", "chance = False"),
        ("the clock can be repeated", "if kind in _CLOCKS or (not ordered if by_order else chance):", "if (not ordered if by_order else chance):"),
        ("the word now can be repeated", "if word.split(\" \")[0] in _CLOCK_WORDS and", "if False and"),
        ("the first of a group can be repeated", "by_order = kind in _BY_ORDER or", "by_order = False or"),
        ("a column that a union hands on isn't read", 'if _kind(node) == "Union":', "if False:"),
        ("a column that the target gets as it is isn't read",
            "needed = {attribute.exprId().id() for attribute in _items(optimised.output())}", "needed: set[int] = set()"),
        ("what stands for a cast isn't looked into", "children.append(expression.replacement())", "pass"),
    ),
    *mutants_of(
        "migrator/run/lead/differing.py", _CARRIED,
        ("a mapping that reads other columns can't be compared", "    return f\"{', '.join(gone)} isn't in the source any more\" if gone else \"\"\n", "    return 'reads'\n"),
        ("another content is no other mapping", "shaped or (content and not doubt), doubt)", "shaped, doubt)"),
        ("versions of Spark aren't looked at", "if versions[0] != versions[1]:", "if False:"),
        ("what can't be compared is silent", "if before and after and not parts:", "if not content or not parts or doubt:"),
    ),
    *mutants_of(
        "migrator/run/lead/emptied.py", _CARRIED,
        ("what was left empty is looked for too", "if one.holds and one.target", "if one.target"),
    ),
    *mutants_of(
        "migrator/ports/target.py", _CARRIED,
        ("dump rows that the same batch deletes are left", "(chunk and not before)", "chunk"),
    ),
    *mutants_of(
        "migrator/adapters/targets/shared/identities.py", _CARRIED,
        ("only the first batch looks", "self.emptied(sorted(self._written(batch)), with_rows)", "not self._led and self.emptied(sorted(self._written(batch)), with_rows)"),
        ("rows of joined targets pass unseen", " | self._passed\n", "\n"),
        ("what passed in vain counts on", "        self._passed = {}\n        if empty", "        if empty"),
        ("users' own changes are taken for a loss", "        if batch.echo:\n            return set()", ""),
        ("joined targets are looked at that a batch leaves alone", "if moved & {table.id for table in one.sources.values()}", "if True"),
        ("a piece is held against what the start has found", "batch.checkpoint.filling} if self._led else set()", "batch.checkpoint.filling}"),
    ),
    *mutants_of(
        "migrator/adapters/targets/postgres/looks.py", _LOOKS,
        ("a page that lost its rows is an answer", "if name not in found]", "if name not in self._pages]"),
        ("each look is a search", "if name in self._pages]", "if False]"),
        ("the page beside is asked", "(first, first + 1)", "(first + 1, first + 2)"),
        ("a page is remembered for good", "        self._pages |= ", "        self._pages = self._pages or "),
        ("of two tables one is asked about", "{2 * place + 1}", "1"),
    ),
    *mutants_of(
        "migrator/run/lead/carried.py", _CARRIED,
        ("only one target is refused", "            incomplete.append(Incomplete(name, why, tuple(needed), said))\n", "            raise refusal([Incomplete(name, why, tuple(needed), said)])\n"),
        ("joined rows are replaced unasked", "        if name in unasked:\n", "        if False:\n"),
        ("a joined target that was made again waits for a word", "_unasked(late, joined & differs & anew - replaced)", "_unasked(late, joined & differs & anew)"),
        ("a joined target that was emptied waits for a word", "_unasked(late, joined & differs & anew - replaced)", "_unasked(late, joined & anew - replaced)"),
        ("a joined target that was emptied is derived anew unsaid", "(found.others or name in empty - replaced)", "found.others"),
        ("rows that are there are no reason to stop", "(not beside and (holds or not joins)):", "(not beside and not joins):"),
        ("rows of another mapping are read again unasked", "(not beside and (holds or not joins)):", "(not beside and holds):"),
        ("a target that joins gets changes only", "        late.begin(name, needed)\n", "        pass\n"),
        ("a table beside that a start empties has lost its rows", "anew | _cleared(late, missing)", "anew"),
        ("an accepted mapping leaves no trace", 'late.keep("accept", ', "str("),
        ("rows of a former next mapping stay beside", "if len(asked) < len(needed) or (beside and holds):", "if len(asked) < len(needed):"),
    ),
    *mutants_of(
        "migrator/model/remaps/remap.py", _REMAPPING,
        ("the fingerprint isn't moved with the rows", "identity if one.target == name else one for one", "one for one"),
        ("a table beside is whole before its dump is", "done.issuperset(awaited)", "True"),
        ("rows that were set aside beside are forgotten", "replace(one, target=name) if one.target == beside else one for one in bad", "one for one in bad"),
        ("what was given up comes into force", "if one.phase in (Phase.SWITCHED, Phase.IN_FORCE)", "if one.phase is not Phase.FILLING"),
    ),
    *mutants_of(
        "migrator/run/lead/remapping.py", _REMAPPING,
        ("an attempt goes on by the former function", "        self.done = True\n        self._stop()\n", "        self.done = True\n"),
        ("a table beside stays", "    if phase in (Phase.SWITCHED, Phase.ABORTED):\n", "    if False:\n"),
        ("a refused switch stops the run", "            if error.retryable:\n                raise\n", "            raise\n"),
    ),
    *mutants_of(
        "migrator/adapters/targets/shared/besides.py", _BESIDES,
        ("readers see a mix", '            self._step("remap.merged")\n', '            session.run("COMMIT")\n            self._begin(session, epoch)\n            self._step("remap.merged")\n'),
        ("an older leader switches", "            self._ledger.check_epoch(held, epoch)\n", "            pass\n"),
        ("what was given up is switched to", "known.phase is not Phase.FILLING", "False"),
    ),
    *mutants_of(
        "migrator/adapters/targets/postgres/rows/all_of.py", _BESIDES,
        ("old rows stay", '    yield f"DELETE FROM {merge.target} t WHERE {_nowhere(merge)}"\n', ""),
        ("values don't swap", "        yield merge.move(strict=False)\n", "        pass\n"),
    ),
    *mutants_of(
        "migrator/adapters/targets/mysql/besides.py", _BESIDES,
        ("a frozen switch isn't found", '        session.rows("SELECT GET_LOCK(%s, %s)", [self._settings.lock_name(epoch), _LET_GO_WITHIN_S])\n', "        pass\n"),
    ),
    *mutants_of(
        "migrator/adapters/targets/mysql/rows/all_of.py", _BESIDES,
        ("what no mapping writes is lost", "        if merge.saved:\n            yield merge.save_moving(rows, strict=False)\n", ""),
    ),
    *mutants_of(
        "transforms/analysis/outline.py", _DIFFERING,
        ("a column is known without what it stands on", "            return self.known[name]\n        shared", "            return _same('between')\n        shared"),
        ("a union is its first part", 'if kind == "Union":', "if False:"),
        ("what a duplicate is doesn't matter", "[*found, *taken]", "found"),
        ("functions are known by nothing", "if way == FUNCTIONS and id(part) in self.functions:", "if id(part) in self.functions:"),
        ("constant rows are all one", "self._add(CONSTANTS, _same(_digest(content)))", "pass"),
    ),
    *mutants_of(
        "transforms/on_spark/few_rows/flat.py", _FLAT,
        ("a plan that keeps what it brought is flat", "if _REMEMBERS.search(shown) is not None:", "if False:"),
        ("unions and joins stay divided", "if count == 1 or node", "if count >= 1 or node"),
        ("a plan with Python's rows is run in the driver", " and _PYTHON.search(lineage) is None", ""),
    ),
    *mutants_of(
        "transforms/on_spark/class_archive.py", _ARCHIVE,
        ("a damaged archive is run", "return ours and file.name.endswith(", "return ours or file.name.endswith("),
        ("another user's archive is run", "found.st_uid == os.geteuid() and", ""),
        ("a path with a quote is put into Java's options", "if UNSAFE.search(str(place)) is not None:", "if False:"),
        ("what a JVM left that failed is taken", "if whole and self.new.is_file():", "if self.new.is_file():"),
    ),
    *mutants_of(
        "transforms/on_spark/planned_ahead.py", _AHEAD,
        ("one is planned again for each who asks", "if name not in self._planned:", "if True:"),
        ("what fails ahead ends the others", "with suppress(MigratorError, Py4JError, PySparkException, OSError):", "with suppress(OSError):"),
    ),
    *mutants_of(
        "transforms/on_spark/planned.py", _FLAT,
        ("what is set for a plan is set for all threads", "spark._jsparkSession.cloneSession()", "spark._jsparkSession"),
        ("what is set for a plan stays set", "            sessions.setActiveSession(before.get())\n", "            pass\n"),
    ),
    *mutants_of(
        "transforms/on_spark/few_rows/handed.py", _FLAT,
        ("rows of the batch before are mapped again", "                self._messages[0] = self._nothing\n            self._empty = True\n", "                pass\n            self._empty = True\n"),
        ("the first piece of the rows is handed over", ".combine_chunks()\n        batches = whole.to_batches()", "\n        batches = whole.to_batches()[:1]"),
    ),
    *mutants_of(
        "transforms/on_spark/few_rows/in_driver.py", _FLAT,
        ("what a run opens stays open", "                context.markTaskCompleted(self._none)  # closes what was opened\n", "                pass\n"),
    ),
    *mutants_of(
        "transforms/on_spark/few_rows/mapped.py", _FLAT,
        ("both sides have the rows of after", "(before, after), strict=True)", "(after, after), strict=True)"),
    ),
    *mutants_of(
        "transforms/on_spark/one_job.py", _FLAT,
        ("one target's fault is every target's", "        return alone()\n", "        raise\n"),
        ("a job's rows are the first target's", ">> 1]\n", ">> 8]\n"),
    ),
    *mutants_of(
        "migrator/adapters/targets/shared/mirror/reach_sql.py", _REACH,
        ("rows as they are now are not traced", "for changed in (table.staged, table.before):", "for changed in (table.before,):"),
        ("rows as they were are not traced", "for changed in (table.staged, table.before):", "for changed in (table.staged,):"),
        ("nobody climbs through rows as they were", 'yield self._climb(index, f"{met} JOIN {table.before} m ON {same}")', "pass"),
        ("only what is linked to a changed table itself is climbed to",
            "or any(map(self._changed, self._reach.below(index)))", "or False"),
        ("nearest nodes first", "for index in reversed(range(len(self._reach.nodes))):", "for index in range(len(self._reach.nodes)):"),
        ("rows as they were are not collected", 'yield self._gather(index, f"{met} JOIN {table.before} m ON {same}")', "pass"),
        ("roots as they were are not collected", 'yield self._gather(index, f"{self._part} p JOIN {table.before} m ON {number} = p.number")', "pass"),
        ("of a computed grain only the number of now counts",
            "SELECT number FROM {self._numbers_before} UNION SELECT n.number", "SELECT n.number"),
        ("rows that left a grain are not its rows of before", "(table.now(untouched), table.now(had))", "(table.now(untouched),)"),
        ("changed rows belong to no grain of before", "return RootRows(now, (now,), (changed,))", "return RootRows(now, (now,), ())"),
    ),
    *mutants_of(
        "migrator/adapters/targets/shared/mirror/reach_sql.py", _SHARED,
        ("of the tables that share a grain the first is collected", "for index in self._reach.roots():\n", "for index in [0]:\n"),
        ("a slice has all versions of rows of the other tables that share the grain",
            "for index in self._reach.roots() if self", "for index in [0] if self"),
        ("a table that shares a grain is climbed like a linked one",
            "if self._reach.nodes[index].above is None and self._reach.grain:", "if index == 0 and self._reach.grain:"),
    ),
    *mutants_of(
        "migrator/adapters/targets/postgres/mirror/tables.py", _SHARED,
        ("a key is its own number beside tables where it is none", "if not shared and numbers_itself(schema, grain):", "if numbers_itself(schema, grain):"),
    ),
    *mutants_of(
        "migrator/adapters/targets/shared/mirror/followed.py", _REACH,
        ("targets that are not filled are followed", " if (target.table.id.name, target.digest()) in filled]", "]"),
    ),
    *mutants_of(
        "migrator/adapters/targets/shared/mirror/followed.py", _QUIET,
        ("a computed grain reads what its mapping reads", "schema.names() if computed else needed", "needed"),
    ),
    *mutants_of(
        "migrator/adapters/targets/shared/mirror/batch.py", _QUIET,
        ("quiet rows don't reach the mirror",
            "            store.run(replace(table, staged=staged).upsert())\n            return None\n", "            return None\n"),
        ("quiet rows beside others don't reach the mirror",
            "            store.run(replace(table, staged=staged).upsert())\n        return replace", "            pass\n        return replace"),
        ("rows that only go are quiet", "if not found.after.num_rows and not (found.before is not None and found.before.num_rows):", "if not found.after.num_rows:"),
        ("no row is quiet", "loud = one if columns is None else self._without_quiet(one, columns)", "loud = one"),
        ("every change touches every target", "if columns is None or columns & deciding(schema, [target]):", "if True:"),
        ("rows that come or go touch nobody", "if columns is None or columns & deciding", "if columns is not None and columns & deciding"),
    ),
    *mutants_of(
        "migrator/adapters/targets/shared/mirror/batch.py", _FILLS,
        ("rows that have left for a grain that isn't covered are read", "if self._coverage.of(target) is None and (sum", "if (sum"),
        ("the piece after the last number is the first again", "next_numbers(covered.number, rows)", "next_numbers(None, rows)"),
        ("a piece has as many rows as its grains have", "if linked <= _PIECE_ROWS or taken <= 1:", "if True:"),
    ),
    *mutants_of(
        "migrator/adapters/targets/shared/mirror/coverage.py", _FILLS,
        ("batches write grains that aren't covered", 'f" WHERE number <= {bound:d}"', '""'),
        ("batches write no grain of a target that is being filled", "if bound is not None:", "if False:"),
        ("a target that is in step is still being filled", "        self._store.forget_covered(target)\n", ""),
        ("the first reach of a target is all of it", "if covered.reach < len(target.reaches):", "if covered.reach < 1:"),
    ),
    *mutants_of(
        "migrator/adapters/targets/shared/mirror/keeper.py", _FILLS,
        ("changes of what is being filled aren't followed", "{*mirror.filled(), *mirror.covering()}", "mirror.filled()"),
    ),
    *mutants_of(
        "migrator/adapters/targets/postgres/rows/scratch.py", _TEMPORARY,
        ("a scratch table has the rows of the batch before", "        elif name in self._used:\n            self.empty(name)\n", ""),
        ("many rows are deleted one by one", "self._many = self._many or rows > MANY_ROWS", "pass"),
    ),
    *mutants_of(
        "migrator/adapters/targets/postgres/rows/staging.py", _TEMPORARY,
        ("a staging table has the rows of the batch before", "            self._due.add(name)\n", "            pass\n"),
        ("a staging table has the rows of the part before", "        elif name in self._used:\n            self._empty(name)\n", "        elif name in self._used and not self._inside:\n            self._empty(name)\n"),
        ("many rows stay until their table is taken again", "sorted(self._due | self._many)", "sorted(self._due)"),
    ),
    *mutants_of(
        "migrator/adapters/targets/postgres/session.py", ("tests/integration/targets/postgres/test_waiting_statements.py",),
        ("what waits for a transaction that is undone runs in the next", '        self._waiting.clear()\n\n    def run(', '        pass\n\n    def run('),
    ),
    *mutants_of(
        "migrator/columnar/compared.py", ("tests/unit/columnar/test_compared.py",),
        ("numbers are compared as numbers", "if bits is not None:", "if False:"),
        ("NULL is nothing that is the same", "return pc.or_(equal, nulls)", "return equal"),
        ("two values one of which is NULL are the same", "pc.fill_null(pc.equal(one, other), False)", "pc.fill_null(pc.equal(one, other), True)"),
        ("one column that stays is enough", "np.logical_and.reduce", "np.logical_or.reduce"),
        ("a row that comes changes columns", "columns = None if comes or goes else", "columns = None if goes else"),
        ("a row that goes changes columns", "columns = None if comes or goes else", "columns = None if comes else"),
        ("rows that stay go", "_without(before, after, key)", "before"),
    ),
    *mutants_of(
        "transforms/analysis/suggested.py", ("tests/unit/cli/test_init_skeletons.py",),
        ("one old column is suggested for two new ones", "and old.name not in taken", ""),
        ("names alone decide between types", "and fits(new, old)", ""),
        ("likelier ones come later", "sorted(ranked, key=lambda one: one[:3])", "sorted(ranked, key=lambda one: one[:3], reverse=True)"),
        ("every suggestion is sure", "rank == _BY_SPELLING)", "rank >= _BY_SPELLING)"),
        ("short forms are other words", "_SHORT.get(word, word)", "word"),
        ("the table's own name in front counts", "return rest if table and rest and front[0] == front[1] else words", "return words"),
    ),
)  # fmt: skip
