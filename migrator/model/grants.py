"""The rights that a login needs, as SQL for whoever may grant them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Grants:
    """The rights of one side's login.

    Attributes:
        title: whose rights on which database.
        account: the login as the server writes it.
        make: the statement that makes the login, with a place for the password.
        needed: statements without which something fails, each for one object.
        perhaps: statement and the case in which it is needed, which the configuration doesn't tell.
    """

    title: str
    account: str
    make: str
    needed: tuple[str, ...]
    perhaps: tuple[tuple[str, str], ...] = ()

    def text(self) -> str:
        """A script. What only a person can fill in or decide is a comment."""
        lines = [comment(self.title), comment(self.make)]
        lines += [f"{statement};" for statement in self.needed]
        for statement, case in self.perhaps:
            lines += [comment(f"Only {case}:"), comment(f"{statement};")]
        return "\n".join(lines) + "\n"


def comment(text: str) -> str:
    """A text as a comment of a script: a line break in a name ends no comment."""
    return "\n".join(f"-- {line}" for line in text.splitlines())


@dataclass(frozen=True, slots=True)
class Beside:
    """Kinds of tables that a mapping needs beside those that it fills.

    Attributes:
        mirror: copies of source tables, for joined mappings.
        key_maps: which new key an old one has, for surrogate keys.
    """

    mirror: bool = False
    key_maps: bool = False


NOTHING_BESIDE = Beside()
