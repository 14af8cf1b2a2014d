"""The content of a Python function as plain values: its byte code, without lines, comments and documentation.

Functions and classes of the project that it uses belong to it. Those of installed packages are known by name only:
that another version of a package does something else can't be seen here.
"""

from __future__ import annotations

import dis
import pickle
import re
import sysconfig
from collections.abc import Mapping
from types import CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

_INSTALLED = tuple({sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")})
_PLAIN = (bool, int, float, complex, str, bytes, type(None), type(...))


UNREADABLE = (pickle.UnpicklingError, ImportError, AttributeError, RecursionError)
"""Errors of ``function_text`` for a function that can't be read back."""


def function_text(command: bytes) -> object:
    """Reads what Spark sends to its workers: a pickled function and what belongs to it. Raises ``UNREADABLE``."""
    return _text(pickle.loads(command), frozenset())


def _text(value: Any, above: frozenset[int]) -> object:
    if isinstance(value, _PLAIN):
        return repr(value)
    if id(value) in above:
        return "itself"
    above |= {id(value)}
    if isinstance(value, CodeType):
        return _code(value, above)
    if isinstance(value, FunctionType):
        return _function(value, above)
    if isinstance(value, MethodType):
        return [_text(value.__func__, above), _text(value.__self__, above)]
    if isinstance(value, ModuleType):
        return value.__name__
    if isinstance(value, re.Pattern):
        return [repr(value.pattern), value.flags]
    if isinstance(value, type):
        return _class(value, above)
    if isinstance(value, Mapping):
        return sorted(([_text(k, above), _text(v, above)] for k, v in value.items()), key=repr)
    if isinstance(value, set | frozenset):
        return sorted((_text(each, above) for each in value), key=repr)
    if isinstance(value, list | tuple):
        return [_text(each, above) for each in value]
    held = getattr(value, "__dict__", {})
    return [_text(type(value), above), _text(held, above) if held else _repr(value)]


def _repr(value: Any) -> str:
    return re.sub(r" at 0x[0-9a-f]+", "", repr(value))


def _function(function: FunctionType, above: frozenset[int]) -> object:
    code = function.__code__
    if code.co_filename.startswith(_INSTALLED):
        return f"{function.__module__}.{function.__qualname__}"
    names = sorted(_names(code) & set(function.__globals__))
    return [
        _code(code, above),
        _text(function.__defaults__, above),
        _text(function.__kwdefaults__, above),
        [_cell(cell, above) for cell in function.__closure__ or ()],
        [[name, _global(function.__globals__[name], _names(code), above)] for name in names],
    ]


def _cell(cell: CellType, above: frozenset[int]) -> object:
    try:
        return _text(cell.cell_contents, above)
    except ValueError:  # a function that is defined further down is bound when it is called
        return "not yet"


def _global(value: Any, used: set[str], above: frozenset[int]) -> object:
    """Returns a global's content; of a module of the project, that of the names that are used."""
    if isinstance(value, ModuleType) and not str(getattr(value, "__file__", _INSTALLED[0])).startswith(
        _INSTALLED
    ):
        return [
            value.__name__,
            [[name, _text(vars(value)[name], above)] for name in sorted(used & set(vars(value)))],
        ]
    return _text(value, above)


def _code(code: CodeType, above: frozenset[int]) -> object:
    """Returns what the code does. Its documentation is a constant that no instruction loads."""
    return [
        [len(code.co_varnames), len(code.co_freevars), len(code.co_cellvars), code.co_flags],
        [_instruction(one, above) for one in dis.get_instructions(code) if one.opname != "EXTENDED_ARG"],
        code.co_exceptiontable.hex(),
    ]


def _instruction(one: dis.Instruction, above: frozenset[int]) -> list[Any]:
    """Returns an operation with what it operates on. Local variables are known by number."""
    if one.opcode in dis.hasconst:
        return [one.opname, _text(one.argval, above)]
    named = one.opcode in {*dis.hasname, *dis.hasjrel, *dis.hasjabs}
    return [one.opname, one.argrepr if named else one.arg]


def _class(made: type, above: frozenset[int]) -> object:
    methods = [each for each in vars(made).values() if isinstance(each, FunctionType)]
    if not methods or methods[0].__code__.co_filename.startswith(_INSTALLED):
        return f"{made.__module__}.{made.__qualname__}"
    return [
        made.__qualname__,
        [_text(base, above) for base in made.__bases__],
        [_text(m, above) for m in methods],
    ]


def _names(code: CodeType) -> set[str]:
    inner = [constant for constant in code.co_consts if isinstance(constant, CodeType)]
    return {*code.co_names, *(name for each in inner for name in _names(each))}
