"""The old tables ``checking``, ``savings`` and ``journal``, and transfers between accounts.

Every transaction leaves the sum of all balances of both tables as it was; it also writes a journal entry. Savings
accounts are opened and closed, with the money coming from and going to other accounts.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from scenarios.database import Database
from scenarios.scenario import WorkloadSpec
from scenarios.session import RollBack, Session
from scenarios.workload import Action
from scenarios.workloads.base import Columns, Tracked
from scenarios.workloads.choice import some_key
from scenarios.workloads.rows import Rows
from scenarios.workloads.tables import OldTable, create_tables
from verify.history.history import TrackedTable

OPENING_BALANCE = 10_000
CHECKING = Tracked(
    TrackedTable("checking", fold=True, total="bank"),
    Columns("checking", ("account",), "writer", "write_no", "balance"),
    Columns("current_account", ("account_id",), "client", "client_no", "cents"),
)
SAVINGS = Tracked(
    TrackedTable("savings", fold=True, total="bank"),
    Columns("savings", ("account",), "writer", "write_no", "balance"),
    Columns("deposit_account", ("account_id",), "client", "client_no", "cents"),
)
JOURNAL = Tracked(
    TrackedTable("journal", numeric_key=False),
    Columns("journal", ("entry",), "writer", "write_no", "amount"),
    Columns("posting", ("posting_id",), "client", "client_no", "cents"),
)
_ACCOUNT = (
    '"account" bigint PRIMARY KEY, "owner" varchar(40) NOT NULL, "balance" bigint NOT NULL,'
    ' "writer" int NOT NULL, "write_no" int NOT NULL'
)
_JOURNAL = (
    '"entry" varchar(24) PRIMARY KEY, "kind" varchar(10) NOT NULL, "payer" bigint NOT NULL, "payee" bigint NOT NULL,'
    ' "amount" bigint NOT NULL, "writer" int NOT NULL, "write_no" int NOT NULL'
)
_TABLES = (Rows(CHECKING.old), Rows(SAVINGS.old))
_JOURNAL_ROWS = Rows(JOURNAL.old)
_CHECKING, _SAVINGS = 0, 1

Account = tuple[int, int]
"""An account: one of the two tables, and the account's number; also the order in which accounts are locked."""


class Bank:
    """Transfers with a constant total."""

    name = "bank"
    tracked: Sequence[Tracked] = (CHECKING, SAVINGS, JOURNAL)
    project = Path(__file__).parent

    def create(self, old: Database, spec: WorkloadSpec) -> None:
        """Half of ``spec.keys`` in either table, all with the same balance."""
        accounts = max(spec.keys // 2, 2)
        opening = f"n, concat('Owner No. ', n), {OPENING_BALANCE}, 0"
        create_tables(
            old,
            [
                OldTable("checking", _ACCOUNT, f"{opening}, n", accounts),
                OldTable("savings", _ACCOUNT, f"{opening}, n + {accounts}", accounts),
                OldTable("journal", _JOURNAL),
            ],
        )

    def actions(self, spec: WorkloadSpec) -> Sequence[Action]:
        """Transfers, and accounts that come and go."""
        writers = _Writers(max(spec.keys // 2, 2), spec.hot_percent)
        return [
            Action("transfer", 60, writers.transfer),
            Action("save", 15, writers.save),
            Action("collect", 8, writers.collect),
            Action("open", 6, writers.open),
            Action("close", 6, writers.close),
            Action("change mind", 5, writers.change_mind),
        ]


class _Writers:
    def __init__(self, accounts: int, hot_percent: int):
        self._accounts = accounts
        self._hot_percent = hot_percent

    def transfer(self, session: Session) -> None:
        payer, payee = self._account(session), self._account(session)
        if payer != payee:
            _pay(session, "transfer", {payer: -(amount := session.rng.randint(1, 500)), payee: amount})

    def save(self, session: Session) -> None:
        """Moves money between the two accounts of one owner."""
        owner = some_key(session.rng, self._accounts, self._hot_percent)
        amount = session.rng.randint(-500, 500)
        if amount:
            _pay(session, "save", {(_CHECKING, owner): -amount, (_SAVINGS, owner): amount})

    def collect(self, session: Session) -> None:
        """Moves money from several accounts to one."""
        payee = self._account(session)
        amounts = {
            account: -session.rng.randint(1, 100)
            for account in {self._account(session) for _ in range(4)} - {payee}
        }
        if amounts:
            _pay(session, "collect", {**amounts, payee: -sum(amounts.values())})

    def open(self, session: Session) -> None:
        """Opens a savings account with money from a checking account; the server refuses it if the account exists."""
        rng = session.rng
        owner, fresh = some_key(rng, self._accounts), some_key(rng, self._accounts * 2)
        amount = rng.randint(1, 500)
        _change_balance(session, (_CHECKING, owner), -amount)
        _TABLES[_SAVINGS].insert(session, fresh, amount, owner=f"Owner No. {fresh}")
        _note_in_journal(session, "open", owner, fresh, amount)

    def close(self, session: Session) -> None:
        """Closes a savings account; its money goes to a checking account."""
        heir, closed = some_key(session.rng, self._accounts), some_key(session.rng, self._accounts * 2)
        if _TABLES[_CHECKING].lock(session, heir) is None:
            return
        stamp = _TABLES[_SAVINGS].delete(session, closed)
        if stamp is not None and stamp.value is not None:
            _change_balance(session, (_CHECKING, heir), stamp.value)
            _note_in_journal(session, "close", closed, heir, stamp.value)

    def change_mind(self, session: Session) -> None:
        self.transfer(session)
        raise RollBack

    def _account(self, session: Session) -> Account:
        table = session.rng.choice((_CHECKING, _SAVINGS))
        return table, some_key(session.rng, self._accounts, self._hot_percent)


def _pay(session: Session, kind: str, amounts: dict[Account, int]) -> None:
    """Changes all balances by their amounts, which sum to zero; undone if an account is missing or lacks money."""
    for account in sorted(amounts):
        _change_balance(session, account, amounts[account])
    payer, payee = (
        min(amounts, key=lambda account: amounts[account]),
        max(amounts, key=lambda account: amounts[account]),
    )
    _note_in_journal(session, kind, payer[1], payee[1], amounts[payee])


def _change_balance(session: Session, account: Account, amount: int) -> None:
    table, number = account
    stamp = _TABLES[table].lock(session, number)
    if stamp is None or stamp.value is None or stamp.value + amount < 0:
        raise RollBack
    _TABLES[table].update(session, number, stamp.value + amount)


def _note_in_journal(session: Session, kind: str, payer: int, payee: int, amount: int) -> None:
    entry = f"{session.client}-{session.number()}"
    _JOURNAL_ROWS.insert(session, entry, amount, kind=kind, payer=payer, payee=payee)
