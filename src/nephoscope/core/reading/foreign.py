"""One reader of a user's YAML or JSON file: a mapping of the wanted kind, or one sentence.

A file of another program is named, instead of a list of the keys that are unknown in it.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection, Mapping
from itertools import islice
from typing import Any

from pydantic import BaseModel

from nephoscope.core.errors import PlanError
from nephoscope.core.format_versions import written_by_people
from nephoscope.core.reading import yamltext
from nephoscope.core.reading.sentences import place_in

_Document = Mapping[str, Any]

_MAPPINGS: tuple[tuple[str, Callable[[_Document], bool]], ...] = (
    ("a Pyrra SLO", lambda d: _version(d).startswith("pyrra.dev/")),
    ("a Sloth specification", lambda d: _version(d).startswith("sloth.slok.dev/")),
    ("a Sloth specification", lambda d: "slos" in d and "service" in d),
    ("a Nobl9 object", lambda d: _version(d).startswith("n9/")),
    ("an OpenSLO document", lambda d: _version(d).startswith("openslo")),
    ("an SLO of Google Cloud", lambda d: "serviceLevelIndicator" in d and "goal" in d),
    ("a Docker Compose file", lambda d: _some(d, "services", {"image", "build"})),
    ("a Kubernetes object", lambda d: "apiVersion" in d and "kind" in d),
    ("a file of Prometheus rules", lambda d: _some(d, "groups", {"rules"})),
    ("a configuration of Prometheus", lambda d: "scrape_configs" in d),
    ("a response of Prometheus", lambda d: "status" in d and _has(d, "data", {"resultType"})),
    ("an Ansible inventory", lambda d: _has(d, "all", {"hosts", "children"})),
    ("an Ansible inventory", lambda d: bool(d) and all(_has(d, k, {"hosts"}) for k in d)),
    ("an AWS price list", lambda d: "offerCode" in d and "formatVersion" in d),
    ("a response of Azure Retail Prices", lambda d: "Items" in d and "BillingCurrency" in d),
    ("a Terraform state", lambda d: "terraform_version" in d),
    ("a contract of `nephoscope sla`", lambda d: "sla" in d and "objectives" in d),
    ("a plan of `nephoscope run`", lambda d: "benchmarks" in d),
    ("a price book", lambda d: "offers" in d or "egress" in d),
)
_LISTS: tuple[tuple[str, frozenset[str]], ...] = (
    ("an Ansible playbook", frozenset({"hosts"})),
    ("the list of instances of ec2instances.info", frozenset({"instance_type", "pricing"})),
)
_TABLES: tuple[tuple[str, frozenset[str]], ...] = (
    ("a legacy AWS cost and usage report", frozenset({"lineItem/UsageType"})),
    ("an AWS cost and usage report (CUR 2.0)", frozenset({"line_item_usage_type"})),
    ("a price list of AWS in CSV", frozenset({"TermType", "PricePerUnit"})),
    ("a cost export of Azure", frozenset({"MeterCategory", "MeterId"})),
    ("a cost export of Azure", frozenset({"meterCategory", "meterId"})),
    ("a billing export of Google Cloud", frozenset({"service.description"})),
    ("a bill in the FOCUS format", frozenset({"ChargeCategory", "EffectiveCost"})),
    ("a file of events of `nephoscope sla watch`", frozenset({"time", "ok"})),
    ("a price book", frozenset({"on_demand_per_h", "currency"})),
)
_TEXTS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("a saved simulation of CloudAnalyst", ("<?xml", "java.beans.xmldecoder", "cloudanalyst")),
    ("an XML file", ("<?xml",)),
    ("a page in HTML", ("<!doctype html",)),
    ("a page in HTML", ("<html",)),
)


def _version(values: _Document) -> str:
    return str(values.get("apiVersion", ""))


def _has(values: _Document, key: str, any_of: set[str]) -> bool:
    inner = values.get(key)
    return isinstance(inner, Mapping) and not any_of.isdisjoint(inner)


def _some(values: _Document, key: str, any_of: set[str]) -> bool:
    inner = values.get(key)
    parts = inner.values() if isinstance(inner, Mapping) else inner
    return isinstance(inner, Mapping | list) and any(
        isinstance(part, Mapping) and not any_of.isdisjoint(part) for part in parts or ()
    )


def format_of(values: Any) -> str:
    """Returns the name of the format of a document with its article; empty where it is unknown."""
    if isinstance(values, Mapping):
        return next((name for name, is_it in _MAPPINGS if is_it(values)), "")
    first = values[0] if isinstance(values, list) and values else None
    keys = set(first) if isinstance(first, Mapping) else set()
    return next((name for name, marks in _LISTS if marks <= keys), "")


def table_format_of(columns: Collection[str]) -> str:
    """Returns the name of the format of a table by its columns; empty where it is unknown."""
    return next((name for name, marks in _TABLES if marks <= set(columns)), "")


def text_format_of(text: str) -> str:
    """Returns the name of the format of a text that is no YAML; empty where it is unknown."""
    head = text[:2000].lstrip("\ufeff \t\r\n").lower()
    for name, (first, *marks) in _TEXTS:
        if head.startswith(first) and all(mark in head for mark in marks):
            return name
    return ""


def mapping_in(
    text: str, name: str, what: str, record: type[BaseModel] | None = None, hint: str = ""
) -> dict[str, Any]:
    """Returns the mapping of a YAML text. what: the kind of file, in sentences.

    record: what such a file gives; with none of its keys it is another kind of file. Raises
    PlanError with one sentence for that, and with place for what is no YAML.
    """
    if kind := text_format_of(text):
        raise PlanError(f"{name}: this is {kind}, not a {what}.", hint)
    values = mapping_of(yamltext.parse(text, name), name, what, record, hint)
    _refuse_later_version(values, text, name, what)
    return values


def _refuse_later_version(values: Mapping[str, Any], text: str, name: str, what: str) -> None:
    """Raises PlanError for a version of a later program, whose other keys may be unknown here."""
    known = written_by_people(what)
    key = known.key.strip("`") if known else ""
    if known is not None and known.is_later(values.get(key)):
        where = f"{place_in(text, name)((key,))}the {what}"
        sentence, step = known.refusal(where, values[key])
        raise PlanError(sentence, f"{step[:-1]}, or write the file for version {known.version}.")


def mapping_of(
    values: Any, name: str, what: str, record: type[BaseModel] | None = None, hint: str = ""
) -> dict[str, Any]:
    """As `mapping_in`, of the values of a text."""
    fields = record.model_fields.items() if record else ()
    known = [field.alias or key for key, field in fields]
    hint = hint or f"Keys: {', '.join(known)}."
    is_wanted = isinstance(values, dict) and (
        not known
        or not values
        or not values.keys().isdisjoint(known)
        or any(_is_near(key, known) for key in islice(values, _SIMILAR_KEYS))
    )
    if is_wanted:
        return dict(values)
    if values is None:
        raise PlanError(f"{name}: the {what} is empty.", hint)
    if actual_format := format_of(values):
        raise PlanError(f"{name}: this is {actual_format}, not a {what}.", hint)
    if not isinstance(values, dict):
        kind = _KINDS.get(type(values), "a number")
        raise PlanError(f"{name}:1:1: a {what} is a mapping of keys, not {kind}.", hint)
    # In quotes, because the readers of files that other files name remove what is quoted.
    keys = ", ".join(f"'{str(key)[:40]}'" for key in list(values)[:5])
    raise PlanError(f"{name}: this is no {what}: it has none of its keys, but {keys}.", hint)


_SIMILAR_KEYS = 100
"""Keys of a file that are compared with the wanted ones letter by letter."""

_KINDS: Mapping[type, str] = {list: "a list", str: "a text", bool: "a switch"}


def _is_near(key: Any, known: Collection[str]) -> bool:
    return bool(difflib.get_close_matches(str(key), known, n=1))
