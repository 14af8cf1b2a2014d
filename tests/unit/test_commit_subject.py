"""The hook for commit messages passes good ones, and refuses each kind of bad one."""

from __future__ import annotations

import pytest

from tests.commit_subject import faults


@pytest.mark.parametrize(
    "message",
    [
        "verify: a row that is gone is told apart\n",
        "targets/mysql, docs: locks that are refused\n\nReasons, of any length, also of paths: docs/mapping.md.\n",
        "Merge branch 'rooms'\n",
        'Revert "verify: something"\n\nThis reverts commit 0123.\n',
        "\n# a comment of git's\ncore: one loop\n# Please enter the commit message\n",
        "core: one loop\n# ------------------------ >8 ------------------------\ndiff --git a/x b/x\n+/tmp/x\n",
        "",
    ],
)
def test_good_messages_pass(message: str) -> None:
    assert faults(message) == []


@pytest.mark.parametrize(
    ("message", "fault"),
    [
        ("Fixes things\n", "isn't 'area: what changed'"),
        ("Verify: fixes things\n", "isn't 'area: what changed'"),
        (f"verify: {'x' * 65}\n", "73 characters, 72 at most"),
        ("verify: one\nand more\n", "isn't empty"),
        ("verify: one\n\nSeen in /tmp/pytest-7/log.\n", "a path of a machine: /tmp/pytest-7/log."),
        ("verify: one\n\nSee /home/me/project/x.py\n", "a path of a machine: /home/me/project/x.py"),
    ],
)
def test_a_bad_message_is_refused_by_name(message: str, fault: str) -> None:
    assert any(fault in found for found in faults(message))
