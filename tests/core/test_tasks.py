"""Work that a signal ends."""

from __future__ import annotations

import asyncio
import os
import signal

import pytest

from nephoscope.core.errors import Interrupted
from nephoscope.core.tasks import SIGNALS, run_until_signal


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_ends_work_with_a_sentence_after_it_was_cleaned_up(
    number: signal.Signals,
) -> None:
    cleaned_up = []

    async def work() -> None:
        os.kill(os.getpid(), number)
        try:
            await asyncio.sleep(60)
        finally:
            cleaned_up.append(True)

    with pytest.raises(Interrupted, match="The lab was removed"):
        run_until_signal(work(), "The lab was removed.")
    assert cleaned_up == [True]


def test_work_that_no_signal_ends_has_its_result() -> None:
    async def work() -> int:
        return 7

    assert run_until_signal(work(), "unused") == 7
