"""A tariff for transfers by size and throughput, beside the flat one; what a cheat gains.

The price of a volume S that was transferred at throughput T is

    P = k * phi(T) * sum over tiers of S_tier * p_tier,   phi = min(1, max(phi_min, (T / T*)^beta))

T* is the throughput that the client class has contracted. The price rises with S and with T and is
bounded; beta = 0 is the flat tariff. The factor k makes the revenue over the measured throughputs
equal to that of the flat tariff. The throughput of a billing window is the harmonic mean weighted
by volume: all bytes over all time.

Khurshid 2009, section 6, suggests a price by size and throughput, and leaves its form and the
conflict of interests open: both are proposals of this project.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from pydantic import AfterValidator, Field

from nephoscope.catalog import instruments
from nephoscope.core.errors import UsageError
from nephoscope.core.model import Estimate
from nephoscope.core.reading import recordfile
from nephoscope.core.reading.fields import Count, Part, Ratio, Record
from nephoscope.core.records import dataclass
from nephoscope.features.cost.price_records import Currency
from nephoscope.features.cost.quantities import Positive
from nephoscope.features.cost.tiers import GB_BYTES, Gigabyte, Tiers, price_of
from nephoscope.results import names
from nephoscope.stats.statistics.bootstrap import interval_of_draws
from nephoscope.stats.statistics.values import Array
from nephoscope.store import StoredRun, query

RESAMPLES = 9_999
_TERABYTE = 1000.0


def _flat_or_not(exponent: float) -> float:
    if 0 < exponent < 0.01:
        raise ValueError(f"{exponent:g} changes no price. Use 0 for the flat tariff.")
    return exponent


class Discount(Record):
    """Dependence of the price on throughput."""

    exponent: Annotated[float, Field(ge=0, le=10), AfterValidator(_flat_or_not)] = Field(
        default=0.5, description="beta; 0 is the flat tariff."
    )
    minimum_ratio: Part = Field(default=0.5, description="phi_min, the lowest share of the price.")


class ClientClass(Record):
    """Clients that are alike. Throughputs are measured values of whole transfers, in Mbit/s."""

    contracted_mbit_per_s: Positive = Field(description="T*, the contracted throughput.")
    throughput_mbit_per_s: Annotated[tuple[Positive, ...], Field(min_length=1)] | None = Field(
        default=None,
        description="Measured throughputs of transfers of equal size; `--run` takes those of the "
        "target of the class's name.",
    )
    gb_per_month: Positive = Field(description="Volume of a client in a month.")
    clients: Annotated[Count, Field(gt=0)] = Field(default=1, description="Number of clients.")


class Receipts(Record):
    """Rules by which a throughput counts."""

    tolerance: Ratio = Field(
        default=0.05, description="Difference of both ends' receipts up to which they count."
    )
    small_object_share: Part = Field(
        default=0.1, description="Share of the volume that a cheat sends as small objects."
    )


class TariffFile(Record):
    """A flat tariff, its discount by throughput, and the clients."""

    version: Literal[1] = Field(default=1, description="Version of this format.")
    currency: Currency = "USD"
    unit: Gigabyte = Field(description="Meaning of a gigabyte: GB (10^9 bytes) or GiB (2^30).")
    tiers: Tiers = Field(description="Prices by volume of a month.")
    discount: Discount = Field(default=Discount(), description="Discount by throughput.")
    receipts: Receipts = Field(default=Receipts(), description="Rules of receipts.")
    classes: Annotated[dict[str, ClientClass], Field(min_length=1, max_length=1000)] = Field(
        description="Clients by name of their class."
    )


@dataclass(frozen=True, slots=True)
class ClassBill:
    """The bill of a client of a class for a month. throughput_mbit_per_s: volume-weighted harmonic
    mean. phi: share of the price at that throughput. flat, by_throughput: bills before, calibrated:
    after the calibration of revenue. change_ratio: calibrated over flat, minus 1."""

    name: str
    clients: int
    volume_gb: float
    contracted_mbit_per_s: float
    throughput_mbit_per_s: Estimate
    phi: Estimate
    flat: float
    by_throughput: Estimate
    calibrated: Estimate
    change_ratio: Estimate


@dataclass(frozen=True, slots=True)
class Cheat:
    """Gain of a cheat, relative to the honest bill of the class, under a receipt rule.

    gain_ratio: what a client saves, or what a provider takes too much. by: client or provider.
    """

    cheat: str
    by: str
    client_class: str
    rule: str
    gain_ratio: float


@dataclass(frozen=True, slots=True)
class TariffAnalysis:
    """The tariff and the bills of its classes. calibration: k, by which all prices rise so that the
    revenue is that of the flat tariff. ten_terabytes: price of 10 TB by the flat tariff, of 10,000
    and of 10,240 gigabytes."""

    currency: str
    unit: str
    exponent: float
    minimum_ratio: float
    calibration: Estimate
    revenue: float
    bills: tuple[ClassBill, ...]
    cheats: tuple[Cheat, ...]
    ten_terabytes: tuple[float, float]
    notes: tuple[str, ...] = ()


def phi(throughput: Array, contracted: Array | float, discount: Discount) -> Array:
    """Share of the price that is paid at a throughput, from minimum_ratio to 1."""
    with np.errstate(over="ignore"):
        relative: Array = (throughput / contracted) ** discount.exponent
    return np.clip(relative, discount.minimum_ratio, 1.0)


def harmonic_mean(throughputs: Array) -> Array:
    """Throughput of transfers of equal size together, along the last axis: bytes over time."""
    mean: Array = 1 / (1 / throughputs).mean(axis=-1)
    return mean


def read(file: Path, run: StoredRun | None = None) -> TariffAnalysis:
    """Returns the bills of the classes in a file. run: with throughputs of targets of their names.

    Raises PlanError, and UsageError for a class without throughputs.
    """
    tariff = recordfile.load(file, TariffFile, "tariff")
    measured = {} if run is None else _goodputs(run)
    transfers = {
        name: tuple(measured.get(name, ())) or client_class.throughput_mbit_per_s or ()
        for name, client_class in tariff.classes.items()
    }
    missing = [name for name, values in transfers.items() if not values]
    if missing:
        raise UsageError(
            f"{file}: classes.{missing[0]}: there are no throughputs.",
            "Add throughput_mbit_per_s, or use --run with a run of net.throughput whose targets "
            "have the names of the classes.",
        )
    return analyse(tariff, transfers)


def _goodputs(run: StoredRun) -> dict[str, list[float]]:
    """Goodput of each valid trial of net.throughput by target, in Mbit/s."""
    goodputs: dict[str, list[float]] = {}
    for row in query.trial_medians(run):
        if (row.benchmark, row.metric) == (instruments.NET_THROUGHPUT, "goodput_bytes_per_s"):
            goodputs.setdefault(row.target, []).append(row.value * 8 / 1e6)
    return {target: values for target, values in goodputs.items() if min(values) > 0}


def analyse(
    tariff: TariffFile, transfers: Mapping[str, Sequence[float]], resamples: int = RESAMPLES
) -> TariffAnalysis:
    """Returns the bills, the calibration and the gains of cheats.

    transfers: throughputs by class, in Mbit/s. Intervals are percentiles over resamples of them.
    """
    every = list(tariff.classes.values())
    counts = {name: len(values) for name, values in transfers.items()}
    values = np.array([harmonic_mean(np.array(transfers[name])) for name in tariff.classes])
    resampled = [_resampled(name, transfers[name], resamples) for name in tariff.classes]
    drawn = np.stack(resampled, axis=-1)
    flat = np.array([price_of(client_class.gb_per_month, tariff.tiers) for client_class in every])
    clients = np.array([client_class.clients for client_class in every])
    contracted = np.array([client_class.contracted_mbit_per_s for client_class in every])
    shares, drawn_shares = (phi(each, contracted, tariff.discount) for each in (values, drawn))
    revenue = float(flat @ clients)
    factor, drawn_factor = (
        revenue / (each @ (flat * clients)) if revenue else np.ones(each.shape[:-1])
        for each in (shares, drawn_shares)
    )
    bills = []
    for index, (name, client) in enumerate(tariff.classes.items()):
        n = counts[name]
        own, own_drawn = shares[index], drawn_shares[:, index]
        ratio, drawn_ratio = factor * own, drawn_factor * own_drawn
        bills.append(
            ClassBill(
                name,
                client.clients,
                client.gb_per_month,
                client.contracted_mbit_per_s,
                _estimate(values[index], drawn[:, index], n, "Mbit/s"),
                _estimate(own, own_drawn, n, "none"),
                float(flat[index]),
                _estimate(flat[index] * own, flat[index] * own_drawn, n, tariff.currency),
                _estimate(flat[index] * ratio, flat[index] * drawn_ratio, n, tariff.currency),
                _estimate(ratio - 1, drawn_ratio - 1, n, "ratio"),
            )
        )
    return TariffAnalysis(
        tariff.currency,
        tariff.unit,
        tariff.discount.exponent,
        tariff.discount.minimum_ratio,
        _estimate(factor, drawn_factor, min(counts.values()), "none"),
        revenue,
        tuple(bills),
        tuple(
            cheat
            for name, own, value in zip(tariff.classes, every, values, strict=True)
            for cheat in _cheats(name, own, float(value), tariff)
        ),
        (price_of(10 * _TERABYTE, tariff.tiers), price_of(10 * 1024.0, tariff.tiers)),
        tuple(_notes(tariff, counts)),
    )


def _resampled(name: str, transfers: Sequence[float], resamples: int) -> Array:
    """Harmonic means of resamples of the measured transfers."""
    measured = np.array(transfers)
    rng = np.random.default_rng(names.seed_of("tariff", name))
    picks = rng.integers(0, measured.size, (resamples, measured.size))
    return harmonic_mean(measured[picks])


def _estimate(value: Array | float, drawn: Array, n: int, unit: str) -> Estimate:
    point = float(value)
    if n < 2 or float(np.ptp(drawn)) == 0:
        note = "" if n > 1 else "n = 1: an interval needs 2 transfers."
        return Estimate(point, None, None, 0.95, n, unit, "by formula", note)
    low, high = interval_of_draws(drawn, point, 0.95)
    method = f"by formula; percentile bootstrap over transfers, {drawn.size} resamples"
    return Estimate(point, low, high, 0.95, n, unit, method)


RULES = (
    "report of the client",
    "report of the provider",
    "both receipts",
    "both receipts, limited transfers excluded",
    "both receipts, limited transfers and small objects excluded",
)
"""Whose throughput counts. Under `both receipts` it is the mean of both ends' receipts if these
agree within the tolerance, else the full price is due. Limited transfers are those that the receive
window or the application held back, by TCP's own statistics; what is excluded has no part in T."""


def _cheats(name: str, client: ClientClass, honest: float, tariff: TariffFile) -> Sequence[Cheat]:
    """Gains by rule: a client understates or slows down its transfers or sends small objects, the
    provider overstates."""
    slack = 1 - tariff.receipts.tolerance / 2

    def share(throughput: float) -> float:
        return float(phi(np.array(throughput), client.contracted_mbit_per_s, tariff.discount))

    due, least = share(honest), tariff.discount.minimum_ratio
    if tariff.discount.exponent == 0:
        least = 1.0
    small = tariff.receipts.small_object_share
    slow = honest
    if least < 1:
        # Objects of a round trip each: as slow as it takes to pay the minimum for them.
        slowest = max(1e-9, least ** (1 / tariff.discount.exponent))
        slow = client.contracted_mbit_per_s * slowest
    with_small = share(1 / (small / min(slow, honest) + (1 - small) / honest))
    agreed_low, agreed_high = share(honest * slack), share(honest / slack)
    gains = {
        ("understate the throughput", "client"): (least, due, agreed_low, agreed_low, agreed_low),
        ("receive slowly", "client"): (least, least, least, due, due),
        ("send small objects", "client"): (least, with_small, with_small, with_small, due),
        ("overstate the throughput", "provider"): (due, 1.0, agreed_high, agreed_high, agreed_high),
    }
    return [
        Cheat(cheat, by, name, rule, abs(paid / due - 1))
        for (cheat, by), bills in gains.items()
        for rule, paid in zip(RULES, bills, strict=True)
    ]


def _notes(tariff: TariffFile, counts: Mapping[str, int]) -> Sequence[str]:
    gigabyte = f"A gigabyte is {GB_BYTES[tariff.unit]:,.0f} bytes here."
    single = [name for name, count in counts.items() if count < 2]
    more = [f"One transfer only, so no interval: {', '.join(single)}."] if single else []
    return [gigabyte, "Transfers of a class are taken as equal in size and independent.", *more]
