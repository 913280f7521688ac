"""The programs of `nephoscope.autoscalers` as loads of a plan: what scales, and what is scaled."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from nephoscope import autoscalers
from nephoscope.autoscalers import rules
from nephoscope.catalog import MetricSpec, ParamSpec, instruments
from nephoscope.catalog.adapters.declare import adapter
from nephoscope.catalog.adapters.frame import (
    ADDRESS,
    PORT,
    Output,
    ToolCommand,
    ToolError,
    last_words,
)
from nephoscope.catalog.adapters.quantities import Params, choice, period, text, whole
from nephoscope.catalog.adapters.servers import balancer
from nephoscope.catalog.meaning import Resource
from nephoscope.core.errors import UsageError
from nephoscope.core.model import Better, Sample, Shape
from nephoscope.core.programs import find_probe

REFERENCE = instruments.AUTOSCALER_REFERENCE
OBSERVED = instruments.AUTOSCALER_OBSERVED
MANAGED = instruments.AUTOSCALER_MANAGED
INSTANCE = instruments.AUTOSCALER_INSTANCE

STATES = ("present", "in_rotation", "billed")
"""Machines that were started and not removed, those that get requests, and those that are paid."""

_COUNTS = balancer.events(
    "instances_count",
    "Number of instances after each change, by state: present, in_rotation, billed.",
)
_VALUES = MetricSpec(
    "rule_value",
    "none",
    Better.NONE,
    Shape.SERIES,
    False,
    "Values of the metric of the rule, when it sees them.",
)


def _watched(decisions: str) -> tuple[MetricSpec, ...]:
    """Returns the metrics of whatever watches a number of instances. decisions: their number, as
    the document of a metric states it."""
    return (
        balancer.metric("decisions_count", decisions, headline=True),
        balancer.CPU,
        balancer.STARTED,
        _COUNTS,
    )


def _decided(instance: str, rule: str, reasons: str) -> tuple[MetricSpec, ...]:
    """Returns the metrics of whatever sees decisions and their steps. instance, rule: their names;
    reasons: the end of the sentence on the number that is decided."""
    return (
        balancer.events("steps_count", f"Steps of each {instance}, from created to removed."),
        _VALUES,
        balancer.events("visible_wanted_count", f"What {rule} wants at each new value."),
        balancer.events("wanted_count", f"What {rule} wants, at each decision."),
        balancer.events("desired_count", f"Number that is decided, {reasons}"),
    )


_REPORT = (
    text("objective", "p99 < 100ms", "Objective of response time that the demand is for."),
    ParamSpec(
        "capacity_per_s",
        "float",
        "per_s",
        1.0,
        "Requests per second of one instance within the objective, from which the demand follows.",
        min=0.001,
        max=1e7,
    ),
    period("billing_ns", "1s", "1ms", "24h", "Unit of time in which an instance is paid."),
    ParamSpec(
        "attack_per_s",
        "float",
        "per_s",
        0.0,
        "Part of the load in the second half of a trial that nobody needs.",
        min=0.0,
        max=1e7,
    ),
    text("contract", "", "Text of a contract whose credit for the violations is stated."),
    text("bill", "", "Bill of a period of that contract."),
)
"""Parameters that no program uses: what the report of a run holds the autoscaler to."""


def _command(module: str, settings: Mapping[str, Any], **more: Any) -> ToolCommand:
    folder = str(Path(autoscalers.__file__).parents[2])
    arguments = ("-m", f"nephoscope.autoscalers.{module}", json.dumps(settings))
    environment = {"PYTHONPATH": folder, "PYTHONDONTWRITEBYTECODE": "1"}
    return ToolCommand(arguments, environment=environment, **more)


def _instance(params: Params) -> ToolCommand:
    address, _, port = str(params["service"]).rpartition(":")
    service = {
        "address": address,
        "port": int(port),
        "workers": params["workers"],
        "service": params["distribution"],
        "service_mean_ns": params["service_mean_ns"],
        "duration_ns": 86_400_000_000_000,  # the program ends it before
    }
    command = [str(find_probe()), "run", "http.serve", "--params", json.dumps(service)]
    return _command("instance", {"address": ADDRESS, "port": PORT, "command": command})


def machines_of(params: Params) -> dict[str, tuple[str, str]]:
    """Returns name -> control and service of each machine. UsageError for what is none."""
    machines = {}
    for line in params["machines"]:
        words = line.split()
        if len(words) != 3 or any(not word.rpartition(":")[2].isdecimal() for word in words[1:]):
            raise UsageError(
                f"{REFERENCE}: '{line}' is no machine.",
                "Write its name, the address:port of its control and of its service.",
            )
        machines[words[0]] = (words[1], words[2])
    return machines


def _reference(params: Params) -> ToolCommand:
    try:
        rule = json.loads(params["rule"])
        rules.rule_of(dict(rule))
    except (ValueError, TypeError) as error:
        raise UsageError(
            f"{REFERENCE}: the rule cannot be read: {error}.", "See its page."
        ) from None
    plain = ("service_port", "delay_cv_ratio", "seed", "initial", "cpus")
    times = ("metric_interval", "metric_lag", "decision_interval", "boot", "warm_up", "timeout")
    settings = {
        "address": ADDRESS,
        "port": PORT,
        **{name: params[name] for name in plain},
        **{f"{name}_s": params[f"{name}_ns"] / 1e9 for name in times},
        "machines": machines_of(params),
        "rule": rule,
    }
    return _command("reference", settings, paths=("/usr/sbin",))


def _observed(params: Params) -> ToolCommand:
    settings = {
        "address": ADDRESS,
        "port": PORT,
        "command": params["command"],
        "interval_s": params["interval_ns"] / 1e9,
        "limit_s": params["limit_ns"] / 1e9,
    }
    return _command("observer", settings)


def _managed(params: Params) -> ToolCommand:
    """It reads credentials as this program does, and so runs under this program's interpreter."""
    flags = ("cpu_initialisation", "readiness_delay", "downscale_stabilisation")
    settings = {
        "address": ADDRESS,
        "port": PORT,
        **{name: params[name] for name in ("kind", "name", "place", "context", "endpoint", "path")},
        "interval_s": params["interval_ns"] / 1e9,
        "flags": {
            "tolerance_ratio": params["tolerance_ratio"],
            **{f"{name}_s": params[f"{name}_ns"] / 1e9 for name in flags},
        },
    }
    program = "import os, sys; os.execv(sys.argv[1], sys.argv[1:])"
    module = "nephoscope.features.elastic.autoscalers.follow"
    arguments = ("-c", program, sys.executable, "-m", module, json.dumps(settings))
    folder = str(Path(autoscalers.__file__).parents[2])
    names = ("HOME", "KUBECONFIG", "AWS_PROFILE", "AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE")
    own = {name: os.environ[name] for name in names if name in os.environ}
    return ToolCommand(arguments, environment={**own, "PYTHONPATH": folder})


def _events(output: Output) -> Iterator[dict[str, Any]]:
    """Yields the lines of the log. ToolError where its beginning or its end is missing."""
    events = _lines(output)
    names = {event["event"] for event in events}
    if "ended" not in names and output.stderr.strip():
        raise ToolError(f"it failed: {output.stderr.strip().splitlines()[-1][:200]}")
    if not {"begins", "ended"} <= names:
        raise ToolError(f"its log is cut off; use longer intervals.{last_words(output)}")
    yield from events


def _parse(output: Output) -> list[Sample]:
    try:
        return _samples(output)
    except (KeyError, TypeError, ValueError):
        raise ToolError(f"its log has lines of another kind.{last_words(output)}") from None


def _samples(output: Output) -> list[Sample]:
    samples = []
    decisions = 0
    for event in _events(output):
        at_ns, name = event["at_ns"], event["event"]
        samples += [
            Sample("instances_count", float(event[state]), at_ns=at_ns, factors={"state": state})
            for state in STATES
            if state in event and name != "decision"
        ]
        if name == "metric":
            samples += [
                Sample("rule_value", event["value"], at_ns=at_ns),
                Sample("visible_wanted_count", float(event["wanted"]), at_ns=at_ns),
            ]
        elif name == "decision":
            decisions += 1
            factors = {"reason": event["reason"] or "rule"}
            samples += [
                Sample("wanted_count", float(event["wanted"]), at_ns=at_ns),
                Sample("desired_count", float(event["desired"]), at_ns=at_ns, factors=factors),
            ]
        elif name == "deviation":
            factors = {"text": event["text"]}
            samples.append(Sample("deviations_count", 1.0, at_ns=at_ns, factors=factors))
        elif name == "unobserved":
            factors = {"failure": event["failure"]}
            samples.append(Sample("unobserved_count", 1.0, at_ns=at_ns, factors=factors))
        elif "instance" in event:
            factors = {"machine": event["instance"], "step": name}
            samples.append(Sample("steps_count", 1.0, at_ns=at_ns, factors=factors))
    return [Sample("decisions_count", float(decisions)), *samples]


def _parse_instance(output: Output) -> list[Sample]:
    if not any(event["event"] == "ended" for event in _lines(output)):
        raise ToolError(f"it did not end in order.{last_words(output)}")
    return [Sample("ended_count", 1.0)]


def _lines(output: Output) -> list[dict[str, Any]]:
    """Returns the lines of a log. ToolError for what is none."""
    try:
        events = [json.loads(line) for line in output.stdout.splitlines()]
    except (ValueError, RecursionError):
        raise ToolError(f"its log cannot be read.{last_words(output)}") from None
    if not all(isinstance(event, dict) and {"event", "at_ns"} <= event.keys() for event in events):
        raise ToolError(f"its log has lines of another kind.{last_words(output)}")
    return events


_COMMON: dict[str, Any] = {
    "resource": Resource.SEVERAL,
    "tool": "python3",
    "load": "python3",
    "minimum": "3.11",
    "install": "apt-get install python3 haproxy util-linux",
    "version": r"^Python ([0-9]+(?:\.[0-9]+)+)",
    "source": "nephoscope.autoscalers",
}
_PORT = whole("port", 0, 0, 65_535, "TCP port of its control; 0 takes a free one.")

ADAPTERS = (
    adapter(
        REFERENCE,
        "The reference autoscaler: a rule, HAProxy, and machines that boot and warm up",
        **_COMMON,
        params=(
            balancer.ADDRESS,
            _PORT,
            whole("service_port", 8080, 1, 65_535, "TCP port of the balancer."),
            ParamSpec(
                "machines",
                "text_list",
                "none",
                [],
                "Machines, each as its name and the address:port of its control and service.",
            ),
            text(
                "rule", "{}", "Rule as a JSON object with metric, policy, target, minimum, maximum."
            ),
            period("metric_interval_ns", "1s", "50ms", "1h", "Interval of the metric's values."),
            period("metric_lag_ns", "0s", "0s", "1h", "Age of a value when the rule sees it."),
            period("decision_interval_ns", "15s", "50ms", "1h", "Time between decisions."),
            period("boot_ns", "0s", "0s", "1h", "Mean time from creation to the service's start."),
            period("warm_up_ns", "0s", "0s", "1h", "Mean time from there to readiness."),
            ParamSpec(
                "delay_cv_ratio",
                "float",
                "ratio",
                0.0,
                "Coefficient of variation of boot and warm-up times (log-normal).",
                min=0.0,
                max=10.0,
            ),
            whole(
                "seed",
                0,
                0,
                2**63 - 1,
                "Seed of delays and of its clock's phase to the load; 0 takes that of the round.",
            ),
            whole("initial", 1, 0, 1000, "Machines in rotation at the start."),
            period("timeout_ns", "10s", "1ms", "1h", "Time in which a machine has to respond."),
            ParamSpec(
                "cpus",
                "float",
                "cpus",
                1.0,
                "CPUs of a machine, for its utilisation.",
                min=0.01,
                max=4096.0,
            ),
            *_REPORT,
        ),
        metrics=(
            *_watched("Number of decisions."),
            *_decided("machine", "the rule", "and why: rule, maximum, minimum, cooldown."),
        ),
        command=_reference,
        parse=_parse,
        overhead="the CPU time of HAProxy and of a Python program that asks it 50 times a second",
        measures="""
Nothing by itself: it is an autoscaler whose every setting is known, so that measures of elasticity
can be checked against it, and other autoscalers compared with it.""",
        how="""
HAProxy runs in a scratch folder. Every 20 ms its counters are read over its administration socket.
Each interval of the metric yields a value (utilisation of the machines' CPUs, requests in the
system per machine, response time by Little's law, requests per second and machine), which the rule
sees after the lag. A decision starts machines, or takes the youngest out of rotation; these finish
their requests before they are stopped.""",
        truth="""
Lag, interval, boot and warm-up times are settings, which the log of its steps has to show.""",
        cross_check="`autoscaler.observed` watches the number of instances from outside.",
        caveats="Its log is kept to 1 MiB: about 8,000 values and decisions.",
    ),
    adapter(
        OBSERVED,
        "Watches any autoscaler by a command that prints the number of instances",
        **_COMMON,
        params=(
            balancer.ADDRESS,
            _PORT,
            text("command", "", "Command for the shell that prints the number of instances."),
            period("interval_ns", "1s", "50ms", "1h", "Time between its calls."),
            period("limit_ns", "10s", "50ms", "1h", "Time limit of a call."),
            *_REPORT,
        ),
        metrics=(
            *_watched("Always 0: decisions are not seen."),
            balancer.events("unobserved_count", "Failures of the command, by what was wrong."),
        ),
        command=_observed,
        parse=_parse,
        overhead="the CPU time of the command",
        measures="Nothing by itself: the number of instances over time, as a command prints it.",
        how="""
The command is called by the shell at each interval, and each change of its number is logged with
the time at which the call ended.""",
        truth="Numbers that a file has at set times are logged at these.",
        cross_check="`autoscaler.reference` states its own number.",
        caveats="A change is seen up to an interval and the duration of a call late.",
    ),
    adapter(
        MANAGED,
        "Follows an autoscaler of a cluster or a cloud by its API",
        **_COMMON,
        params=(
            balancer.ADDRESS,
            _PORT,
            choice("kind", ("hpa", "ec2"), "A HorizontalPodAutoscaler, or an EC2 scaling group."),
            text("name", "", "Its name."),
            text("place", "default", "Its namespace, or its region."),
            text("context", "", "Context of the kubeconfig; by default its current one."),
            text(
                "endpoint", "", "Kubeconfig, or URL of the API; by default as the API's own tools."
            ),
            text("path", "/", "Path of the service, to see an instance's first response."),
            period("interval_ns", "1s", "50ms", "1h", "Time between reads of the metric."),
            ParamSpec(
                "tolerance_ratio",
                "float",
                "ratio",
                0.1,
                "Tolerance of the HPA's controller.",
                min=0.0,
                max=10.0,
            ),
            period("cpu_initialisation_ns", "5min", "0s", "24h", "Flag of the HPA's controller."),
            period("readiness_delay_ns", "30s", "0s", "24h", "Flag of the HPA's controller."),
            period(
                "downscale_stabilisation_ns", "5min", "0s", "24h", "Flag of the HPA's controller."
            ),
            *_REPORT,
        ),
        metrics=(
            *_watched("Number of decisions."),
            *_decided("instance", "its formula", "and what changed the wanted one."),
            balancer.events(
                "deviations_count", "Decisions that do not follow from what was visible."
            ),
            balancer.events("unobserved_count", "Failures of the API, by what was wrong."),
        ),
        command=_managed,
        parse=_parse,
        overhead="one request for the metric each interval, and open watches or lists",
        measures="""
Nothing by itself: what an autoscaler of others sees, decides and starts, as its API shows it.""",
        how="""
Objects of Kubernetes are watched, so that a step is logged when the API reports it; the metric is
read from the metrics API at each interval. Groups of EC2 are read at each interval, with the times
that their activities state. Each change of the number is held to the documented rules.""",
        truth="A planted metric, and pods of a real cluster whose steps its node logs.",
        cross_check="`autoscaler.observed` watches the number of instances from outside.",
        caveats="""
A step is seen when the API reports it. The value that the autoscaler read is known only to an
interval; a deviation is a decision that no value of that time explains.""",
    ),
    adapter(
        INSTANCE,
        "A machine that an autoscaler starts and removes",
        **_COMMON,
        params=(
            balancer.ADDRESS,
            _PORT,
            text("service", "127.0.0.1:8080", "Address:port of its service."),
            whole("workers", 1, 1, 1024, "Workers of the service."),
            ParamSpec(
                "distribution",
                "choice",
                "none",
                "fixed",
                "Distribution of its service times.",
                choices=("fixed", "exponential"),
            ),
            period("service_mean_ns", "10ms", "1us", "1h", "Mean service time of /service."),
        ),
        metrics=(
            balancer.metric("ended_count", "1: it was stopped in order.", headline=True),
            balancer.CPU,
            balancer.STARTED,
        ),
        command=_instance,
        parse=_parse_instance,
        overhead="the CPU time of its service, `http.serve`",
        measures="Nothing by itself: the machines that `autoscaler.reference` scales.",
        how="""
A control over HTTP starts `http.serve` after a boot time, states that it is healthy after a warm-up
time, and stops it.""",
        truth="Its service is `http.serve`, with known service times.",
        cross_check="No other program: it is a fixture.",
        caveats="It runs on hosts that share the files of this machine: local, and bare lab hosts.",
    ),
)
