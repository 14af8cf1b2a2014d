"""The page of a rehearsal: the style of all our pages, every outcome, and texts that stay texts."""

from __future__ import annotations

from scenarios.rehearsal.account import Account
from scenarios.rehearsal.page import page
from verify.report.page import style

EVIL = "<img src=x onerror=alert(1)>"


def test_a_page_has_every_step_and_need_as_text() -> None:
    account = Account(needs={f"disk {EVIL}": ["2 GiB"]}, named=[f"load {EVIL}"])
    with account.step(f"dump {EVIL}") as step:
        step.failed(f"said {EVIL}", "a second line")
    with account.step("verify") as step:
        step.unknown("too little")
    shown = page(account)
    assert style() in shown
    assert EVIL not in shown
    assert shown.count("&lt;img src=x") == 4
    assert '<header class="failed">' in shown
    assert '<span class="verdict unknown">unknown</span>' in shown
    assert "a second line" in shown
