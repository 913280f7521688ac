"""Reports of iperf3 (`--json`): the totals of a run, both directions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from nephoscope.core.model import Better
from nephoscope.store.imports.rows import (
    BITS_PER_S,
    FAILURES,
    MS,
    US,
    ImportedFigures,
    Merge,
    mapping,
    number,
    number_or_none,
)
from nephoscope.store.imports.source import Source
from nephoscope.store.imports.units import Unit

_OPTIONS = ("protocol", "num_streams", "blksize", "target_bitrate")
_CPU_PERCENT = Unit("ratio", 0.01, Better.NONE)
_LOST_PERCENT = Unit("ratio", 0.01, Better.LOWER, share=True)
_TOTAL = (
    "iperf3's total of a run is imported as one value; its intervals of a second depend on one "
    "another (`nephoscope network series` reads them)."
)


def is_iperf3(document: Mapping[str, Any]) -> bool:
    """States whether a JSON object is a report of iperf3."""
    start = document.get("start")
    if not isinstance(start, dict) or "end" not in document:
        return False
    marks = {"version", "test_start", "connected", "cookie", "connecting_to"}
    return "intervals" in document or "error" in document or bool(marks & start.keys())


def read(source: Source) -> ImportedFigures:
    """Returns the totals. ValueError for a run that failed and for a report without them."""
    document = _report(source)
    if document.get("error"):
        raise ValueError(f"iperf3 reports the error '{document['error']!s:.200}'")
    start, end = mapping(document["start"], "start"), mapping(document["end"], "end")
    test = mapping(start.get("test_start"), "test_start")
    stamp = mapping(start.get("timestamp"), "timestamp")
    at_s = number(stamp.get("timesecs"), "timesecs")
    figures = ImportedFigures("iperf3", missing=[_TOTAL])
    options = {key: str(test[key]) for key in _OPTIONS if test.get(key)}
    protocol = str(test.get("protocol", "TCP")).lower()
    own, back = ("down", "up") if test.get("reverse") else ("up", "down")
    totals = _Totals(figures, protocol, options, at_s)
    totals.add(end, own, "")
    if any(key.endswith("_bidir_reverse") for key in end):
        totals.add(end, back, "_bidir_reverse")
    totals.add_round_trips(end, own)
    for side, value in mapping(end.get("cpu_utilization_percent") or {}, "cpu").items():
        if side.endswith("_total"):
            metric = f"cpu_{side.removesuffix('_total')}_ratio"
            figures.add("CPU use", protocol, metric, value, _CPU_PERCENT, **totals.common(own))
    seconds = [
        number_or_none(total.get("seconds")) for total in end.values() if isinstance(total, dict)
    ]
    longest_s = max((value for value in seconds if value is not None), default=None)
    if longest_s is not None:
        figures.span = (at_s, at_s + longest_s)
    return figures


def is_stream(document: Mapping[str, Any]) -> bool:
    """States whether a JSON object is an event of `--json-stream`."""
    return document.get("event") in ("start", "interval", "end", "error") and "data" in document


def _report(source: Source) -> Mapping[str, Any]:
    """Returns the last report of a file; the events of `--json-stream` together are one."""
    values = [value for _, value in source.documents.values if isinstance(value, dict)]
    reports = [value for value in values if is_iperf3(value)]
    if reports:
        return reports[-1]
    events = {str(value["event"]): value["data"] for value in values if is_stream(value)}
    if "end" not in events and "error" not in events:
        raise ValueError("its end is missing: the run did not finish")
    return {"start": events.get("start"), "end": events.get("end"), **_error(events)}


def _error(events: Mapping[str, Any]) -> dict[str, Any]:
    return {"error": events["error"]} if "error" in events else {}


class _Totals:
    """The totals of a run, one direction after the other."""

    def __init__(
        self, figures: ImportedFigures, protocol: str, options: Mapping[str, str], at_s: float
    ) -> None:
        self._figures, self._protocol, self._options = figures, protocol, options
        self._at_s = at_s

    def common(self, direction: str) -> dict[str, Any]:
        """What all rows of a direction have."""
        return {"factors": {**self._options, "direction": direction}, "at_s": self._at_s}

    def add(self, end: Mapping[str, Any], direction: str, suffix: str) -> None:
        """Adds what was received (the goodput), what was sent, and what was lost."""
        place = f"The total {direction}"
        sent = end.get(f"sum_sent{suffix}")
        received = end.get(f"sum_received{suffix}")
        plain = end.get(f"sum{suffix}")
        udp = self._protocol == "udp"
        if udp and received is None and isinstance(plain, dict):
            received = self._without_losses(plain, place)
        if sent is None and isinstance(plain, dict):
            sent = plain
        common = self.common(direction)
        if isinstance(received, dict):
            self._rate(place, "goodput_bits_per_s", received, common, headline=True)
        else:
            self._figures.left_out.append(f"{place}: the rate at the receiver is missing")
        if isinstance(sent, dict):
            self._rate(place, "sent_bits_per_s", sent, common)
            if "retransmits" in sent:
                self._figures.add(
                    *(place, self._protocol, "retransmits_count", sent["retransmits"], FAILURES),
                    **common,
                )
        if udp:
            self._add_losses(place, [received, plain], common)

    def _add_losses(self, place: str, totals: Sequence[Any], common: Mapping[str, Any]) -> None:
        """Adds loss and jitter at the receiver; totals that contradict each other are left out."""
        stated = [total for total in totals if isinstance(total, dict) and "lost_percent" in total]
        total = stated[0] if stated else {}
        packets = number_or_none(total.get("packets")) or 0.0
        figures = self._figures
        figures.add(place, self._protocol, "jitter_ns", total.get("jitter_ms"), MS, **common)
        shares = [total["lost_percent"] for total in stated]
        if any(share != shares[0] for share in shares):
            words = " % and ".join(f"{share!s:.12}" for share in shares)
            figures.left_out.append(
                f"{place}: loss_ratio: the report contradicts itself: {words} % lost"
            )
            return
        figures.add(
            *(place, self._protocol, "loss_ratio", total.get("lost_percent"), _LOST_PERCENT),
            merge=Merge.WEIGHTED_MEAN,
            weight=packets,
            **common,
        )

    def _rate(
        self,
        place: str,
        metric: str,
        total: Mapping[str, Any],
        common: Mapping[str, Any],
        *,
        headline: bool = False,
    ) -> None:
        value = total.get("bits_per_second")
        self._figures.add(
            place, self._protocol, metric, value, BITS_PER_S, headline=headline, **common
        )

    def _without_losses(self, total: Mapping[str, Any], place: str) -> dict[str, Any] | None:
        """Returns what was received of what was sent, for versions that state losses only."""
        try:
            sent = number(total.get("bits_per_second"), "bits_per_second")
            lost = number(total.get("lost_percent"), "lost_percent") / 100
        except ValueError:
            return None
        if not 0 <= lost <= 1:
            return {**total, "bits_per_second": None}
        self._figures.missing.append(
            f"{place}: this version of iperf3 states no rate at the receiver; the goodput is the "
            "sent rate less the lost datagrams."
        )
        return {**total, "bits_per_second": sent * (1 - lost)}

    def add_round_trips(self, end: Mapping[str, Any], direction: str) -> None:
        """Adds TCP's smoothed round-trip times, the largest of all streams, where there are any."""
        streams = end.get("streams")
        senders = [
            stream["sender"]
            for stream in (streams if isinstance(streams, list) else ())
            if isinstance(stream, dict) and isinstance(stream.get("sender"), dict)
        ]
        for metric, key in (("tcp_rtt_mean_ns", "mean_rtt"), ("tcp_rtt_min_ns", "min_rtt")):
            values = [number_or_none(sender.get(key)) for sender in senders]
            known = [value for value in values if value is not None]
            if known and len(known) == len(values):
                self._figures.add(
                    *("The streams", self._protocol, metric, max(known), US),
                    **self.common(direction),
                )
