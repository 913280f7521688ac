"""Questions about sites for users around the world, and about instances that differ in speed."""

from __future__ import annotations

from tests.questions.conftest import Asking

WORLD = """
version: 1
name: shop
duration_h: 1
objective_ms: 60
user_bases:
  berlin:
    {lat: 52.5, lon: 13.4, zone: 1, users: &many {peak: 200, off_peak: 200, peak_hours: [19, 23]},
     requests_per_user_h: 20}
  new-york: {lat: 40.7, lon: -74.0, zone: -5, users: *many, requests_per_user_h: 20}
  sydney:
    {lat: -33.9, lon: 151.2, zone: 10, users: {peak: 100, off_peak: 100, peak_hours: [19, 23]},
     requests_per_user_h: 20}
sites:
  frankfurt: {lat: 50.1, lon: 8.7, price: {instance_usd_per_h: 0.10}}
  virginia: {lat: 38.9, lon: -77.4, price: {instance_usd_per_h: 0.08}}
  sydney-1: {lat: -33.9, lon: 151.2, price: {instance_usd_per_h: 0.12}}
  mumbai: {lat: 19.1, lon: 72.9, price: {instance_usd_per_h: 0.05}}
broker: closest
place: {sites_max: 3, within_ratio: 95%}
"""
SMALL = "--replications 1 --seed 3"


def test_where_do_three_sites_go(ask: Asking) -> None:
    """My users are in Berlin, New York and Sydney: where do I put three sites for 60 ms?"""
    ask.write("shop.yaml", WORLD)
    answer = ask(f"nephoscope simulate geo shop.yaml --place {SMALL}")
    answer.says(r"Target: 95 % of requests within 60 ms, at the lowest cost")
    # Each region has one site near it, and an ocean lies between any two; Mumbai is cheap and far.
    found = answer.says(r"Recommended sites: ([^.]*)\. 100 % of the requests")
    assert sorted(found[1].replace(" and ", ", ").split(", ")) == [
        "frankfurt",
        "sydney-1",
        "virginia",
    ]
    answer.says(r"All choices were evaluated; none is better")


def test_what_is_wrong_in_my_scenario(ask: Asking) -> None:
    """I write the number of users, a text for a number, an unknown key: what do I correct?"""
    ask.write("shop.yaml", WORLD.replace("{peak: 100, off_peak: 100, peak_hours: [19, 23]}", "100"))
    answer = ask("nephoscope simulate geo shop.yaml", code=2)
    answer.says(r"shop\.yaml:12:\d+: found '100', but this key takes a mapping of keys and values")
    ask.write("shop.yaml", WORLD)
    answer = ask("nephoscope simulate geo shop.yaml --set objective_ms=fast", code=2)
    answer.says(r"--set objective_ms=fast: found 'fast', but this key takes a number")
    answer.never_says(r"f64|struct|invalid type")


def test_is_one_site_enough_for_most(ask: Asking) -> None:
    """Only 35 % of my requests have to be fast, I write 35%: is one site enough, and which?"""
    ask.write("shop.yaml", WORLD)
    answer = ask(f"nephoscope simulate geo shop.yaml --place --set place.within_ratio=35% {SMALL}")
    # Berlin and New York are 40 % of the requests each; Virginia costs less than Frankfurt.
    answer.says(r"Recommended sites: virginia\.")
    answer.never_says(r"expected f64")


def test_what_does_my_budget_buy(ask: Asking) -> None:
    """I can pay 0.45 dollars an hour: what do I get for it, and what would it cost to do?"""
    ask.write("shop.yaml", WORLD)
    answer = ask(
        "nephoscope simulate geo shop.yaml --place --set place.budget_usd_per_h=0.45 " + SMALL
    )
    answer.says(r"No choice of sites meets the objective; virginia comes closest")
    answer.says(r"per hour: 100 % within the objective")
    answer.says(r"Raise the budget")


def test_which_of_my_sites_is_idle(ask: Asking) -> None:
    """I have a site in Mumbai, and no users near it: does it do anything for its price?"""
    ask.write("shop.yaml", WORLD)
    answer = ask(f"nephoscope simulate geo shop.yaml {SMALL}")
    answer.says(r"mumbai +0 +– +0 %")
    answer.says(r"mumbai +00 h ▁+ 24 h")
    answer.says(r"increase `--replications`")
    answer.never_says(r"--budget")


def test_when_does_relaunching_pay(ask: Asking) -> None:
    """A third of the instances is 1.5 times as fast: what do I save if I relaunch the slow ones?"""
    answer = ask(
        "nephoscope cost saving --mix fast=30:1.5 --mix slow=60:1 --price 0.30 --hours 100000"
    )
    # For ever: all at 1.5 instead of the mean of 1/3 and 2/3, (1.5 - 7/6) / 1.5.
    found = answer.says(r"Selecting fast saves [\d,.]+ USD \(([\d.]+) %; \[[^]]*\]\) on a job")
    assert abs(float(found[1]) - 22.2) < 0.2
    answer.says(r"break-even after [\d.]+ h")


def test_is_there_anything_to_select(ask: Asking) -> None:
    """Both CPU models behind my instance type are equally fast: shall I select?"""
    answer = ask("nephoscope cost saving --mix a=50:1 --mix b=50:1 --price 0.30")
    answer.says(r"Selecting a and b saves nothing .* accept every launch")
    answer.never_says(r"saves 0\.00|1 instances")
