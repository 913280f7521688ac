"""Requests and answers of the AWS Query and JSON protocols, read and written by botocore's models.

The shapes of every action come from the same model files as the real boto3's, so that what the
double takes and returns is what the real service's description says.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qsl
from xml.sax.saxutils import escape

import botocore.session
from botocore.model import ServiceModel, Shape

from .errors import ApiError


@functools.cache
def service(name: str) -> ServiceModel:
    """The description of a service, as botocore has it."""
    return botocore.session.get_session().get_service_model(name)


def warm_up() -> None:
    """Loads the largest description before the first request is measured by a time-out."""
    service("ec2")


Tree = dict[str, Any]

_DECLARATION = '<?xml version="1.0" encoding="UTF-8"?>\n'


def tree_of(body: str) -> Tree:
    """`a.1.b=c` becomes {"a": {"1": {"b": "c"}}}; a leaf is a text."""
    tree: Tree = {}
    for key, value in parse_qsl(body, keep_blank_values=True):
        *path, last = key.split(".")
        here = tree
        for step in path:
            here = here.setdefault(step, {})
        here[last] = value
    return tree


def parameters(model: ServiceModel, action: str, tree: Tree) -> dict[str, Any]:
    """The parameters of a request of the Query protocols, under the names that boto3 uses."""
    shape = model.operation_model(action).input_shape
    given = {k: v for k, v in tree.items() if k not in ("Action", "Version")}
    return _read(model.metadata["protocol"], shape, given) if shape is not None else {}


def _key(protocol: str, name: str, shape: Shape) -> str:
    serialization = shape.serialization
    if protocol != "ec2":
        return str(serialization.get("name", name))
    if "queryName" in serialization:
        return str(serialization["queryName"])
    if "name" in serialization:
        return serialization["name"][:1].upper() + serialization["name"][1:]
    return name


def _read(protocol: str, shape: Any, value: Any) -> Any:
    if shape.type_name == "structure":
        members = {
            name: (member, value[key])
            for name, member in shape.members.items()
            if (key := _key(protocol, name, member)) in value
        }
        known = {_key(protocol, name, member) for name, member in shape.members.items()}
        if unknown := set(value) - known:
            # https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html
            raise ApiError("UnknownParameter", f"The parameter {min(unknown)} is not recognized")
        return {name: _read(protocol, member, given) for name, (member, given) in members.items()}
    if shape.type_name == "list":
        if protocol != "ec2" and not shape.serialization.get("flattened"):
            value = value.get(shape.member.serialization.get("name", "member"), {})
        ordered = sorted(value, key=int)
        return [_read(protocol, shape.member, value[number]) for number in ordered]
    return _scalar(shape.type_name, value)


def _scalar(type_name: str, text: str) -> Any:
    if type_name == "boolean":
        return text == "true"
    if type_name in ("integer", "long"):
        return int(text)
    if type_name in ("float", "double"):
        return float(text)
    if type_name == "timestamp":
        return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()
    return text


def answer(model: ServiceModel, action: str, values: Mapping[str, Any], request: str) -> str:
    """The XML of a successful answer. Raises KeyError for a member that the service has not."""
    shape = model.operation_model(action).output_shape
    inner = _members(shape, values) if shape is not None else ""
    namespace = model.metadata.get(
        "xmlNamespace", f"http://ec2.amazonaws.com/doc/{model.api_version}/"
    )
    if model.metadata["protocol"] == "ec2":
        body = f"<requestId>{request}</requestId>{inner}"
        if shape is None or not shape.members:
            body += "<return>true</return>"
    else:
        body = (
            f"<{action}Result>{inner}</{action}Result>"
            f"<ResponseMetadata><RequestId>{request}</RequestId></ResponseMetadata>"
        )
    return f'{_DECLARATION}<{action}Response xmlns="{namespace}">{body}</{action}Response>'


def _members(shape: Any, values: Mapping[str, Any]) -> str:
    parts = []
    for name, value in values.items():
        member = shape.members[name]
        if value is not None:
            parts.append(_write(member, value, member.serialization.get("name", name)))
    return "".join(parts)


def _write(shape: Any, value: Any, name: str) -> str:
    if shape.type_name == "structure":
        inner = _members(shape, value)
    elif shape.type_name == "list":
        item = shape.member.serialization.get("name", "member")
        inner = "".join(_write(shape.member, each, item) for each in value)
    elif shape.type_name == "boolean":
        inner = "true" if value else "false"
    elif shape.type_name == "timestamp":
        inner = (
            f"{datetime.fromtimestamp(value, UTC):%Y-%m-%dT%H:%M:%S.}{int(value % 1 * 1000):03d}Z"
        )
    else:
        inner = escape(str(value))
    return f"<{name}>{inner}</{name}>"


def error(model: ServiceModel, problem: ApiError, request: str) -> tuple[str, str]:
    """The content type and the text of an error."""
    code, message = escape(problem.code), escape(str(problem))
    protocol = model.metadata["protocol"]
    if protocol == "json":
        return "application/x-amz-json-1.1", json.dumps(
            {"__type": problem.code, "message": str(problem)}
        )
    if protocol == "ec2":
        text = (
            f"<Response><Errors><Error><Code>{code}</Code><Message>{message}</Message></Error>"
            f"</Errors><RequestID>{request}</RequestID></Response>"
        )
    else:
        text = (
            f"<ErrorResponse><Error><Type>Sender</Type><Code>{code}</Code><Message>{message}"
            f"</Message></Error><RequestId>{request}</RequestId></ErrorResponse>"
        )
    return "text/xml;charset=UTF-8", _DECLARATION + text


def matches(pattern: str, text: str) -> bool:
    """Whether a filter's value fits: `*` and `?` are wildcards, `\\` takes their meaning away.

    https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/Using_Filtering.html
    """
    words = {"*": ".*", "?": "."}
    parts = re.findall(r"\\.|.", pattern, re.DOTALL)
    made = "".join(words.get(part) or re.escape(part[-1]) for part in parts)
    return re.fullmatch(made, text, re.DOTALL) is not None
