"""db.ycsb: the mixes are the published ones, and its draws have the closed form of Zipf's law."""

from __future__ import annotations

import math
import re

import pytest
from live import measured
from tests.tools import needs

from nephoscope.catalog.adapters import ADAPTERS, Output
from nephoscope.catalog.adapters.db_ycsb import (
    SCATTERED_ITEMS,
    WORKLOADS,
    harmonic,
    scripts,
    zipf_statements,
)
from nephoscope.catalog.adapters.frame import ToolError
from nephoscope.core.errors import UsageError

PUBLISHED = {
    "a": {"read": 50, "update": 50},
    "b": {"read": 95, "update": 5},
    "c": {"read": 100},
    "d": {"read": 95, "insert": 5},
    "e": {"scan": 95, "insert": 5},
    "f": {"read": 50, "read_modify_write": 50},
}


def test_the_mixes_are_the_published_ones() -> None:
    assert {name: workload.percentages for name, workload in WORKLOADS.items()} == PUBLISHED
    assert [name for name, workload in WORKLOADS.items() if workload.is_latest] == ["d"]
    for name, workload in WORKLOADS.items():
        command = ADAPTERS["db.ycsb"].build_command({"workload": name})
        weights = {word for word in command.arguments if word.startswith("--file=")}
        shares = {f"--file={key}.sql@{share}" for key, share in PUBLISHED[name].items()}
        assert weights == shares
        assert set(scripts(workload, 100, 1, 100)) == set(PUBLISHED[name])


@pytest.mark.parametrize("items", [1, 2, 3, 999, 1000, 1001, 5000])
def test_the_sum_is_that_of_all_terms(items: int) -> None:
    assert harmonic(items) == pytest.approx(math.fsum(k**-0.99 for k in range(1, items + 1)))


def test_the_sum_of_the_scattered_items_is_the_one_that_ycsb_publishes() -> None:
    assert harmonic(SCATTERED_ITEMS) == pytest.approx(26.46902820178302, rel=1e-9)


@pytest.mark.parametrize("items", [1, 2, 50, 1000, SCATTERED_ITEMS])
def test_ranks_have_the_closed_form(items: int) -> None:
    """By the shares of a uniform number below which the statements give a rank."""
    for ranks in (1, 2, 5, 10, 100):
        if ranks > items:
            continue
        share = share_below(zipf_statements(items), ranks)
        # The first two are exact; the approximation of the others overstates a share by at most
        # three points.
        bound = 1e-6 if ranks <= 2 or ranks == items else 0.03
        assert share == pytest.approx(harmonic(ranks) / harmonic(items), abs=bound)


def share_below(statements: str, ranks: int) -> float:
    """The largest uniform number for which pgbench's statements give a rank below `ranks`."""
    low, high = 0.0, 1.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if rank_of(statements, middle) < ranks else (low, middle)
    return high


def rank_of(statements: str, uniform: float) -> int:
    if statements == "\\set rank 0\n":
        return 0
    total = float(re.search(r"\\set area :u \* (\S+)\n", statements)[1])  # type: ignore[index]
    case = statements.partition("\\set rank ")[2]
    words = r"case when (.*) then 0 when (.*) then 1 else (.*) end\n"
    first, second, rest = re.fullmatch(words, case).groups()  # type: ignore[union-attr]
    names = {"area": uniform * total, "u": uniform, "least": min, "int": int, "pow": pow}
    for condition, rank in ((first, 0), (second, 1)):
        if eval(condition.replace(":", ""), names):
            return rank
    return int(eval(rest.replace(":", ""), names))


def test_bad_parameters_are_refused_in_a_sentence() -> None:
    adapter = ADAPTERS["db.ycsb"]
    with pytest.raises(UsageError, match="2 clients cannot be shared by 3 threads"):
        adapter.build_command({"clients": 2, "threads": 3})
    with pytest.raises(UsageError, match="workload d with 4 clients needs more than 4 records"):
        adapter.build_command({"workload": "d", "records": 4})


def test_a_report_whose_scripts_do_not_add_up_is_none() -> None:
    text = (
        "transaction type: multiple scripts\n"
        "number of transactions actually processed: 10\n"
        "tps = 5.0 (without initial connection time)\n"
        "SQL script 1: read.sql\n - 4 transactions (40.0% of total, tps = 2.0)\n"
        " - latency average = 0.2 ms\n"
        "SQL script 2: update.sql\n - 5 transactions (50.0% of total, tps = 2.5)\n"
        " - latency average = 0.2 ms\n"
    )
    with pytest.raises(ToolError, match="its scripts have 9 transactions, and the whole has 10"):
        ADAPTERS["db.ycsb"].parse(Output(text))


@pytest.mark.slow
@needs("pgbench", "postgres", "initdb")
@pytest.mark.parametrize("workload", list(PUBLISHED))
def test_postgresql_changes_the_rows_that_are_reported(workload: str) -> None:
    params = {"workload": workload, "records": 500, "clients": 2, "synchronous_commit": False}
    trial, served = measured("db.ycsb", {**params, "duration_ns": 1_000_000_000})
    counts = {
        sample.factors["operation"]: sample.value
        for sample in trial.samples
        if sample.metric == "operations_count"
    }
    total = sum(counts.values())
    assert total > 100
    updates = counts.get("update", 0) + counts.get("read_modify_write", 0)
    assert served["usertable_updated_count"] == updates
    assert served["usertable_inserted_count"] == 500 + counts.get("insert", 0)
    for operation, percentage in PUBLISHED[workload].items():
        share = percentage / 100
        # Five standard deviations of a binomial count.
        bound = 5 * math.sqrt(total * share * (1 - share))
        assert abs(counts.get(operation, 0) - total * share) <= bound, operation
