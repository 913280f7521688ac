"""Errors of the AWS libraries and interfaces in this project's words.

Codes: https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html
"""

from __future__ import annotations

import contextlib
import email.utils
import time
from collections.abc import Iterator

from botocore import exceptions
from botocore.parsers import ResponseParserError
from urllib3.exceptions import HTTPError

from nephoscope.measure.cloud.provider import Cause, CloudError

_CREDENTIALS = frozenset(
    {
        "AccessDenied",
        "AccessDeniedException",
        "AuthFailure",
        "Blocked",
        "ExpiredToken",
        "ExpiredTokenException",
        "IncompleteSignature",
        "InvalidAccessKeyId",
        "InvalidClientTokenId",
        "MissingAuthenticationToken",
        "OptInRequired",
        "PendingVerification",
        "SignatureDoesNotMatch",
        "UnauthorizedOperation",
        "UnrecognizedClientException",
    }
)
_CAPACITY = frozenset(
    {
        "InsufficientCapacity",
        "InsufficientHostCapacity",
        "InsufficientInstanceCapacity",
        "InsufficientReservedInstanceCapacity",
        "InsufficientVolumeCapacity",
        "SpotMaxPriceTooLow",
    }
)
_THROTTLED = frozenset(
    {
        "EC2ThrottledException",
        "RequestLimitExceeded",
        "RequestThrottled",
        "SlowDown",
        "Throttling",
        "ThrottlingException",
        "TooManyRequestsException",
    }
)
_IN_USE = frozenset(
    {
        "DependencyViolation",
        "IncorrectInstanceState",
        "IncorrectState",
        "ResourceInUse",
        "VolumeInUse",
    }
)
_UNKNOWN = frozenset(
    {
        "InvalidAvailabilityZone",
        "InvalidInstanceType",
        "InvalidPlacementGroup.Unknown",
        "NoSuchBucket",
        "NoSuchKey",
        "UnknownVolumeType",
        "Unsupported",
    }
)

# A clock that differs by more than this explains a request that has expired.
_CLOCK_S = 300.0

_HINTS = {
    Cause.CREDENTIALS: "Check them with `aws sts get-caller-identity`, and the permissions against "
    "`nephoscope cloud policy ec2`.",
    Cause.CLOCK: "Set the clock of this machine, e.g. with `timedatectl set-ntp true`.",
    Cause.QUOTA: "Ask for a higher quota, choose a smaller type or another region.",
    Cause.CAPACITY: "Try another zone or type, or later.",
    Cause.UNREACHABLE: "Check the network, the region's name and the endpoint.",
}


def action_of(operation: str) -> str:
    """Returns the interface's name of one of boto3's operations: RunInstances."""
    return "".join(word.capitalize() for word in operation.split("_"))


def code_of(error: exceptions.ClientError) -> str:
    """Returns the code of an error that the cloud answered."""
    return str(error.response.get("Error", {}).get("Code", ""))


def is_missing(code: str) -> bool:
    """Returns whether a code states that there is no such resource."""
    ends = (".NotFound", ".Unknown", ".Unavailable", "NotFoundException", "LoadBalancerNotFound")
    return code.endswith(ends)


def incomplete(operation: str) -> CloudError:
    """Returns the error for an answer that lacks its content: JSON that was cut is taken for empty
    by the library."""
    return CloudError(Cause.UNANSWERED, f"EC2: {operation}: the answer is incomplete.")


def cause_of(code: str, status: int, message: str, skew_s: float) -> Cause:
    """Returns the cause behind an error code. skew_s: the cloud's clock minus this machine's."""
    if code in _THROTTLED:
        return Cause.THROTTLED
    if code in ("RequestExpired", "RequestTimeTooSkewed") or "Signature expired" in message:
        # Of EC2 this code is also that of temporary credentials after their time.
        return Cause.CLOCK if abs(skew_s) > _CLOCK_S else Cause.CREDENTIALS
    if code in _CREDENTIALS:
        return Cause.CREDENTIALS
    if code in _CAPACITY:
        return Cause.CAPACITY
    # OpenStack's EC2 interface has no code of its own for quotas.
    if code.endswith(("LimitExceeded", "CountExceeded")) or "quota" in message.lower():
        return Cause.QUOTA
    if code in _IN_USE or code.endswith(".InUse") or "ttachment point" in message:
        return Cause.IN_USE
    named = ("InstanceType", "availability zone", "Invalid region", "invalid subnet")
    if code in _UNKNOWN or is_missing(code) or any(word in message for word in named):
        return Cause.UNKNOWN
    return Cause.UNANSWERED if status >= 500 else Cause.REFUSED


def _skew_s(error: exceptions.ClientError) -> float:
    date = error.response.get("ResponseMetadata", {}).get("HTTPHeaders", {}).get("date", "")
    try:
        return email.utils.parsedate_to_datetime(date).timestamp() - time.time()
    except ValueError:
        return 0.0


def _answered(error: exceptions.ClientError, doing: str, service: str) -> CloudError:
    code = code_of(error)
    message = str(error.response.get("Error", {}).get("Message", "")).rstrip(".")
    status = int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 400))
    cause = cause_of(code, status, message, _skew_s(error))
    return CloudError(cause, f"{service}: {doing}: {message} ({code}).", _HINTS.get(cause, ""))


@contextlib.contextmanager
def translating(doing: str, service: str = "EC2") -> Iterator[None]:
    """Turns errors of botocore into CloudError. doing: the action and its region."""
    try:
        yield
    except exceptions.ClientError as error:
        raise _answered(error, doing, service) from None
    except (
        exceptions.NoCredentialsError,
        exceptions.PartialCredentialsError,
        exceptions.CredentialRetrievalError,
        exceptions.ProfileNotFound,
        exceptions.TokenRetrievalError,
        exceptions.SSOError,
    ) as error:
        hint = "Write credentials with `aws configure`, or name a profile that has some."
        raise CloudError(Cause.CREDENTIALS, f"{service}: {doing}: {error}.", hint) from None
    except (exceptions.InvalidRegionError, exceptions.NoRegionError) as error:
        raise CloudError(Cause.UNKNOWN, f"{service}: {doing}: {error}.") from None
    except (
        exceptions.EndpointConnectionError,
        exceptions.ConnectTimeoutError,
        exceptions.ProxyConnectionError,
        exceptions.SSLError,
    ) as error:
        hint = _HINTS[Cause.UNREACHABLE]
        raise CloudError(Cause.UNREACHABLE, f"{service}: {doing}: {error}.", hint) from None
    except exceptions.ParamValidationError as error:
        text = " ".join(str(error).split())
        raise CloudError(Cause.REFUSED, f"{service}: {doing}: {text}.") from None
    except ResponseParserError:
        # Its message holds the answer.
        raise incomplete(doing) from None
    except (exceptions.BotoCoreError, HTTPError) as error:
        # Closed connections, time-outs of answers, answers that end early.
        raise CloudError(Cause.UNANSWERED, f"{service}: {doing}: no answer: {error}.") from None
