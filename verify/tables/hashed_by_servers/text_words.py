"""Translation of a mapping's text functions to a server's SQL; a part of ``verify.tables.hashed_by_servers.words``,
which says which expressions may be translated.

Places and lengths are those of characters (code points), as Spark's are. Arguments
that aren't constants are not translated: servers differ where a place is 0 or a pattern is empty.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence

from migrator.model.table import Column
from transforms.analysis.expressions import Expression
from verify.tables.hashed_by_servers.sql_value import NoWords, SqlValue, typed

TRIMS = ("StringTrim", "StringTrimLeft", "StringTrimRight")


class TextWords(ABC):
    """Translates over one table's columns. Methods raise ``NoWords``.

    Class attributes are words of the server; ``{0}`` stands for the value.

    Attributes:
        trims: texts without blanks, by the kind of expression.
        cases: texts with ASCII letters in another case, by the kind of expression.
        not_ascii: whether a text has other characters than those of ASCII; never NULL.
        characters: how many characters a text has.
        replaced: a text with ``{2}`` in place of each ``{1}``, compared as bytes.
        binary: types of bytes, as they are declared.
    """

    trims: Mapping[str, str]
    cases: Mapping[str, str]
    not_ascii: str
    characters: str
    replaced: str
    binary: Sequence[str]

    def __init__(self, columns: Sequence[Column]):
        self._columns = columns

    def of_texts(self) -> dict[str, Callable[[Expression], SqlValue]]:
        """Returns the translation of each kind of expression that makes a text, or asks for a text's length."""
        return {
            "Concat": self._concat,
            "ConcatWs": self._concat_ws,
            "Substring": self._substring,
            "Left": lambda it: self._part(it.children[0], 1, it.children[1]),
            "StringReplace": self._replaced,
            "Hex": self._hex,
            "Length": lambda it: self._of_text(self.characters, it, "integer"),
            "StringTranslate": self._translate,
            **dict.fromkeys(TRIMS, lambda it: self._of_text(self.trims[it.kind], it, "string")),
            **dict.fromkeys(("Lower", "Upper"), self._of_ascii),
        }

    @abstractmethod
    def of(self, expression: Expression) -> SqlValue:
        """Translates an expression to a value."""

    @abstractmethod
    def translated(self, text: SqlValue, old: str, new: str) -> str:
        """A text in which characters are replaced by others, one by one."""

    def declared(self, column: Column) -> str:
        """The name of a column's declared type, without length or digits."""
        return column.source_type.lower().partition("(")[0].strip()

    def _all(self, expressions: Sequence[Expression]) -> tuple[list[SqlValue], tuple[str, ...]]:
        found = [self.of(expression) for expression in expressions]
        return found, tuple(dict.fromkeys(part for value in found for part in value.doubts()))

    def _concat(self, it: Expression) -> SqlValue:
        found, unknown = self._all(it.children)
        if not found:
            raise NoWords
        typed("string", *found)
        return SqlValue(self.together([value.sql for value in found]), "string", unknown)

    def _concat_ws(self, it: Expression) -> SqlValue:
        """Translates ``concat_ws``, which leaves out NULLs on all servers as in Spark."""
        found, unknown = self._all(it.children)
        between = it.children[0]
        if len(found) < 2 or between.kind != "Literal" or between.value is None:
            raise NoWords
        typed("string", *found)
        return SqlValue(f"concat_ws({', '.join(value.sql for value in found)})", "string", unknown)

    def _substring(self, it: Expression) -> SqlValue:
        value, place, size = it.children
        return self._part(value, _constant(place), size)

    def _part(self, text: Expression, place: int, size: Expression) -> SqlValue:
        value, characters = self.of(text), _constant(size)
        typed("string", value)
        if place < 1 or characters < 1:  # a place counted from the end, or no characters
            raise NoWords
        return SqlValue(f"substr({value.sql}, {place}, {characters})", "string", value.doubts())

    def _replaced(self, it: Expression) -> SqlValue:
        found, unknown = self._all(it.children)
        typed("string", *found)
        old, new = it.children[1:]
        if old.kind != "Literal" or new.kind != "Literal" or not old.value or new.value is None:
            raise NoWords
        return SqlValue(self.replaced.format(*(value.sql for value in found)), "string", unknown)

    def _hex(self, it: Expression) -> SqlValue:
        (of,) = it.children
        column = None if of.column is None else self._columns[of.column]
        if of.type != "binary" or column is None or self.declared(column) not in self.binary:
            raise NoWords
        return SqlValue(self.digits_of_bytes(column.name), "string")

    @abstractmethod
    def digits_of_bytes(self, column: str) -> str:
        """A binary column in hexadecimal digits, in capitals."""

    @abstractmethod
    def together(self, texts: Sequence[str]) -> str:
        """Texts one after the other; NULL if one is."""

    def _of_text(self, words: str, it: Expression, type_: str) -> SqlValue:
        if len(it.children) != 1:  # it trims other characters than spaces
            raise NoWords
        value = self.of(it.children[0])
        typed("string", value)
        return SqlValue(words.format(value.sql), type_, value.doubts())

    def _of_ascii(self, it: Expression) -> SqlValue:
        cased = self._of_text(self.cases[it.kind], it, "string")
        if it.children[0].kind == "Hex":
            return cased
        value = self.of(it.children[0])
        return SqlValue(cased.sql, cased.type, (*cased.unknown, self.not_ascii.format(value.sql)))

    def _translate(self, it: Expression) -> SqlValue:
        value = self.of(it.children[0])
        typed("string", value)
        texts = [
            literal.value
            for literal in it.children[1:]
            if literal.kind == "Literal" and literal.value is not None
        ]
        if len(texts) != 2 or len(texts[0]) != len(texts[1]) or len(set(texts[0])) != len(texts[0]):
            raise NoWords
        return SqlValue(self.translated(value, *texts), "string", value.doubts())


def _constant(it: Expression) -> int:
    """The whole number of a constant; 0 for any other expression."""
    return int(it.value) if it.kind == "Literal" and it.value else 0
