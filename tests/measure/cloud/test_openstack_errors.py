"""Errors of OpenStack's library, as causes: what follows depends on them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.clouds.openstack.fixtures import library

from nephoscope.measure.cloud.provider import Cause, CloudError

WORDS = [
    (401, "The request you have made requires authentication.", Cause.CREDENTIALS),
    (403, "Policy doesn't allow it to be performed.", Cause.CREDENTIALS),
    (403, "Quota exceeded for instances: Requested 1, but already used 10 of 10", Cause.QUOTA),
    (404, "Instance abc could not be found.", Cause.UNKNOWN),
    (400, "Can not find requested image", Cause.UNKNOWN),
    (400, "The requested availability zone is not available", Cause.UNKNOWN),
    (400, "Invalid volume: Volume status must be available or error", Cause.IN_USE),
    (409, "Security Group abc in use.", Cause.IN_USE),
    (409, "Cannot 'stop' instance while it is in vm_state building", Cause.IN_USE),
    (429, "Too many requests", Cause.THROTTLED),
    (500, "Unexpected API Error.", Cause.UNANSWERED),
    (503, "Service Unavailable", Cause.UNANSWERED),
    (400, "No valid host was found. There are not enough hosts available.", Cause.CAPACITY),
]


def raised(error: Exception) -> CloudError:
    library("openstack")
    from nephoscope.measure.cloud.providers.openstack_errors import translated

    with pytest.raises(CloudError) as caught, translated("starting machines", "RegionOne"):
        raise error
    assert caught.value.__cause__ is None
    assert "\n" not in str(caught.value)
    return caught.value


def answered(status: int, words: str) -> Exception:
    import requests

    answer = requests.Response()
    answer.status_code = status
    answer.url = "http://127.0.0.1/v2.1/servers"
    answer.headers["Content-Type"] = "application/json"
    answer._content = json.dumps({"badRequest": {"message": words, "code": status}}).encode()
    exceptions: Any = library("openstack").exceptions
    try:
        exceptions.raise_from_response(answer)
    except exceptions.HttpException as error:
        made: Exception = error
        return made
    raise AssertionError(status)


@pytest.mark.parametrize(("status", "words", "cause"), WORDS)
def test_an_answer_has_a_cause(status: int, words: str, cause: Cause) -> None:
    library("openstack")
    error = raised(answered(status, words))
    assert error.cause is cause
    assert words.rstrip(".") in error.message


def test_a_connection_that_came_about_leaves_it_open_whether_something_was_done() -> None:
    library("openstack")
    import requests
    from keystoneauth1 import exceptions as identity
    from urllib3.connection import HTTPConnection
    from urllib3.exceptions import NewConnectionError, ProtocolError

    def failed(reason: Exception) -> Exception:
        try:
            try:
                raise requests.ConnectionError(reason)
            except requests.ConnectionError as error:
                raise identity.ConnectFailure(f"Unable to establish connection: {error}")  # noqa: B904
        except identity.ConnectFailure as error:
            return error

    refused = NewConnectionError(HTTPConnection("127.0.0.1"), "Connection refused")
    assert raised(failed(refused)).cause is Cause.UNREACHABLE
    assert raised(failed(ProtocolError("Connection aborted."))).cause is Cause.UNANSWERED
    assert raised(json.JSONDecodeError("Expecting value", "", 0)).cause is Cause.UNANSWERED


def test_missing_credentials_are_one_sentence_with_the_next_step() -> None:
    library("openstack")
    from openstack import exceptions

    error = raised(exceptions.ConfigException("Cloud nope was not found."))
    assert error.cause is Cause.CREDENTIALS
    assert "clouds.yaml" in error.hint
