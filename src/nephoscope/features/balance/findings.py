"""Findings on load balancers: uneven sharing, failures, and generators that were the limit."""

from __future__ import annotations

from nephoscope.core.model import Finding, Severity
from nephoscope.features.balance.records import Balance
from nephoscope.report import wording
from nephoscope.stats.target_evidence import Answers, TargetEvidence

_UNEVEN = 0.99
"""With a Jain index below it a server of three has 15 % more or less than its share."""
_LITTLE_TOLERANCE = 0.10

_NOTHING = Balance("", (), (), (), (), (), ())


def _balance(case: TargetEvidence) -> Balance:
    """The record, for the target that states what concerns the whole run; empty for the others."""
    balance = case.part(Balance)
    return balance if balance is not None and balance.client == case.target else _NOTHING


def uneven_shares(case: TargetEvidence) -> Answers:
    """Balancers of which servers do not get what their weights say."""
    for sharing in _balance(case).sharings:
        high = sharing.fairness.high
        if high is not None and high < _UNEVEN:
            yield Finding(
                "uneven_shares",
                Severity.NOTICE,
                f"{sharing.balancer} does not share requests by weight: Jain's index "
                f"{wording.estimate_text(sharing.fairness)}.",
                tuple(
                    f"{name}: {wording.estimate_text(share)} of the requests, "
                    f"{100 * sharing.due[name]:.3g} % by weight"
                    for name, share in sharing.shares.items()
                ),
                "Use another algorithm; a source hash needs many more clients than servers.",
            )


def failed_requests(case: TargetEvidence) -> Answers:
    """Failures of a server that clients saw, and those that a balancer never noticed."""
    for failure in _balance(case).failures:
        if failure.noticed is not None and not failure.errors.value:
            continue
        noticed = (
            f"noticed after {wording.estimate_text(failure.noticed)}"
            if failure.noticed
            else "the balancer never noticed"
        )
        yield Finding(
            f"failover_{failure.failure}",
            Severity.WARNING,
            f"When a server {failure.failure}, clients of {failure.balancer} see "
            f"{wording.estimate_text(failure.errors)} failed requests; {noticed}.",
            (f"slowest response: {wording.estimate_text(failure.slowest)}",),
            "Shorten the time-outs and the interval of health checks, and retry safe requests.",
        )


def unequal_failures(case: TargetEvidence) -> Answers:
    """Trials in which the clients' count of failed requests is not the balancer's."""
    failovers = _balance(case).failovers
    unequal = [
        failover for failover in failovers if sum(failover.errors.values()) != failover.failed
    ]
    if unequal:
        yield Finding(
            "unequal_failures",
            Severity.NOTICE,
            f"In {wording.plural(len(unequal), 'trial')} the clients and the balancer count "
            "different numbers of failed requests.",
            tuple(
                f"{failover.balancer}, round {failover.round}: "
                f"clients {sum(failover.errors.values())}, balancer {failover.failed}"
                for failover in unequal[:8]
            ),
            "Time-outs of clients shorter than the balancer's, or requests in flight at the end, "
            "explain a difference.",
        )


def generator_limit(case: TargetEvidence) -> Answers:
    """Several generators that get more through than one: the generator was measured."""
    better = [
        effect
        for effect in _balance(case).effects
        if effect.comparison.verdict.word == "better" and effect.comparison.ratio is not None
    ]
    if better:
        yield Finding(
            "generator_limit",
            Severity.NOTICE,
            "One generator is not enough: several get more requests through.",
            tuple(
                f"{effect.balancer}, {effect.generators} generators, "
                f"{effect.connections} connections: "
                f"{wording.estimate_text(wording.plain(effect.comparison.ratio))} times as many"
                for effect in better
                if effect.comparison.ratio is not None
            ),
            "Use the throughput with several generators.",
        )


def broken_law(case: TargetEvidence) -> Answers:
    """Closed loops whose throughput and response time do not give their connections."""
    broken = [
        throughput
        for throughput in _balance(case).throughputs
        if abs(throughput.in_flight_ratio.value - 1) > _LITTLE_TOLERANCE
    ]
    if broken:
        yield Finding(
            "littles_law",
            Severity.WARNING,
            "Throughput times response time is not the number of connections (Little's law).",
            tuple(
                f"{throughput.balancer}, {throughput.generators} generators, "
                f"{throughput.connections} connections: "
                f"ratio {wording.estimate_text(throughput.in_flight_ratio)}"
                for throughput in broken
            ),
            "Connections waited for something other than a response; do not compare these points.",
        )


RULES = (uneven_shares, failed_requests, unequal_failures, generator_limit, broken_law)
