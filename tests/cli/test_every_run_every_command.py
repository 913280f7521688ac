"""Every kind of stored run under every command that reads runs: an answer, or one clear sentence.

The commands are those whose arguments or options take a run, or that read a whole store; a new
command that is not in CELLS fails the first test.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from tests.e2e.conftest import Done, run_inside
from tests.results import every_kind

from nephoscope import api, command_line
from nephoscope.core import errors
from nephoscope.core.errors import NephoscopeError
from nephoscope.report import report_files
from nephoscope.results import analyse_run
from nephoscope.serve import worker
from nephoscope.store import Store, StoredRun

pytestmark = pytest.mark.contradicting
"""The values are drawn without regard to each other, so that they contradict themselves."""

CELLS: dict[str, list[str]] = {
    "show": ["RUN", "RUN --full-report", "RUN --json", "RUN --journal", "RUN --journal --json"],
    "compare": [
        "RUN",
        "RUN OTHER",
        "OTHER RUN --all",
        "RUN OTHER --json",
        "RUN RUN",
        "RUN OTHER -o FOLDER/c.md",
        "RUN OTHER --interleave --budget 1s",
    ],
    "rank": ["RUN", "RUN OTHER", "RUN OTHER --json"],
    "history": [],
    "census": ["--run RUN", "--run RUN --json"],
    "cloud pick": [
        "hosts --profile FOLDER/no.ini --region all --type t --image i --hours 1 --census RUN"
    ],
    "cloud where": [
        "RUN --data 1GB@a --compute 1h@a",
        "RUN --data 1GB --compute 1h@a --json",
    ],
    "fleet": ["--run RUN"],
    "credits": ["--run RUN"],
    "launches": ["--run RUN", "--run RUN --json"],
    "export": ["RUN"],
    "verify": ["RUN", "RUN --json"],
    "runs label": ["RUN note=x"],
    "runs rm": [],
    "stop": ["RUN"],
    "simulate geo": ["facebook-1 --latency RUN"],
    "simulate elastic": ["--run RUN"],
    "network traffic": ["--run RUN"],
    "study run": ["zhuang-2012 --from RUN", "zhuang-2012 --from RUN --json"],
    "cost tariff": ["FOLDER/tariff.yaml --run RUN"],
}
"""Command -> its words on one run; RUN is of the kind, OTHER an ordinary one. `runs rm` removes
what the others read, and `history --confirm` reads the whole store: see below."""
CONFIRMED = (
    "two targets",
    "killed",
    "failed",
    "all trials excluded",
    "without trials",
    "imported hyperfine.json",
    "older layout",
    "compacted",
)
WHOLE_STORE = {
    "runs": ["", "--json"],
    "history": ["null_ns", "null_ns --json", "wall_ns", "pi_digits_per_s --forecast --back-test"],
    "census": [""],
    "verify": ["", "--json"],
    "advise": ["--set kind=web"],
    "export": ["RUNS --format jsonl", "RUNS --format parquet -o FOLDER/r.parquet"],
    "compact": ["--keep-raw 7d --dry-run", "--keep-raw 7d --dry-run --json"],
}
TARIFF = """\
unit: GB
tiers: [{price_per_gb: 1}]
classes: {a: {contracted_mbit_per_s: 9, throughput_mbit_per_s: [5, 6], gb_per_month: 1}}
"""


def commands(
    command: click.Command, path: tuple[str, ...] = ()
) -> Iterator[tuple[str, click.Command]]:
    if isinstance(command, click.Group):
        for name, inner in command.commands.items():
            yield from commands(inner, (*path, name))
    if path and not isinstance(command, click.Group):
        yield " ".join(path), command


def takes_a_run(name: str, command: click.Command) -> bool:
    sides = name == "compare"  # whose A and B are runs or files
    return sides or any(
        getattr(one.type, "kind", "") in ("run", "source") for one in command.params
    )


def test_the_table_has_every_command_that_takes_a_run() -> None:
    found = {name for name, command in commands(command_line.program) if takes_a_run(name, command)}
    assert found == CELLS.keys()


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("every-kind")
    (folder / "tariff.yaml").write_text(TARIFF)
    return folder


@pytest.fixture(scope="module")
def ids(store: Path) -> dict[str, str]:
    return every_kind.make_all(store)


def is_answer_or_sentence(done: Done) -> str:
    """What is wrong with how a command ended; '' for an answer or one sentence."""
    if re.search(r"Traceback|a defect of|KeyError|NoneType", done.out + done.err):
        return "a defect"
    if done.code in (0, 1):
        return ""
    sentences = re.findall(r"^nephoscope: ", done.err, flags=re.M)
    if done.code not in (2, 3, 4) or not sentences:
        return f"exit code {done.code}"
    return ""


@pytest.fixture(scope="module", autouse=True)
def analysed_once() -> Iterator[None]:
    """Analyses each run once: what is tested is what the commands do with the analysis."""

    def once(compute: Callable[..., Any]) -> Callable[..., Any]:
        known: dict[tuple[object, ...], Any] = {}

        def remembered(of: Any, *more: object, confidence: float | None = None) -> Any:
            run = of if isinstance(of, StoredRun) else of.run
            key = (run.id, confidence or 0.95)
            if key not in known:
                options = {} if confidence is None else {"confidence": confidence}
                try:
                    known[key] = compute(of, *more, **options)
                except NephoscopeError as error:
                    known[key] = error
            if isinstance(known[key], NephoscopeError):
                raise known[key]
            return known[key]

        return remembered

    with pytest.MonkeyPatch.context() as patch:
        for module, name in (
            (analyse_run, "build"),
            (analyse_run, "run_data"),
            (report_files, "write"),
        ):
            patch.setattr(module, name, once(getattr(module, name)))
        yield


@pytest.fixture(autouse=True)
def never_measure(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replaces what would measure: whether a plan may be measured is decided before."""
    from nephoscope.cli.kit import measuring

    def refuse(*_: object, **__: object) -> None:
        raise errors.UsageError("Measured.", "Here, nothing is.")

    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr(measuring, "executed", refuse)


@pytest.mark.parametrize("kind", every_kind.KINDS)
def test_every_command_answers_or_says_why_not(kind: str, store: Path, ids: dict[str, str]) -> None:
    wrong = []
    for name, cells in CELLS.items():
        for cell in cells:
            named = cell.replace("OTHER", ids["one benchmark"]).replace("RUN", ids[kind])
            words = [*name.split(), *named.replace("FOLDER", str(store)).split()]
            if "--store" in {option for one in command_of(name).params for option in one.opts}:
                words += ["--store", str(store)]
            done = run_inside(words)
            if reason := is_answer_or_sentence(done):
                wrong.append(f"{name} {cell}: {reason}\n{done.out[-300:]}{done.err[-600:]}")
    assert not wrong, "\n".join(wrong)


def command_of(name: str) -> click.Command:
    return dict(commands(command_line.program)).get(name) or command_line.program.commands[name]


@pytest.mark.parametrize("kind", CONFIRMED)
def test_a_run_behind_a_change_is_repeated_or_it_is_said_why_not(
    kind: str, store: Path, ids: dict[str, str]
) -> None:
    metric = "wall_ns" if kind.startswith("imported") else "null_ns"
    for words in (
        ["--confirm", ids[kind]],
        ["--confirm", ids["few trials"], "--against", ids[kind]],
    ):
        done = run_inside(["history", metric, *words, "--store", str(store)])
        assert done.code == 2, done
        assert not is_answer_or_sentence(done), done


@pytest.mark.parametrize("name", WHOLE_STORE)
def test_commands_on_a_store_of_every_kind_answer(
    name: str, store: Path, ids: dict[str, str]
) -> None:
    for cell in WHOLE_STORE[name]:
        every = " ".join(run for kind, run in ids.items() if kind != "compacted")
        words = cell.replace("RUNS", every).replace("FOLDER", str(store)).split()
        done = run_inside([*name.split(), *words, "--store", str(store)])
        assert not is_answer_or_sentence(done), f"{name} {cell}: {done}"
        assert done.code in (0, 1) or name == "verify", done


@pytest.mark.parametrize("kind", every_kind.KINDS)
def test_the_dashboard_answers_or_says_why_not(kind: str, store: Path, ids: dict[str, str]) -> None:
    run, other = ids[kind], ids["one benchmark"]
    rules = {"margin": 0.03, "confidence": 0.95, "metrics": []}
    requests: list[tuple[str, dict[str, object]]] = [
        ("result", {"run": run, "analyse": True}),
        ("report", {"run": run, "analyse": True}),
        ("journal", {"run": run}),
        ("trials", {"run": run, "offset": 0, "limit": 5}),
        ("compare", {"names": [run, other], **rules}),
        ("compare", {"names": [run], **rules}),
    ]
    for function, arguments in requests:
        answer = worker._answer(Store(store), function, arguments)
        assert answer.status < 500, (function, answer.body[:500])


@pytest.mark.parametrize("kind", every_kind.KINDS)
def test_the_python_interface_answers_or_raises_its_own_error(
    kind: str, store: Path, ids: dict[str, str]
) -> None:
    opened = api.open_store(store)
    assert opened.runs().num_rows > 0
    for call in (
        lambda: opened.run(ids[kind]).samples(),
        lambda: opened.run(ids[kind]).trials(),
        lambda: opened.run(ids[kind]).estimates(),
        lambda: opened.run(ids[kind]).findings(),
        lambda: opened.run(ids[kind]).plots(),
        lambda: opened.run(ids[kind]).document(),
        lambda: opened.compare(ids[kind], ids["one benchmark"]).table(),
        lambda: opened.compare(ids["one benchmark"], ids[kind]).table(),
        lambda: opened.compare(ids[kind]).table(),
    ):
        with contextlib.suppress(NephoscopeError):
            assert call() is not None
