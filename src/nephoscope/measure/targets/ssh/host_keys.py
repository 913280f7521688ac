"""Whether a host is the one it claims to be: the user's known_hosts files decide, never we.

The rules are OpenSSH's with StrictHostKeyChecking=yes: a key that is not known is refused, and so
are a key that differs from the known one and a key that is marked `@revoked`. Nothing is added to
the files here. Source: sshd(8), "SSH_KNOWN_HOSTS FILE FORMAT".
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import asyncssh

from nephoscope.core import limits
from nephoscope.core.errors import TargetError
from nephoscope.core.reading import regular

DEFAULT_PORT = 22
DEFAULT_FILES = (
    "~/.ssh/known_hosts",
    "~/.ssh/known_hosts2",
    "/etc/ssh/ssh_known_hosts",
    "/etc/ssh/ssh_known_hosts2",
)
_CERTIFICATES = (
    "ssh-ed25519-cert-v01@openssh.com",
    "ecdsa-sha2-*-cert-v01@openssh.com",
    "rsa-sha2-*-cert-v01@openssh.com",
)
_COMMON = ("ssh-ed25519", "ecdsa-sha2-nistp*", "rsa-sha2-512", "rsa-sha2-256")
_FORMAT = "See SSH_KNOWN_HOSTS FILE FORMAT in `man sshd`."


@dataclass
class HostKeys:
    """The known keys, and what a host showed that was not among them."""

    files: Sequence[Path]
    known: asyncssh.SSHKnownHosts
    _of_host: list[asyncssh.SSHKey] = field(default_factory=list)
    _presented: asyncssh.SSHKey | None = None

    def trusted(
        self, host: str, _addr: str, port: int | None
    ) -> tuple[list[asyncssh.SSHKey], list[asyncssh.SSHKey], list[asyncssh.SSHKey]]:
        """Keys, authorities and revoked keys of a host, as `asyncssh.connect` asks for them.

        By name only: the address that a name resolves to today is no proof of who answers.
        """
        keys, authorities, revoked, *_ = self.known.match(host, "", port)
        self._of_host = [*keys, *authorities]
        return list(keys), list(authorities), list(revoked)

    def algorithms(self, host: str, port: int) -> str:
        """Host key algorithms to ask for: those of the known keys first, then the common ones.

        Asked for the known ones alone, a host whose key is now of another type would only hang up,
        and nobody could tell that its key has changed. Empty when no key is known.
        """
        keys, authorities, _ = self.trusted(host, "", port if port != DEFAULT_PORT else None)
        own = [algorithm.decode() for key in keys for algorithm in key.sig_algorithms]
        if not own and not authorities:
            return ""
        return ",".join([*(_CERTIFICATES if authorities else ()), *own, *_COMMON])

    def note_key(self, key: asyncssh.SSHKey) -> None:
        """Notes the key that a host showed and that is not trusted."""
        self._presented = key

    def refusal(self, where: str, host: str, port: int, reason: str) -> TargetError:
        """The sentence for a host key that was refused."""
        files = " or ".join(map(str, self.files))
        name = host if port == DEFAULT_PORT else f"[{host}]:{port}"
        shows = f" It shows {fingerprint(self._presented)}." if self._presented else ""
        if "revoked" in reason.lower():
            return TargetError(
                f"{where}: the host shows a key that {files} marks as revoked.",
                "Do not measure there until its owner has given it a new key.",
            )
        if self._of_host:
            known = ", ".join(fingerprint(key) for key in self._of_host)
            return TargetError(
                f"{where}: the host key has changed: {files} knows {known} for {name}.{shows}",
                "Either the machine was recreated, or another one answers in its place. Ask its "
                f"owner; if it was recreated, run `ssh-keygen -R '{name}' -f {self.files[0]}` and "
                "connect once with `ssh`.",
            )
        return TargetError(
            f"{where}: the host key is not known: {files} has none for {name}.{shows}",
            "Compare this fingerprint with the owner's, then connect once with "
            f"`ssh -o UserKnownHostsFile={self.files[0]} -p {port} {host}` to accept it.",
        )


def fingerprint(key: asyncssh.SSHKey) -> str:
    """Type and SHA-256 of a key, as `ssh-keygen -l` prints it."""
    return f"{key.get_algorithm()} {key.get_fingerprint('sha256')}"


def load_host_keys(files: Sequence[str]) -> HostKeys:
    """The keys in those of the files that exist.

    Lines that are none are passed over, as ssh does: they make a host unknown, never known. Only
    a line with a marker that cannot be read is a TargetError: it may be a revocation.
    """
    paths = [Path(name).expanduser() for name in files]
    known = asyncssh.SSHKnownHosts()
    for path in paths:
        if str(path) == os.devnull:  # how a configuration of ssh names no file
            continue
        try:
            text = regular.read_text(path, limits.STATE_BYTES, errors="replace")
        except FileNotFoundError:
            continue
        except OSError as error:
            raise TargetError(
                f"The host keys in {path} cannot be read: {error.strerror}.", "Check its rights."
            ) from error
        for number, line in enumerate(text.splitlines(), start=1):
            try:
                known.load(line)
            except ValueError as error:
                if line.lstrip().startswith("@"):
                    raise TargetError(f"{path}:{number}: {error}.", _FORMAT) from error
    return HostKeys(paths, known)
