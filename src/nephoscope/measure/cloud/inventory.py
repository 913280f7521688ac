"""Hosts that exist: read from an inventory of Ansible (INI, YAML, JSON), from outputs of OpenTofu
or Pulumi, or from a list of addresses; of a file, or as a command prints it."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from nephoscope.core.errors import UsageError
from nephoscope.core.reading import regular, yamltext
from nephoscope.core.records import dataclass
from nephoscope.measure.targets.ssh.route import parse_hop

COMMAND_S = 120.0
MAX_HOSTS = 10_000
_BYTES = 32 << 20

EVERY = "all"
"""Group of all hosts."""


@dataclass(frozen=True, slots=True)
class InventoryHost:
    """A host. groups: it is in, `all` among them. target: keys of a target in a plan.

    vcpus, memory_bytes: as its facts tell; None where they do not.
    """

    name: str
    groups: frozenset[str]
    target: Mapping[str, Any]
    region: str = ""
    zone: str = ""
    vcpus: float | None = None
    memory_bytes: int | None = None

    @property
    def key(self) -> str:
        """The machine, whatever its name in an inventory."""
        return f"{self.target['address']}:{self.target.get('port', 22)}"


@dataclass(slots=True)
class _Listing:
    """Groups and variables while they are read."""

    members: dict[str, dict[str, None]] = field(default_factory=dict)
    children: dict[str, dict[str, None]] = field(default_factory=dict)
    group_vars: dict[str, dict[str, Any]] = field(default_factory=dict)
    host_vars: dict[str, dict[str, Any]] = field(default_factory=dict)

    def add_host(self, group: str, pattern: str, values: Mapping[str, Any]) -> None:
        """Adds one host, or those of a range such as web[01:10]."""
        for name in _expanded(pattern):
            self.members.setdefault(group, {})[name] = None
            self.host_vars.setdefault(name, {}).update(values)


def read_hosts(source: str, output: str = "") -> list[InventoryHost]:
    """Returns the hosts of a file, or of a command: its argument list in JSON, as in
    `["tofu", "output", "-json"]`. output: the one to read of OpenTofu or Pulumi; '' for all.

    Raises UsageError in one sentence.
    """
    text, name = _text(source)
    hosts = hosts_of(text, name, output)
    if not hosts:
        raise UsageError(
            f"{name} names no host.", "Write an inventory of Ansible, or one address a line."
        )
    return hosts


def hosts_of(text: str, name: str, output: str = "") -> list[InventoryHost]:
    """Returns the hosts of a text; see `read_hosts`. name: of it, for messages."""
    if _is_document(text, name):
        return _of_document(yamltext.parse(text, name), name, output)
    return _hosts(_of_ini(text, name), name)


def _is_document(text: str, name: str) -> bool:
    """Returns whether a text is YAML or JSON; else it is INI, or a list of addresses."""
    lines = (line.strip() for line in text.splitlines())
    first = next((line for line in lines if line and line[0] not in "#;"), "")
    if re.fullmatch(r"\[[^\],\"'{]+\]\s*([#;].*)?", first):
        return False
    return (
        name.endswith((".yaml", ".yml", ".json"))
        or first.startswith(("{", "[", "- ", "---"))
        or re.fullmatch(r"[\w-]+:", first) is not None
    )


def _text(source: str) -> tuple[str, str]:
    if source.lstrip().startswith("["):
        try:
            words = json.loads(source)
        except ValueError:
            words = None
        if not isinstance(words, list) or not words or not all(isinstance(w, str) for w in words):
            raise UsageError(
                f"{source!a} is no argument list.", 'Write it in JSON: ["tofu", "output", "-json"].'
            )
        return _printed(words), f"the output of {words[0]}"
    if not source:
        raise UsageError(
            "The list of existing hosts is missing.",
            "Write `endpoint:` with the path of an inventory, or with a command's argument list.",
        )
    path = Path(source).expanduser()
    try:
        text = regular.read_text(path, _BYTES)
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is no text in UTF-8"
        raise UsageError(f"{source} cannot be read: {why}.") from error
    if text.startswith("#!"):
        return _printed([str(path.absolute()), "--list"]), source
    return text, source


def _printed(words: Sequence[str]) -> str:
    try:
        done = subprocess.run(
            words, stdin=subprocess.DEVNULL, capture_output=True, timeout=COMMAND_S
        )
    except OSError as error:
        raise UsageError(f"{words[0]} cannot be run: {error.strerror}.") from error
    except subprocess.TimeoutExpired:
        raise UsageError(f"{words[0]} printed no hosts within {COMMAND_S:g} s.") from None
    if done.returncode != 0:
        last = done.stderr.decode(errors="replace").strip().splitlines()
        why = f": {last[-1][:200].rstrip('.')}" if last else ""
        raise UsageError(f"{words[0]} ended with exit code {done.returncode}{why}.")
    if len(done.stdout) > _BYTES:
        raise UsageError(f"{words[0]} printed more than {_BYTES >> 20} MiB.")
    return done.stdout.decode("utf-8", "replace")


def _of_document(document: Any, name: str, output: str) -> list[InventoryHost]:
    if isinstance(document, list):
        return _hosts(_of_values("", document), name)
    if not isinstance(document, dict) or not document:
        raise UsageError(
            f"{name} is no inventory.", "Write one of Ansible, or a list of addresses."
        )
    if "_meta" in document or any(_is_group(value) for value in document.values()):
        return _hosts(_of_groups(document), name)
    outputs = _outputs(document)
    if output and output not in outputs:
        raise UsageError(
            f"{name} has no output '{output}'.", f"It has: {', '.join(outputs) or 'none'}."
        )
    results = _Listing()
    for key, value in outputs.items():
        if output in ("", key):
            _merge(results, _of_values(key, value, only_hosts=not output))
    return _hosts(results, name)


def _is_group(value: Any) -> bool:
    return isinstance(value, dict) and (
        isinstance(value.get("hosts"), dict | list)
        or isinstance(value.get("children"), dict | list)
    )


def _of_groups(document: Mapping[str, Any]) -> _Listing:
    """An inventory in YAML (`hosts` is a mapping), or as `ansible-inventory --list` prints it."""
    results = _Listing()
    meta = document.get("_meta") or {}
    for host, values in (meta.get("hostvars") or {}).items():
        results.host_vars.setdefault(str(host), {}).update(values or {})

    def add(group: str, content: Any) -> None:
        content = content if isinstance(content, dict) else {}
        hosts, children = content.get("hosts") or {}, content.get("children") or {}
        results.members.setdefault(group, {})
        for host in hosts:
            values = hosts[host] if isinstance(hosts, dict) else None
            results.add_host(group, str(host), values if isinstance(values, dict) else {})
        results.group_vars.setdefault(group, {}).update(content.get("vars") or {})
        for child in children:
            results.children.setdefault(group, {})[str(child)] = None
            if isinstance(children, dict):
                add(str(child), children[child])

    for group, content in document.items():
        if group != "_meta":
            add(str(group), content)
    return results


def _of_ini(text: str, name: str) -> _Listing:
    results = _Listing()
    group, part = "ungrouped", ""
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.strip()
        if not line or line[0] in "#;":
            continue
        if match := re.fullmatch(r"\[([^\]:]+)(?::(vars|children))?\]\s*(?:[#;].*)?", line):
            group, part = match[1].strip(), match[2] or ""
            results.members.setdefault(group, {})
            continue
        try:
            words = shlex.split(line, comments=True)
        except ValueError:
            raise UsageError(f"{name}, line {number}: a quotation mark is not closed.") from None
        if part == "vars":
            key, _, value = line.partition("=")
            results.group_vars.setdefault(group, {})[key.strip()] = value.strip().strip("\"'")
        elif part == "children":
            results.children.setdefault(group, {})[words[0]] = None
        else:
            pairs = [word.partition("=") for word in words[1:]]
            if wrong := [key for key, equals, _ in pairs if not equals]:
                raise UsageError(
                    f"{name}, line {number}: '{wrong[0]}' is no variable of a host.",
                    "Write NAME=VALUE.",
                )
            results.add_host(group, words[0], {key: value for key, _, value in pairs})
    return results


def _outputs(document: Mapping[str, Any]) -> dict[str, Any]:
    """Outputs of OpenTofu ({name: {value, type, sensitive}}) or Pulumi ({name: value})."""
    is_tofu = all(isinstance(entry, dict) and "value" in entry for entry in document.values())
    if not is_tofu:
        return {str(key): value for key, value in document.items()}
    return {
        str(key): entry["value"] for key, entry in document.items() if not entry.get("sensitive")
    }


_ADDRESS_KEYS = (
    *("ansible_host", "address", "public_ip", "public_ip_address", "publicIp", "ipv4_address"),
    *("access_ip_v4", "ip_address", "ip", "host", "hostname", "public_dns", "private_ip"),
)


def _of_values(key: str, value: Any, *, only_hosts: bool = False) -> _Listing:
    """Addresses in an output: one, a list, or a mapping by name; each a text or an object.

    only_hosts: an output is left out unless all of it are addresses, for it may be anything else.
    """
    results = _Listing()
    entries: list[tuple[str, Any]]
    if isinstance(value, dict) and _address(value) is None:
        entries = [(str(name), entry) for name, entry in value.items()]
    else:
        entries = [("", entry) for entry in (value if isinstance(value, list) else [value])]
    for name, entry in entries:
        address = _address(entry)
        if address is None or (only_hosts and isinstance(entry, str) and not _is_address(entry)):
            if only_hosts:
                return _Listing()
            raise UsageError(f"{entry!a} is no address of a host.", "Write an address or a name.")
        values = (
            {**entry, "ansible_host": address}
            if isinstance(entry, dict)
            else {"ansible_host": entry}
        )
        host = name or str(values.get("name") or address)
        results.add_host(key or "ungrouped", host, values)
    return results


def _address(value: Any) -> str | None:
    if isinstance(value, str):
        return value if parse_hop(value) is not None else None
    if isinstance(value, dict):
        texts = (value.get(key) for key in _ADDRESS_KEYS)
        return next((text for text in texts if isinstance(text, str) and text), None)
    return None


def _is_address(text: str) -> bool:
    hop = parse_hop(text)
    if hop is None:
        return False
    try:
        ip_address(hop.host)
    except ValueError:
        return "." in hop.host.strip(".") and "/" not in text
    return True


def _merge(results: _Listing, addition: _Listing) -> None:
    for group, members in addition.members.items():
        results.members.setdefault(group, {}).update(members)
    for host, values in addition.host_vars.items():
        results.host_vars.setdefault(host, {}).update(values)


def _hosts(results: _Listing, name: str) -> list[InventoryHost]:
    """The hosts with what they inherit: of `all`, outer groups, inner ones, then their own."""
    everything = dict.fromkeys(host for members in results.members.values() for host in members)
    everything.update(dict.fromkeys(results.host_vars))
    if len(everything) > MAX_HOSTS:
        raise UsageError(f"{name} names more than {MAX_HOSTS} hosts.")
    return [_host(results, host, name) for host in everything]


def _host(results: _Listing, host: str, name: str) -> InventoryHost:
    direct = [group for group, members in results.members.items() if host in members]
    depths: dict[str, int] = {}

    def climb(group: str, depth: int) -> None:
        if depth > 50:
            raise UsageError(f"{name}: the groups {group} and its children contain each other.")
        if depth <= depths.get(group, -1):
            return
        depths[group] = depth
        for parent, children in results.children.items():
            if group in children:
                climb(parent, depth + 1)

    for group in direct:
        climb(group, 0)
    values: dict[str, Any] = dict(results.group_vars.get(EVERY, {}))
    for group in sorted(depths, key=lambda entry: (-depths[entry], entry)):
        values.update(results.group_vars.get(group, {}))
    values.update(results.host_vars.get(host, {}))
    groups = frozenset({*depths, EVERY} - {"ungrouped", ""})
    return InventoryHost(
        host,
        groups,
        dict(_target(host, values, name)),
        str(values.get("nephoscope_region") or ""),
        str(values.get("nephoscope_zone") or ""),
        _positive(values.get("ansible_processor_vcpus")),
        int(megabytes * (1 << 20))
        if (megabytes := _positive(values.get("ansible_memtotal_mb")))
        else None,
    )


def _target(host: str, values: Mapping[str, Any], name: str) -> Iterator[tuple[str, Any]]:
    """Yields the keys of the host as a target of kind ssh. Raises UsageError."""

    def variable(*keys: str) -> str:
        text = next((str(values[key]) for key in keys if values.get(key) not in (None, "")), "")
        if "{{" in text:
            raise UsageError(
                f"{name}: {keys[0]} of {host} is a template, which only Ansible can fill in.",
                'Use `endpoint: \'["ansible-inventory", "--list"]\'`, or write the value.',
            )
        return text

    hop = parse_hop(variable("ansible_host", "ansible_ssh_host") or host)
    if hop is None:
        raise UsageError(f"{name}: {host} has no address that ssh could reach.")
    port = variable("ansible_port", "ansible_ssh_port", "port")
    if port and not (port.isdecimal() and 0 < int(port) < 1 << 16):
        raise UsageError(f"{name}: {port!a} of {host} is no port.")
    yield from (("kind", "ssh"), ("address", hop.host))
    if port or hop.port:
        yield "port", int(port) if port else hop.port
    if user := variable("ansible_user", "ansible_ssh_user", "user") or hop.user:
        yield "user", user
    if identity := variable("ansible_ssh_private_key_file", "ansible_private_key_file"):
        yield "identity", str(Path(identity).expanduser())
    arguments = variable("ansible_ssh_common_args", "ansible_ssh_extra_args")
    if jump := re.search(r"(?:-J\s*|ProxyJump[= ])[\"']?([^\s\"']+)", arguments):
        yield "jump", jump[1].split(",")
    if known := re.search(r"UserKnownHostsFile[= ][\"']?([^\s\"']+)", arguments):
        yield "known_hosts", str(Path(known[1]).expanduser())


def _positive(value: Any) -> float | None:
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return number if number > 0 else None


def _expanded(pattern: str) -> Iterator[str]:
    """Yields the hosts of a pattern: web[01:10], db-[a:c], web[1:9:2]."""
    match = re.search(r"\[(\w+):(\w+)(?::(\d+))?\]", pattern)
    if match is None:
        yield pattern
        return
    first, last, step = match[1], match[2], int(match[3] or 1)
    if first.isdecimal() and last.isdecimal():
        numbers = range(int(first), int(last) + 1, max(step, 1))
        width = len(first) if first.startswith("0") else 0
        middles = [str(number).zfill(width) for number in numbers[:MAX_HOSTS]]
    elif len(first) == len(last) == 1:
        middles = [chr(code) for code in range(ord(first), ord(last) + 1, max(step, 1))]
    else:
        middles = [match[0]]
    for middle in middles:
        rest = pattern[match.end() :]
        for end in _expanded(rest) if "[" in rest else (rest,):
            yield f"{pattern[: match.start()]}{middle}{end}"
