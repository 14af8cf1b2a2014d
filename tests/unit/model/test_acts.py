"""Acts in the history, as they are shown."""

from __future__ import annotations

from dataclasses import replace

from migrator.schema.acts import Act

ACT = Act("2026-11-27 22:00:00", "dump", None, "migrator", "box", "ann", 7, "1.0", "", "r1 of größe")


def test_a_reason_cannot_look_like_another_act_or_speak_to_the_terminal() -> None:
    assert (
        ACT.line()
        == "2026-11-27 22:00:00  dump by ann on box (process 7) as migrator, version 1.0: r1 of größe"
    )
    forged = replace(ACT, reason=f"x\n{ACT.line()}\r\x1b[2K\u2028")
    assert forged.line().splitlines() == [forged.line()]
    assert forged.line().isprintable()
