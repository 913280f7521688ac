"""Server types that nobody measured, from the small benchmarks of planted ones."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from nephoscope import command_line
from nephoscope.core.errors import UsageError
from nephoscope.core.model import Better
from nephoscope.features.market import own_machine
from nephoscope.features.market.micro_benchmarks import candidates, feature_set
from nephoscope.features.market.prediction import predict
from nephoscope.features.market.prediction_records import HoldOutCheck, TypePrediction
from nephoscope.features.market.prediction_section import prediction_section
from nephoscope.features.market.works import PricedWork, work_of
from nephoscope.report import terminal_output
from nephoscope.stats.statistics.proportions import wilson
from nephoscope.store.market.catalogue import MarketCatalogue
from nephoscope.store.market.records import MarketMetric, ServerType, TypeReading

from .made import METRIC, catalogue_of

ONE = "stress-ng.div16/ops_per_s workers=1"
ALL = "stress-ng.div16/ops_per_s workers=all"
READ = "bw_mem.rd/bytes_per_s mb=256"
ZSTD = "compression.zstd/compress_bytes_per_s level=1,threads=1"


def _type(rng: np.random.Generator, provider: str, number: int, rate: bool = True) -> TypeReading:
    """A type whose Redis rate follows its CPUs, one thread's speed and memory bandwidth."""
    cpus = int(rng.choice([2, 4, 8, 16, 32]))
    one, read = rng.uniform(500, 1500), rng.uniform(5e9, 20e9)
    facts = {"cpus": cpus, "threads_per_core": 2, "architecture": "x86_64"}
    reading = TypeReading(
        ServerType(provider, f"t{number}", "made", "1", cpu_model=f"model {number % 5}", **facts)
    )
    figures = {ONE: one, ALL: 0.9 * cpus * one, READ: read, ZSTD: one * 1e5}
    if rate:
        redis = 100 * one**0.7 * (read / 1e9) ** 0.3 * cpus**0.9
        figures[METRIC["redis"]] = redis * float(np.exp(rng.normal(scale=0.05)))
    for metric, value in figures.items():
        unit = "bytes_per_s" if "bytes" in metric else "per_s"
        reading.figures.append((metric, value, 0))
        reading.metrics[metric] = MarketMetric(unit, Better.HIGHER)
    return reading


def _readings() -> list[TypeReading]:
    rng = np.random.default_rng(1)
    readings = [_type(rng, f"p{number % 4}", number) for number in range(120)]
    readings.append(_type(rng, "new", 1, rate=False))
    readings.append(_type(rng, "new", 2, rate=False))
    readings[-1].type.gpus = 1
    return readings


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("store")
    catalogue_of(folder, _readings())
    return folder


def _catalogue(store: Path) -> MarketCatalogue:
    made = MarketCatalogue.of_store(store)
    assert made is not None
    return made


def _work(catalogue: MarketCatalogue, name: str = "redis") -> PricedWork:
    return work_of(name, catalogue.metadata.metrics, "--work")


def test_types_without_a_figure_are_predicted_and_others_are_checked(store: Path) -> None:
    catalogue = _catalogue(store)
    result = predict(catalogue, _work(catalogue))
    (new,) = result.types
    assert (new.provider, new.type, new.measured) == ("new", "t1", None)
    assert new.predicted is not None
    assert new.predicted.low is not None
    assert new.predicted.high is not None
    # A curve with 5 % of noise, by 120 types: no wider than a third to each side.
    assert new.predicted.high / new.predicted.low < 1.33**2
    assert result.trained_on == 120
    assert result.left_out == {"with a GPU": 1}
    assert [check.group for check in result.checks["provider"]] == ["p0", "p1", "p2", "p3"]
    assert all(check.error < 0.1 for check in result.checks["provider"])
    assert next(iter(result.carried_by)) == "CPUs, threads per core, architecture"
    text = terminal_output.render("", [prediction_section(result)], colour=False, width=100)
    assert "new/t1 would do" in text
    assert "in the mean over left-out providers and CPU models; none of 4" in " ".join(text.split())
    assert "By how much the error grows without each source" in text


def test_a_measured_type_is_predicted_without_its_own_figure(store: Path) -> None:
    catalogue = _catalogue(store)
    result = predict(catalogue, _work(catalogue), names=["p0/t0", "new/t2"])
    assert result.trained_on == 119
    first, second = result.types
    assert first.measured is not None
    assert first.predicted is not None
    assert first.predicted.low is not None
    assert first.predicted.high is not None
    assert first.predicted.value != pytest.approx(first.measured, rel=1e-6)
    assert first.predicted.low < first.measured < first.predicted.high
    assert (second.predicted, second.reason) == (None, "with a GPU")


def test_a_machine_of_ones_own_is_predicted_from_a_file(
    store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "mine.csv"
    lines = ["metric,value", "cpus,4", "threads_per_core,2", f"{ONE},1000", f"{ALL},3600"]
    lines += [f"{READ},1e10", f'"{ZSTD}",1e8']
    file.write_text("\n".join(lines) + "\n")
    words = ["predict", "--work", "redis", "--figures", str(file), "--store", str(store)]
    assert command_line.main([*words, "--json"]) == 0
    (mine,) = json.loads(capsys.readouterr().out)["types"]
    expected = 100 * 1000**0.7 * 10**0.3 * 4**0.9
    assert mine["predicted"]["low"] < expected < mine["predicted"]["high"]
    file.write_text("\n".join(lines[:-1]) + "\n")
    assert command_line.main([*words, "--json"]) == 0
    fewer = json.loads(capsys.readouterr().out)
    assert fewer["not_measured"] == ["compression.zstd"]
    assert fewer["types"][0]["predicted"]["low"] < expected < fewer["types"][0]["predicted"]["high"]
    for line, error in (
        (f"{ONE}0,7", f"no imported type has {ONE}0 (did you mean '{ONE}'?)"),
        (f"{METRIC['redis']!r},7".replace("'", '"'), "no figure of a small benchmark"),
    ):
        file.write_text("\n".join([*lines[:3], line]) + "\n")
        assert command_line.main(words) == 2
        assert error in " ".join(capsys.readouterr().err.split())


def test_a_machine_outside_of_the_data_is_refused_with_what_to_do(
    store: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "mine.csv"
    file.write_text(f"metric,value\ncpus,4\nthreads_per_core,2\n{ONE},90000\n{ALL},3600\n")
    words = ["predict", "--work", "redis", "--figures", str(file), "--store", str(store)]
    assert command_line.main(words) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert re.search(r"no prediction .* CPU on one thread is 6[0-9.]* times the highest", text)
    assert text.count("run the work itself on it, or import measurements of types like it") == 1


def test_the_promise_is_what_left_out_groups_show(store: Path) -> None:
    catalogue = _catalogue(store)
    result = predict(catalogue, _work(catalogue))
    assert "and none of 5 CPU models are covered significantly less" in _page(result)
    share = wilson(17, 100)
    bad = HoldOutCheck("made model", share, 0.3, 0.2)
    models = (*result.checks["CPU model"], bad)
    page = _page(replace(result, checks={**result.checks, "CPU model": models}))
    assert "1 of 6 CPU models (at worst made model: 17 %) are covered significantly less" in page
    assert page.index("made model 100") < page.index("model 0 24")


def _page(result: TypePrediction) -> str:
    page = terminal_output.render("", [prediction_section(result)], colour=False, width=100)
    return " ".join(page.split())


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (["metric,value", f"{ONE},10"], "the number of CPUs is missing"),
        (["metric,value", "cpus,many"], "cpus is 'many'"),
        (["metric,value", "cpus,4", f"{ONE},-3"], "'-3' is no rate"),
        (["metric,value", "cpus,4", f"{ONE},1e400"], "'1e400' is no rate"),
        (["metric,value", "cpus,4", "cpus,5"], "cpus is there twice"),
        (["metric,value", "cpus,4", "architecture,mips"], "'mips' is none of those"),
        (["name,value", "cpus,4"], "name"),
    ],
)
def test_what_is_wrong_in_a_file_is_named(tmp_path: Path, lines: list[str], words: str) -> None:
    file = tmp_path / "mine.csv"
    file.write_text("\n".join(lines) + "\n")
    with pytest.raises(UsageError, match=words):
        own_machine.read(file)


def test_unknown_types_and_thin_data_are_one_sentence(store: Path, tmp_path: Path) -> None:
    catalogue = _catalogue(store)
    with pytest.raises(UsageError, match="No imported type is 'p0/t9999'"):
        predict(catalogue, _work(catalogue), names=["p0/t9999"])
    thin = catalogue_of(tmp_path, _readings()[:20])
    with pytest.raises(UsageError, match="cannot be predicted: 20 rows are too few"):
        predict(thin, _work(thin))


def test_features_are_of_other_tools_than_the_work_and_one_of_each_kind() -> None:
    other = "compression.zstd/compress_bytes_per_s level=19,threads=1"
    names = [ONE, ALL, READ, ZSTD, other, "geekbench/score cores=all", "bw_mem.cp/x mb=1"]
    assert ONE not in candidates(names, ALL)
    assert ZSTD not in candidates(names, other)
    assert candidates(names, METRIC["redis"]) == sorted([ONE, ALL, READ, ZSTD, other])
    made = feature_set({ONE: 100, ALL: 100, ZSTD: 98, other: 100, READ: 50})
    # The better covered level of compression, and nothing that half of the types lack.
    assert made.metrics == [ONE, ALL, other]
    assert made.per_cpu == [False, True, False]
    with pytest.raises(UsageError, match="too few small benchmarks"):
        feature_set({READ: 10})
