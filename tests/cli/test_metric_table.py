from __future__ import annotations

from dataclasses import replace

from nephoscope.cli.kit import metric_table
from nephoscope.core.model import Finding, Severity
from report import made


def test_warnings_of_findings_stand_below_the_table() -> None:
    """The figures of `bench` on a limited host are not read without the limit."""
    findings = (
        Finding("cpu_limited", Severity.WARNING, "A quota limits it to 0.5 CPUs.", ()),
        Finding("virtual", Severity.INFO, "This is a virtual machine.", ()),
    )
    text = metric_table.table(replace(made.result(), findings=findings))
    assert "\n! A quota limits it to 0.5 CPUs." in text
    assert "virtual machine" not in text
