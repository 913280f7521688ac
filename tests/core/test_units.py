"""Text and numbers with units."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nephoscope.core import units
from nephoscope.core.errors import UsageError


@pytest.mark.parametrize(
    ("text", "nanoseconds"),
    [
        ("60s", 60_000_000_000),
        ("1.5 ms", 1_500_000),
        ("100us", 100_000),
        ("100 µs", 100_000),
        ("2 min", 120_000_000_000),
        ("1h", 3_600_000_000_000),
        ("90 sec", 90_000_000_000),
        ("5 minutes", 300_000_000_000),
        ("1h30m", 5_400_000_000_000),
        ("1 h 30 min 5 s", 5_405_000_000_000),
        (0, 0),
    ],
)
def test_durations(text: str | float, nanoseconds: int) -> None:
    assert units.parse_duration_ns(text) == nanoseconds


@pytest.mark.parametrize(
    ("text", "count"),
    [("4KiB", 4096), ("4k", 4096), ("4KB", 4000), ("1.5 GiB", 3 << 29), (0, 0), ("7B", 7)],
)
def test_sizes(text: str | float, count: int) -> None:
    assert units.parse_bytes(text) == count


@pytest.mark.parametrize(
    "text", ["", "fast", "10 parsecs", "-3s", "1e999s", "nan", "s", "1 2 s", "30m1h"]
)
def test_nonsense_is_refused_in_one_sentence(text: str) -> None:
    for parse in (units.parse_duration_ns, units.parse_bytes):
        with pytest.raises(UsageError) as caught:
            parse(text)
        assert caught.value.hint
        assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    ("text", "bits_per_s"),
    [
        ("941Mbit/s", 941e6),
        ("941Mbps", 941e6),
        ("941 mbps", 941e6),
        ("1gbit", 1e9),
        ("10gbit/s", 10e9),
        ("1Gb/s", 1e9),
        ("100Mb", 100e6),
        ("100MB/s", 800e6),
        ("100MBps", 800e6),
        ("1MiB/s", 8 * 1024**2),
    ],
)
def test_line_rates_are_read_as_users_write_them(text: str, bits_per_s: float) -> None:
    assert units.parse_bits_per_s(text) == bits_per_s


@pytest.mark.parametrize(
    ("parse", "likely"),
    [
        (units.parse_duration_ns, "10ms, 10s or 10min"),
        (units.parse_bytes, "10MiB, 10KiB or 10B"),
        (units.parse_bits_per_s, "10Mbit/s, 10Gbit/s or 10kbit/s"),
        (units.parse_bytes_per_s, "10MB/s, 10kB/s or 10GB/s"),
    ],
)
@pytest.mark.parametrize("value", ["10", " 10 ", 10])
def test_a_number_without_a_unit_is_refused_with_the_likely_ones(
    parse: Callable[[str | int], float], likely: str, value: str | int
) -> None:
    with pytest.raises(UsageError, match=f"'10' needs a unit: {likely}"):
        parse(value)


@pytest.mark.parametrize(("text", "ratio"), [("3%", 0.03), ("0.03", 0.03), ("100 %", 1.0), (0, 0)])
def test_ratios(text: str | float, ratio: float) -> None:
    assert units.parse_ratio(text) == pytest.approx(ratio, rel=1e-12)


@pytest.mark.parametrize("text", ["101%", "-1%", "three", "nan", "3"])
def test_ratios_outside_are_refused(text: str) -> None:
    with pytest.raises(UsageError):
        units.parse_ratio(text)


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (2.5e6, "ns", "2.50 ms"),
        (0.7512, "ratio", "75.1 %"),
        (0.0, "ratio", "0 %"),
        (11.23e9, "bytes_per_s", "11.2 GB/s"),
        (64 << 20, "bytes", "64.0 MiB"),
        (0.5, "ns", "0.500 ns"),
        (12345.0, "per_s", "12.3 k/s"),
        (1.5, "cpus", "1.50 CPUs"),
        (12.0, "furlongs", "12.0 furlongs"),
    ],
)
def test_values_read_as_people_write_them(value: float, unit: str, text: str) -> None:
    assert units.format_value(value, unit) == text


def test_a_missing_bound_is_a_question_mark() -> None:
    assert units.format_interval(2.5e6, None, 2.6e6, "ns") == "2.50 ms [?, 2.60]"


@given(st.floats(min_value=1e-3, max_value=1e15, allow_nan=False))
def test_formatting_keeps_three_digits(value: float) -> None:
    divisor, _ = units.scale_of("ns", value)
    shown = float(units.format_number(value / divisor)) * divisor
    # Three significant digits: half a unit of the third is at most 0.5 % of the value.
    assert abs(shown - value) <= 0.00501 * value


@given(st.floats(allow_nan=False), st.integers(min_value=0, max_value=6))
def test_any_number_can_be_written_with_any_digits(value: float, digits: int) -> None:
    assert units.format_number(value, digits)
    assert "e" not in units.format_number(max(1e-4, min(abs(value), 1e6)), digits)


@given(st.integers(min_value=0, max_value=10**7))
def test_durations_survive_a_round_trip_to_the_second(seconds: int) -> None:
    text = units.format_duration(seconds)
    total = sum(units.parse_duration_ns(f"{n} {u}") for n, u in _pairs(text))
    # From an hour on whole minutes are shown.
    assert abs(total / 1e9 - seconds) <= (60 if seconds >= 3600 else 0)


def _pairs(text: str) -> list[tuple[str, str]]:
    words = text.split()
    return list(zip(words[::2], words[1::2], strict=True))


@pytest.mark.parametrize(
    ("text", "bits_per_s"),
    [("47Mbit/s", 47e6), ("1.5 Gbit/s", 1.5e9), ("64kbit/s", 64e3), (0, 0)],
)
def test_line_rates_are_thousands_of_bits(text: str | float, bits_per_s: float) -> None:
    assert units.parse_bits_per_s(text) == bits_per_s


@pytest.mark.parametrize(
    ("text", "bytes_per_s"), [("20MiB/s", 20 << 20), ("10MB/s", 10e6), ("80Mbit/s", 10e6)]
)
def test_disk_rates_are_sizes_a_second(text: str, bytes_per_s: float) -> None:
    assert units.parse_bytes_per_s(text) == bytes_per_s


@pytest.mark.parametrize("text", ["1G", "1GB", "fast", "5 furlongs/s", "-1Mbit/s", "20iB/s", ""])
def test_what_is_no_line_rate_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="no line rate"):
        units.parse_bits_per_s(text)


@pytest.mark.parametrize("text", ["20 furlongs/s", "20iB/s", "iBps"])
def test_what_is_no_disk_rate_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="no disk rate"):
        units.parse_bytes_per_s(text)


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (10_000_000, "ns", "10ms"),
        (3.6e12, "ns", "1h"),
        (86_400e9, "ns", "24h"),
        (1_500_000, "ns", "1.5ms"),
        (0, "ns", "0"),
        (4096, "bytes", "4KiB"),
        (65_507, "bytes", "65507"),
        (1e15, "count", "1e+15"),
    ],
)
def test_values_are_written_as_a_user_would(value: float, unit: str, text: str) -> None:
    assert units.written(value, unit) == text


def test_a_percentage_without_its_sign_is_suggested_with_it() -> None:
    with pytest.raises(UsageError) as caught:
        units.parse_ratio("99")
    assert caught.value.hint == "Write 99% or 0.99."


@pytest.mark.parametrize(
    "parse",
    [
        units.parse_duration_ns,
        units.parse_bytes,
        units.parse_bits_per_s,
        units.parse_bytes_per_s,
    ],
)
@pytest.mark.parametrize("text", ["1e308", "1e31", "9" * 400, 1e308])
def test_quantities_without_bound_are_refused(parse, text):
    with pytest.raises(UsageError):
        parse(text)
