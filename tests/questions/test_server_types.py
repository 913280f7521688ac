"""Questions about machines that were not rented yet: published measurements and price lists."""

from __future__ import annotations

from tests.questions.conftest import Asking
from tests.store.imports.inspector_tree import MadeType, make_tree

TYPES = [
    MadeType("alpha", "tiny", cpus=2, memory_gib=4, speed=900),
    MadeType("alpha", "wide", cpus=4, memory_gib=16, speed=700),
    MadeType("beta", "fast", cpus=2, memory_gib=8, speed=1200),
    MadeType("beta", "dear", cpus=8, memory_gib=32, speed=1200),
]
PRICES = """\
name,region,currency,date,source,on_demand_per_h
alpha/tiny,eu,USD,2026-11-01,list,0.01
alpha/wide,eu,USD,2026-11-01,list,0.12
beta/fast,us,USD,2026-11-01,list,0.09
beta/fast,eu,USD,2026-11-01,list,0.10
beta/dear,us,USD,2026-11-01,list,0.21
"""


def test_which_machine_is_cheapest_for_my_work(ask: Asking) -> None:
    """I have a clone of the measurements: which VM is cheapest for my Redis work under 0.2 USD/h
    with 8 GiB or more?"""
    make_tree(ask.folder / "sc-inspector-data", TYPES)
    ask.write("prices.csv", PRICES)
    imported = ask("nephoscope import sc-inspector-data --prices prices.csv")
    imported.says(r"4 server types with [0-9]+ figures and 4 launches are stored")
    imported.says(r"5 prices are stored; 4 server types have one")
    imported.says("Each figure is of one machine of its type, measured once")
    answer = ask("nephoscope market --work redis --price-below 0.2 --memory 8GiB")
    # 1.12 M/s for 0.12 USD against 0.96 M/s for 0.09 USD an hour: 26.0 and 29.8 USD for 10^12.
    answer.says(
        r"beta/fast in us is cheapest for Redis SET requests at the best pipeline depth: 0\.0260 "
        r"USD per billion \(960 k/s at 0\.0900 USD an hour\)\. The next, alpha/wide, "
        r"costs 14 % more"
    )
    answer.says("Each figure is of one machine of its type, measured once: there is no interval")
    answer.says(r"Left out of 4 types: 1 with less memory, 1 above the price")
    answer.says("a server and its client run on each CPU")
    answer.never_says("alpha/tiny|beta/dear")
    again = ask("nephoscope import sc-inspector-data")
    again.says(r"4 types stored already, and unchanged since")


def test_what_do_i_need_to_ask_that(ask: Asking) -> None:
    """Which VM is cheapest, before I have imported anything?"""
    answer = ask("nephoscope market --work redis", code=2)
    answer.says(r"No server types were imported\. Clone SpareCores/sc-inspector-data")
