"""Folders of Spare Cores' measurements: the figures that were planted, whatever interrupts."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.store.imports.inspector_tree import MadeType, make_tree, many, redis_rps

from nephoscope.core import limits
from nephoscope.core.errors import StoreError, UsageError
from nephoscope.core.model import Better
from nephoscope.store.imports import inspector
from nephoscope.store.imports.inspector import TreeImport, import_tree
from nephoscope.store.imports.inspector.folder import TypeFolder
from nephoscope.store.market import catalogue
from nephoscope.store.market.catalogue import MarketCatalogue

MADE = MadeType("alpha", "a1.large", cpus=4, memory_gib=16, speed=800, gpus=2, cpu_model="CPU 7")


def catalogue_of(store: Path) -> MarketCatalogue:
    """Returns the catalogue of a store, which there must be."""
    stored = MarketCatalogue.of_store(store)
    assert stored is not None
    return stored


def figures_of(store: Path) -> dict[tuple[str, str, str], float]:
    """Returns every figure by provider, type and metric; fails for one that is there twice."""
    stored = catalogue_of(store)
    figures: dict[tuple[str, str, str], float] = {}
    for metric, rows in stored.series(list(stored.metadata.metrics)).items():
        for index, _, value in rows:
            key = (*stored.types[index].key, metric)
            assert key not in figures
            figures[key] = value
    assert len(figures) == stored.figures
    return figures


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("imported")
    make_tree(folder, [MADE])
    import_tree(folder, folder / "store")
    return folder / "store"


TRUTHS = {
    "stress-ng.div16/ops_per_s workers=1": 800,
    "stress-ng.div16/ops_per_s workers=all": 3200,
    "stress-ng.cpu/ops_per_s workers=1": 800,
    "stress-ng.crypt/ops_per_s workers=all": 6400,
    "geekbench/score cores=1": 800,
    "geekbench/score cores=all": 2880,
    "passmark/me_latency": 100,
    "openssl.sha256/bytes_per_s block=16384": 3.2e9,
    "compression.zstd/compress_bytes_per_s level=1,threads=all": 3.2e8,
    "compression.zstd/size_ratio level=1,threads=1": 0.4,
    "redis/requests_per_s operation=SET,pipeline=best": redis_rps(MADE),
    "redis/requests_per_s operation=SET,pipeline=1": 0.1 * redis_rps(MADE),
    "static-web/requests_per_s size=1k,connections=best": 96_000,
    "bw_mem.rd/bytes_per_s mb=0.016384": 1.6e10,
    "bw_mem.rdwr/bytes_per_s mb=256": 7.2e9,
    "membench/latency kib=largest": 125,
    "pgbench/transactions_per_s workload=postgres_ro_durable": 3200,
    "pgbench/latency_mean workload=postgres_ro_durable": 12.5e6,
    "llama.prefill/tokens_per_s model=SmolLM-135M.Q4_K_M,n=512": 800,
    "llama.decode/tokens_per_s model=SmolLM-135M.Q4_K_M,n=128": 80,
    "vllm.ttft/mean model=smol-135m,work=chat,load=synchronous": 13.5e6,
    "vllm.total_throughput/rate model=smol-135m,work=chat,load=throughput": 2400,
    "nvbandwidth/host_to_device_memcpy_ce": 1.25e10,
    "nvbandwidth/host_device_latency_sm": 900,
}


def test_every_task_gives_its_figures(imported: Path) -> None:
    figures = figures_of(imported)
    for metric, truth in TRUTHS.items():
        value = figures["alpha", "a1.large", metric]
        assert value == pytest.approx(truth, rel=1e-3), metric  # files round rates to whole numbers


def test_units_and_directions_hold_by_littles_law(imported: Path) -> None:
    """Latency times rate is the number of requests under way, if both have the stated unit."""
    figures = {metric: value for (_, _, metric), value in figures_of(imported).items()}
    clients = 50 * MADE.cpus
    for depth in (1, 16, 512):
        factors = f"operation=SET,pipeline={depth}"
        rate = figures[f"redis/requests_per_s {factors}"]
        assert rate * figures[f"redis/latency_mean {factors}"] / 1e9 == pytest.approx(
            clients, rel=1e-3
        )
    for connections in (2, 64):
        factors = f"size=1k,threads=2,connections={connections}"
        rate = figures[f"static-web/requests_per_s {factors}"]
        latency = figures[f"static-web/latency_mean {factors}"]
        assert rate * latency / 1e9 == pytest.approx(connections, rel=1e-3)
    for name, (unit, better) in catalogue_of(imported).metadata.metrics.items():
        lower = "latency" in name or "ttft" in name or "size_ratio" in name
        assert (better is Better.LOWER) == lower, name
        assert unit in ("per_s", "bytes_per_s", "ns", "points", "ratio", "tokens_per_s")


def test_facts_and_launches(imported: Path) -> None:
    stored = catalogue_of(imported)
    (server,) = stored.types
    assert (server.cpus, server.memory_bytes, server.memory_source) == (4, 16 << 30, "smbios")
    assert (server.cpu_model, server.architecture, server.hypervisor) == ("CPU 7", "x86_64", "KVM")
    assert (server.gpus, server.gpu_model, server.gpu_memory_bytes) == (2, "A GPU", 48 << 30)
    assert server.l3_bytes == 32 << 20
    (launch,) = stored.metadata.launches
    assert launch.at_s["user_data_start"] - launch.at_s["api_start"] == 22


def test_what_is_null_or_zero_is_no_figure(imported: Path) -> None:
    names = {metric for _, _, metric in figures_of(imported)}
    assert not any("zpaq" in name or "tsc" in name or "avx512" in name for name in names)
    assert min(figures_of(imported).values()) > 0


def test_a_day_of_rates_is_a_series(tmp_path: Path) -> None:
    make_tree(tmp_path, [MADE])
    run = tmp_path / "data/alpha/a1.large/stressnglongrun"
    run.mkdir()
    (run / "parsed.csv").write_text(
        "2026-03-01T10:00:05,5.0001,700.5\n2026-03-01T10:01:05,5.0,650.0\nno row\n"
    )
    result = import_tree(tmp_path, tmp_path / "store")
    assert result.left_out_count == 1
    rows = catalogue_of(tmp_path / "store").series(["stress-ng.long-run/ops_per_s"])
    ((_, first, rate), (_, second, _)) = rows["stress-ng.long-run/ops_per_s"]
    assert (second - first, rate) == (60, 700.5)


def test_unusable_files_are_named_and_the_rest_is_used(tmp_path: Path) -> None:
    make_tree(tmp_path, [MADE])
    folder = tmp_path / "data/alpha/a1.large"
    (folder / "geekbench/results.json").write_text('{"Single-Core Performance": {"Sc')
    (folder / "passmark/stdout").write_bytes(b"Results:\n\xff\xfe")
    (folder / "redis/stdout").write_text('"operation","rps"\n"SET",1\n')
    (folder / "openssl/parsed.json").write_text(
        '[{"algo": "sha256", "block_size": 16384, "speed": -4}, {"algo": "sm4", "block_size": 16, '
        '"speed": 9}]'
    )
    (folder / "vllm/stdout").write_text("x" * (limits.MARKET_FILE_BYTES + 1))
    (folder / "stressngfull/stdout").write_text("1,800\nkilled\n4,nan\n")
    (folder / "timing/7001/machine_start").write_text("yesterday\n")
    os.symlink("/dev/zero", folder / "bw_mem/link")
    result = import_tree(tmp_path, tmp_path / "store")
    named = "\n".join(result.left_out)
    assert result.left_out_count == len(result.left_out) == 8
    for words in (
        "geekbench/results.json: line 1: invalid JSON",
        "passmark/stdout: it is no UTF-8 text",
        "redis/stdout: the column 'threads' is missing",
        "openssl/parsed.json: 'openssl.sha256/bytes_per_s' is -4, and cannot be below 0",
        "vllm/stdout: it is larger than 8 MiB",
        "stressngfull/stdout: the line 'killed' is no `workers,rate`",
        "timing/7001/machine_start: it is no time",
    ):
        assert f"alpha/a1.large/{words}" in named
    figures = {metric: value for (_, _, metric), value in figures_of(tmp_path / "store").items()}
    assert figures["stress-ng.div16/ops_per_s workers=1"] == 800
    assert figures["openssl.sm4/bytes_per_s block=16"] == 9
    assert "static-web/requests_per_s size=1k,connections=best" in figures


ODD = ("", "[]", "{}", "null", "\0\0", '{"lscpu": 3}', "[" * 5000, '{"a": [{"b": NaN}]}', "a,b\n1")
TASKS = ("lscpu", "redis", "llm", "nvbandwidth", "compression_text", "pgbench_x", "membench")
MORE_TASKS = ("static_web", "stressng_benchmarks", "stressngfull", "bw_mem", "openssl", "vllm")


def test_no_content_of_a_file_ends_an_import(tmp_path: Path) -> None:
    for number, text in enumerate(ODD):
        for task in (*TASKS, *MORE_TASKS):
            folder = tmp_path / f"data/alpha/a{number}" / task
            folder.mkdir(parents=True)
            (folder / "stdout").write_text(text)
            (folder / "meta.json").write_text(text)
    import_tree(tmp_path, tmp_path / "store")
    assert len(catalogue_of(tmp_path / "store").types) == len(ODD)


def test_only_what_changed_is_read_again(tmp_path: Path) -> None:
    make_tree(tmp_path, many(6))
    store = tmp_path / "store"
    assert import_tree(tmp_path, store).read == 6
    again = import_tree(tmp_path, store)
    assert (again.read, again.unchanged, again.resumed) == (0, 6, 0)
    before = figures_of(store)
    changed = tmp_path / "data/alpha/type-00000/stressngfull/stdout"
    changed.write_text("1,123456\n")
    shutil.rmtree(tmp_path / "data/beta/type-00001")
    assert import_tree(tmp_path, store).read == 1
    after = figures_of(store)
    assert after["alpha", "type-00000", "stress-ng.div16/ops_per_s workers=1"] == 123456
    assert not any(name == "type-00001" for _, name, _ in after)
    same = {key for key in before if key[1] not in ("type-00000", "type-00001")}
    assert {key: after[key] for key in same} == {key: before[key] for key in same}


def test_an_import_that_is_interrupted_ten_times_ends_as_one_that_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_tree(tmp_path, many(40))
    import_tree(tmp_path, tmp_path / "whole")
    monkeypatch.setattr(inspector, "_BATCH_TYPES", 2)
    read_type, write_part = inspector.read_type, catalogue.write_part
    step: Iterator[int] = iter(())

    def interrupted(folder: TypeFolder, root: str) -> Any:
        if next(step, None) is None:
            raise KeyboardInterrupt
        return read_type(folder, root)

    resumed = []
    for attempt in range(10):
        step = iter(range(5))
        # Every other time between the parts and the file that they make.
        whole = attempt == 9
        monkeypatch.setattr(inspector, "read_type", read_type if whole else interrupted)
        if whole:
            monkeypatch.setattr(catalogue, "merge", _no_merge)
        with pytest.raises(KeyboardInterrupt):
            import_tree(tmp_path, tmp_path / "store")
    monkeypatch.undo()
    result: TreeImport = import_tree(tmp_path, tmp_path / "store")
    resumed.append(result.resumed)
    assert (result.read, result.resumed) == (0, 40)
    assert figures_of(tmp_path / "store") == figures_of(tmp_path / "whole")
    assert not catalogue.parts_of(tmp_path / "store/market")
    assert len(catalogue_of(tmp_path / "store").metadata.launches) == 40
    assert write_part is catalogue.write_part


def _no_merge(*_: Any) -> MarketCatalogue:
    raise KeyboardInterrupt


def test_two_imports_at_once_are_refused(tmp_path: Path) -> None:
    make_tree(tmp_path, [MADE])
    (tmp_path / "store/market").mkdir(parents=True)
    with inspector._only_import(tmp_path / "store/market"), pytest.raises(StoreError) as refused:
        import_tree(tmp_path, tmp_path / "store")
    assert "held by another import" in str(refused.value)


@pytest.mark.parametrize("files", [{}, {"a/b/c": "x"}, {"data/a/b/lscpu/other": "x"}])
def test_a_folder_of_another_layout_is_refused(tmp_path: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = tmp_path / "tree" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (tmp_path / "tree").mkdir(exist_ok=True)
    with pytest.raises(UsageError) as refused:
        import_tree(tmp_path / "tree", tmp_path / "store")
    assert "has no PROVIDER/TYPE/TASK/stdout" in str(refused.value)
    assert not (tmp_path / "store").exists()


def test_names_and_files_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_tree(tmp_path, many(3))
    monkeypatch.setattr(limits, "MARKET_TYPES", 2)
    with pytest.raises(UsageError, match="more than 2 server types"):
        import_tree(tmp_path, tmp_path / "store")
    monkeypatch.setattr(limits, "MARKET_TYPES", 9)
    monkeypatch.setattr(limits, "MARKET_FIGURES", 5)
    result = import_tree(tmp_path, tmp_path / "store")
    assert catalogue_of(tmp_path / "store").figures == 15
    assert any("too many figures" in sentence for sentence in result.left_out)


def test_names_of_folders_may_be_anything(tmp_path: Path) -> None:
    make_tree(tmp_path, [MADE])
    data = os.fsencode(tmp_path / "data")
    for name in (b"a\xff1", b"a\xfe1", b"\x1b[2J\n<b>", "\u202eevil".encode(), b"x" * 255):
        copy = Path(os.fsdecode(os.path.join(data, name, name)))
        shutil.copytree(tmp_path / "data/alpha/a1.large", copy)
        odd = copy / os.fsdecode(b"odd\xfftask")
        odd.mkdir()
        (odd / "x").write_text("x")
    result = import_tree(tmp_path, tmp_path / "store")
    assert (result.read, result.stored_types) == (6, 6)
    assert import_tree(tmp_path, tmp_path / "store").unchanged == 6
    names = [name for server in catalogue_of(tmp_path / "store").types for name in server.key]
    assert all(name.isprintable() and len(name) <= 100 for name in names), names
    assert list(result.not_read) == ["ffmpeg", "odd\ufffdtask"]
