"""Rentals through a proxy that loses, delays, repeats and spoils answers: all end clean."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.clouds import proxy

from nephoscope.core.errors import NephoscopeError

from . import double as doubles
from . import tenants
from .test_kills import SCALE, check, swept

RUNS = int(os.environ.get("NEPHOSCOPE_PROXIED_RUNS", "100"))
RATE = 0.015
"""Of each of the seven faults: about one call in ten."""


@pytest.mark.slow
def test_rentals_through_a_faulty_proxy_end_clean_and_say_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rates = {fault.replace("-", "_"): RATE for fault in proxy.FAULTS}
    words: dict[str, str] = {}
    problems: list[str] = []
    with (
        doubles.running(scale=SCALE) as cloud,
        proxy.between(cloud.endpoint, seed=5, delay_s=0.3, **rates) as between,
    ):
        for name, value in cloud.environment().items():
            monkeypatch.setenv(name, value)
        cloud.settings(lag_s=tenants.LAG_S)
        cloud.quota("L-1216C47A", 100_000)
        cloud.quota("L-34B43A08", 100_000)
        ours = tenants.rentals(
            tenants.provider(between.endpoint, SCALE), between.endpoint, tmp_path / "rentals"
        )

        def one(number: int) -> None:
            name = f"p{number}"
            try:
                asyncio.run(tenants.rent(ours, name))
                words[name] = "clean"
            except NephoscopeError as error:
                words[name] = str(error)
                swept(ours, name)
            problems.extend(check(cloud, name, 1.0))

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(one, range(RUNS)))
        problems += [f"left at the end: {each['id']}" for each in cloud.live()]
        problems += cloud.defects()
        happened = dict(between.happened)
    outcomes = Counter("clean" if text == "clean" else "failed" for text in words.values())
    print(f"{dict(outcomes)}; {happened}; {between.requests} requests")  # noqa: T201
    assert not problems, problems
    assert len(words) == RUNS
    assert all(
        text == "clean" or text.startswith(("EC2: ", "Not confirmed")) for text in words.values()
    )
    assert outcomes["clean"] >= 0.9 * RUNS
    assert set(happened) == set(proxy.FAULTS)
