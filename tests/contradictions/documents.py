"""Contradictions within a JSON document: between the keys of an object, and its sentences."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from tests.contradictions.texts import NUMBER, of_text, printed

Node = Mapping[str, Any]
SLACK = 1e-9
"""Relative error of sums and products of floating-point numbers."""

_NOT_NEGATIVE = {"ns", "bytes", "per_s", "bytes_per_s", "bits_per_s", "count", "cpus", "events"}
_SIGNED = re.compile(
    r"differ|change|shift|offset|saving|slope|trend|correction|delta|excess|effect"
)
_SHARES = re.compile(
    r"(^|_)(probability|probabilities|share|availability|lost_ratio|loss_ratio|late_ratio|steal_ratio|"
    r"error_ratio|coverage)(_min|_max|_low|_high)?$"
)
_UNREPEATED = re.compile(r"stated|draws")
"""Methods of values that nothing repeated: stated by a user, or drawn from such values."""
_PERCENTILE = re.compile(r"^(?P<stem>.*?)_?p(?P<rank>\d+(?:_\d+)?)(?P<rest>_[a-z_]+)?$")


def of_document(document: Any) -> list[str]:
    """Returns the contradictions of a JSON document of any command."""
    sentences: list[tuple[str, str]] = []
    found = list(_walk(document, "", sentences))
    # One pass over all of them tells whether any has to be looked at.
    if of_text("\n\n".join(dict.fromkeys(text for _, text in sentences))):
        found += [(path, problem) for path, text in sentences for problem in of_text(text)]
    return [f"{path or 'document'}: {problem}" for path, problem in found]


def _walk(value: Any, path: str, sentences: list[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for rule in RULES:
            yield from ((path, problem) for problem in rule(value, path))
        for key, inner in value.items():
            yield from _walk(inner, f"{path}.{key}" if path else key, sentences)
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _walk(inner, f"{path}[{index}]", sentences)
    elif isinstance(value, float) and not math.isfinite(value):
        yield path, f"{value} is no number"
    elif isinstance(value, str) and " " in value:
        sentences.append((path, value))


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _numbers(node: Node, *names: str) -> list[float] | None:
    """The values of these keys if all are numbers."""
    values = [node.get(name) for name in names]
    return values if all(_number(value) for value in values) else None  # type: ignore[return-value]


def _above(low: float, high: float) -> bool:
    """Whether `low` is above `high` by more than rounding."""
    return low > high and not math.isclose(low, high, rel_tol=SLACK, abs_tol=1e-12)


def is_estimate(node: Any) -> bool:
    """Whether a node is an estimate: a value with bounds, n and unit."""
    return isinstance(node, dict) and {"value", "low", "high", "n", "unit"} <= node.keys()


def _estimates_are_possible(node: Node, path: str) -> Iterator[str]:
    """The interval holds the value; what has no repetitions has no interval; units have a sign."""
    if not is_estimate(node):
        return
    value, low, high = node["value"], node["low"], node["high"]
    if _number(value) and _number(low) and _above(low, value):
        yield f"the value {value} is below its interval [{low}, {high}]"
    if _number(value) and _number(high) and _above(value, high):
        yield f"the value {value} is above its interval [{low}, {high}]"
    if not 0 < node.get("confidence", 0.95) < 1:
        yield f"a confidence of {node['confidence']}"
    if node["n"] < 1 and _number(low) and not _UNREPEATED.search(node.get("method", "")):
        yield f"an interval of {node['n']} repetitions"
    if node["unit"] in _NOT_NEGATIVE and _number(value) and value < 0 and not _SIGNED.search(path):
        yield f"{value} {node['unit']} is negative"


def _bounds_are_ordered(node: Node, path: str) -> Iterator[str]:
    """X_low <= X <= X_high, and low <= high, of any keys."""
    for key, low in node.items():
        for suffix, other in (("low", "high"), ("min", "max"), ("minimum", "maximum")):
            if key != suffix and not key.endswith(f"_{suffix}") and f"_{suffix}_" not in key:
                continue
            stem, _, rest = key.rpartition(suffix)
            high, middle = node.get(f"{stem}{other}{rest}"), node.get(stem.rstrip("_") + rest)
            if _number(low) and _number(high) and _above(low, high):
                yield f"{key} {low} is above {high}"
            if stem and suffix == "low" and _number(middle):
                if _number(low) and _above(low, middle):
                    yield f"{stem.rstrip('_')} {middle} is below {key} {low}"
                if _number(high) and _above(middle, high):
                    yield f"{stem.rstrip('_')} {middle} is above {high}"


def _shares_are_shares(node: Node, path: str) -> Iterator[str]:
    """Shares and probabilities lie from 0 to 1; those of all ranks add up to 1."""
    for key, value in node.items():
        if not _SHARES.search(key) or _SIGNED.search(path + key):
            continue
        values = value if isinstance(value, list) else [value]
        for share in values:
            if is_estimate(share):
                share = share["value"] if share["unit"] == "ratio" else None
            if _number(share) and not -SLACK <= share <= 1 + SLACK:
                yield f"{key} of {share} is no share"
        summed = key.endswith("probabilities") and values and all(map(_number, values))
        if summed and not math.isclose(sum(values), 1, abs_tol=1e-6):
            yield f"{key} add up to {sum(values)}"
    metric, estimate = node.get("metric"), node.get("estimate")
    if isinstance(metric, str) and _SHARES.search(metric) and is_estimate(estimate):
        share = estimate["value"]
        if _number(share) and not -SLACK <= share <= 1 + SLACK:
            yield f"{metric} of {share} is no share"


def _percentiles_rise(node: Node, path: str) -> Iterator[str]:
    """Percentiles of one quantity do not fall, between keys and between metrics of a list."""
    series: dict[tuple[str, ...], list[tuple[float, float, str]]] = {}

    def add(group: tuple[str, ...], name: str, value: Any) -> None:
        if (match := _PERCENTILE.match(name)) and _number(value):
            whole, _, part = match["rank"].partition("_")
            rank = float(f"{whole}.{part or 0}")
            if rank <= 100:
                key = (*group, match["stem"], match["rest"] or "")
                series.setdefault(key, []).append((rank, value, name))

    for key, value in node.items():
        add((), key, value)
    metrics = node.get("metrics")
    for metric in metrics if isinstance(metrics, list) else ():
        if isinstance(metric, dict) and is_estimate(metric.get("estimate")):
            group = [str(metric.get(name)) for name in ("benchmark", "target", "factors")]
            add((*group,), str(metric["metric"]), metric["estimate"]["value"])
    for values in series.values():
        values.sort()
        for (_, lower, a), (_, upper, b) in itertools.pairwise(values):
            if _above(lower, upper):
                yield f"{a} {lower} is above {b} {upper}"


_SUMS = (
    ("total", ("good", "bad", "unknown")),
    ("due", ("valid", "invalid", "failed", "timed_out", "unanswered", "unsent")),
)
_PARTS = (
    ("lost", "sent"),
    ("met", "trials"),
    ("within_2_percent", "within_5_percent"),
    ("within_5_percent", "within_10_percent"),
    ("within_10_percent", "metrics"),
    ("owed_share", "possible_share"),
)


def _counts_add_up(node: Node, path: str) -> Iterator[str]:
    """Parts add up to their whole, and no part is larger than it."""
    for whole, parts in _SUMS:
        if whole == "total" and node.get("unit") != "slots":
            continue  # missing events are no part of those that are there
        values = _numbers(node, whole, *parts)
        if values and not math.isclose(sum(values[1:]), values[0]):
            yield f"{' + '.join(parts)} is {sum(values[1:])}, and {whole} {values[0]}"
    for part, whole in _PARTS:
        if (pair := _numbers(node, part, whole)) and _above(*pair):
            yield f"{part} {pair[0]} is more than {whole} {pair[1]}"


def _excluded_trials_are_listed(node: Node, path: str) -> Iterator[str]:
    """A run's counts of trials agree with its list of excluded trials."""
    run, listed = node.get("run"), node.get("invalid")
    if isinstance(run, dict) and isinstance(run.get("trials"), dict) and isinstance(listed, list):
        counts = run["trials"]
        for status in ("invalid", "failed"):
            found = sum(trial.get("status") == status for trial in listed)
            if found != counts[status]:
                yield f"{counts[status]} {status} trials are counted and {found} are listed"


def _verdicts_follow_intervals(node: Node, path: str) -> Iterator[str]:
    """A comparison's word follows from the interval of its ratio, its margin and its direction."""
    verdict, ratio = node.get("verdict"), node.get("ratio")
    if not (isinstance(verdict, dict) and "word" in verdict and "margin" in node):
        return
    word, margin = verdict["word"], node["margin"]
    if not is_estimate(ratio) or ratio["low"] is None or ratio["high"] is None:
        if word != "inconclusive":
            yield f"'{word}' without an interval"
        return
    beyond = ratio["low"] > 1 + margin or ratio["high"] < 1 / (1 + margin)
    excludes = ratio["low"] > 1 or ratio["high"] < 1
    if word in ("better", "worse"):
        rises = ratio["low"] > 1
        good = rises == (node.get("better") == "higher")
        if not beyond or good != (word == "better"):
            yield f"'{word}' with a ratio of [{ratio['low']}, {ratio['high']}]"
    elif beyond and node.get("better") != "none" and not _has_another_reason(verdict):
        yield f"'{word}' with a ratio of [{ratio['low']}, {ratio['high']}], beyond ±{margin}"
    elif word == "different but negligible" and not excludes:
        yield f"'{word}' with a ratio of [{ratio['low']}, {ratio['high']}], which includes 1"


def _has_another_reason(verdict: Node) -> bool:
    """Whether a verdict is open for a reason that it names, such as too few repetitions."""
    return verdict["word"] == "inconclusive" and "[" not in verdict.get("sentence", "[")


def _objectives_follow_counts(node: Node, path: str) -> Iterator[str]:
    """An objective is met only if it is certain, and violated only if it is certain."""
    bounds = _numbers(node, "target", "share_min", "share_max")
    if bounds and node.get("verdict") in ("met", "violated"):
        target, lowest, highest = bounds
        if node["verdict"] == "met" and _above(target, lowest):
            yield f"'met' although the share may be {lowest} and {target} is asked"
        if node["verdict"] == "violated" and not _above(target, highest):
            yield f"'violated' although the share may be {highest} and {target} is asked"


def _variation_follows_words(node: Node, path: str) -> Iterator[str]:
    """A metric is steady below a coefficient of variation of 2 % and erratic above 10 %."""
    word, cv = node.get("word"), node.get("robust_cv")
    if _number(cv):
        if word == "steady" and cv > 0.02:
            yield f"'steady' with a coefficient of variation of {cv}"
        if word == "erratic" and cv < 0.1:
            yield f"'erratic' with a coefficient of variation of {cv}"


def _ranks_follow_probabilities(node: Node, path: str) -> Iterator[str]:
    """A rank that is stated is possible by the probabilities and intervals beside it."""
    rank, probabilities = node.get("rank"), node.get("rank_probabilities")
    if (
        isinstance(rank, int)
        and isinstance(probabilities, list)
        and 0 in probabilities[rank - 1 : rank]
    ):
        yield f"rank {rank} with a probability of 0"
    low, high = node.get("rank_low"), node.get("rank_high")
    if isinstance(probabilities, list) and isinstance(low, int) and isinstance(high, int):
        inside = sum(probabilities[low - 1 : high])
        if inside < 0.5:
            yield f"ranks {low} to {high} with a probability of {inside}"


_SPAN = re.compile(rf"\[(?P<low>[+\-]?{NUMBER}(?: %)?), (?P<high>[+\-]?{NUMBER}(?: %)?)\]")


def _sentences_follow_rows(node: Node, path: str) -> Iterator[str]:
    """An interval in a sentence is that of an estimate of the object in which it stands.

    Or of an object that this one holds: the comparison whose verdict the sentence is.
    """
    sentence = node.get("sentence")
    estimates = [value for value in node.values() if is_estimate(value)]
    for held in node.values() if estimates else ():
        if isinstance(held, dict) and not is_estimate(held):
            estimates += [value for value in held.values() if is_estimate(value)]
    if not isinstance(sentence, str) or not estimates:
        return
    for span in _SPAN.finditer(sentence):
        if not any(_agrees(span, estimate) for estimate in estimates):
            yield f"the sentence says {span.group()}, which no figure beside it has"


def _agrees(span: re.Match[str], estimate: Node) -> bool:
    low, high = printed(span["low"]), printed(span["high"])
    bounds = _numbers(estimate, "low", "high")
    if not (low and high and bounds):
        return False
    # The unit's prefix is that of the figure, so that only the ratio of the bounds is known.
    for a, b in (bounds, [bounds[1], bounds[0]], [bounds[0] - 1, bounds[1] - 1]):
        tolerance = (
            2 * (low.tolerance + high.tolerance) / max(abs(low.value), abs(high.value), 1e-9)
        )
        left, right = low.value * b, high.value * a
        if math.isclose(left, right, rel_tol=tolerance + 0.01, abs_tol=1e-12):
            return True
    return False


def _loads_add_up(node: Node, path: str) -> Iterator[str]:
    """Every request that was due had a valid response, is among the errors, or was lost."""
    if isinstance(node, dict) and {"due_count", "completed_count", "errors_count"} <= node.keys():
        whole = node["completed_count"] + sum(node["errors_count"].values())
        whole += node.get("lost_count") or 0
        if whole != node["due_count"]:
            yield f"{whole} requests ended of {node['due_count']} that were due"


def _lower_bounds_are_open(node: Node, path: str) -> Iterator[str]:
    """What is known as a lower bound only has no upper end."""
    if is_estimate(node) and node.get("censored") and node["high"] is not None:
        yield f"the lower bound {node['value']} has the upper end {node['high']}"


Rule = Callable[[Node, str], Iterator[str]]
RULES: tuple[Rule, ...] = (
    _estimates_are_possible,
    _bounds_are_ordered,
    _shares_are_shares,
    _percentiles_rise,
    _counts_add_up,
    _loads_add_up,
    _lower_bounds_are_open,
    _excluded_trials_are_listed,
    _verdicts_follow_intervals,
    _objectives_follow_counts,
    _variation_follows_words,
    _ranks_follow_probabilities,
    _sentences_follow_rows,
)
