"""`nephoscope isolate`: what does a neighbour take away, of which resource, does it come back?"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from nephoscope.commands import options, output
from nephoscope.errors import UsageError
from nephoscope.isolation import text as isolation_text

if TYPE_CHECKING:
    from nephoscope.plans import Plan, Target
    from nephoscope.store import Store

ROLES = ("victim", "aggressor", "server")


def run(
    victims: Sequence[str],
    *,
    aggressors: Sequence[str],
    intensity: str | None,
    neighbours: int,
    targets: Sequence[str],
    placement: str,
    a_a: bool,
    quick: bool,
    dry_run: bool,
    budget: str | None,
    seed: int | None,
    store: Path | None,
    as_json: bool,
    fresh: bool,
) -> int:
    """Measures victims beside neighbours and prints the matrix; returns the exit code.

    targets: `ROLE=T` or `T`, else a lab of its own. dry_run: prints what would be done instead.
    """
    seconds = options.budget_s(budget)
    strengths = _intensities(intensity)
    from nephoscope.isolation import plan as isolation_plan

    request = isolation_plan.IsolationRequest(
        victims=tuple(victims),
        aggressors=tuple(aggressors),
        intensities=strengths,
        neighbours=neighbours,
        placement=placement,
        targets=_targets(targets),
        a_a=a_a,
        quick=quick,
        budget_s=seconds,
        seed=seed,
    )
    result = isolation_plan.plan_isolation(request)
    for warning in result.warnings:
        output.log(f"nephoscope: {output.one_line(warning)}")
    from nephoscope.store import Store

    if dry_run:
        return _preview(result.plan, Store(store), as_json)
    if not request.targets:
        from nephoscope.lab import needs

        needs.require(f"nephoscope isolate {' '.join(victims)}")
    from nephoscope.commands import measuring

    run = measuring.executed(result.plan, Store(store), fresh=fresh)
    return measuring.present(run, as_json=as_json, text_of=isolation_text.text)


def _intensities(text: str | None) -> tuple[float, ...]:
    """Ratios of `--intensity 0.25,0.5` or `25%,50%`."""
    if text is None:
        return ()
    from nephoscope.units import parse_ratio

    try:
        return tuple(parse_ratio(part) for part in text.split(","))
    except UsageError as error:
        raise UsageError(
            f"--intensity: {error.message}", "Use a list such as 0.25,0.5,1 or 25%,50%."
        ) from None


def _targets(texts: Sequence[str]) -> tuple[tuple[str, Target], ...]:
    """(role, target) of each `--target`; without a word the first is the victim, others are not."""
    from nephoscope.targets.kinds import parse

    targets = []
    for number, text in enumerate(texts):
        role, equals, rest = text.partition("=")
        if not equals:
            role, rest = ROLES[0] if number == 0 else ROLES[1], text
        if role not in ROLES:
            raise UsageError(
                f"--target: '{role}' is not a role.",
                f"Use {', '.join(f'{word}=TARGET' for word in ROLES)}.",
            )
        targets.append((role, parse(rest)))
    return tuple(targets)


def _preview(plan: Plan, store: Store, as_json: bool) -> int:
    from nephoscope import catalog, plans
    from nephoscope.commands import dry_run as preview
    from nephoscope.results.past import past

    known = catalog.load()
    settings = plans.expand(plan, known)
    found = plans.estimate(plan, settings, known, past(store))
    return preview.present(plan, settings, found, known, store, as_json=as_json)
