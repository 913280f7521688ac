"""`survival` of `nephoscope cloud`: how long machines of the spot market live."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from nephoscope.cli.kit import options, output
from nephoscope.cli.kit.command import Document, Excluded, command
from nephoscope.cli.kit.options import argument, duration, flag, option, repeated
from nephoscope.core import units
from nephoscope.core.errors import UsageError
from nephoscope.core.naming import plural
from nephoscope.features.cloud.choice import CloudChoice, carried_out, opened
from nephoscope.features.cloud.command import cloud

if TYPE_CHECKING:
    from nephoscope.features.cloud.survival import GroupSurvival, SpotSurvival
    from nephoscope.measure.cloud.machine_lives import MachineLife
    from nephoscope.measure.cloud.rental import Rentals
    from nephoscope.measure.cloud.spec import RentalSpec

_BOOT_H = 0.25
"""Time to the first login and for the removal, for which the machines are rented too."""


@dataclass(frozen=True, slots=True)
class _SurvivalArguments:
    provider: str | None = argument(required=False, metavar="[PROVIDER]")
    endpoint: str = option(
        "--endpoint", "URL", "Address of the API [default: the provider's].", default=""
    )
    profile: str = option("--profile", "NAME", "Credentials, as of `cloud up`.", default="")
    region: str = option("--region", "REGION", "Only this region; to rent, where.", default="")
    zone: str = option("--zone", "ZONE", "Only this zone; to rent, where.", default="")
    type: str = option("--type", "TYPE", "Only this type; to rent, which.", default="")
    image: str = option("--image", "IMAGE", "To rent: the image.", default="")
    count: int = option("--count", options.Count(1, 1000), "To rent: how many.", default=6)
    hours: float | None = option(
        "--hours",
        options.FiniteRange(0.001, 720),
        "Rent machines of the spot market and watch them for so many hours.",
    )
    network: str = option("--network", "NAME", "To rent: network.", default="")
    login_from: str = option(
        "--login-from", "CIDR", "Network that may log in [default: this machine].", default=""
    )
    money: float | None = option(
        "--money", options.FiniteRange(0, min_open=True), "Most that all of it may cost."
    )
    currency: str = option("--currency", "CODE", "Currency of --money.", default="USD")
    jobs_s: Sequence[float] = repeated(
        "--job", duration("1 s", "365 d"), "Length of a job [default: 1h, 8h, 24h]."
    )
    price: float | None = option(
        "--price", options.FiniteRange(0, min_open=True), "Price of a machine-hour, for the jobs."
    )
    file: Path | None = option("--lives", options.PATH, "Lives that another machine noted.")
    confidence: float = options.CONFIDENCE
    dry_run: bool = flag("--dry-run", "Print what would be rented, and its price.")
    as_json: bool = options.JSON


@command(
    cloud,
    prints=Document("spot_survival", ".features.cloud.survival:SpotSurvival"),
    requests=Excluded("may rent machines"),
)
def survival(args: _SurvivalArguments) -> None:
    """Estimate how long spot machines live.

    Without --hours the machines of all rentals that ended here are analysed; with it, machines are
    rented, watched and removed first. A machine that was removed here counts as cut off.
    """
    from nephoscope.features.cloud.survival import analyse
    from nephoscope.measure.cloud import machine_lives

    if args.dry_run and args.hours is None:
        raise UsageError("Nothing is rented without --hours.", "Omit --dry-run.")
    if args.hours is not None and not _rent(args, args.hours):
        return
    lives, broken = machine_lives.read(args.file)
    left_out = {"that are not whole": broken} if broken else {}
    chosen = [life for life in lives if _is_wanted(life, args)]
    if len(chosen) < len(lives):
        left_out["that the options leave out"] = len(lives) - len(chosen)
    result = analyse(
        chosen,
        job_h=[each / 3600 for each in args.jobs_s] or (1.0, 8.0, 24.0),
        confidence=args.confidence,
        left_out=left_out,
    )
    if args.as_json:
        output.document(result)
    else:
        output.say(_text(result, args.price, args.currency))


def _is_wanted(life: MachineLife, args: _SurvivalArguments) -> bool:
    return all(
        wanted in ("", None, getattr(life, name))
        for name, wanted in (
            ("provider", args.provider),
            ("region", args.region),
            ("zone", args.zone),
            ("type", args.type),
        )
    )


def _rent(args: _SurvivalArguments, hours: float) -> bool:
    """Rents, watches and removes machines; returns whether it did, rather than only print it."""
    from nephoscope.features.cloud.spot_campaign import require_spot, watch_lives
    from nephoscope.measure.provisioning import SpendingLimit

    missing = [f"--{name}" for name in ("region", "type", "image") if not getattr(args, name)]
    if not args.provider or missing:
        what = "PROVIDER" if not args.provider else " and ".join(missing)
        raise UsageError(f"To rent machines, {what} has to be given.", "Or omit --hours.")
    rentals = opened(CloudChoice(args.provider, args.endpoint, args.profile))
    require_spot(rentals)
    spec = carried_out(rentals.checked(_spec(args, hours)))
    quote = rentals.quote(spec)
    if args.dry_run:
        _preview(rentals, spec)
        return False
    if quote is not None and args.money is None:
        raise UsageError(
            f"These machines cost up to {quote.cost(spec.hours):.2f} {quote.currency} until their "
            "time ends, and no limit is set.",
            "Add --money AMOUNT.",
        )
    limit = None if args.money is None else SpendingLimit(args.money, args.currency)
    carried_out(watch_lives(rentals, spec, seconds=3600 * hours, limit=limit, say=output.log))
    return True


def _spec(args: _SurvivalArguments, hours: float) -> RentalSpec:
    from nephoscope.features.cloud.spot_campaign import LEASE_S
    from nephoscope.measure.cloud.spec import MachineGroup, RentalSpec

    group = MachineGroup(
        "m",
        args.region,
        args.type,
        args.image,
        zone=args.zone,
        market="spot",
        count=args.count,
        network=args.network,
    )
    return RentalSpec(
        f"survival-{secrets.token_hex(4)}",
        (group,),
        hours=hours + _BOOT_H,
        lease_s=min(LEASE_S, 3600 * (hours + _BOOT_H)),
        login_from=args.login_from,
        # A machine may be taken back before its first login, which is a life too.
        contact=False,
    )


def _preview(rentals: Rentals, spec: RentalSpec) -> None:
    quote = rentals.quote(spec)
    cost = "no price" if quote is None else f"up to {quote.cost(spec.hours):.2f} {quote.currency}"
    machines = plural(sum(group.count for group in spec.groups), "machine")
    output.say(
        f"Nothing was created. {machines} of the spot market for "
        f"{units.format_duration(3600 * spec.hours)} would cost: {cost}."
    )


def _text(result: SpotSurvival, price: float | None, currency: str) -> str:
    from nephoscope.features.cloud.survival import job_sentence

    whole = result.whole
    lines = [
        f"{plural(whole.machines, 'machine')} of the spot market in {whole.machine_hours:.4g} "
        f"machine-hours: {plural(whole.interruptions, 'interruption')}. The others are cut off "
        "where they ended here.",
        output.table(
            ("machines", "n", "interrupted", "hours", "per machine-hour", "interval", "median life",
             "interval"),
            [_row(group) for group in (whole, *result.groups)],
            right=(1, 2, 3, 4, 5, 6, 7),
        ),
    ]  # fmt: skip
    if whole.steps:
        lines.append(_curve(whole, result))
    for comparison in result.comparisons:
        many = f"{plural(len(comparison.groups), comparison.level)}"
        lines.append(
            f"{many}: too few interruptions to compare."
            if comparison.p is None
            else f"{many}: "
            + ("they differ" if comparison.p < 0.05 else "no difference shows")
            + f" (log-rank test, p = {comparison.p:.2g} after Holm)."
        )
    lines += [job_sentence(job, price, currency) for job in result.jobs]
    lines += result.notes
    lines += [f"Not used: {count} lives {why}." for why, count in result.left_out.items()]
    return "\n".join(lines)


def _row(group: GroupSurvival) -> tuple[str, ...]:
    rate = group.rate
    median = ("not reached", "none")
    if group.median is not None:
        low, high = group.median.low, group.median.high
        ends = [
            "0" if low is None else f"{low:.3g}",
            "no bound" if high is None else f"{high:.3g}",
        ]
        median = (f"{group.median.value:.3g} h", f"[{', '.join(ends)}] h")
    return (
        group.name,
        str(group.machines),
        str(group.interruptions),
        f"{group.machine_hours:.4g}",
        f"{rate.value:.3g}",
        f"[{rate.low:.3g}, {rate.high:.3g}]",
        *median,
    )


def _curve(whole: GroupSurvival, result: SpotSurvival) -> str:
    steps = whole.steps
    most = 8
    chosen = [steps[round(at * (len(steps) - 1) / (most - 1))] for at in range(most)]
    rows = [
        (
            f"{step.at:.3g} h",
            str(step.at_risk),
            f"{100 * step.share:.0f} %",
            f"[{100 * step.low:.0f}, {100 * step.high:.0f}] %",
        )
        for step in dict.fromkeys(chosen)
    ]
    return output.table(("life", "at risk", "survive it", "interval"), rows, right=(0, 1, 2, 3))
