"""Files of applications, and the answer to them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from nephoscope.features.sizing import application
from nephoscope.features.sizing.records import SizeAnalysis
from nephoscope.features.sizing.result import analyse

SHOP: dict[str, Any] = {
    "application": "shop",
    "demand": 900,
    "objective": "p99 < 50ms",
    "regions": {"eu": {}},
    "types": {"a/one": {"capacity_per_s": 400, "spread": "3%", "price_per_h": 0.1}},
}


def shop(**changes: Any) -> dict[str, Any]:
    """Returns the shop with other keys; a key that is None is left out."""
    return {key: value for key, value in {**SHOP, **changes}.items() if value is not None}


def answer(folder: Path, values: dict[str, Any]) -> SizeAnalysis:
    """Returns the sizes of an application."""
    file = folder / "app.yaml"
    file.write_text(yaml.safe_dump(values, sort_keys=False))
    return analyse(application.load(file, folder / "store"))


def one(**changes: Any) -> dict[str, Any]:
    """Returns the types of the shop with other keys of its only one."""
    own = {**SHOP["types"]["a/one"], **changes}
    return {"a/one": {key: value for key, value in own.items() if value is not None}}
