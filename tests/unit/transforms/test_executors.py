"""What a cluster's executors are given and asked, as far as no cluster is needed for it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from migrator.config.project import load
from migrator.errors import ClusterError, ConfigError
from migrator.wiring.spark import executors_read, executors_stage
from scenarios.faults.process_tree import oom_score
from tests.unit.config.test_config import GOOD
from transforms.on_spark.executor_probe import look
from transforms.on_spark.one_task import on_executor
from transforms.on_spark.session_settings import is_cluster
from transforms.on_spark.shipping import mapping_modules

PASSWORDS = {"SOURCE_PASSWORD": "secret"}


@pytest.mark.parametrize(
    ("master", "cluster"),
    [("local", False), ("local[*]", False), ("local[2,4]", False), ("local-cluster[2,1,512]", True)]
    + [(master, True) for master in ("spark://host:7077", "yarn", "k8s://https://host")],
)
def test_a_cluster_is_told_from_one_process(master: str, cluster: bool) -> None:
    assert is_cluster(master) is cluster


def test_modules_and_packages_of_the_folder_go_along_and_nothing_else(tmp_path: Path) -> None:
    for name in (
        "mapping.py", "codes.py", "names/__init__.py", "names/deep/__init__.py", "names/deep/de.py",
        "not-a-module.py", "data.csv", "venv/lib/thing.py", "state/__init__.py", "state/left.py",
    ):  # fmt: skip
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"# {name}")
    found = mapping_modules(tmp_path / "mapping.py", [tmp_path / "state"])
    assert list(found) == sorted(
        ["mapping.py", "codes.py", "names/__init__.py", "names/deep/__init__.py", "names/deep/de.py"]
    )
    assert found["codes.py"] == b"# codes.py"


def test_an_executor_says_everything_that_is_wrong(tmp_path: Path) -> None:
    asked = tmp_path / "probe"
    asked.write_text("token")
    assert look(str(asked), "token", ["json"])[1] == ()
    (answer,) = tmp_path.glob("probe.*")
    answer.unlink()
    _, problems = look(str(asked), "another token", ["json", "no_such_module"])
    assert [problem.split(":")[0] for problem in problems] == [
        "module no_such_module can't be imported",
        f"{asked} holds something else than the driver wrote",
    ]
    _, problems = look(str(tmp_path / "elsewhere" / "probe"), "token", [])
    assert problems == (f"{tmp_path / 'elsewhere' / 'probe'}: No such file or directory",)


def test_settings_of_a_cluster_are_read_and_checked(tmp_path: Path) -> None:
    file = tmp_path / "migration.toml"
    text = GOOD.replace('"local[1]"', '"spark://h:7077"') + 'py_files = ["codes.zip"]\nwait_s = 5\n'
    file.write_text(text)
    settings = load(file, PASSWORDS)
    assert settings.spark.py_files == (tmp_path / "codes.zip",)
    assert settings.spark.wait_s == 5.0
    assert executors_stage(settings, settings.spark.master)
    assert not executors_stage(settings, "local[4]")
    assert executors_read(settings) is None, "the driver reads chunks unless told otherwise"
    file.write_text(text.replace("[capture]", '[capture]\nchunk_reading = "executors"'))
    read = executors_read(load(file, PASSWORDS))
    assert read is not None
    with pytest.raises(ClusterError, match="Spark doesn't run"):
        on_executor(None, bytes, 1.0)
    file.write_text(GOOD + 'py_files = "codes.zip"\n')
    with pytest.raises(ConfigError) as wrong:
        load(file, PASSWORDS)
    assert "'codes.zip' is not a list" in wrong.value.where


def test_the_kernels_score_of_a_process() -> None:
    assert oom_score(os.getpid()) >= 0
    assert oom_score(2**22 + 1) == -1  # above any process id
