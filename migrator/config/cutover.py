"""Settings of a cut-over: the fences of both sides, the hook, and how long a pause may be."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from migrator.config.secret import Secrets, settings_of
from migrator.config.setting import Setting
from migrator.model.cutover.hook import url_problem
from migrator.model.cutover.reads import ReadsLimits
from migrator.model.cutover.record import Verify
from migrator.model.server import Server

SECTION = "cutover"
_AUTO = "auto"
KINDS = (_AUTO, "triggers", "revoke", "account_lock", "read_only")
_SIDES = ("old", "new")


def _of_side(side: str) -> dict[str, Setting]:
    return {
        f"{side}_fence": Setting(
            str,
            f"the kind of fence of the {side} side ([Fences](explanation/fence.md)). `auto` takes the one with the"
            " fewest ways round",
            _AUTO,
            choices=KINDS,
        ),
        f"{side}_roles": Setting(
            list, f"roles or accounts of the {side} side that `revoke` and `account_lock` stop", []
        ),
        f"{side}_fencer": Setting(
            str, f"login that raises and opens the fence of the {side} side", "", "the migration's own there"
        ),
        **settings_of(f"{side}_fencer_password", "where its password is"),
    }


SETTINGS = {
    **_of_side("old"),
    **_of_side("new"),
    "accepted_ways": Setting(
        list, "ways round a fence that are known, as `migrator cutover plan` names them", []
    ),
    "hook": Setting(
        str,
        "command or URL that points the application at a side"
        " ([The hook](how-to/cut-over.md#the-hook)); empty: it finds its way by itself",
    ),
    "reads_hook": Setting(
        str,
        "command or URL that points reads alone ([Reads first](how-to/cut-over.md#reads-first)); may be the same as"
        " `hook`, if that looks at `MIGRATOR_WHAT`; empty: they go with the writes",
    ),
    "reads_comparisons": Setting(
        int,
        "settled comparisons of a dual read that each pair of queries needs before reads go to the new side",
        100,
    ),
    "reads_slower": Setting(
        float,
        "reads stay on the old side while the new one's p99 of any pair is more than so many times the old one's",
        2.0,
    ),
    "hook_s": Setting(float, "seconds that the hook may take", 30.0),
    "pause_s": Setting(
        float, "seconds from the fence to the opening of the other side, after which a switch is undone", 30.0
    ),
    "grace_s": Setting(
        float, "seconds that transactions are waited for that were open when the fence came", 5.0
    ),
    "transactions": Setting(
        str,
        "what happens to those that are open longer: `wait` leaves them, and the switch is undone once `pause_s` is"
        " over; `end` ends their sessions",
        "wait",
        choices=("wait", "end"),
    ),
    "verify": Setting(
        str,
        "which rows that changed since the last verdict must be equal before the other side is opened: `changed`,"
        " all; `in_time`, those that can be compared in `verify_s`; `nothing`",
        "changed",
        choices=("changed", "in_time", "nothing"),
    ),
    "verify_s": Setting(float, "seconds that their comparison may take while nobody can write", 10.0),
    "max_lag_s": Setting(
        float, "a switch begins only if both ways carry changes across within so many seconds", 5.0
    ),
}


@dataclass(frozen=True, slots=True)
class FenceChoice:
    """The choice of one side's fence.

    Attributes:
        kind: the kind; empty: whichever fits best.
        roles: who is stopped, where a kind stops only those named.
        fencer: the side with the login that raises and opens it.
    """

    kind: str
    roles: tuple[str, ...]
    fencer: Server


@dataclass(frozen=True, slots=True)
class CutoverSettings:
    """Settings of a cut-over; see the section's for what each is."""

    old: FenceChoice
    new: FenceChoice
    accepted_ways: frozenset[str]
    hook: str
    hook_s: float
    pause_s: float
    grace_s: float
    end_transactions: bool
    max_lag_s: float
    verify: Verify
    verify_s: float
    reads_hook: str
    reads: ReadsLimits


def cutover_of(
    sides: tuple[Server, Server],
    get: Callable[[str], Any],
    problem: Callable[[str, str], None],
    secrets: Secrets,
) -> CutoverSettings:
    """Reads the section.

    Args:
        sides: the old and the new side with the migration's own logins.
        get: returns a setting's value, or its default.
        problem: takes a setting's name and what is wrong with it.
        secrets: reads the section's passwords.
    """
    for name in (
        "hook_s",
        "pause_s",
        "grace_s",
        "max_lag_s",
        "verify_s",
        "reads_comparisons",
        "reads_slower",
    ):
        if get(name) <= 0:
            problem(name, f"{get(name)!r} is not above 0")
    for name in (*(f"{side}_fence" for side in _SIDES), "transactions", "verify"):
        allowed = SETTINGS[name].choices
        if get(name) not in allowed:
            problem(name, f"{get(name)!r} is none of {', '.join(allowed)}")
    for name in ("hook", "reads_hook"):
        if why := url_problem(str(get(name))):
            problem(name, f"{get(name)!r} can't be asked: {why}")
    old, new = (
        _choice(get, problem, secrets, name, server) for name, server in zip(_SIDES, sides, strict=True)
    )
    return CutoverSettings(
        old,
        new,
        frozenset(map(str, get("accepted_ways"))),
        str(get("hook")),
        float(get("hook_s")),
        float(get("pause_s")),
        float(get("grace_s")),
        get("transactions") == "end",
        float(get("max_lag_s")),
        Verify(get("verify")) if get("verify") in set(Verify) else Verify.CHANGED,
        float(get("verify_s")),
        str(get("reads_hook")),
        ReadsLimits(int(get("reads_comparisons")), float(get("reads_slower"))),
    )


def _choice(
    get: Callable[[str], Any],
    problem: Callable[[str, str], None],
    secrets: Secrets,
    side: str,
    server: Server,
) -> FenceChoice:
    kind, user = str(get(f"{side}_fence")), str(get(f"{side}_fencer"))
    password = secrets.read(f"{side}_fencer_password")
    if password is not None and not user:
        problem(f"{side}_fencer", f"its password is named, and the login isn't: set {side}_fencer")
    fencer = replace(server, user=user, password=password) if user else server
    return FenceChoice("" if kind == _AUTO else kind, tuple(map(str, get(f"{side}_roles"))), fencer)
