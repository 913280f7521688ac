"""Reads a kubeconfig: where a cluster's API is, and as whom it is asked."""

from __future__ import annotations

import base64
import binascii
import contextlib
import json
import os
import ssl
import subprocess
import urllib.parse
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nephoscope.core import leases, limits
from nephoscope.core.errors import Lacking, UsageError
from nephoscope.core.reading import regular, yamltext
from nephoscope.measure.targets.exec.rest import RestServer

_PLUGIN_S = 60.0
_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")

_Entry = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Connection:
    """A cluster's API as a context names it. namespace: the context's."""

    server: RestServer
    context: str
    namespace: str = "default"


def connect(file: str = "", context: str = "") -> Connection:
    """Returns the cluster of a context: of the file, else of $KUBECONFIG, else of ~/.kube/config,
    else, inside a pod, of that pod. Raises UsageError, Lacking for a plugin that is missing."""
    paths = [file] if file else _default_files()
    if not paths:
        if (_ACCOUNT / "token").exists():
            return _of_this_pod()
        raise UsageError(
            "There is no kubeconfig: neither $KUBECONFIG nor ~/.kube/config is there.",
            "Write its path as `endpoint:`.",
        )
    entries = _merged(paths)
    name = context or entries.current
    if not name:
        raise UsageError(f"{paths[0]} has no current context.", "Name one with `profile:`.")
    chosen = entries.of("contexts", "context", name)
    cluster = entries.of("clusters", "cluster", str(chosen.get("cluster")))
    user = entries.of("users", "user", str(chosen["user"])) if chosen.get("user") else {}
    namespace = str(chosen.get("namespace") or "default")
    return Connection(_server(cluster, user, name), name, namespace)


@dataclass(frozen=True, slots=True)
class _Entries:
    lists: Mapping[str, Mapping[str, _Entry]]
    current: str
    files: str

    def of(self, group: str, key: str, name: str) -> _Entry:
        entry = self.lists[group].get(name)
        if entry is None:
            known = ", ".join(self.lists[group]) or "none"
            raise UsageError(
                f"{self.files} has no {key} '{name}' (there is: {known}).",
                "See `kubectl config get-contexts`.",
            )
        return entry


def _default_files() -> list[str]:
    named = [path for path in os.environ.get("KUBECONFIG", "").split(os.pathsep) if path]
    usual = Path("~/.kube/config").expanduser()
    return named or ([str(usual)] if usual.exists() else [])


def _merged(paths: list[str]) -> _Entries:
    """Several files are one: the first that has a name, or a current context, wins."""
    lists: dict[str, dict[str, _Entry]] = {"contexts": {}, "clusters": {}, "users": {}}
    current, read = "", 0
    for path in paths:
        try:
            text = regular.read_text(Path(path).expanduser())
        except FileNotFoundError:
            continue
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"The kubeconfig {path} cannot be read: {error}.") from error
        document = yamltext.parse(text, path)
        if not isinstance(document, dict) or "clusters" not in document:
            raise UsageError(f"{path} is no kubeconfig: it has no `clusters`.")
        read += 1
        current = current or str(document.get("current-context") or "")
        folder = str(Path(path).expanduser().absolute().parent)
        for group, results in lists.items():
            for entry in document.get(group) or ():
                if isinstance(entry, dict) and isinstance(value := entry.get(group[:-1]), dict):
                    results.setdefault(str(entry.get("name")), {**value, "": folder})
    if not read:
        raise UsageError(f"There is no kubeconfig {paths[0]}.", "Write its path as `endpoint:`.")
    return _Entries(lists, current, ", ".join(paths))


def _server(cluster: _Entry, user: _Entry, context: str) -> RestServer:
    if cluster.get("proxy-url"):
        raise UsageError(
            f"Context {context} reaches its cluster through a proxy (`proxy-url`), which is not "
            "supported.",
            "Use a context without one.",
        )
    parts = urllib.parse.urlsplit(str(cluster.get("server") or ""))
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise UsageError(f"Context {context} names no address of a server.")
    plugin = user.get("exec")
    if isinstance(plugin, dict):
        user = {**user, **_ask_plugin(plugin, context)}
    tls = _context(cluster, user, context) if parts.scheme == "https" else None
    return RestServer(
        parts.hostname,
        parts.port or (443 if tls else 80),
        prefix=parts.path.rstrip("/"),
        tls=tls,
        tls_name=str(cluster.get("tls-server-name") or ""),
        headers=_authorisation(user, context),
    )


def _authorisation(user: _Entry, context: str) -> Mapping[str, str]:
    token = str(user.get("token") or "")
    if not token and user.get("tokenFile"):
        token = _content(user, "tokenFile", context).decode().strip()
    if token:
        return {"Authorization": f"Bearer {token}"}
    if user.get("username"):
        words = f"{user['username']}:{user.get('password') or ''}".encode()
        return {"Authorization": f"Basic {base64.b64encode(words).decode()}"}
    if user.get("auth-provider"):
        raise UsageError(
            f"Context {context} logs in by `auth-provider`, which Kubernetes has removed.",
            "Get new credentials of your cloud's tool, which use `exec`.",
        )
    return {}


def _context(cluster: _Entry, user: _Entry, context: str) -> ssl.SSLContext:
    authority = _content(cluster, "certificate-authority", context).decode()
    try:
        tls = ssl.create_default_context(cadata=authority or None)
        if cluster.get("insecure-skip-tls-verify"):
            tls.check_hostname = False
            tls.verify_mode = ssl.CERT_NONE
        certificate = _content(user, "client-certificate", context)
        if certificate:
            with _file(certificate) as chain, _file(_content(user, "client-key", context)) as key:
                tls.load_cert_chain(chain, key)
    except ssl.SSLError as error:
        raise UsageError(
            f"Context {context} has a certificate that cannot be read: {error.reason}.",
            "Get new credentials of the cluster.",
        ) from None
    return tls


def _content(entry: _Entry, key: str, context: str) -> bytes:
    """What a key holds: under KEY-data in base64, else in the file that KEY names; b'' for none."""
    if data := entry.get(f"{key}-data"):
        try:
            return base64.b64decode(str(data), validate=True)
        except binascii.Error:
            raise UsageError(f"{key}-data of context {context} is no base64.") from None
    if not entry.get(key):
        return b""
    path = Path(str(entry.get("") or "."), str(entry[key])).expanduser()
    try:
        return regular.read_regular(path, limits.TEXT_BYTES)
    except OSError as error:
        raise UsageError(
            f"{path}, {key} of context {context}, cannot be read: {error.strerror}."
        ) from error


@contextlib.contextmanager
def _file(content: bytes) -> Iterator[str]:
    """A file for a library that takes no texts; only this user may read it, and it goes at once."""
    with leases.ScratchFolder() as folder:
        file = folder / "content"
        file.write_bytes(content)
        yield str(file)


def _ask_plugin(plugin: _Entry, context: str) -> _Entry:
    """The credentials of a plugin (`aws`, `gke-gcloud-auth-plugin`, `kubelogin`, …), as keys of a
    user."""
    version = str(plugin.get("apiVersion") or "client.authentication.k8s.io/v1")
    info = {"apiVersion": version, "kind": "ExecCredential", "spec": {"interactive": False}}
    variables = {
        str(variable_entry["name"]): str(variable_entry["value"])
        for variable_entry in plugin.get("env") or ()
        if isinstance(variable_entry, dict) and {"name", "value"} <= set(variable_entry)
    }
    command = [str(plugin.get("command")), *map(str, plugin.get("args") or ())]
    try:
        done = subprocess.run(
            command,
            env={**os.environ, **variables, "KUBERNETES_EXEC_INFO": json.dumps(info)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_PLUGIN_S,
        )
    except FileNotFoundError:
        hint = str(plugin.get("installHint") or "Install it.").strip().splitlines()[0]
        raise Lacking(
            f"Context {context} logs in with {command[0]}, which is missing.", hint
        ) from None
    except (OSError, subprocess.TimeoutExpired):
        raise UsageError(f"{command[0]}, with which context {context} logs in, fails.") from None
    try:
        status = json.loads(done.stdout)["status"] if done.returncode == 0 else None
    except (ValueError, KeyError, TypeError):
        status = None
    if not isinstance(status, dict):
        words = done.stderr.decode(errors="replace").strip().splitlines()
        raise UsageError(
            f"{command[0]}, with which context {context} logs in, gives no credentials"
            + (f": {words[-1][:200].rstrip('.')}." if words else "."),
            "Log in anew with your cloud's tool.",
        )
    made: dict[str, Any] = {"token": status.get("token") or ""}
    for key, name in (
        ("clientCertificateData", "client-certificate"),
        ("clientKeyData", "client-key"),
    ):
        if status.get(key):
            made[f"{name}-data"] = base64.b64encode(str(status[key]).encode()).decode()
    return made


def _of_this_pod() -> Connection:
    host = os.environ.get("KUBERNETES_SERVICE_HOST", "kubernetes.default.svc")
    port = int(os.environ.get("KUBERNETES_SERVICE_PORT", "443"))
    tls = ssl.create_default_context(cafile=str(_ACCOUNT / "ca.crt"))
    token = (_ACCOUNT / "token").read_text(encoding="ascii").strip()
    namespace = (_ACCOUNT / "namespace").read_text(encoding="utf-8").strip()
    server = RestServer(host, port, tls=tls, headers={"Authorization": f"Bearer {token}"})
    return Connection(server, "this pod", namespace)
