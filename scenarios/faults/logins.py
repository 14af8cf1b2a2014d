"""Changes a user's password so that the old one is certainly refused, and takes it back."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from migrator.errors import ConnectionFailed, MigratorError
from scenarios.database import Database
from scenarios.faults.processes import await_true
from scenarios.faults.session import execute, query

_TIMEOUT_S = 10.0


class AskForPassword:
    """The login of one user of a server.

    Args:
        admin: a superuser's way to the server.
        login: the user's login, with the password it has now.
    """

    def __init__(self, admin: Database, login: Database):
        self._admin = admin
        self._login = replace(login, host=admin.host, port=admin.port)
        self._rules: tuple[Path, str] | None = None

    def change_to(self, password: str) -> None:
        """Sets another password. Raises ``MigratorError`` when the old login is admitted all the same."""
        self._set(password)
        if self._admitted() and self._admin.kind == "postgresql":
            self._demand_password()
        await_true(lambda: not self._admitted(), f"{self._login.user} is refused", _TIMEOUT_S)

    def undo(self) -> None:
        """Brings the old password and the old rules back."""
        self._set(self._login.password)
        if self._rules is not None:
            path, text = self._rules
            path.write_text(text)
            query(self._admin, "SELECT pg_reload_conf()")
        await_true(self._admitted, f"{self._login.user} is admitted again", _TIMEOUT_S)

    def _set(self, password: str) -> None:
        value = password.replace("'", "''")
        if self._admin.kind == "postgresql":
            user = '"' + self._login.user.replace('"', '""') + '"'
            execute(self._admin, [f"ALTER ROLE {user} PASSWORD '{value}'"])
            return
        user = self._login.user.replace("'", "''")
        hosts = query(self._admin, f"SELECT host FROM mysql.user WHERE user = '{user}'")
        if not hosts:
            raise MigratorError(f"the server knows no user {self._login.user!r}", where="rotate_password")
        execute(self._admin, [f"ALTER USER '{user}'@'{host}' IDENTIFIED BY '{value}'" for (host,) in hosts])

    def _demand_password(self) -> None:
        """A first line for this user in pg_hba.conf: the server has trusted it so far."""
        ((file,),) = query(self._admin, "SHOW hba_file")
        path = Path(file)
        try:
            text = path.read_text()
            user = self._login.user.replace('"', '""')
            path.write_text(f'host all "{user}" all scram-sha-256\n{text}')
        except OSError as error:
            raise MigratorError(
                f"the server trusts {self._login.user!r} without a password, and its rules can't be changed here",
                where=file,
                cause=error.strerror or str(error),
            ) from error
        self._rules = (path, text)
        query(self._admin, "SELECT pg_reload_conf()")

    def _admitted(self) -> bool:
        try:
            self._login.connect(autocommit=True).close()
        except ConnectionFailed:
            return False
        return True
