"""The agreements that a study states, computed from the contracts' terms."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from nephoscope import command_line
from nephoscope.core.errors import UsageError
from nephoscope.features.studies import agreements, catalogue

DELGADO = catalogue.load("delgado-2010")


def test_every_stated_figure_agrees() -> None:
    figures = agreements.figures(DELGADO)
    assert len(figures) == 4
    assert all(figure.agrees for figure in figures)
    yearly = figures[1]
    assert (yearly.allowed_slots, yearly.unit) == (52, "hours")
    assert yearly.computed == pytest.approx(52 * 5 / 60)


def test_credits_of_an_outage_of_five_hours() -> None:
    by_contract = {figure.contract: figure for figure in agreements.figures(DELGADO)}
    credits = {name.split(",")[0]: figure.outage_credit for name, figure in by_contract.items()}
    assert credits == {
        "Amazon EC2": 0.1,
        "Rackspace Cloud Servers": 0.5,
        "Google App Engine": None,
    }


def test_a_figure_that_is_not_published_is_one_sentence() -> None:
    without = replace(DELGADO, numbers=())
    with pytest.raises(UsageError, match=r"has no number in 'EC2 SLA', 'uptime'"):
        agreements.figures(without)


def test_the_part_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert command_line.main(["study", "show", "delgado-2010"]) == 0
    assert "52 bad slots a period are allowed" in " ".join(capsys.readouterr().out.split())
    assert command_line.main(["study", "show", "delgado-2010", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["agreements"]) == 4
