"""Refuses options of `elastic` that the others leave without effect."""

from __future__ import annotations

from dataclasses import fields

from nephoscope.cli.kit import options
from nephoscope.core.errors import UsageError
from nephoscope.features.elastic.options import ElasticArguments, LabOptions


def check(args: ElasticArguments) -> None:
    """Raises UsageError for the first option without effect."""
    observer = "--observe" if args.observe else "--autoscaler" if args.autoscaler else ""
    _check_service(args, observer)
    _check_load(args)
    if args.bill is not None and not args.contract:
        raise UsageError("--bill is of --contract.", "Add --contract, or omit --bill.")
    if args.url and observer:
        _check_observed(args, observer)
    elif args.url:
        _check_growth(args)


def _check_service(args: ElasticArguments, observer: str) -> None:
    if args.observe and args.autoscaler:
        raise UsageError("--observe and --autoscaler exclude each other.", "Omit one.")
    if observer and not args.url:
        raise UsageError(f"{observer} is of --url.", f"Add --url, or omit {observer}.")
    if args.autoscaler and args.target != "local":
        raise UsageError(
            "--autoscaler is followed from this machine.", "Omit --target, or use --observe."
        )
    of_lab = options.stated(field.name for field in fields(LabOptions))
    if args.url and of_lab:
        raise UsageError(
            f"{of_lab[0]} is of the lab's autoscaler.", f"Omit --url, or omit {of_lab[0]}."
        )
    of_url = options.stated(("observe_interval_ns", "target", "authorised_hosts", "generators"))
    if not args.url and of_url:
        raise UsageError(f"{of_url[0]} is of --url.", f"Add --url, or omit {of_url[0]}.")


def _check_load(args: ElasticArguments) -> None:
    of_profile = options.stated(("profile", "low", "high"))
    if args.load.trace is not None and of_profile:
        raise UsageError(
            f"--trace states the rates, and so does {of_profile[0]}.", f"Omit {of_profile[0]}."
        )
    if args.load.capacity is not None and args.budget is not None:
        raise UsageError("With --capacity nothing is searched within --budget.", "Omit one.")


def _check_observed(args: ElasticArguments, observer: str) -> None:
    if args.generators:
        raise UsageError(
            f"Several generators are for --url alone, and {observer} is followed with one.",
            f"Omit --generators, or omit {observer}.",
        )
    if args.load.capacity is None:
        raise UsageError(
            "The demand needs the capacity of one instance.",
            f"Run `nephoscope capacity {args.url} --objective '{args.load.objective}'` while one "
            "instance serves, and state its result with --capacity.",
        )


def _check_growth(args: ElasticArguments) -> None:
    of_instances = options.stated(
        ("capacity", "trace", "observe_interval_ns", "billing_ns", "attack", "budget", "contract")
    )
    if of_instances:
        raise UsageError(
            f"{of_instances[0]} needs the number of instances of --url.",
            f"Add --observe or --autoscaler, or omit {of_instances[0]}.",
        )
    if options.stated(("profile",)) and args.load.profile != "ramp":
        raise UsageError(
            f"The growth of --url alone is seen by ramps, and not by --profile "
            f"{args.load.profile}.",
            "Add --observe or --autoscaler, or omit --profile.",
        )
