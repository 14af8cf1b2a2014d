"""Mutants of the fence of a cut-over: who passes it, and what is left of it."""

from __future__ import annotations

from scenarios.mutants.in_code.change import mutants_of

_RULES = ("tests/unit/fences/test_fence_rules.py",)
_POSTGRES = "tests/integration/fences/test_postgres_fence_ways.py::"
_MYSQL = "tests/integration/fences/test_mysql_fence_ways.py::"
_KILLED = (
    "tests/integration/fences/test_postgres_fence.py::TestPostgresFence::test_killed_while_it_is_raised",
)
_HIDDEN = "test_a_login_from_which_others_transactions_are_hidden_is_an_obstacle"
_CONTRACT = "tests/integration/fences/test_postgres_fence.py::TestPostgresFence::"
_QUEUES = "test_nobody_queues_behind_the_triggers_and_past_the_limit_all_is_undone"
_GRANTED = (f"{_POSTGRES}test_whatever_was_granted_is_granted_again",)
_EVERYBODY = (f"{_POSTGRES}test_triggers_stop_superusers_replicas_truncate_copy_and_functions_of_owners",)
_OURS = (
    "tests/integration/fences/test_mysql_fence.py::TestMysqlFence::"
    "test_everybody_else_is_refused_and_afterwards_all_is_as_before",
)
_AT_WORK = (f"{_POSTGRES}test_open_transactions_are_named_and_ended_where_rights_are_taken",)
_HOOK = "tests/unit/hooks/test_switch_hook.py::"

FENCE = (
    *mutants_of(
        "migrator/adapters/hooks/shell.py", (f"{_HOOK}test_of_a_command_past_its_limit_nothing_goes_on",),
        ("what timed out goes on", "            if not done:\n", "            if False:\n"),
    ),
    *mutants_of(
        "migrator/adapters/hooks/shell.py", (f"{_HOOK}test_a_child_left_behind_by_a_command_that_ended_well_may_go_on",),
        ("what is left behind is ended too", "            if not done:\n", "            if True:\n"),
    ),
    *mutants_of(
        "migrator/adapters/hooks/post.py", (f"{_HOOK}test_a_redirect_is_a_failure_and_nobody_follows_it",),
        ("redirects are followed", "build_opener(_NoRedirects, _Plain", "build_opener(_Plain"),
    ),
    *mutants_of(
        "migrator/adapters/hooks/post.py", (f"{_HOOK}test_a_slow_answer_is_bounded_in_all",),
        ("a slow answer is waited for", "return answer.result(limit_s)", "return answer.result(5)"),
    ),
    *mutants_of(
        "migrator/model/cutover/fence.py", _RULES,
        ("every way round is accepted", "if way.label not in plan.accepted", "if False"),
        ("a way is closed by whoever is named", "way.closed_by not in roles", "not roles"),
        ("obstacles refuse nothing", "found = list(choice.obstacles)", "found = list[str]()"),
        ("a kind that stops us too is taken", "if plan.login and not choice.lets_us_write:", "if False:"),
        ("roles that are named don't count", "(one.kind in STOPS_NAMED) is not bool(roles)", "False"),
        ("the first kind is advised", "return ranked[0].kind if ranked else None", "return fit[0].kind if fit else None"),
    ),
    *mutants_of(
        "migrator/adapters/fences/shared/session.py", _RULES,
        ("what is held isn't tried again", "left = [thing for thing in left if not _done(attempt, thing)]", "left = [thing for thing in left if not _done(attempt, thing)] and []"),
        ("nobody is named", "found = \"; \".join(one.words() for one in holders())", "found = \"; \".join(one.words() for one in holders()[:0])"),
    ),
    *mutants_of(
        "migrator/adapters/fences/shared/kept_fence.py", (f"{_CONTRACT}test_a_leader_that_slept_changes_nothing_any_more",),
        ("a leader that slept acts", "        if latest > epoch:\n", "        if False:\n"),
        ("nobody keeps the epoch", "if epoch <= latest:", "if True:"),
    ),
    *mutants_of(
        "migrator/adapters/fences/shared/notes.py", (f"{_CONTRACT}test_a_leader_that_slept_changes_nothing_any_more",),
        ("the epoch is forgotten with the notes", "        if not noted.epoch:\n", "        if True:\n"),
    ),
    *mutants_of(
        "migrator/adapters/fences/shared/kept_fence.py",
        (f"{_CONTRACT}test_a_leader_that_takes_over_ends_the_session_of_one_that_sleeps_with_the_lock",),
        ("a leader waits for one that sleeps", "for one in self._our_holders(session):", "for one in ():"),
    ),
    *mutants_of(
        "migrator/adapters/fences/shared/kept_fence.py", _KILLED,
        ("nothing is noted before it is changed", "self._notes().write(session, noted, limit)", "pass"),
    ),
    *mutants_of(
        "migrator/adapters/fences/shared/kept_fence.py", (f"{_POSTGRES}{_QUEUES}",),
        ("what was begun stays past the limit", "self._undo(session, noted, error, limit_s)", "pass"),
    ),
    *mutants_of(
        "migrator/adapters/fences/postgres/session.py", (f"{_POSTGRES}{_QUEUES}",),
        ("everybody queues behind a long try", '"lock_timeout": f"{int(TRY_S * 1000)}ms"', '"lock_timeout": "20s"'),
    ),
    *mutants_of(
        "migrator/adapters/fences/postgres/triggers.py", _EVERYBODY,
        ("functions with our rights pass", "WHEN (session_user OPERATOR", "WHEN (current_user OPERATOR"),
        ("replicas pass", 'f"ALTER TABLE {table} ENABLE ALWAYS TRIGGER {self._name}")', 'f"ALTER TABLE {table} ENABLE TRIGGER {self._name}")'),
        ("the triggers are never armed", "self._function_that(_ARMED, self._refuses(plan, logins), definer=True)", "self._function_that(_ARMED, _passes(), definer=True)"),
        ("all late writers are one", "CASE session_user{whens}", "CASE 'nobody'{whens}"),
    ),
    *mutants_of(
        "migrator/adapters/fences/postgres/relations.py", (f"{_POSTGRES}test_a_prepared_transaction_is_named_and_can_be_ended",),
        ("prepared transactions aren't seen", "(p.gid IS NOT NULL OR (a.pid", "((a.pid"),
    ),
    *mutants_of(
        "migrator/adapters/fences/postgres/relations.py", _AT_WORK,
        ("whoever began before isn't waited for", "<= coalesce(%s, 'infinity'::float8))", "> coalesce(%s, '-infinity'::float8))"),
        ("readers are waited for", "AND l.mode = ANY(%s)", "AND (l.mode = ANY(%s) OR true)"),
        ("we wait for ourselves", "AND coalesce(a.usename, p.owner, '') <> %s", "AND coalesce(a.usename, p.owner, '') <> '' || %s || ' '"),
    ),
    *mutants_of(
        "migrator/adapters/fences/postgres/relations.py", (f"{_POSTGRES}test_a_transaction_whose_beginning_is_hidden_counts_as_open",),
        ("what is hidden is taken for nobody", "OR (a.pid IS NOT NULL AND a.backend_start IS NULL)", "OR (a.pid IS NULL AND a.backend_start IS NULL)"),
    ),
    *mutants_of(
        "migrator/adapters/fences/postgres/survey.py", (f"{_POSTGRES}{_HIDDEN}",),
        ("whoever is blind may raise a fence", "        if sees_others\n", "        if True\n"),
    ),
    *mutants_of(
        "migrator/adapters/fences/mysql/rights.py", (f"{_MYSQL}{_HIDDEN}",),
        ("whoever is blind may raise a fence", "if right not in has", "if right not in has and False"),
    ),
    *mutants_of(
        "migrator/adapters/fences/mysql/rights.py", (f"{_MYSQL}test_hidden_transactions_and_sessions_are_never_taken_for_none",),
        ("what is hidden is taken for nobody", "if lacking := unseen(session):", "if (lacking := unseen(session)) and False:"),
    ),
    *mutants_of(
        "migrator/adapters/fences/postgres/revoked.py", _GRANTED,
        ("a grant option is lost", 'option = " WITH GRANT OPTION" if self.option else ""', 'option = ""'),
        ("the owner grants all", "if self.by_owner:", "if True:"),
        ("columns are forgotten", 'column = f" ({quoted(self.column)})" if self.column else ""', 'column = ""'),
    ),
    *mutants_of(
        "migrator/adapters/fences/mysql/session.py", (f"{_MYSQL}{_QUEUES}",),
        ("everybody queues for a second", "if cursor.fetchall():", "if cursor.fetchall() and False:"),
    ),
    *mutants_of(
        "migrator/adapters/fences/mysql/triggers.py", _OURS,
        ("whoever is said to run a routine is stopped", "SUBSTRING(USER(), 1, CHAR_LENGTH(USER()) - LOCATE('@', REVERSE(USER())))", "SUBSTRING(CURRENT_USER(), 1, CHAR_LENGTH(CURRENT_USER()) - LOCATE('@', REVERSE(CURRENT_USER())))"),
    ),
)  # fmt: skip
