"""Facts of a machine: lscpu, dmidecode, nvidia-smi, and the moments of its launches."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Mapping
from typing import Any

from nephoscope.core.naming import clean
from nephoscope.store.imports.inspector.collector import FigureCollector
from nephoscope.store.imports.inspector.folder import TaskFolder, readable
from nephoscope.store.imports.moments import moment_s
from nephoscope.store.imports.rows import mapping, mappings
from nephoscope.store.market.records import MOMENTS, PublishedLaunch, ServerType

_CACHE = re.compile(r"([0-9.]+) ?([KMG]?)i?B\b")
_SCALE = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
_GPU = re.compile(r"<gpu id=.*?</gpu>", re.DOTALL)
_PRODUCT = re.compile(r"<product_name>([^<]{1,100})</product_name>")
_FRAME_BUFFER = re.compile(r"<fb_memory_usage>\s*<total>(\d{1,12}) MiB</total>")
_KERNEL_MEMORY = re.compile(r"^\s+totalram: (\d{1,18})$", re.MULTILINE)
_PASSMARK_MEMORY = re.compile(r"^  Memory: (\d{1,12})\s*$", re.MULTILINE)


def read_facts(tasks: Mapping[str, TaskFolder], server: ServerType, out: FigureCollector) -> None:
    """Fills in the facts of a type; what cannot be read is left out with its reason."""
    for name, file, reader in _READERS:
        task = tasks.get(name)
        if task is None or not task.has(file):
            continue
        out.file = f"{name}/{file}"
        out.reading.count("files read")
        try:
            reader(task, server)
        except ValueError as error:
            out.leave_out(str(error))
    for name, file, source, pattern, shift in _MEMORY_OF_FIGURES:
        task = tasks.get(name)
        if server.memory_bytes is None and task is not None and task.has(file):
            # Their own readers name what is wrong with these files.
            with contextlib.suppress(ValueError):
                if match := pattern.search(task.text(file)):
                    server.memory_bytes, server.memory_source = int(match[1]) << shift, source


def _lscpu(task: TaskFolder, server: ServerType) -> None:
    facts = {
        str(entry.get("field")).rstrip(":"): entry.get("data")
        for entry in mappings(mapping(task.json(), "stdout").get("lscpu"), "lscpu")
    }
    server.architecture = _text(facts.get("Architecture"))
    server.cpus = _count(facts.get("CPU(s)"))
    server.threads_per_core = _count(facts.get("Thread(s) per core"))
    server.cpu_model = _text(facts.get("Model name"))
    server.hypervisor = _text(facts.get("Hypervisor vendor"))
    if match := _CACHE.search(str(facts.get("L3 cache") or facts.get("L3") or "")):
        server.l3_bytes = int(float(match[1]) * _SCALE[match[2]])


def _dmidecode(task: TaskFolder, server: ServerType) -> None:
    total = 0
    for section in mappings(task.json("parsed.json"), "parsed.json"):
        values = section.get("props")
        if section.get("name") == "Memory Device" and isinstance(values, dict):
            size = values.get("Size")
            if values.get("Size:unit") == "B" and isinstance(size, int | float) and size > 0:
                total += int(size)
    if total:
        server.memory_bytes, server.memory_source = total, "smbios"


def _nvidia_smi(task: TaskFolder, server: ServerType) -> None:
    gpus = _GPU.findall(task.text())
    names = [match[1] for each in gpus if (match := _PRODUCT.search(each))]
    memory = [int(match[1]) << 20 for each in gpus if (match := _FRAME_BUFFER.search(each))]
    server.gpus = len(gpus)
    server.gpu_model = _text(names[0]) if names else ""
    server.gpu_memory_bytes = sum(memory) or None


_READERS = (
    ("lscpu", "stdout", _lscpu),
    ("dmidecode", "parsed.json", _dmidecode),
    ("nvidia_smi", "stdout", _nvidia_smi),
)
_MEMORY_OF_FIGURES = (
    ("stressng", "stderr", "kernel", _KERNEL_MEMORY, 0),
    ("passmark", "stdout", "passmark", _PASSMARK_MEMORY, 20),
)
"""Files with figures that state the memory, too: in bytes shifted by so many bits."""


def _text(value: Any) -> str:
    text = clean(value)[:100] if isinstance(value, str) else ""
    return "" if text == "-" else text


def _count(value: Any) -> int | None:
    text = str(value)
    return int(text) if text.isdecimal() and 0 < int(text[:9]) < 100_000 else None


def read_launches(task: TaskFolder, server: ServerType, out: FigureCollector) -> None:
    """Adds the launches of a type: TASK/RUN/MOMENT, each a file with one time."""
    runs: dict[str, dict[str, float]] = {}
    for name in task.sizes:
        run, slash, moment = name.partition("/")
        if not slash or moment not in MOMENTS:
            continue
        out.file = f"{task.task}/{readable(name)}"
        out.reading.count("files read")
        try:
            at = moment_s(task.text(name).strip())
            if at is None or at <= 0:
                raise ValueError("it is no time")
        except ValueError as error:
            out.leave_out(str(error))
            continue
        runs.setdefault(readable(run), {})[moment] = at
    out.reading.launches += [
        PublishedLaunch(server.provider, server.name, run, moments)
        for run, moments in sorted(runs.items())
    ]
