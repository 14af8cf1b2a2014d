"""Java's options of our Spark sessions: ours before the user's; what its thorough compiler leaves alone."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from migrator.embedded.java import java_home
from transforms.on_spark import session_settings as settings_module
from transforms.on_spark.session_settings import compiler_options, session_settings


def test_our_options_of_java_stand_before_the_users(tmp_path: Path) -> None:
    ours = compiler_options()

    def said(options: str, **conf: str) -> str | None:
        named = {"spark.driver.extraJavaOptions": conf["theirs"]} if conf else {}
        settings = session_settings("local[1]", named, tmp_path / "log", options)
        return settings.get("spark.driver.extraJavaOptions")

    assert said("-XX:A=1") == f"{ours} -XX:A=1"
    assert said("-XX:A=1", theirs="-Xss4m") == f"{ours} -XX:A=1 -Xss4m"
    assert said("", theirs="-Xss4m") == f"{ours} -Xss4m"
    assert said("") == ours


def test_java_is_told_of_code_that_runs_once_only_where_it_can_read_that(tmp_path: Path) -> None:
    named = tmp_path / "run_once.txt"
    assert compiler_options(named) == ""
    named.write_text("[]")
    assert str(named) in compiler_options(named)
    apart = tmp_path / "a folder" / "run_once.txt"
    apart.parent.mkdir()
    apart.write_text("[]")
    assert compiler_options(apart) == ""


@pytest.mark.parametrize(("more", "starts"), [("", True), ("}", False)])
def test_java_starts_with_the_code_that_runs_once(tmp_path: Path, more: str, starts: bool) -> None:
    named = tmp_path / "run_once.txt"
    named.write_text(Path(settings_module.__file__).with_name("run_once.txt").read_text("utf-8") + more)
    command = [str(java_home() / "bin" / "java"), *compiler_options(named).split(), "-version"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode == 0 and "1 compiler directives added" in done.stdout) == starts, done


def test_code_that_rows_pass_through_is_compiled_thoroughly() -> None:
    text = Path(settings_module.__file__).with_name("run_once.txt").read_text("utf-8")
    patterns = [one.removesuffix(".*").rstrip("*") for one in re.findall(r'"([^"]+\.\*)"', text)]
    assert len(patterns) > 30
    for rows in (
        "java/util/regex/Pattern",
        "java/util/zip/Inflater",
        "java/lang/invoke/LambdaForm",
        "java/lang/String",
        "com/fasterxml/jackson/core/JsonParser",
        "com/ibm/icu/impl/CaseMapImpl",
        "scala/reflect/ClassTag",
        "org/apache/arrow/vector/BaseVariableWidthVector",
        "org/apache/parquet/bytes/SingleBufferInputStream",
        "org/apache/spark/unsafe/types/UTF8String",
        "org/apache/spark/sql/execution/arrow/ArrowWriter",
        "org/apache/spark/sql/catalyst/expressions/Cast",
        "org/apache/spark/sql/catalyst/expressions/GeneratedClass$GeneratedIteratorForCodegenStage1",
        "org/apache/spark/sql/catalyst/util/DateTimeUtils",
    ):
        assert not [one for one in patterns if rows.startswith(one)], rows
    assert [one for one in patterns if "org/apache/spark/sql/catalyst/optimizer/Optimizer".startswith(one)]
