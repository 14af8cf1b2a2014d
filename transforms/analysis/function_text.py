"""The content of a Python function as plain values: its byte code, without lines, comments and documentation.

Functions, classes and modules of the project that it uses belong to it, and so do the objects that it holds. What
packages bring is known by name only: that another version of one does something else can't be seen here. The
content is the same in every process, whatever the hash seed.
"""

from __future__ import annotations

import dis
import enum
import logging
import pickle
import re
import sys
import sysconfig
from collections.abc import Iterable
from types import (
    BuiltinFunctionType,
    CellType,
    CodeType,
    FunctionType,
    GetSetDescriptorType,
    MappingProxyType,
    MemberDescriptorType,
    MethodType,
    MethodWrapperType,
    ModuleType,
    UnionType,
    WrapperDescriptorType,
)
from typing import Any

from migrator.own_modules import in_checkout, is_own

_INSTALLED = tuple({sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")})
_PLAIN = (bool, int, float, complex, str, bytes, type(None), type(...))
_BY_NAME = (GetSetDescriptorType, MemberDescriptorType, WrapperDescriptorType)
_OF_CLASSES = {
    "__dict__", "__weakref__", "__doc__", "__module__", "__annotations__", "__annotate__", "__annotate_func__",
    "__annotations_cache__", "__slotnames__", "__abstractmethods__",
    "__dataclass_fields__", "__dataclass_params__", "__firstlineno__", "__static_attributes__", "__parameters__",
    "__orig_bases__", "_abc_impl",
}  # fmt: skip
"""Attributes of classes that tell nothing, or only what other attributes tell."""
_LOADED = re.compile(r"\bmigration_mapping_\d+\b")
"""The name of a mapping's module, which contains a count of the times it was loaded."""


class Unreadable(Exception):
    """A function whose content can't be read."""


def function_text(command: bytes) -> object:
    """Reads what Spark sends to its workers: a pickled function and what belongs to it. Raises ``Unreadable``."""
    try:
        return _Writer().text(pickle.loads(command))
    except Exception as error:  # code of the user's objects runs here, which may raise anything
        raise Unreadable(str(error)) from error


class _Writer:
    """The writer of one function. An object that comes again is written as its number."""

    def __init__(self) -> None:
        self._numbers: dict[int, int] = {}
        self._held: list[Any] = []

    def text(self, value: Any) -> object:
        """Returns a value's content as plain values."""
        if type(value) in _PLAIN:
            return _LOADED.sub("", repr(value))
        if id(value) in self._numbers:
            return f"object {self._numbers[id(value)]}"
        self._numbers[id(value)] = len(self._numbers)
        self._held.append(value)  # else another object might get its id
        if type(value) in (list, tuple):
            return [type(value).__name__, *self._texts(value)]
        if type(value) in (set, frozenset):
            # An own writer for each: their order, and so their numbers, depend on the process.
            return ["set", *sorted((_Writer().text(one) for one in value), key=repr)]
        if type(value) in (dict, MappingProxyType):
            return ["dict", *([self.text(key), self.text(one)] for key, one in value.items())]
        return self._code_text(value)

    def _code_text(self, value: Any) -> object:
        if isinstance(value, CodeType):
            return self._code(value)
        if isinstance(value, FunctionType):
            return self._function(value)
        if isinstance(value, MethodType):
            return ["method", self.text(value.__func__), self.text(value.__self__)]
        if isinstance(value, BuiltinFunctionType | MethodWrapperType) and not isinstance(
            value.__self__, ModuleType | None
        ):
            return ["method", value.__name__, self.text(value.__self__)]
        if isinstance(value, ModuleType):
            return self._module(value)
        if isinstance(value, type):
            return self._class(value)
        if isinstance(value, staticmethod | classmethod):
            return [type(value).__name__, self.text(value.__func__)]
        if isinstance(value, property):
            return ["property", *self._texts((value.fget, value.fset, value.fdel))]
        return self._object(value)

    def _object(self, value: Any) -> object:
        """Returns an object as it would be pickled."""
        if isinstance(value, re.Pattern):
            return ["pattern", repr(value.pattern), value.flags]
        if isinstance(value, enum.Enum):
            return ["member", self.text(type(value)), value.name]
        if isinstance(value, logging.Logger):
            return ["logger", _LOADED.sub("", value.name)]
        if isinstance(value, UnionType):
            return ["union", *self._texts(value.__args__)]
        if isinstance(value, _BY_NAME):
            return [type(value).__name__, value.__name__]
        parts = value.__reduce_ex__(4)
        if isinstance(parts, str):
            return ["named", type(value).__name__, parts, self.text(getattr(value, "__wrapped__", None))]
        return ["object", self.text(type(value)), *(self._part(part) for part in parts)]

    def _part(self, part: Any) -> object:
        """Returns a part of a pickled object; some are iterators over what a container holds."""
        if isinstance(part, Iterable) and not isinstance(
            part, str | bytes | dict | list | tuple | set | frozenset
        ):
            return self._texts(part)
        return self.text(part)

    def _texts(self, values: Iterable[Any]) -> list[object]:
        return [self.text(one) for one in values]

    def _function(self, function: FunctionType) -> object:
        code = function.__code__
        held = [
            self.text(function.__defaults__),
            self.text(function.__kwdefaults__),
            [self._cell(cell) for cell in function.__closure__ or ()],
            self.text(function.__dict__ or None),
        ]
        if code.co_filename.startswith(_INSTALLED) or _is_installed(function.__module__):
            name = _known(function.__module__, function.__qualname__)
            return ["function", name, *held]
        names = _names(code)
        used = sorted(names & set(function.__globals__))
        imported = [
            self.text(module) for name in sorted(_imported(code)) if (module := sys.modules.get(name))
        ]
        known = [[name, self._global(function.__globals__[name], names)] for name in used]
        return ["function", self._code(code), *held, imported, known]

    def _cell(self, cell: CellType) -> object:
        try:
            return self.text(cell.cell_contents)
        except ValueError:  # a function that is defined further down is bound when it is called
            return "not yet"

    def _global(self, value: Any, used: set[str]) -> object:
        """Returns a global's content; of a module of the project, that of the names that are used."""
        if not isinstance(value, ModuleType) or _is_installed(value.__name__):
            return self.text(value)
        names = sorted(used & set(vars(value)))
        if not names:
            return self.text(value)
        return ["module", value.__name__, [[name, self._global(vars(value)[name], used)] for name in names]]

    def _module(self, module: ModuleType) -> object:
        if _is_installed(module.__name__):
            return ["module", in_checkout(module.__name__)]
        names = sorted(name for name in vars(module) if not name.startswith("__"))
        return ["module", _LOADED.sub("", module.__name__), [[n, self.text(vars(module)[n])] for n in names]]

    def _code(self, code: CodeType) -> object:
        """Returns what the code does. Its documentation is a constant that no instruction loads."""
        return [
            [len(code.co_varnames), len(code.co_freevars), len(code.co_cellvars), code.co_flags],
            [
                self._instruction(code, one)
                for one in dis.get_instructions(code)
                if one.opname != "EXTENDED_ARG"
            ],
            getattr(code, "co_exceptiontable", b"").hex(),
        ]

    def _instruction(self, code: CodeType, one: dis.Instruction) -> list[Any]:
        """Returns an operation with what it operates on. Local variables are known by number."""
        if one.opcode in dis.hasconst and one.arg is not None:
            return [one.opname, self.text(code.co_consts[one.arg])]
        if one.opname == "IMPORT_NAME":
            return [one.opname, in_checkout(one.argrepr)]
        named = one.opcode in {*dis.hasname, *dis.hasjrel, *dis.hasjabs}
        return [one.opname, one.argrepr if named else one.arg]

    def _class(self, value: type) -> object:
        name = _known(value.__module__, value.__qualname__)
        if _is_installed(value.__module__):
            return ["class", name]
        own = {key: one for key, one in vars(value).items() if key not in _OF_CLASSES}
        if issubclass(value, enum.Enum):
            own = {key: one for key, one in own.items() if isinstance(one, FunctionType | property)}
            own |= {f"member {key}": member.value for key, member in value.__members__.items()}
        content = [[key, self.text(own[key])] for key in sorted(own)]
        return ["class", name, self._texts(value.__bases__), content]


def _known(module: str | None, name: str) -> str:
    """Returns the name of a function or class, the same however this tool and the mapping were imported."""
    return _LOADED.sub("", f"{in_checkout(module or 'None')}.{name}")


def _is_installed(name: str | None) -> bool:
    """Tells whether a module is Python's, ours or a package's. Those of the project lie elsewhere, or nowhere."""
    if name is None or name == "__main__":
        return False
    if is_own(name) or name in sys.builtin_module_names:
        return True
    module = sys.modules.get(name)
    origin = getattr(getattr(module, "__spec__", None), "origin", None)
    return origin in ("built-in", "frozen") or str(getattr(module, "__file__", "")).startswith(_INSTALLED)


def _names(code: CodeType) -> set[str]:
    return {*code.co_names, *(name for inner in _inner(code) for name in _names(inner))}


def _imported(code: CodeType) -> set[str]:
    """Returns the modules that the code imports while it runs."""
    own = {str(one.argval) for one in dis.get_instructions(code) if one.opname == "IMPORT_NAME"}
    return {*own, *(name for inner in _inner(code) for name in _imported(inner))}


def _inner(code: CodeType) -> list[CodeType]:
    return [constant for constant in code.co_consts if isinstance(constant, CodeType)]
