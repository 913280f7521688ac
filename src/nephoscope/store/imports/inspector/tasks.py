"""The tasks of the layout: which file of each is read, and by which reader."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from nephoscope.store.imports.inspector import cpu_tasks, model_tasks, service_tasks
from nephoscope.store.imports.inspector.collector import FigureCollector
from nephoscope.store.imports.inspector.facts import read_facts, read_launches
from nephoscope.store.imports.inspector.folder import TaskFolder, TypeFolder, readable
from nephoscope.store.market.records import ServerType, TypeReading

Reader = Callable[[TaskFolder, FigureCollector], None]

TASKS: Mapping[str, tuple[str, Reader]] = {
    "stressngfull": ("stdout", cpu_tasks.stress_ng_ladder),
    "stressng": ("stderr", cpu_tasks.stress_ng_method),
    "stressngsinglecore": ("stderr", cpu_tasks.stress_ng_method),
    "stressng_benchmarks": ("stdout", cpu_tasks.stress_ng_stressors),
    "stressnglongrun": ("parsed.csv", cpu_tasks.long_run),
    "stressnglongrung": ("parsed.csv", cpu_tasks.long_run),
    "geekbench": ("results.json", cpu_tasks.geekbench),
    "passmark": ("stdout", cpu_tasks.passmark),
    "openssl": ("stdout", cpu_tasks.openssl),
    "compression_text": ("stdout", cpu_tasks.compression),
    "redis": ("stdout", service_tasks.redis),
    "static_web": ("stdout", service_tasks.static_web),
    "bw_mem": ("stdout", service_tasks.memory_bandwidth),
    "membench": ("stdout", service_tasks.memory_ladder),
    "nvbandwidth": ("stdout", service_tasks.gpu_bandwidth),
    "llm": ("stdout", model_tasks.llama),
    "vllm": ("stdout", model_tasks.vllm),
}
"""Task -> the file that states its figures, and the reader of its folder."""
_PREFIXED: Mapping[str, tuple[str, Reader]] = {"pgbench_": ("stdout", service_tasks.postgres)}
FACTS = frozenset({"lscpu", "dmidecode", "nvidia_smi", "timing"})
REDUNDANT = frozenset({"lshw", "lsblk", "lsblk_topo", "lsblk_discard", "lstopo", "virtualization"})
"""Tasks whose facts others have, or that have no figures."""


def _of(task: str) -> tuple[str, Reader] | None:
    prefixed = (entry for prefix, entry in _PREFIXED.items() if task.startswith(prefix))
    return TASKS.get(task) or next(prefixed, None)


def read_type(folder: TypeFolder, root: str) -> TypeReading:
    """Returns what the files of a server type state. Files that cannot be used are named in it."""
    server = ServerType(folder.provider, folder.name, root=root, digest=folder.digest)
    reading = TypeReading(server)
    collector = FigureCollector(reading, 0)
    reading.count("files", len(folder.stamps))
    read_facts(folder.tasks, server, collector)
    collector.cpus = server.cpus or 0
    for name, task in folder.tasks.items():
        entry = _of(name)
        if entry is not None and task.has(entry[0]):
            _read(task, entry, collector)
        elif name == "timing":
            read_launches(task, server, collector)
        elif entry is None and name not in FACTS | REDUNDANT:
            known = readable(name)
            reading.not_read[known] = reading.not_read.get(known, 0) + len(task.sizes)
    return reading


def _read(task: TaskFolder, entry: tuple[str, Reader], collector: FigureCollector) -> None:
    file, reader = entry
    collector.file = f"{task.task}/{file}"
    collector.at_s = task.ended_at_s
    collector.reading.count("files read")
    if task.has_failed:
        collector.reading.count("tasks with an error")
    try:
        reader(task, collector)
    except (ValueError, TypeError, AttributeError) as error:
        text = str(error) if isinstance(error, ValueError) else "it has another form than is known"
        collector.leave_out(text)
    except OverflowError:
        collector.leave_out("the server type has too many figures")
