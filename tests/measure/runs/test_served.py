"""Clients and servers of a trial have to count the same requests."""

from __future__ import annotations

import pytest

from nephoscope import catalog
from nephoscope.core.model import Background, Sample
from nephoscope.measure.runs.trials.loads import Load
from nephoscope.measure.runs.trials.served import unequal_counts
from nephoscope.measure.targets import Done, TargetTrial


def trial(samples: list[Sample]) -> TargetTrial:
    return TargetTrial(tuple(samples), {}, Done(1, len(samples)), None)


def client(sent: int, completed: int) -> TargetTrial:
    return trial([Sample("sent_count", float(sent)), Sample("completed_count", float(completed))])


def server(name: str, *answered: int) -> Load:
    background = Background(name, "http.serve", {}, (name,))
    load = Load(background, name, catalog.load().benchmark("http.serve"), True)
    kinds = [
        Sample("answered_count", float(count), factors={"kind": str(n)})
        for n, count in enumerate(answered)
    ]
    load.trial = trial(kinds)
    return load


CLIENTS = {"a": client(100, 98), "b": client(50, 50)}


@pytest.mark.parametrize("answered", [(148, 0), (100, 50), (149, 0)])
def test_requests_in_flight_at_the_end_may_have_been_served(answered: tuple[int, int]) -> None:
    servers = [server("web1", answered[0]), server("web2", answered[1])]
    assert unequal_counts(["web1", "web2"], CLIENTS, servers) == ""


@pytest.mark.parametrize("answered", [147, 151])
def test_any_other_difference_is_stated_with_the_counts(answered: int) -> None:
    words = unequal_counts(["web"], CLIENTS, [server("web", 100, answered - 100)])
    assert (
        f"150 requests and have 148 valid responses, and the servers (web) count {answered}"
        in words
    )


def test_servers_that_are_not_named_or_do_not_run_say_nothing() -> None:
    assert unequal_counts([], CLIENTS, [server("web", 1)]) == ""
    assert unequal_counts(["other"], CLIENTS, [server("web", 1)]) == ""
