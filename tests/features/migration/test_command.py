"""`nephoscope migration`: options, sentences, documents and files."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.features.migration.made import MIB, report

from nephoscope import command_line
from nephoscope.features.migration import measure, section
from nephoscope.features.migration.measure import MigrationMeasurement
from nephoscope.report import terminal_output


@pytest.fixture
def settings(monkeypatch: pytest.MonkeyPatch) -> list[measure.MigrationSettings]:
    """The settings of each measurement that was asked for; its report is drawn."""
    seen: list[measure.MigrationSettings] = []

    async def run(self: MigrationMeasurement) -> Any:
        seen.append(self.settings)
        return report()

    monkeypatch.setattr(MigrationMeasurement, "run", run)
    return seen


def test_the_options_reach_the_measurement(
    settings: list[measure.MigrationSettings], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    page = tmp_path / "page.html"
    words = ["--dirty-rate", "2MiB/s", "--dirty-rate", "0", "--bandwidth", "1Gbit/s"]
    words += ["--working-set", "8MiB", "--memory", "128MiB", "--downtime-limit", "100ms"]
    words += ["--repetitions", "5", "--timeout", "9s", "--seed", "4", "-o", str(page)]
    assert command_line.main(["migration", *words]) == 0
    (one,) = settings
    assert (one.dirty_bytes_per_s, one.repetitions) == ((2.0 * MIB, 0.0), 5)
    assert (one.timeout_s, one.seed) == (9.0, 4)
    guest = one.guest
    assert (guest.memory_bytes, guest.working_set_bytes) == (128 * MIB, 8 * MIB)
    assert (guest.link_bits_per_s, guest.downtime_limit_ns) == (1e9, 100_000_000)
    assert guest.filled_bytes == 24 * MIB  # what 96 MiB for the kernel leave
    assert "Total time" in page.read_text(encoding="utf-8")
    out = " ".join(capsys.readouterr().out.split())
    assert "Memory changes at 2.10 MB/s (20 % of the bandwidth): a migration takes 12.5 s" in out
    assert "pauses the guest for 200 ms and loses 100 packets" in out
    assert "its work takes 1.25 times as long." in out
    assert "no migration completed within 1 min: pre-copy does not converge." in out
    assert "accept a pause of 1.60 s (--downtime-limit)" in out


def test_a_link_that_was_not_filled_is_named() -> None:
    drawn = report()
    text = terminal_output.render("", [section.section(drawn)], colour=False, width=200)
    assert "did not fill the link" not in text
    (first, *rest) = drawn.figures
    assert first.predicted_total_ns is not None
    still = replace(first.dirty_bytes_per_s, value=0.0)
    slow = replace(first, predicted_total_ns=first.predicted_total_ns / 2, dirty_bytes_per_s=still)
    page = section.section(replace(drawn, figures=(slow, *rest)))
    text = terminal_output.render("", [page], colour=False, width=200)
    assert "2.09 times as long as the closed form: QEMU did not fill the link" in text
    assert "Memory does not change: a migration takes 12.5 s" in text


def test_the_document_has_each_migration(
    settings: list[measure.MigrationSettings], capsys: pytest.CaptureFixture[str]
) -> None:
    assert command_line.main(["migration", "--json"]) == 0
    assert settings[0].dirty_bytes_per_s == (0.0, 2.0 * MIB, 6.0 * MIB, 100.0 * MIB)
    document = json.loads(capsys.readouterr().out)
    assert len(document["migrations"]) == 5
    assert document["figures"][1]["total_ns"] is None


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["--memory", "64MiB"], "the guest's kernel and its working set"),
        (["--dirty-rate", "fast"], "fast"),
        (["--bandwidth", "0"], "0"),
        (["--repetitions", "0"], "0"),
    ],
)
def test_bad_options_are_one_sentence(
    words: list[str], part: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command_line.main(["migration", *words]) == 2
    err = capsys.readouterr().err
    assert part in err
    assert "Traceback" not in err
