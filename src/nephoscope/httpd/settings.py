"""Where the dashboard listens, who may use it, and which folders it reads."""

from __future__ import annotations

import ipaddress
import os
import re
import secrets
import ssl
import stat
from dataclasses import dataclass
from pathlib import Path

from nephoscope.core.errors import StoreError, UsageError
from nephoscope.core.reading import regular
from nephoscope.store import Store

TOKEN_VARIABLE = "NEPHOSCOPE_SERVE_TOKEN"
TOKEN_FILE = "serve-token"
"""File of the store in which a generated token is kept."""
LOOPBACK_NAMES = ("localhost", "127.0.0.1", "[::1]")

_TOKEN = re.compile(r"[!-~]{16,200}")
_HOST_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?")


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """Settings of one server.

    address, port: where it listens; port 0 takes a free one. host_names: names by which browsers
    may reach it besides its address. token: None where requests need none. token_file: where
    people find it. data: folder of files that requests may name; None for none. allow_runs: whether
    requests may start and stop runs. analyse_during_runs: whether to analyse while a run is
    measured on this machine.
    """

    store: Store
    address: str = "127.0.0.1"
    port: int = 0
    host_names: tuple[str, ...] = ()
    token: str | None = None
    token_file: Path | None = None
    tls: ssl.SSLContext | None = None
    data: Path | None = None
    allow_runs: bool = False
    analyse_during_runs: bool = False

    @property
    def scheme(self) -> str:
        """Returns `http` or `https`."""
        return "http" if self.tls is None else "https"

    @property
    def allowed_hosts(self) -> frozenset[str]:
        """Returns the names, without port, that a request's Host header may have."""
        names = {*self.host_names, url_host(self.address)}
        if is_loopback(self.address) or ipaddress.ip_address(self.address).is_unspecified:
            names |= {*LOOPBACK_NAMES}
        return frozenset(name.lower() for name in names)


def is_loopback(address: str) -> bool:
    """States whether only programs of this machine reach an address."""
    return ipaddress.ip_address(address).is_loopback


def url_host(address: str) -> str:
    """Returns an address as it stands in a URL."""
    return f"[{address}]" if ":" in address else address


def checked_address(text: str) -> str:
    """Returns the address of `--address`. UsageError for what is no IP address."""
    try:
        return str(ipaddress.ip_address("127.0.0.1" if text == "localhost" else text))
    except ValueError:
        raise UsageError(
            f"--address: '{text[:80]}' is no IP address.", "Use, for example, 127.0.0.1 or ::."
        ) from None


def checked_host_names(texts: tuple[str, ...]) -> tuple[str, ...]:
    """Returns the names of `--host-name`. UsageError for what is no name of a host."""
    for text in texts:
        if not _HOST_NAME.fullmatch(text):
            raise UsageError(
                f"--host-name: '{text[:80]}' is no name of a host.",
                "Use the name in the browser's address bar, without port.",
            )
    return texts


def tls_context(
    certificate: Path | None, key: Path | None, client_ca: Path | None
) -> ssl.SSLContext | None:
    """Returns what TLS connections are made with; None without files. UsageError for wrong ones.

    client_ca: of who signs the certificates of clients, which need none without it.
    """
    if certificate is None and key is None and client_ca is None:
        return None
    if certificate is None or key is None:
        raise UsageError("TLS needs a certificate and its key.", "Add --tls-cert and --tls-key.")
    try:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(certificate, key)
        if client_ca is not None:
            context.load_verify_locations(client_ca)
            context.verify_mode = ssl.CERT_REQUIRED
    except OSError as error:  # ssl.SSLError is one
        raise UsageError(
            f"The TLS files cannot be used: {error.strerror or error}.",
            "Name PEM files with --tls-cert, --tls-key and --client-ca.",
        ) from error
    return context


def token_of(file: Path | None, store: Store) -> tuple[str, Path | None]:
    """Returns the token that requests need, and its file.

    It is that of the environment variable or of the file. A file that does not exist is created
    with a random token, readable by its owner only; without a name it lies in the store.
    Raises UsageError for a token that is short or readable by others.
    """
    text = os.environ.get(TOKEN_VARIABLE)
    if file is None and text is not None:
        return _checked_token(text.strip(), f"${TOKEN_VARIABLE}"), None
    path = file or store.path / TOKEN_FILE
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _create(path)
    except OSError as error:
        raise _unreadable(path, error) from error
    return _token_in(path), path


class RenewedToken:
    """The token of a file that may be replaced while a server runs. path: None for no file."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._version = self._stat()

    def __call__(self) -> str | None:
        """Returns the token of a file that was replaced or changed since the last call.

        None for one that is unchanged, that cannot be read or that holds no token: the former one
        stays valid.
        """
        version = self._stat()
        if self._path is None or version in (None, self._version):
            return None
        self._version = version
        try:
            return _token_in(self._path)
        except (StoreError, UsageError):
            return None

    def _stat(self) -> tuple[int, int, int] | None:
        try:
            state = os.stat(self._path) if self._path is not None else None
        except OSError:
            return None
        return state and (state.st_ino, state.st_mtime_ns, state.st_size)


def _token_in(path: Path) -> str:
    try:
        with regular.open_regular(path, pipe=True) as stream:
            mode = os.fstat(stream.fileno()).st_mode
            content = stream.read(1000).decode("ascii", "replace").strip()
    except OSError as error:
        raise _unreadable(path, error) from error
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise UsageError(f"{path} can be read by other users.", f"Run `chmod 600 {path}`.")
    return _checked_token(content, str(path))


def _unreadable(path: Path, error: OSError) -> StoreError:
    return StoreError(
        f"{path} cannot be read: {error.strerror}.", "Name another file with --token-file."
    )


def _create(path: Path) -> None:
    """Writes a random token into a file that does not exist yet."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    try:
        descriptor = os.open(path, flags, 0o600)
    except FileExistsError:
        return
    with os.fdopen(descriptor, "w", encoding="ascii") as stream:
        stream.write(secrets.token_urlsafe(32) + "\n")


def _checked_token(text: str, source: str) -> str:
    if not _TOKEN.fullmatch(text):
        raise UsageError(
            f"{source} holds no token: 16 to 200 printable ASCII characters without blanks.",
            "Remove it to have one generated.",
        )
    return text
