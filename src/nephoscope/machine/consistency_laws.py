"""Laws that figures cannot break, ours or imported: each gives a sentence, or None if it holds.

Source: Lazowska et al., Quantitative System Performance, 1984 (Little, utilisation); the rest is
arithmetic. They found most of the errors in published tables of cloud measurements.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from nephoscope.analysis.statistics.values import Refused, finite, percent
from nephoscope.units import format_number

OPERATIONAL_TOLERANCE = 0.10


def violated(*sentences: str | None) -> list[str]:
    """The laws that were broken."""
    return [sentence for sentence in sentences if sentence]


def _off(got: float, expected: float) -> float:
    scale = max(abs(got), abs(expected))
    return abs(got - expected) / scale if scale else 0.0


def little(
    concurrency: float,
    throughput_per_s: float,
    response_s: float,
    tolerance: float = OPERATIONAL_TOLERANCE,
) -> str | None:
    """Little's law of a closed loop: N = X R."""
    inside = throughput_per_s * response_s
    if _off(inside, concurrency) <= tolerance:
        return None
    return (
        f"Little's law is broken: {format_number(throughput_per_s)} /s times "
        f"{format_number(response_s)} s is {format_number(inside)} in the system, not "
        f"{format_number(concurrency)}."
    )


def utilisation(
    busy_ratio: float,
    throughput_per_s: float,
    service_s: float,
    servers: int = 1,
    tolerance: float = OPERATIONAL_TOLERANCE,
) -> str | None:
    """Utilisation law U = X S / servers, and U <= 1."""
    implied = throughput_per_s * service_s / servers
    if implied > 1 + tolerance:
        return (
            f"{format_number(throughput_per_s)} /s of {format_number(service_s)} s each would keep "
            f"{servers} servers {percent(implied)} busy: more than there are."
        )
    if abs(implied - busy_ratio) <= tolerance:
        return None
    return (
        f"The utilisation law is broken: {percent(busy_ratio)} busy was measured, rate and service "
        f"time make {percent(implied)}."
    )


def link_cap(bytes_per_s: float, link_bytes_per_s: float, tolerance: float = 0.01) -> str | None:
    """No more passes a link than its rate; both payload-free of headers, so 1 % is generous."""
    if bytes_per_s <= link_bytes_per_s * (1 + tolerance):
        return None
    return (
        f"{format_number(bytes_per_s)} B/s is more than the link carries "
        f"({format_number(link_bytes_per_s)} B/s): a cache or a clock was measured."
    )


def weights(shares: Sequence[float], tolerance: float = 1e-6) -> str | None:
    """Weights are shares: none negative, and their sum is 1."""
    total = math.fsum(shares)
    if all(share >= 0 for share in shares) and abs(total - 1) <= tolerance:
        return None
    return f"The weights sum to {total:.6g}, not to 1, or one of them is negative."


def symmetric(value: float, low: float, high: float, rounding: float = 0.0) -> str | None:
    """A t interval is centred on its mean, up to rounding (half the last printed digit)."""
    centre = (low + high) / 2
    # Three printed figures take part: the value, and the mean of two.
    slack = 2 * rounding + 1e-9 * max(abs(low), abs(high))
    if abs(centre - value) <= slack:
        return None
    return (
        f"The interval [{low:.10g}, {high:.10g}] is centred on {centre:.10g}, not on {value:.10g}: "
        "no t interval, or one of the three is wrong."
    )


def deviation(s: float, minimum: float, maximum: float, n: int) -> str | None:
    """Sample standard deviation against the range: range/sqrt(2n) <= s <= range/2 sqrt(n/(n-1)).

    The lower bound is that of one value at either end and the rest in the middle.
    """
    if n < 2:
        return None
    span = maximum - minimum
    least, most = span / math.sqrt(2 * n), span / 2 * math.sqrt(n / (n - 1))
    if least * (1 - 1e-9) <= s <= most * (1 + 1e-9):
        return None
    return (
        f"A standard deviation of {format_number(s)} is impossible for {n} values between "
        f"{format_number(minimum)} and {format_number(maximum)}: it lies within "
        f"{format_number(least)} and {format_number(most)}."
    )


def sum_of_parts(parts: Sequence[float], total: float, tolerance: float = 0.01) -> str | None:
    """Parts add up to the total."""
    added = math.fsum(parts)
    if _off(added, total) <= tolerance:
        return None
    return f"The parts sum to {format_number(added)}, the total says {format_number(total)}."


def cached_file(
    file_bytes: float, guest_memory_bytes: float, host_memory_bytes: float = 0.0, *, direct: bool
) -> str | None:
    """A file measures a disk only when it is over twice the memory of guest and host, or direct.

    Direct I/O bypasses the guest's cache alone, so the host's memory still counts where known.
    """
    memory = host_memory_bytes if direct else max(guest_memory_bytes, host_memory_bytes)
    if file_bytes > 2 * memory:
        return None
    return (
        f"A file of {format_number(file_bytes)} B fits into twice the memory of "
        f"{format_number(memory)} B: caches were measured, not the disk."
    )


def geometric_mean(ratios: Sequence[float]) -> float:
    """The mean of ratios that does not depend on which side is the base."""
    array = finite(ratios, statistic="geometric mean")
    if (array <= 0).any():
        raise Refused("A geometric mean needs ratios above zero.")
    return math.exp(math.fsum(math.log(x) for x in array) / array.size)
