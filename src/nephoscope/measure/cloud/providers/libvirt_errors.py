"""Errors of libvirt-python, as causes, and a limit on how long one call may take."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from typing import Any, TypeVar

import libvirt

from nephoscope.measure.cloud.provider import READ_S, Cause, CloudError

_T = TypeVar("_T")

_CAUSES = {
    libvirt.VIR_ERR_NO_DOMAIN: Cause.UNKNOWN,
    libvirt.VIR_ERR_NO_NETWORK: Cause.UNKNOWN,
    libvirt.VIR_ERR_NO_STORAGE_POOL: Cause.UNKNOWN,
    libvirt.VIR_ERR_NO_STORAGE_VOL: Cause.UNKNOWN,
    libvirt.VIR_ERR_AUTH_FAILED: Cause.CREDENTIALS,
    libvirt.VIR_ERR_AUTH_CANCELLED: Cause.CREDENTIALS,
    libvirt.VIR_ERR_AUTH_UNAVAILABLE: Cause.CREDENTIALS,
    libvirt.VIR_ERR_ACCESS_DENIED: Cause.CREDENTIALS,
    libvirt.VIR_ERR_RESOURCE_BUSY: Cause.IN_USE,
    libvirt.VIR_ERR_OPERATION_INVALID: Cause.IN_USE,
    libvirt.VIR_ERR_OPERATION_TIMEOUT: Cause.UNANSWERED,
    libvirt.VIR_ERR_RPC: Cause.UNANSWERED,
    libvirt.VIR_ERR_NO_CONNECT: Cause.UNREACHABLE,
}
_BY_WORDS = (
    (r"cannot allocate memory|no space left", Cause.CAPACITY),
    (r"failed to connect|unable to connect|cannot connect", Cause.UNREACHABLE),
    (r"connection reset|end of file|broken pipe|client socket is closed", Cause.UNANSWERED),
    (r"lock|being used", Cause.IN_USE),
    (r"permission denied|authentication", Cause.CREDENTIALS),
)


def translated(what: str, call: Callable[[], _T]) -> _T:
    """Returns the result of a call; raises CloudError for its errors, and after READ_S.

    The library has no time-outs: a call that hangs is left behind in a thread that ends with it.
    """
    results: list[Any] = []

    def work() -> None:
        try:
            results.append((call(), None))
        except BaseException as error:
            results.append((None, error))

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(READ_S)
    if not results:
        raise CloudError(Cause.UNANSWERED, f"libvirt: {what}: no answer in {READ_S:g} s.")
    result, error = results[0]
    if isinstance(error, libvirt.libvirtError):
        raise _error(what, error) from None
    if isinstance(error, ValueError):
        raise CloudError(Cause.REFUSED, f"libvirt: {what}: {error}.") from None
    if error is not None:
        raise error
    made: _T = result
    return made


def _error(what: str, error: libvirt.libvirtError) -> CloudError:
    words = re.sub(r"\s+", " ", error.get_error_message() or str(error)).strip().rstrip(".")
    by_words = next((cause for form, cause in _BY_WORDS if re.search(form, words.lower())), None)
    cause = by_words or _CAUSES.get(error.get_error_code(), Cause.REFUSED)
    hints = {
        Cause.UNREACHABLE: "Check the URI with `virsh -c URI list`.",
        Cause.CREDENTIALS: "Join the group libvirt, or become root.",
    }
    return CloudError(cause, f"libvirt: {what}: {words[:400]}.", hints.get(cause, ""))
