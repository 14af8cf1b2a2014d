"""What is read of a Python function changes with what it does, and with nothing else."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from pyspark import cloudpickle

from transforms.analysis.function_text import Unreadable, function_text
from transforms.load import load_mapping

CASES = tomllib.loads((Path(__file__).parent / "functions.toml").read_text())
_HEAD = """
from transforms import Mapping
mapping = Mapping()

@mapping.target("t", key="id")
def t(s):
    return s
"""


def text_of(folder: Path, source: str, helper: str = "", package: str = "") -> str:
    """The content of ``f`` in a mapping file, as Spark would ship it."""
    (folder / "pack").mkdir(parents=True, exist_ok=True)
    modules = {"mapping": _HEAD + source, "helper": helper, "pack/__init__": "", "pack/sub": package}
    for name, text in modules.items():
        (folder / f"{name}.py").write_text(text)
    loaded = load_mapping(folder / "mapping.py")
    function = vars(sys.modules[loaded["t"].function.__module__])["f"]
    pickled = cloudpickle.dumps((function, "string"))  # type: ignore[no-untyped-call]
    return json.dumps(function_text(pickled))


@pytest.fixture(autouse=True)
def _no_byte_code_of_the_same_second(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)


@pytest.mark.parametrize("name", CASES["pairs"])
def test_another_function_is_another_text(tmp_path: Path, name: str) -> None:
    case = CASES["pairs"][name]

    def read(folder: str, filling: str) -> str:
        modules = (case.get(module, "").replace("@@", filling) for module in ("source", "helper", "package"))
        return text_of(tmp_path / folder, *modules)

    one, other = case["fillings"]
    assert read("a", one) == read("a", one), "loaded twice"
    assert read("a", one) != read("b", other)


def test_documentation_and_comments_are_no_part_of_it(tmp_path: Path) -> None:
    plain = "def f(t):\n    return t[:1]\n"
    told = 'def f(word):\n    """Cuts."""\n\n    return word[:1]  # the first letter\n'
    assert text_of(tmp_path, plain) == text_of(tmp_path, told)


def test_processes_of_other_hash_seeds_read_the_same(tmp_path: Path) -> None:
    program = (
        "import json, pathlib, sys\n"
        "from tests.unit.transforms.test_function_text import CASES, text_of\n"
        "folder = pathlib.Path(sys.argv[1])\n"
        "print(json.dumps({name: text_of(folder, source) for name, source in CASES['alike'].items()}))\n"
    )
    found = [
        json.loads(
            subprocess.run(
                [sys.executable, "-B", "-c", program, str(tmp_path)],
                env={**os.environ, "PYTHONHASHSEED": seed},
                check=True,
                capture_output=True,
                text=True,
            ).stdout
        )
        for seed in ("1", "77")
    ]
    assert found[0] == found[1]
    assert found[0].keys() == CASES["alike"].keys()


def test_a_function_that_cannot_be_read_back_says_so(tmp_path: Path) -> None:
    source = (
        "class O:\n    def __init__(self, a): self.a = a\n    def __reduce__(self): return (O, ())\n"
        "X = O(1)\ndef f(t): return str(X)\n"
    )
    with pytest.raises(Unreadable):
        text_of(tmp_path, source)
