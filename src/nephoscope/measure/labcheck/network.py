"""Checks of links: rate, delay, jitter, loss, duplication and ingress, from host to host."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from nephoscope.catalog import instruments
from nephoscope.core.errors import RunFailed
from nephoscope.core.model import Estimate, Sample
from nephoscope.measure.lab.handle import Lab
from nephoscope.measure.lab.limits import cgroups
from nephoscope.measure.lab.topology import LinkSpec
from nephoscope.measure.labcheck.frame import Check, CheckMeasurement
from nephoscope.measure.labcheck.measuring import TIMEOUT_S, mean, open_hosts, require_success
from nephoscope.measure.targets import session
from nephoscope.measure.targets.base import TargetTrial
from nephoscope.stats.statistics.estimates import rank_bounds
from nephoscope.stats.statistics.proportions import wilson

WAYS = ("up", "down")

_ETHERNET_BYTES, _IP_BYTES, _TCP_BYTES = 14, 20, 32
"""Headers of a segment as a queueing discipline counts them: no checksum, no gap; TCP's with the
time stamps that Linux sends."""

_PACKETS = 10_000
_PACKETS_PER_S = 4_000.0
_NEAR, _FAR = "a", "b"


def tcp_share(mtu_bytes: int = 1500) -> float:
    """Payload's share of what a rate limit counts of a TCP stream of full segments."""
    payload = mtu_bytes - _IP_BYTES - _TCP_BYTES
    return payload / (mtu_bytes + _ETHERNET_BYTES)


def rate_check(bits_per_s: float, mtu_bytes: int = 1500) -> Check:
    """A rate, both ways: TCP goodput with its headers added."""

    async def measure(lab: Lab, check: Check) -> CheckMeasurement:
        seen = [await _goodput(lab, way, mtu_bytes) for way in WAYS]
        return _worst(check, dict(zip(WAYS, seen, strict=True)))

    return Check(
        id=f"link.rate-{bits_per_s / 1e6:g}",
        mechanism="HTB",
        what=f"TCP through a link of {bits_per_s / 1e6:g} Mbit/s, headers added",
        set=bits_per_s,
        unit="bits_per_s",
        low=bits_per_s * 0.97,
        high=bits_per_s * 1.03,
        how=f"net.throughput, one stream each way, 2 s; goodput over {tcp_share(mtu_bytes):.4f}, "
        f"payload's share of a segment of {mtu_bytes} bytes and its Ethernet header. 3 %: the "
        "burst of the limit, and what the stream loses while it finds its rate.",
        topology=_linked(rate=_text(bits_per_s), mtu=mtu_bytes),
        measure=measure,
    )


def ingress_check(bits_per_s: float, mtu_bytes: int = 1500) -> Check:
    """A limit on what a host takes in: TCP goodput toward it with its headers added."""

    async def measure(lab: Lab, check: Check) -> CheckMeasurement:
        return await _goodput(lab, "down", mtu_bytes)

    return Check(
        id=f"link.ingress-{bits_per_s / 1e6:g}",
        mechanism="IFB and HTB",
        what=f"TCP toward a host that takes in {bits_per_s / 1e6:g} Mbit/s, headers added",
        set=bits_per_s,
        unit="bits_per_s",
        low=bits_per_s * 0.97,
        high=bits_per_s * 1.03,
        how="net.throughput toward the first end, one stream, 2 s; otherwise as a rate.",
        topology=_linked(ingress=_text(bits_per_s), mtu=mtu_bytes),
        measure=measure,
    )


def delay_check(delay_s: float) -> Check:
    """A delay, each way: the median of small datagrams on one clock."""
    wanted_ns = delay_s * 1e9
    # What is added by two programs waking up is far less on a free CPU.
    bound_ns = max(0.5e6, wanted_ns * 0.01)

    async def measure(lab: Lab, check: Check) -> CheckMeasurement:
        trial = await _datagrams(lab, per_s=200.0, packets=400)
        return _worst(check, {way: _median(trial, "delay_ns", way) for way in WAYS})

    return Check(
        id=f"link.delay-{delay_s * 1e3:g}",
        mechanism="delay",
        what=f"one way of a link with a delay of {delay_s * 1e3:g} ms, median",
        set=wanted_ns,
        unit="ns",
        low=wanted_ns - bound_ns,
        high=wanted_ns + bound_ns,
        how="net.rtt, 400 datagrams there and back at 200 a second on one clock; the worse of "
        "the two ways. 0.5 ms or 1 %: what it is promised to keep.",
        topology=_linked(delay=_ms(delay_s)),
        measure=measure,
    )


def jitter_check(delay_s: float, jitter_s: float) -> Check:
    """A jitter, each way: half the width of the even spread of delays."""
    # Datagrams lie further apart than their delays differ: none can overtake or hold up another.
    per_s = min(200.0, 1 / (2.2 * jitter_s))
    packets = max(300, min(1200, round(8 * per_s)))

    async def measure(lab: Lab, check: Check) -> CheckMeasurement:
        trial = await _datagrams(lab, per_s=per_s, packets=packets)
        return _worst(check, {way: _half_width(trial, way) for way in WAYS})

    return Check(
        id=f"link.jitter-{jitter_s * 1e3:g}",
        mechanism="jitter",
        what=f"spread of {delay_s * 1e3:g} ms ± {jitter_s * 1e3:g} ms, one way",
        set=jitter_s * 1e9,
        unit="ns",
        low=jitter_s * 0.9e9,
        high=jitter_s * 1.1e9,
        how=f"net.rtt, {packets} datagrams at {per_s:.0f} a second; half the width of an even "
        "spread, from its 5th and 95th percentile; the worse of the two ways. 10 %: what it is "
        "promised to keep, more than five standard errors.",
        topology=_linked(delay=_ms(delay_s), jitter=_ms(jitter_s)),
        measure=measure,
    )


def loss_check(ratio: float, delay_s: float | None = None) -> Check:
    """A loss, on its way: the share of 10,000 datagrams that did not arrive."""

    async def measure(lab: Lab, check: Check) -> CheckMeasurement:
        trial = await _datagrams(lab, per_s=_PACKETS_PER_S, packets=_PACKETS)
        sent, received, returned = (
            int(single_value(trial, f"{what}_count")) for what in ("sent", "received", "returned")
        )
        drops = sum(single_value(trial, "receiver_drops_count", way) for way in WAYS)
        back = wilson(received - returned, max(received, 1))
        note = f"the way back lost {received - returned} of {received}"
        more = {"back_ratio": back.value, "receiver_drops_count": drops, "sent_count": sent}
        return _share(wilson(sent - received, sent), note, **more)

    delay = {} if delay_s is None else {"delay": _ms(delay_s)}
    return Check(
        id=f"link.loss-{ratio * 100:g}" + ("" if delay_s is None else f"-delay-{delay_s * 1e3:g}"),
        mechanism="loss",
        what=f"datagrams lost on one way of a link that loses {ratio:.1%}",
        set=ratio,
        unit="ratio",
        low=0.0,
        high=1.0,
        how=f"net.rtt, {_PACKETS:,} datagrams; those that the far side did not get. The Wilson "
        "interval (95 %) has to hold what is set; one right setting in twenty misses it by "
        "chance, so it may be tried again.",
        topology=_linked(loss=f"{ratio * 100:g}%", **delay),
        measure=measure,
        holds_set=True,
    )


def duplicate_check(ratio: float) -> Check:
    """Duplication, on its way: the share of datagrams that came twice."""

    async def measure(lab: Lab, check: Check) -> CheckMeasurement:
        trial = await _datagrams(lab, per_s=_PACKETS_PER_S, packets=_PACKETS)
        received = int(single_value(trial, "received_count"))
        twice = int(single_value(trial, "duplicates_count", "up"))
        return _share(wilson(twice, received), "")

    return Check(
        id=f"link.duplicate-{ratio * 100:g}",
        mechanism="duplication",
        what=f"datagrams that come twice on one way of a link that doubles {ratio:.1%}",
        set=ratio,
        unit="ratio",
        low=0.0,
        high=1.0,
        how=f"net.rtt, {_PACKETS:,} datagrams; those that the far side got again. The Wilson "
        "interval (95 %) has to hold what is set.",
        topology=_linked(duplicate=f"{ratio * 100:g}%"),
        measure=measure,
        holds_set=True,
    )


def of_link(link: LinkSpec) -> Iterator[Check]:
    """The checks of what a link of a topology sets."""
    if link.ingress_bits_per_s is not None:
        yield ingress_check(link.ingress_bits_per_s, link.mtu_bytes)
    for way in (link.direction("up"), link.direction("down")):
        if way.rate_bits_per_s:
            yield rate_check(way.rate_bits_per_s, link.mtu_bytes)
        if way.delay_ns:
            yield delay_check(way.delay_ns / 1e9)
        if way.jitter_ns:
            yield jitter_check(way.delay_ns / 1e9, way.jitter_ns / 1e9)
        if way.loss_ratio:
            yield loss_check(way.loss_ratio)
        if way.duplicate_ratio:
            yield duplicate_check(way.duplicate_ratio)


async def between(
    lab: Lab, benchmark: str, params: Mapping[str, Any], *, near: str = _NEAR, far: str = _FAR
) -> TargetTrial:
    """One trial of a benchmark with two sides; the near side's, when both went well."""
    async with open_hosts(lab, near, far) as (client, server):
        trial, _ = await session.run_pair(client, server, benchmark, params, TIMEOUT_S)
    require_success(trial)
    return trial


def _samples(trial: TargetTrial, metric: str, way: str | None) -> list[Sample]:
    """The samples of a metric, of one direction where one is given."""
    return [
        sample
        for sample in trial.samples
        if sample.metric == metric and (way is None or sample.factors.get("direction") == way)
    ]


def single_value(trial: TargetTrial, metric: str, way: str | None = None) -> float:
    """The one value of a metric, of one direction where it has several."""
    values = [sample.value for sample in _samples(trial, metric, way)]
    if len(values) != 1:
        raise RunFailed(f"The probe brought {len(values)} values of {metric}.", "Run it again.")
    return values[0]


def quantile(trial: TargetTrial, metric: str, q: float, way: str) -> float:
    """Nearest-rank quantile of a histogram in one direction."""
    pairs = sorted((sample.value, sample.count) for sample in _samples(trial, metric, way))
    total, seen = sum(count for _, count in pairs), 0
    for value, count in pairs:
        seen += count
        if seen >= q * total:
            return value
    raise RunFailed(f"The probe brought no {metric} {way}.", "See whether datagrams get through.")


def half_width(trial: TargetTrial, way: str) -> float:
    """Half the width of an even spread of delays: of its middle nine tenths, over 0.9."""
    low, high = (quantile(trial, "delay_ns", q, way) for q in (0.05, 0.95))
    return (high - low) / 0.9 / 2


async def _datagrams(lab: Lab, *, per_s: float, packets: int) -> TargetTrial:
    cgroups.favour(lab.name)
    params = {
        "rate_per_s": per_s,
        "duration_ns": round(packets / per_s * 1e9),
        "same_clock": True,
        "wait_ns": 1_000_000_000,
    }
    return await between(lab, instruments.NET_RTT, params)


async def _goodput(lab: Lab, way: str, mtu_bytes: int) -> CheckMeasurement:
    """Goodput of one direction with its headers, bits a second; the interval is as wide as that of
    the mean of its parts (net.throughput's own intervals), warm-up left out."""
    cgroups.favour(lab.name)
    warm_up_ns = 1_000_000_000
    params = {"direction": way, "duration_ns": 2_000_000_000, "warmup_ns": warm_up_ns}
    trial = await between(lab, instruments.NET_THROUGHPUT, params)
    scale = 8 / tcp_share(mtu_bytes)
    intervals = _samples(trial, "interval_goodput_bytes_per_s", way)
    parts = [sample.value * scale for sample in intervals if sample.at_ns > warm_up_ns]
    spread = mean(parts)
    assert spread.low is not None
    assert spread.high is not None
    # Over the receiver's own time, which is what goodput means; the parts tell how sure it is.
    value = single_value(trial, "goodput_bytes_per_s", way) * scale
    half = (spread.high - spread.low) / 2
    return CheckMeasurement(value, value - half, value + half, spread.n)


def _median(trial: TargetTrial, metric: str, way: str) -> CheckMeasurement:
    """The median of a histogram with its interval by order statistics (95 %)."""
    low, high, n = _bounds(trial, metric, 0.5, way)
    return CheckMeasurement(quantile(trial, metric, 0.5, way), low, high, n)


def _half_width(trial: TargetTrial, way: str) -> CheckMeasurement:
    """`half_width`; its interval is as wide as those of both quantiles allow."""
    low05, high05, n = _bounds(trial, "delay_ns", 0.05, way)
    low95, high95, _ = _bounds(trial, "delay_ns", 0.95, way)
    ends = ((low95 - high05) / 0.9 / 2, (high95 - low05) / 0.9 / 2)
    return CheckMeasurement(half_width(trial, way), *ends, n)


def _bounds(trial: TargetTrial, metric: str, q: float, way: str) -> tuple[float, float, int]:
    """Low and high end of a quantile's interval (95 %), and how many values there are."""
    n = sum(sample.count for sample in _samples(trial, metric, way))
    low, high, _ = rank_bounds(n, q, 0.95)
    first, last = (quantile(trial, metric, rank / n, way) for rank in (max(low, 1), min(high, n)))
    return first, last, n


def _worst(check: Check, seen: Mapping[str, CheckMeasurement]) -> CheckMeasurement:
    """The direction that is further from what was set."""
    way = max(seen, key=lambda way: abs(seen[way].value - check.set))
    values = {name: measurement.value for name, measurement in seen.items()}
    return replace(seen[way], note=f"the way {way}", more=values)


def _share(share: Estimate, note: str, **more: float) -> CheckMeasurement:
    return CheckMeasurement(share.value, share.low, share.high, share.n, note, more)


def _linked(**link: Any) -> dict[str, Any]:
    """Two hosts on a switch; the first one's cable has the conditions."""
    return {
        "hosts": {_NEAR: {}, _FAR: {}},
        "switches": {"lan": {}},
        "links": {
            "wan": {"between": [_NEAR, "lan"], **link},
            "near": {"between": [_FAR, "lan"]},
        },
    }


def _text(bits_per_s: float) -> str:
    return f"{bits_per_s / 1e3:g}kbit/s"


def _ms(seconds: float) -> str:
    return f"{seconds * 1e3:g}ms"


CHECKS: tuple[Check, ...] = (
    *(rate_check(rate) for rate in (47e6, 200e6)),
    *(delay_check(delay) for delay in (0.005, 0.050, 0.150)),
    jitter_check(0.020, 0.005),
    *(loss_check(ratio) for ratio in (0.005, 0.02, 0.10)),
    loss_check(0.02, delay_s=0.005),
    duplicate_check(0.01),
    ingress_check(50e6),
)
