"""The alerts of the documents: promtool takes them, each fires when it must and else doesn't, each says enough."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from migrator.adapters.observers.declared import METRICS
from migrator.embedded.debian import PackagesUnavailable
from migrator.embedded.prometheus import promtool
from tests.unit.observers.alert_cases import CASES, Series

FOLDER = Path(__file__).parents[3] / "docs" / "how-to" / "observe"
RULES = FOLDER / "alerts.yml"
DASHBOARD = FOLDER / "dashboard.json"
NAMES = {metric.full_name for metric in METRICS}
TROUBLES = {
    "target down", "source down", "slot about to be lost", "disk filling", "one hot table", "verify different",
    "standby took over", "mapping error", "stalled Spark", "network slow",
}  # fmt: skip
END = "19m"


def alerts() -> list[dict[str, Any]]:
    (group,) = yaml.safe_load(RULES.read_text("utf-8"))["groups"]
    found: list[dict[str, Any]] = group["rules"]
    return found


def used(text: str) -> set[str]:
    """Names of our metrics in expressions."""
    return set(re.findall(r"\bmigrator_[a-z_]+", text))


def test_each_alert_says_what_is_wrong_since_when_what_is_at_risk_and_what_to_do() -> None:
    assert len(alerts()) >= len(TROUBLES)
    for alert in alerts():
        assert alert["labels"]["severity"] in ("page", "ticket"), alert["alert"]
        assert set(alert["annotations"]) == {"summary", "since", "risk", "remedy"}, alert["alert"]
        assert all(len(text) > 15 for text in alert["annotations"].values()), alert["alert"]


def test_alerts_and_dashboard_name_no_metric_that_is_not_told() -> None:
    assert used(RULES.read_text("utf-8")) - NAMES == set()
    assert used(DASHBOARD.read_text("utf-8")) - NAMES == set()
    assert used("rate(migrator_no_such_thing[5m])") - NAMES == {"migrator_no_such_thing"}


def test_each_alert_has_a_case_and_each_trouble_an_alert() -> None:
    assert {case.alert for case in CASES} == {alert["alert"] for alert in alerts()}
    assert TROUBLES - {case.trouble for case in CASES} == set()
    assert {alert["alert"] for alert in alerts()} - {case.alert for case in CASES if case.quiet} == set()


def told_by_promtool(*arguments: str) -> tuple[int, str]:
    try:
        done = promtool(*arguments)
    except PackagesUnavailable as error:
        pytest.skip(f"no promtool: {error}")
    return done.returncode, done.stdout


def test_promtool_takes_the_rules(tmp_path: Path) -> None:
    code, said = told_by_promtool("check", "rules", str(RULES))
    assert (code, "SUCCESS" in said) == (0, True), said
    broken = tmp_path / "alerts.yml"
    broken.write_text(RULES.read_text("utf-8").replace("up{job=", "up{{job="), "utf-8")
    assert told_by_promtool("check", "rules", str(broken))[0] != 0


def trial(alert: str, series: Series, fires: bool) -> dict[str, Any]:
    """One test of promtool's: whether an alert fires at the end of these series."""
    firing = f'count(ALERTS{{alertname="{alert}",alertstate="firing"}})'
    return {
        "name": f"{alert} {'fires' if fires else 'is quiet'}",
        "interval": "30s",
        "input_series": [{"series": name, "values": values} for name, values in series.items()],
        "promql_expr_test": [
            {
                "expr": firing,
                "eval_time": END,
                "exp_samples": [{"labels": "{}", "value": 1}] if fires else [],
            }
        ],
    }


def tried(folder: Path, trials: list[dict[str, Any]]) -> tuple[int, str]:
    file = folder / "trials.yml"
    file.write_text(
        yaml.safe_dump({"rule_files": [str(RULES)], "evaluation_interval": "30s", "tests": trials})
    )
    return told_by_promtool("test", "rules", str(file))


def test_each_alert_fires_when_it_must_and_else_does_not(tmp_path: Path) -> None:
    trials = [trial(case.alert, case.fires, fires=True) for case in CASES]
    trials += [trial(case.alert, quiet, fires=False) for case in CASES for quiet in case.quiet]
    code, said = tried(tmp_path, trials)
    assert code == 0, said


def test_a_wrong_expectation_is_noticed(tmp_path: Path) -> None:
    case = CASES[0]
    assert tried(tmp_path, [trial(case.alert, case.fires, fires=False)])[0] != 0
    assert tried(tmp_path, [trial(case.alert, case.quiet[0], fires=True)])[0] != 0


def test_the_words_of_an_alert_name_the_moment(tmp_path: Path) -> None:
    case = next(case for case in CASES if case.alert == "MigratorTargetDown")
    (alert,) = (alert for alert in alerts() if alert["alert"] == case.alert)
    whole = trial(case.alert, case.fires, fires=True)
    annotations = dict(alert["annotations"])
    annotations["summary"] = "shop: the target gives no answer to a:9464"
    annotations["since"] = "1970-01-01 00:05:30 +0000 UTC"
    labels = {"severity": "page", "job": "migrator", "instance": "a:9464", "migration": "shop"}
    whole["alert_rule_test"] = [
        {
            "eval_time": END,
            "alertname": case.alert,
            "exp_alerts": [{"exp_labels": labels, "exp_annotations": annotations}],
        }
    ]
    code, said = tried(tmp_path, [whole])
    assert code == 0, said


def test_each_panel_of_the_dashboard_has_a_title_and_a_question() -> None:
    document = json.loads(DASHBOARD.read_text("utf-8"))
    panels = [panel for panel in document["panels"] if panel["type"] != "row"]
    assert len(panels) >= 12
    for panel in panels:
        assert panel["title"]
        assert panel["targets"]
        assert all(target["expr"] for target in panel["targets"])
    assert len({panel["id"] for panel in document["panels"]}) == len(document["panels"])
