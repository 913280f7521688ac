"""Published measurements of server types, their prices, and what the store has of them."""

from __future__ import annotations

import functools
import tempfile
from pathlib import Path

from tests.features.market.made import catalogue_of, server
from tests.store.imports.inspector_tree import MadeType, content

from nephoscope.features.market import launch_files, prices
from nephoscope.store.imports.inspector import import_tree
from nephoscope.store.imports.inspector.tasks import FACTS, TASKS
from nephoscope.store.market.catalogue import MarketCatalogue

from ..boundary import JSON, JSON_LINES, Boundary
from .inputs import in_file

_FILES = {
    **{task: file for task, (file, _) in TASKS.items()},
    "pgbench_x": "stdout",
    "openssl": "parsed.json",
    "lscpu": "stdout",
    "dmidecode": "parsed.json",
    "nvidia_smi": "stdout",
    "timing": "1/api_start",
}
_LAUNCHES = (
    b"provider,type,run,api_start,api_end\na,t,1,2026-01-01T00:00:00Z,2026-01-01T00:00:09Z\n"
)
_PRICES = b"name,region,currency,date,source,on_demand_per_h\na/t,r,USD,2026-01-01,x,0.1\n"


@functools.cache
def _outputs(*, are_json: bool) -> tuple[bytes, ...]:
    files = content(MadeType("a", "t", gpus=1))
    return tuple(
        text.encode()
        for name, text in files.items()
        if name.partition("/")[0] in {*TASKS, *FACTS}
        and (text[0] in "[{") == are_json
        and name != "llm/stdout"
        and name != "vllm/stdout"
    )


def _lines() -> tuple[bytes, ...]:
    files = content(MadeType("a", "t", gpus=1))
    return (files["llm/stdout"].encode(), files["vllm/stdout"].encode())


def _import(file: Path) -> object:
    """Imports a type whose tasks all have this output."""
    raw = file.read_bytes()
    with tempfile.TemporaryDirectory(dir=file.parent) as folder:
        for task, name in _FILES.items():
            path = Path(folder, "data", "a", "t", task, name)
            path.parent.mkdir(parents=True)
            path.write_bytes(raw)
            (path.parent / "meta.json").write_bytes(raw)
        return import_tree(Path(folder), Path(folder, "store"))


@functools.cache
def _catalogues() -> tuple[bytes, ...]:
    with tempfile.TemporaryDirectory() as folder:
        stored = catalogue_of(Path(folder), [server("a/t", {"redis": 1e5, "web": 2e4})])
        return (stored.path.read_bytes(),)


def _read_catalogue(file: Path) -> object:
    stored = MarketCatalogue(file)
    return stored.values(list(stored.metadata.metrics))


BOUNDARIES = (
    Boundary("document of a task", lambda: _outputs(are_json=True), in_file(_import), JSON),
    Boundary("output of a task", lambda: _outputs(are_json=False), in_file(_import)),
    Boundary("lines of a model", _lines, in_file(_import), JSON_LINES),
    Boundary("launches", lambda: (_LAUNCHES,), in_file(launch_files.read)),
    Boundary(
        "prices of types", lambda: (_PRICES,), in_file(lambda file: prices.read_files([file]))
    ),
    Boundary("catalogue of types", _catalogues, in_file(_read_catalogue)),
)
