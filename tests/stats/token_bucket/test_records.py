"""The record of a verdict."""

from __future__ import annotations

import pytest

from nephoscope.stats.token_bucket.records import BurstCredit, CreditWord


@pytest.mark.parametrize(
    ("verdict", "is_on_credit"),
    [("on credit", True), ("steady", False), ("varies", False), ("cannot be told", False)],
)
def test_one_verdict_means_credit(verdict: CreditWord, is_on_credit: bool) -> None:
    assert BurstCredit(verdict, "", 0, 0.0).is_on_credit == is_on_credit
