"""Executes the notebook of the documentation, and turns it into a page.

usage: notebook.py              executes docs/how-to/notebook.ipynb and writes its outputs into it

Only what its cells need: no Jupyter. A cell's outputs are what it prints and the value of its last
expression, as text and, where the value has it, as HTML. Each path is relative to a folder in which
`store` is a store with the same run twice (that of tests/golden/stored_run).
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
NOTEBOOK = ROOT / "docs" / "how-to" / "notebook.ipynb"
STORED = ROOT / "tests" / "golden" / "stored_run" / "runs"


@contextlib.contextmanager
def folder_with_store() -> Iterator[None]:
    """Makes a folder with the store that the cells read the current one."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        (stored,) = STORED.iterdir()
        for name in (stored.name, re.sub(r"-(\d{6})-", "-235959-", stored.name)):
            shutil.copytree(stored, Path(folder, "store", "runs", name))
        os.chdir(folder)
        try:
            yield
        finally:
            os.chdir(before)


def outputs_of(source: str, names: dict[str, Any]) -> list[dict[str, Any]]:
    """Executes a cell and returns its outputs in the format of notebooks."""
    tree = ast.parse(source)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed = io.StringIO()
    value = None
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, "cell", "exec"), names)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), "cell", "eval"), names)
    outputs: list[dict[str, Any]] = []
    if text := printed.getvalue():
        outputs.append({"output_type": "stream", "name": "stdout", "text": _lines(text)})
    if value is not None:
        data = {"text/plain": _lines(repr(value))}
        if hasattr(value, "_repr_html_"):
            data = {"text/html": _lines(value._repr_html_()), **data}
        result = {"data": data, "execution_count": None, "metadata": {}}
        outputs.append({"output_type": "execute_result", **result})
    return outputs


def executed(notebook: dict[str, Any]) -> dict[str, Any]:
    """Returns a notebook with the outputs that its cells have now."""
    names: dict[str, Any] = {}
    cells = []
    with folder_with_store():
        for cell in notebook["cells"]:
            if cell["cell_type"] == "code":
                cell = {**cell, "outputs": outputs_of("".join(cell["source"]), names)}
            cells.append(cell)
    return {**notebook, "cells": cells}


def as_markdown(notebook: dict[str, Any]) -> str:
    """Returns a notebook as a page in Markdown."""
    parts = []
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
            continue
        parts.append(f"```python\n{source}\n```")
        for output in cell["outputs"]:
            data = output.get("data", {})
            if "text/html" in data:
                parts.append(f"<div>{''.join(data['text/html'])}</div>")
            else:
                text = "".join(output.get("text", data.get("text/plain", "")))
                parts.append(f"```text\n{text.rstrip()}\n```")
    return "\n\n".join(parts) + "\n"


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def main() -> int:
    """Executes the notebook and writes it again."""
    notebook = executed(json.loads(NOTEBOOK.read_text(encoding="utf-8")))
    NOTEBOOK.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
