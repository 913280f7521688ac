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


def test_settings_of_a_sweep_are_a_tree_with_aligned_levels() -> None:
    result = made.result()
    line = result.metrics[0]
    swept = tuple(
        replace(line, factors={"threads": threads, "block_bytes": size})
        for threads in (1, 2)
        for size in (4096, 65536, 1048576)
    )
    text = metric_table.table(replace(result, metrics=swept, findings=()))
    rows = text[text.index("METRIC") :].splitlines()[1:10]
    assert [len(row) - len(row.lstrip()) for row in rows] == [2, 4, 6, 6, 6, 4, 6, 6, 6]
    assert rows[1].strip() == "1 thread"
    units = [row.index(unit) for row, unit in zip(rows[2:5], ("KiB", "KiB", "MiB"), strict=True)]
    assert len(set(units)) == 1
    sizes = [row[: units[0]].split()[-1] for row in rows[2:5]]
    assert sizes == ["4", "64", "1"]
