"""Names injected resources from a victim's canaries, and writes down how often it is right.

A case is one aggressor at a drawn intensity and, where there is a choice, with drawn parameters, in
a lab of this machine; canaries of 50 to 100 ms run quiet, noisy, noisy, quiet. `record` measures
drawn cases, `learn` makes the references of some, `judge` names others, of another seed, without
looking at what was injected, and writes docs/explanation/naming-accuracy.md.

Whether a load took anything at all from the victim is determined from trials of its resource's own
canary that the namer does not see. Of a load that took nothing, the right name is `none`.
"""

from __future__ import annotations

import argparse
import asyncio
import datetime
import json
import math
import random
import statistics
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import _paired
from _naming_lab import LOADS, PASSES, case, draw, made

from nephoscope import catalog
from nephoscope.core.errors import NephoscopeError
from nephoscope.features.isolation import naming
from nephoscope.features.isolation.naming_references import REFERENCES
from nephoscope.stats.statistics.proportions import wilson

PAGE = _paired.ROOT / "docs" / "explanation" / "naming-accuracy.md"
MODULE = _paired.ROOT / "src/nephoscope/features/isolation/naming_references.py"


async def record(
    known: catalog.Catalog,
    count: int,
    seed: int,
    limit_s: float,
    keep: Path | None = None,
    resources: Sequence[str] = (),
    checks: int = 3,
) -> list[Any]:
    """That many cases, every resource equally often, in drawn order, until the time is over.

    keep: file to which each is added as soon as it is measured. resources: only these, else all.
    """
    rng = random.Random(seed)
    names = [name for name in LOADS if not resources or name in resources]
    wanted = [names[n % len(names)] for n in range(count)]
    rng.shuffle(wanted)
    out = []
    began = time.monotonic()
    async with made(known) as targets:
        for number, resource in enumerate(wanted):
            if time.monotonic() - began > limit_s:
                break
            params = draw(rng, resource)
            try:
                found = await case(targets, known, resource, params, checks)
            except (RuntimeError, NephoscopeError) as error:
                # A case that could not be measured is no case: it is said, and not judged.
                print(f"{number + 1}/{count} {resource}: left out: {error}", file=sys.stderr)
                continue
            out.append({"seed": seed, **found})
            if keep is not None:
                with keep.open("a") as file:
                    file.write(json.dumps(out[-1]) + "\n")
            effects = effects_of(out[-1])
            told = " ".join(f"{n}{one.value:+.2f}" for n, one in effects.items())
            print(f"{number + 1}/{count} {resource}: {told}", file=sys.stderr)
    return out


def effects_of(one: Mapping[str, Any]) -> dict[str, naming.Effect]:
    """The effects of a recorded case, by canary."""
    out = {}
    for name in one["passes"][0]:
        sides = [
            [p[name] for p, noisy in zip(one["passes"], PASSES, strict=True) if noisy is side]
            for side in (False, True)
        ]
        found = naming.effect(*sides)
        if found is not None:
            out[name] = found
    return out


FELT = 0.1
"""ln of the factor from which a victim has felt its resource's load: 10 %, twice the spread of the
quietest canaries here."""


def references_of(cases: Sequence[Mapping[str, Any]]) -> list[naming.Reference]:
    """What calibration cases teach: those that left a trace, and those of nothing.

    What neither its own victim nor a counter of the kernel's felt has no signature; kept, it would
    give noise a name.
    """
    found = [
        naming.Reference(
            one["resource"], {n: round(e.shrunk, 3) for n, e in effects_of(one).items()}
        )
        for one in cases
    ]

    def felt(one: naming.Reference) -> bool:
        counted = [v for name, v in one.effects.items() if name.startswith("kernel_")]
        return one.effects.get(one.resource, 0.0) >= FELT or max(counted, default=0.0) >= 1

    return [one for one in found if one.resource == naming.NONE or felt(one)]


def judge(
    cases: Sequence[Mapping[str, Any]],
    references: Sequence[naming.Reference],
    *,
    own_kernel: bool = False,
) -> list[tuple[str, str]]:
    """What was injected and what it was named, case by case.

    own_kernel: without the counters of a kernel that neighbours share.
    """

    def effects(one: Mapping[str, Any]) -> dict[str, naming.Effect]:
        return {
            canary: found
            for canary, found in effects_of(one).items()
            if not (own_kernel and canary.startswith("kernel_"))
        }

    return [(one["resource"], naming.name(effects(one), references).word) for one in cases]


def lost_by(one: Mapping[str, Any]) -> float | None:
    """Ln of what the load took from its resource's own canary; None if nothing for certain.

    For certain: a twentieth at least, and the noisy trials rank behind the quiet ones
    (Mann-Whitney, one-sided, 2.5 %).
    """
    from scipy.stats import mannwhitneyu

    quiet, noisy = ([math.log(value) for value in side] for side in one["own"])
    lost = statistics.median(noisy) - statistics.median(quiet)
    chance = mannwhitneyu(noisy, quiet, alternative="greater").pvalue
    return lost if lost > naming.MIN_EFFECT and chance < 0.025 else None


def is_right(one: Mapping[str, Any], word: str) -> bool:
    """Whether a case was named rightly: by what was injected, or `none` where that took nothing."""
    return word == one["resource"] or (word == naming.NONE and lost_by(one) is None)


def learn(cases: Sequence[Mapping[str, Any]]) -> str:
    """The module of references, as text."""
    date = datetime.datetime.now(datetime.UTC).date().isoformat()
    seeds = sorted({one["seed"] for one in cases})
    found = sorted(references_of(cases), key=lambda one: one.resource)
    rows = [
        " ".join(
            [one.resource.ljust(11), *(_cell(one.effects.get(name)) for name in naming.CANARIES)]
        )
        for one in found
    ]
    return "\n".join(
        [
            f'"""Signatures of known aggressors, measured on {date} (benchmarks/naming.py, seed '
            f"{', '.join(map(str, seeds))}).",
            "",
            "A row is one aggressor at a drawn intensity: ln(time noisy / time quiet) of every "
            "canary.",
            '"""',
            "",
            "from __future__ import annotations",
            "",
            "from nephoscope.features.isolation.naming import CANARIES, Reference",
            "",
            '_TABLE = """',
            *rows,
            '"""',
            "",
            "",
            "def _reference(row: str) -> Reference:",
            "    resource, *cells = row.split()",
            "    given = zip(CANARIES, cells, strict=True)",
            '    return Reference(resource, {name: float(v) for name, v in given if v != "-"})',
            "",
            "",
            "REFERENCES: tuple[Reference, ...] = tuple(map(_reference, _TABLE.split('\\n')[1:-1]))",
            "",
        ]
    )


def _cell(value: float | None) -> str:
    # Without the sign of what rounds to nothing.
    return "-" if value is None else f"{round(value, 2) + 0.0:.2f}"


def page(cases: Sequence[Mapping[str, Any]], told: Sequence[tuple[str, str]]) -> str:
    """The page of the docs: the confusion matrix, what was injected, and how."""
    date = datetime.datetime.now(datetime.UTC).date().isoformat()
    names = [name for name in [*naming.CANARIES, "none"] if any(a == name for a, _ in told)]
    words = [*names, *sorted({b for _, b in told} - set(names))]
    facts = _paired.machine()
    felt = [one["resource"] == naming.NONE or lost_by(one) is not None for one in cases]
    right = [is_right(one, word) for one, (_, word) in zip(cases, told, strict=True)]
    guests = judge(cases, REFERENCES, own_kernel=True)
    as_guest = [is_right(one, word) for one, (_, word) in zip(cases, guests, strict=True)]

    def row(name: str) -> str:
        own = [f for f, (a, _) in zip(felt, told, strict=True) if a == name]
        took = "" if name == naming.NONE else f"{sum(own)} of {len(own)}"
        counts = (str(sum(t == (name, b) for t in told) or "") for b in words)
        return f"| {name} | {took} | " + " | ".join(counts) + " |"

    programs = {one["resource"]: one for one in cases}
    hosts = {"near": "the victim's own CPU", "other": "another CPU of the same machine"}
    injected_rows = [
        f"| {name} | `{programs[name]['load']}` | {hosts[programs[name]['host']]} | {SEEN[name]} |"
        for name in names
    ]
    seeds = ", ".join(str(seed) for seed in sorted({one["seed"] for one in cases}))
    return "\n".join(
        [
            "# Accuracy of resource identification",
            "",
            f"Measured on {date} by `benchmarks/naming.py` (seed {seeds}): "
            f"{_share(right)} injected cases were identified correctly (Wilson, 95 %). "
            "*Unclear* counts as wrong. Separate trials of the resource's own canary, which the "
            "identification does not use, determine whether a load had an effect. For a load "
            "without an effect the correct name is *none*. Of the cases with an effect or without "
            "any load, "
            f"{_share([r for r, f in zip(right, felt, strict=True) if f])} were identified "
            "correctly.",
            f"The machine: {facts['cpu']}, {facts['cpus']} CPUs, Linux {facts['kernel']}.",
            "",
            "Rows: the injected load, and the number of cases in which it had an effect. Columns: "
            "the identified resource.",
            "",
            "| | had an effect | " + " | ".join(words) + " |",
            "|---" * (len(words) + 2) + "|",
            *(row(name) for name in names),
            "",
            "This victim shares its kernel with its neighbours and reads the kernel's counters "
            "during the trials. A guest with its own kernel has only its canaries: of these cases "
            f"{_share(as_guest)} would be identified correctly there, and "
            f"{_share([word == naming.UNCLEAR for _, word in guests])} would be *unclear*: if "
            "the measured canaries cannot distinguish two resources, the identification names "
            "neither.",
            "",
            "## Injected loads and where they are detectable",
            "A case is one program at an intensity drawn from 50 to 100 %, with drawn parameters. "
            "The identification uses only the losses of the victim's canaries.",
            "",
            "| Resource | Program | Placed on | Detectable |",
            "|---|---|---|---|",
            *injected_rows,
            "",
            "The references were measured with other seeds, on trials that are not part of this "
            "page. They are valid for this machine. On another machine, or with fewer canaries, "
            "expect *unclear* more often. Two resources that are loaded at once are not "
            "distinguished.",
            "",
        ]
    )


def _share(right: Sequence[bool]) -> str:
    share = wilson(sum(right), len(right))
    low, high = 100 * (share.low or 0), 100 * (share.high or 1)
    return f"{sum(right)} of {len(right)} ({100 * share.value:.1f} % [{low:.1f}, {high:.1f}])"


SEEN: Mapping[str, str] = {
    "cpu": "on the same CPU or, behind a hypervisor, the same physical one",
    "memory": "under the same memory controller, also from another CPU",
    "cache": "on CPUs that share the last-level cache",
    "disk_read": "on the same disk",
    "disk_write": "on the same disk",
    "fsync": "on the same disk or journal",
    "net_send": "on the same link, in this direction",
    "net_receive": "on the same link, in this direction",
    "packets": "on the same link or packet-processing CPU",
    "switches": "on the same CPU",
    "none": "nowhere: it does nothing",
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("verb", choices=["record", "learn", "judge"])
    parser.add_argument("--file", type=Path, required=True, help="recorded cases (JSON lines)")
    parser.add_argument("--count", type=int, default=33)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--limit", type=float, default=300.0, help="seconds")
    parser.add_argument("--write", action="store_true", help="write the references, or the page")
    args = parser.parse_args()
    if args.verb == "record":
        found = asyncio.run(record(catalog.load(), args.count, args.seed, args.limit, args.file))
        return 0 if found else 1
    cases = [json.loads(line) for line in args.file.read_text().splitlines()]
    if args.verb == "learn":
        text = learn(cases)
        if args.write:
            MODULE.write_text(text)
        else:
            print(text)
        return 0
    told = judge(cases, REFERENCES)
    right = [is_right(one, word) for one, (_, word) in zip(cases, told, strict=True)]
    print(f"{_share(right)} right")
    for number, one in enumerate(cases):
        if told[number][0] != told[number][1]:
            word, lost = "right" if right[number] else "WRONG", lost_by(one)
            lost_text = "nothing for certain" if lost is None else f"{100 * math.expm1(lost):.0f} %"
            print(f"  {number}: {told[number][0]} ({lost_text}) named {told[number][1]}: {word}")
    if args.write:
        PAGE.write_text(page(cases, told))
    return 0 if sum(right) / len(right) >= 0.9 else 1


if __name__ == "__main__":
    sys.exit(main())
