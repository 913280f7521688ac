"""What `--set PATH=VALUE` of the command line puts over a file's values."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any

from nephoscope.core.errors import PlanError


def put(values: Any, path: str, value: Any) -> None:
    """Puts `value` at a dotted path; missing mappings are made, lists are not lengthened."""
    steps = path.split(".")
    node = values
    for depth, step in enumerate(steps):
        last = depth == len(steps) - 1
        if isinstance(node, list):
            if not (step.isascii() and step.isdigit() and int(step) < len(node)):
                raise PlanError(
                    f"--set {path}: '{step}' is no position of a list of {len(node)}.",
                    "Positions count from 0: --set benchmarks.0.params.threads=2.",
                )
            if last:
                node[int(step)] = value
            else:
                node = node[int(step)]
        elif isinstance(node, MutableMapping):
            if last:
                node[step] = value
            else:
                node = node.setdefault(step, {})
        else:
            raise PlanError(
                f"--set {path}: '{'.'.join(steps[:depth])}' holds no keys.", "Shorten the path."
            )
