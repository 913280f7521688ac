"""What every action shares: the call, the table of actions, filters, pages, tokens, tags."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from . import catalogue, wire
from .cloud import Cloud, Resource
from .errors import ApiError, not_found


@dataclass
class Call:
    """One request. at: how old its view is, at the latest `now`; p: parameters, as in boto3."""

    cloud: Cloud
    region: str
    action: str
    p: Mapping[str, Any]
    now: float
    at: float
    key: str = ""

    def find(self, kind: str, id: str) -> Resource:
        return self.cloud.find(kind, self.region, id, self.at)

    def all(self, kind: str, at: float | None = None) -> list[Resource]:
        return self.cloud.of_kind(kind, self.region, self.at if at is None else at)

    def strikes(self, fault: str) -> bool:
        return self.cloud.faults.strikes(fault, self.action)


Handler = Callable[[Call], dict[str, Any]]
ACTIONS: dict[tuple[str, str], Handler] = {}


def action(name: str, service: str = "ec2") -> Callable[[Handler], Handler]:
    """Enters a function into the table of actions."""

    def entered(function: Handler) -> Handler:
        ACTIONS[service, name] = function
        return function

    return entered


def once(call: Call, make: Callable[[], Any]) -> Any:
    """Makes something once for each client token.

    "If you retry a request that completed successfully using the same client token and the same
    parameters, the retry succeeds without performing any further actions. If you retry a successful
    request using the same client token, but one or more of the parameters are different, ... the
    retry fails with an IdempotentParameterMismatch error."; a failed request uses up no token.
    https://docs.aws.amazon.com/AWSEC2/latest/APIReference/Run_Instance_Idempotency.html
    """
    token = call.p.get("ClientToken")
    if not token:
        return make()
    if len(token) > 64 or not token.isascii():
        raise ApiError("InvalidParameterValue", "Client token is longer than 64 ASCII characters")
    place = (call.region, call.action, token)
    given = json.dumps(call.p, sort_keys=True)
    if place in call.cloud.tokens:
        before, made = call.cloud.tokens[place]
        if before != given:
            raise ApiError(
                "IdempotentParameterMismatch",
                "The client token used in this request has been used before with other parameters",
            )
        return made
    made = make()
    call.cloud.tokens[place] = (given, made)
    return made


def tags_for(
    call: Call, kind: str, specifications: Iterable[Mapping[str, Any]] | None = None
) -> dict[str, str]:
    """Tags at creation. https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/Using_Tags.html"""
    found: dict[str, str] = {}
    for each in (
        specifications if specifications is not None else call.p.get("TagSpecifications", ())
    ):
        if each.get("ResourceType") == kind:
            found |= checked_tags(each.get("Tags", ()))
    return found


def checked_tags(tags: Sequence[Mapping[str, str]]) -> dict[str, str]:
    for tag in tags:
        key, value = tag.get("Key", ""), tag.get("Value", "")
        if not key or len(key) > 128 or len(value) > 256 or key.lower().startswith("aws:"):
            raise ApiError("InvalidParameterValue", f"Tag key or value is not valid: {key}")
    if len(tags) > 50:
        raise ApiError("TagLimitExceeded", "The maximum number of tags is 50")
    return {tag["Key"]: tag.get("Value", "") for tag in tags}


def tag_list(resource: Resource, at: float) -> list[dict[str, str]]:
    return [{"Key": k, "Value": v} for k, v in sorted(resource.tags_at(at).items())]


Field = Callable[[Resource, float], str | Iterable[str]]


def described(
    call: Call,
    kind: str,
    ids: Sequence[str],
    fields: Mapping[str, Field],
    show: Callable[[Resource, float], Any],
    member: str,
    *,
    names: Sequence[str] = (),
) -> dict[str, Any]:
    """An answer of a Describe action: chosen by ids, names and filters, in pages.

    One id that is not there fails the whole request.
    """
    found = call.all(kind)
    if ids:
        found = [call.find(kind, id) for id in dict.fromkeys(ids)]
    if names:
        found = [named(call, kind, name, at=call.at) for name in names]
    found = [each for each in found if _passes(call, each, fields)]
    found.sort(key=lambda each: (each.created, each.id))
    page, token = paged(call, found, bool(ids))
    answer: dict[str, Any] = {member: [show(each, call.at) for each in page]}
    if token:
        answer["NextToken"] = token
    return answer


def named(call: Call, kind: str, name: str, at: float | None = None) -> Resource:
    """The one of a kind with a name. Raises ApiError when there is none."""
    for each in call.all(kind, at):
        if each.data.get("name") == name:
            return each
    raise not_found(kind, name)


def _passes(call: Call, resource: Resource, fields: Mapping[str, Field]) -> bool:
    for one in call.p.get("Filters", ()):
        name, values = one.get("Name", ""), one.get("Values", ())
        tags = resource.tags_at(call.at)
        if name.startswith("tag:"):
            has: str | Iterable[str] = [tags[name[4:]]] if name[4:] in tags else []
        elif name == "tag-key":
            has = list(tags)
        elif name in fields:
            has = fields[name](resource, call.at)
        else:
            raise ApiError("InvalidParameterValue", f"The filter '{name}' is invalid")
        has = [has] if isinstance(has, str) else has
        if not any(wire.matches(value, each) for each in has for value in values):
            return False
    return True


def paged(call: Call, found: list[Any], by_id: bool = False) -> tuple[list[Any], str]:
    """A page of at most MaxResults, and the token of the next one.

    "You cannot specify this parameter and a list of resources in the same request":
    https://docs.aws.amazon.com/AWSEC2/latest/APIReference/Query-Requests.html#api-pagination
    """
    size, start = call.p.get("MaxResults"), call.p.get("NextToken", "")
    if size is None and by_id:
        size = len(found)
    elif size is None:
        # Without a size an answer may have fewer than all too; a token tells so.
        size = call.cloud.settings["page"]
    elif by_id:
        raise ApiError(
            "InvalidParameterCombination", "The parameter MaxResults cannot be used with ids"
        )
    first = int(start.removeprefix("page-")) if start else 0
    page = found[first : first + size]
    return page, f"page-{first + size}" if first + size < len(found) else ""


def need_quota(call: Call, code: str, used: float, more: float, error: str, what: str) -> None:
    limit = call.cloud.quotas[code]
    if used + more > limit:
        raise ApiError(
            error, f"You have requested more {what} than your current limit of {limit:g} allows"
        )


def need_zone(call: Call, zone: str) -> str:
    if zone not in catalogue.REGIONS[call.region]:
        raise ApiError("InvalidParameterValue", f"Invalid availability zone: [{zone}]")
    return zone
