"""Rules for Prometheus: accepted by promtool, and evaluated by its engine to our burn rate."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
import yaml
from tests.features.sla.made import refused

from nephoscope import command_line
from nephoscope.features.sla import files, prometheus

Capture = pytest.CaptureFixture[str]
CONTRACTS = ("ec2-region", "azure-single", "wavestack-zonal")


def test_factors_are_those_of_the_workbook() -> None:
    assert prometheus.factor(0.02, 720, 1) == pytest.approx(14.4)
    assert prometheus.factor(0.05, 720, 6) == pytest.approx(6)
    assert prometheus.factor(0.10, 720, 72) == pytest.approx(1)


def test_rules_have_every_window_and_alert(capsys: Capture) -> None:
    assert command_line.main(["sla", "export", "ec2-region", "--format", "prometheus"]) == 0
    recordings, alerts = yaml.safe_load(capsys.readouterr().out)["groups"]
    assert len(recordings["rules"]) == 11
    assert [rule["expr"].count("14.4") for rule in alerts["rules"]] == [2, 0, 0]


def test_queries_need_their_window(capsys: Capture) -> None:
    words = ["export", "ec2-region", "--format", "prometheus", "--errors", "rate(x[5m])"]
    assert "has no $window" in refused(capsys, *words)
    words = ["export", "rackspace-2010", "--format", "prometheus"]
    assert "has an error budget" in refused(capsys, *words)


@pytest.mark.parametrize("name", CONTRACTS)
def test_promtool_accepts_the_rules(name: str, tmp_path: Path) -> None:
    rules = tmp_path / "rules.yaml"
    rules.write_text(yaml.safe_dump(prometheus.rules(files.load(name))))
    check = subprocess.run(
        ["promtool", "check", "rules", str(rules)], capture_output=True, text=True, timeout=60
    )
    assert check.returncode == 0, check.stdout + check.stderr


def test_its_engine_finds_our_burn_rate(tmp_path: Path) -> None:
    """Three failures in 1000 probes under 99.9 % burn at 3; more than 14.4 in an hour pages."""
    terms = files.load("azure-single")
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump(prometheus.rules(terms)))
    labels = 'service="web"'
    cases = []
    for failed, firing in ((3, False), (30, True)):
        rate = failed / 1000 / 0.001
        selector = '{sla="azure-single"}'
        test = {
            "interval": "1m",
            "input_series": [
                {"series": f"nephoscope_sla_events_total{{{labels}}}", "values": "0+1000x400"},
                {"series": f"nephoscope_sla_failed_total{{{labels}}}", "values": f"0+{failed}x400"},
            ],
            "promql_expr_test": [
                {
                    "eval_time": "6h",
                    "expr": f"abs(sla:burn_rate:{window}{selector} / {rate} - 1) < bool 0.01",
                    "exp_samples": [
                        {"labels": f'{{{labels},sla="azure-single",objective="1"}}', "value": 1}
                    ],
                }
                for window in ("5m", "30m", "1h", "6h")
            ],
            "alert_rule_test": [],
        }
        count = "vector(0) + count(ALERTS{severity='page',window='1h'})"
        test["promql_expr_test"] += (
            [{"eval_time": "6h", "expr": count, "exp_samples": [{"value": 1, "labels": "{}"}]}]
            if firing
            else []
        )
        cases.append(test)
    (tmp_path / "test.yaml").write_text(
        yaml.safe_dump({"rule_files": ["rules.yaml"], "tests": cases, "evaluation_interval": "1m"})
    )
    outcome = subprocess.run(
        ["promtool", "test", "rules", "test.yaml"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr
