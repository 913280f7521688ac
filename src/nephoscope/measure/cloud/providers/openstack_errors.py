"""Errors of openstacksdk, as causes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import requests
from keystoneauth1 import exceptions as identity
from openstack import exceptions
from urllib3.exceptions import ConnectTimeoutError, NewConnectionError

from nephoscope.measure.cloud.provider import Cause, CloudError

_CREDENTIALS_HINT = (
    "Check the entry of clouds.yaml that is used, or the variables OS_…; "
    "`openstack token issue` tries them."
)
_BY_STATUS = {
    401: Cause.CREDENTIALS,
    403: Cause.CREDENTIALS,
    404: Cause.UNKNOWN,
    409: Cause.IN_USE,
    413: Cause.QUOTA,
    429: Cause.THROTTLED,
}
# Nova answers by 400 to names that do not exist, and to volumes that are busy.
_BY_WORDS = (
    (r"quota|maximum number of", Cause.QUOTA),
    (r"no valid host|not enough (hosts|available)|insufficient", Cause.CAPACITY),
    (
        r"could not be found|can not find|not available|invalid (key_name|image|flavor|network)"
        r"|no such|unknown",
        Cause.UNKNOWN,
    ),
    (r"volume status must be|in use|is being used", Cause.IN_USE),
)


@contextmanager
def translated(what: str, region: str) -> Iterator[None]:
    """Raises CloudError for errors of the library. what: was being done."""
    where = f"OpenStack{f', {region}' if region else ''}"
    try:
        yield
    except (exceptions.HttpException, identity.HttpError) as error:
        status = getattr(error, "status_code", None) or getattr(error, "http_status", None) or 0
        raise _answered(where, what, int(status), _words(error)) from None
    except exceptions.ConfigException as error:
        raise _misconfigured(where, region, error) from None
    except (identity.AuthPluginException, identity.MissingRequiredOptions) as error:
        raise CloudError(
            Cause.CREDENTIALS, f"{where}: no credentials: {_words(error)}.", _CREDENTIALS_HINT
        ) from None
    except (identity.EndpointNotFound, exceptions.EndpointNotFound) as error:
        raise CloudError(
            Cause.REFUSED, f"{where}: {what}: the cloud has no such service: {_words(error)}."
        ) from None
    except (identity.ClientException, exceptions.SDKException) as error:
        cause = Cause.UNREACHABLE if _unconnected(error) else Cause.UNANSWERED
        raise CloudError(cause, f"{where}: {what}: {_words(error)}.") from None
    except (requests.RequestException, ValueError, KeyError) as error:
        # A body that was cut off, or is no JSON.
        raise CloudError(
            Cause.UNANSWERED, f"{where}: {what}: a broken answer: {_words(error)}."
        ) from None


def _misconfigured(where: str, region: str, error: Exception) -> CloudError:
    if match := re.search(r"not a valid region name .*choices are (.*?)\. ", str(error)):
        return unknown_region(region, [match[1]])
    return CloudError(Cause.CREDENTIALS, f"{where}: {_words(error)}.", _CREDENTIALS_HINT)


def unknown_region(region: str, known: Sequence[str]) -> CloudError:
    """Returns the error of a region that the account does not have."""
    return CloudError(
        Cause.UNKNOWN,
        f"OpenStack: the account has no region '{region}'.",
        f"It has: {', '.join(known)}.",
    )


def _answered(where: str, what: str, status: int, words: str) -> CloudError:
    text = f"{where}: {what}: {words} (HTTP {status})."
    if status >= 500 or status == 0:
        return CloudError(Cause.UNANSWERED, text)
    by_words = next((cause for form, cause in _BY_WORDS if re.search(form, words.lower())), None)
    if status in (401, 429) or by_words is None:
        cause = _BY_STATUS.get(status, Cause.REFUSED)
    else:
        cause = by_words
    if cause is Cause.CREDENTIALS:
        return CloudError(cause, text, _CREDENTIALS_HINT)
    if cause is Cause.QUOTA:
        return CloudError(cause, text, "Remove what is not needed, or have the quota raised.")
    return CloudError(cause, text)


def _unconnected(error: BaseException) -> bool:
    """Whether no connection came about, so that nothing can have been done."""
    seen: BaseException | None = error
    while seen is not None:
        reasons = [seen, *seen.args]
        reasons += [getattr(entry, "reason", None) for entry in reasons]
        if any(isinstance(entry, NewConnectionError | ConnectTimeoutError) for entry in reasons):
            return True
        seen = seen.__cause__ or seen.__context__
    return False


def _words(error: BaseException) -> str:
    details = getattr(error, "details", None)
    text = str(details) if details else str(error)
    return re.sub(r"\s+", " ", text).strip().rstrip(".")[:400] or type(error).__name__
