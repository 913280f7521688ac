"""Questions about money: which offer for my work, and what an application needs."""

from __future__ import annotations

import pytest
from tests.questions.conftest import Asking

WORK = """
version: 1
unit: builds
options:
  small: {price_per_h: 0.10, currency: USD, capacity_per_s: [0.0100, 0.0101, 0.0099, 0.0100]}
  large: {price_per_h: 0.30, currency: USD, capacity_per_s: [0.0402, 0.0398, 0.0400, 0.0400]}
  huge: {price_per_h: 1.20, currency: USD, capacity_per_s: 100}
"""
OFFERS = """
version: 1
currency: USD
budget: 400
parameters:
  response_s: {half: 0.3, good: 0.19, weight: 0.5, maximum: 1}
  throughput_per_s: {half: 800, good: 1020, weight: 0.3}
  availability: {half: 99.9%, good: 99.97%, weight: 0.2, scale: nines}
offers:
  small: {price: 220, values: {response_s: 0.45, throughput_per_s: 1400, availability: 99.9%}}
  large: {price: 300, values: {response_s: 0.20, throughput_per_s: 900, availability: 99.95%}}
"""
TARIFF = """
version: 1
currency: USD
unit: GB
tiers: [{from_gb: 0, price_per_gb: 0.10}]
discount: {exponent: 0.5, minimum_ratio: 0.5}
classes:
  near: {contracted_mbit_per_s: 100, throughput_mbit_per_s: [100, 100], gb_per_month: 500}
  far: {contracted_mbit_per_s: 100, throughput_mbit_per_s: [25, 25], gb_per_month: 500}
"""


def test_which_machine_builds_cheapest(ask: Asking) -> None:
    """Small makes 36 builds an hour for 0.10, large 144 for 0.30: which is cheaper per build?"""
    ask.write("options.yaml", WORK.split("  huge")[0])
    answer = ask("nephoscope cost work options.yaml")
    found = answer.says(r"large is cheapest: ([\d,.]+) USD per million builds")
    assert abs(float(found[1].replace(",", "")) - 0.30 / 144 * 1e6) < 5
    document = ask("nephoscope cost work options.yaml --json").json()
    assert document["schema_version"] == 1


def test_is_a_capacity_of_a_hundred_a_number(ask: Asking) -> None:
    """I write a capacity as a number, then with a unit: is it read, and am I told what to write?"""
    ask.write("options.yaml", WORK)
    # 1.20 USD for 360,000 units an hour.
    ask("nephoscope cost work options.yaml").says(r"huge is cheapest: 3\.33 USD per million builds")
    ask.write("options.yaml", WORK.replace("100}", "100 req/s}"))
    answer = ask("nephoscope cost work options.yaml", code=2)
    answer.says(r"options\.yaml:7:\d+: options\.huge\.capacity_per_s.*'100 req/s' is no number")


def test_prices_in_two_currencies_are_not_compared(ask: Asking) -> None:
    """One provider bills in euros and one in dollars: which is cheaper?"""
    ask.write("options.yaml", WORK.replace("0.30, currency: USD", "0.30, currency: EUR"))
    answer = ask("nephoscope cost work options.yaml", code=2)
    answer.says(r"prices in EUR and USD, which cannot be compared\. Convert them")


def test_which_offer_suits_me(ask: Asking) -> None:
    """One offer is fast and one is cheap; response time matters most to me: which one?"""
    ask.write("offers.yaml", OFFERS)
    ask("nephoscope cost utility offers.yaml").says(r"Recommended: large, utility 0\.[78]")
    ask.write("offers.yaml", OFFERS.replace("budget: 400", "budget: 250"))
    answer = ask("nephoscope cost utility offers.yaml")
    answer.says(r"Recommended: small")
    answer.says(r"price above the budget of 250 USD")


def test_my_weights_are_too_many(ask: Asking) -> None:
    """My weights sum to 1.2: are they used all the same?"""
    ask.write("offers.yaml", OFFERS.replace("weight: 0.2", "weight: 0.4"))
    ask("nephoscope cost utility offers.yaml", code=2).says(
        r"The weights sum to 1\.2, not to 1\. .* `normalise: true`"
    )


def test_what_does_a_slow_client_pay(ask: Asking) -> None:
    """A client gets a quarter of the rate: what does it pay by throughput, for equal revenue?"""
    ask.write("tariff.yaml", TARIFF)
    answer = ask("nephoscope cost tariff tariff.yaml")
    # The root of a quarter: half. Bills of 50 and 25 instead of 100: prices 1.333 times as high.
    answer.says(r"With prices 1\.333 times as high")
    answer.says(r"far +1 +25 Mbit/s .* 50\.00 USD +25\.00 USD +33\.33 USD")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--set kind=voip --set response=150ms --set jitter=40ms", r"is latency-sensitive"),
        ("--set kind=shop", r"--set kind: .* 'web', 'transactions', 'batch' or 'parallel'"),
        ("--pid 4194999", r"there is no process 4194999"),
    ],
)
def test_what_does_my_application_need(ask: Asking, words: str, said: str) -> None:
    """I run a telephone server: which service levels do I ask the provider for?"""
    answer = ask(f"nephoscope advise {words}", code=0 if "voip" in words else 2)
    answer.says(said)
    if "voip" in words:
        answer.says(r"delay variation +≤ 40 ms")
        answer.says(r"nephoscope isolate net_send")
