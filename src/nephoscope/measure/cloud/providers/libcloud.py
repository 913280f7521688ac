"""Clouds that Apache Libcloud reaches: one class over its drivers, and a table of what differs.

A location of Libcloud is a region. Only machines are made: what else a cloud needs for them (a
network, a firewall that lets ssh in) is that of its defaults, or named in the plan.
"""

from __future__ import annotations

import base64
import configparser
import contextlib
import json
import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import urlsplit

from nephoscope.core.errors import UsageError
from nephoscope.core.reading import regular
from nephoscope.core.records import dataclass
from nephoscope.measure.cloud.model import (
    Account,
    Action,
    CloudResource,
    Kind,
    Machine,
    MachinePrices,
    MachineRequest,
    MachineType,
    Request,
    ResourceState,
    StoragePrices,
    Tags,
)
from nephoscope.measure.cloud.provider import (
    READ_S,
    Cause,
    CloudError,
    CloudSettings,
    CloudTraits,
    Provider,
    WithoutFirewalls,
)

_DEFAULT_REGION = "default"
_PAGE = 100

_Secrets = Mapping[str, str]
_Listing = Iterator[tuple[Any, Tags]]


@dataclass(frozen=True, slots=True)
class Driver:
    """What differs between clouds.

    constant: of libcloud's Provider. file: INI of the cloud's own tools with the credentials, in
    the section `section` or that of `profile`; variables: of the environment, before the file.
    options: arguments of the driver, of settings and credentials. request: those of `create_node`,
    of the driver, the request and the number of the machine. nodes: ours, of a location, all pages.
    """

    title: str
    constant: str
    variables: Mapping[str, str]
    options: Callable[[CloudSettings, _Secrets], tuple[Sequence[Any], Mapping[str, Any]]]
    request: Callable[[Any, MachineRequest, int], Mapping[str, Any]]
    nodes: Callable[[Any, Any], _Listing]
    file: str = ""
    section: str = ""
    cards: bool = False
    """Machines need network cards of their own, which may outlive them."""


def open(settings: CloudSettings) -> Provider:
    """Returns the cloud that `settings.provider` names."""
    return LibcloudCloud(settings, DRIVERS[settings.provider])


class LibcloudCloud(WithoutFirewalls):
    """See `Provider`."""

    traits: ClassVar[CloudTraits] = CloudTraits(
        kinds=frozenset({Kind.MACHINE}),
        actions=frozenset({Action.REBOOT}),
        settle_s=10.0,
        per_second=2.0,
    )

    def __init__(self, settings: CloudSettings, driver: Driver) -> None:
        self._settings, self._of = settings, driver
        if driver.cards:
            kinds = self.traits.kinds | {Kind.PORT}
            self.traits = replace(self.traits, kinds=kinds)  # type: ignore[misc]

    def account(self) -> Account:
        """See `Provider.account`: a call that only valid credentials may make."""
        with self._translated():
            self._driver().list_locations()
            next(self._of.nodes(self._driver(), None), None)
        return Account(self._settings.profile or self._of.title, self._of.title)

    def regions(self) -> Sequence[str]:
        """See `Provider.regions`."""
        with self._translated():
            return [_region(entry) for entry in self._driver().list_locations()]

    def zones(self, region: str) -> Sequence[str]:
        """See `Provider.zones`: a location has no parts."""
        self._location(self._driver(), region)
        return []

    def types(self, region: str) -> Sequence[MachineType]:
        """See `Provider.types`."""
        with self._translated():
            driver = self._driver()
            results = driver.list_sizes(location=self._location(driver, region))
            return [_type(entry) for entry in results]

    def image(self, region: str, name: str) -> str:
        """See `Provider.image`."""
        with self._translated():
            driver = self._driver()
            return str(self._image(driver, region, name).id)

    def prices(self, request: MachineRequest) -> MachinePrices | None:
        """See `Provider.prices`: those that Libcloud is shipped with are years old."""
        return None

    def storage_prices(self, region: str, type: str) -> StoragePrices | None:
        """See `Provider.storage_prices`."""
        return None

    def create(self, request: Request) -> Sequence[CloudResource]:
        """See `Provider.create`."""
        if not isinstance(request, MachineRequest):
            raise CloudError(Cause.REFUSED, f"{self._of.title}: only machines are made here.")
        made: list[Machine] = []
        try:
            for number in range(request.count):
                made.append(self._create_node(request, number))
        except CloudError as error:
            certain = error.cause in (Cause.QUOTA, Cause.CAPACITY)
            if not certain or len(made) < request.at_least:
                if error.cause is not Cause.UNANSWERED:
                    for entry in made:
                        self.delete(entry)
                raise
        return made

    def resources(
        self, region: str, run: str | None = None, kinds: Collection[Kind] | None = None
    ) -> Sequence[CloudResource]:
        """See `Provider.resources`."""
        with self._translated():
            driver = self._driver()
            location = self._location(driver, region)
            results: list[CloudResource] = [
                _machine(region, node, tags) for node, tags in self._of.nodes(driver, location)
            ]
            if self._of.cards:
                results += [
                    _card(region, card, tags) for card, tags in _azure_cards(driver, region)
                ]
            return [entry for entry in results if run in (None, entry.tags.run)]

    def delete(self, resource: CloudResource) -> None:
        """See `Provider.delete`."""
        with self._translated():
            driver = self._driver()
            location = self._location(driver, resource.region)
            if resource.kind is Kind.PORT:
                for card, _ in _azure_cards(driver, resource.region):
                    if card.id == resource.id:
                        driver.ex_destroy_nic(card)
                return
            results = [
                entry for entry, _ in self._of.nodes(driver, location) if entry.id == resource.id
            ]
            for node in results:
                if self._settings.provider == "cloudstack":
                    # Else it would keep its disk, and its place in the lists, for a day.
                    driver.destroy_node(node, ex_expunge=True)
                else:
                    driver.destroy_node(node)

    def act(self, machine: Machine, action: Action, value: str = "") -> None:
        """See `Provider.act`."""
        if action is not Action.REBOOT:
            raise CloudError(Cause.REFUSED, f"{self._of.title}: {action} is not done here.")
        with self._translated():
            driver = self._driver()
            location = self._location(driver, machine.region)
            for node, _ in self._of.nodes(driver, location):
                if node.id == machine.id:
                    driver.reboot_node(node)

    def attach(self, machine: Machine, volume: CloudResource) -> None:
        """See `Provider.attach`."""
        raise CloudError(Cause.REFUSED, f"{self._of.title}: no volumes are made here.")

    def detach(self, volume: CloudResource) -> None:
        """See `Provider.detach`."""
        raise CloudError(Cause.REFUSED, f"{self._of.title}: no volumes are made here.")

    def console(self, machine: Machine) -> str:
        """See `Provider.console`: Libcloud shows none."""
        return ""

    def extend(self, resource: CloudResource, expires_s: int) -> None:
        """See `Provider.extend`: the expiry is in the name, which stays."""

    def _create_node(self, request: MachineRequest, number: int) -> Machine:
        with self._translated():
            driver = self._driver()
            location = self._location(driver, request.region)
            sizes = {entry.name: entry for entry in driver.list_sizes(location=location)}
            if request.type not in sizes:
                raise CloudError(
                    Cause.UNKNOWN,
                    f"{self._of.title}: there is no type '{request.type}'.",
                    f"It has: {', '.join(list(sizes)[:8])}.",
                )
            node = driver.create_node(
                size=sizes[request.type],
                image=self._image(driver, request.region, request.image),
                **self._of.request(driver, request, number),
            )
            return _machine(request.region, node, request.tags)

    def _image(self, driver: Any, region: str, name: str) -> Any:
        results = driver.list_images(location=self._location(driver, region))
        for entry in results:
            if name in (str(entry.id), entry.name):
                return entry
        raise CloudError(
            Cause.UNKNOWN,
            f"{self._of.title}: there is no image '{name}' in {region}.",
            f"It has: {', '.join(str(entry.name) for entry in results[:8])}.",
        )

    def _location(self, driver: Any, region: str) -> Any:
        with self._translated():
            for entry in driver.list_locations():
                if _region(entry) == region:
                    return entry
        raise CloudError(Cause.UNKNOWN, f"{self._of.title}: there is no region '{region}'.")

    def _driver(self) -> Any:
        """A driver of its own for each call: they keep state of their requests."""
        from libcloud.compute.providers import get_driver

        positional, named = self._of.options(self._settings, _credentials(self._of, self._settings))
        driver = get_driver(self._of.constant)(*positional, **named)
        driver.connection.timeout = READ_S
        return driver

    @contextlib.contextmanager
    def _translated(self) -> Iterator[None]:
        from libcloud.common.exceptions import BaseHTTPError
        from libcloud.common.types import InvalidCredsError, LibcloudError
        from requests import exceptions as http

        title = self._of.title
        try:
            yield
        except CloudError:
            raise
        except InvalidCredsError:
            raise CloudError(
                Cause.CREDENTIALS,
                f"{title} does not take these credentials.",
                f"Check {self._of.file or ' and '.join(self._of.variables.values())}.",
            ) from None
        except http.ConnectTimeout as error:
            raise CloudError(Cause.UNREACHABLE, f"{title} cannot be reached in time.") from error
        except http.ConnectionError as error:
            lost = "aborted" in str(error) or "reset" in str(error)
            cause = Cause.UNANSWERED if lost else Cause.UNREACHABLE
            raise CloudError(cause, f"{title} cannot be reached.", "Check its endpoint.") from error
        except (TimeoutError, http.RequestException) as error:
            raise CloudError(Cause.UNANSWERED, f"{title} gave no answer in time.") from error
        except BaseHTTPError as error:
            raise _error(title, int(error.code), str(error.message)) from None
        except LibcloudError as error:
            code = int(getattr(error, "http_code", 0) or 0)
            raise _error(title, code, str(error.value)) from None
        except UsageError:
            raise
        except Exception as error:  # drivers raise what they like
            raise _error(title, 0, str(error)) from None


def _credentials(of: Driver, settings: CloudSettings) -> _Secrets:
    """The credentials of the environment, else of the file of the cloud's own tools."""
    results = {key: os.environ[name] for key, name in of.variables.items() if os.environ.get(name)}
    if len(results) == len(of.variables) and not settings.profile:
        return results
    path = Path(of.file).expanduser() if of.file else None
    parser = configparser.ConfigParser(interpolation=None)
    if path is not None:
        with contextlib.suppress(OSError, configparser.Error, UnicodeDecodeError):
            parser.read_string(regular.read_text(path))
    section = settings.profile or of.section
    values = dict(parser[section]) if section in parser else {}
    missing = [key for key in of.variables if not (results.get(key) or values.get(key))]
    if missing:
        where = f"section [{section}] of {of.file}" if of.file else "the environment"
        names = ", ".join(of.variables.values())
        raise CloudError(
            Cause.CREDENTIALS,
            f"{of.title}: {', '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing in "
            f"{where}.",
            f"Write it there, or set {names}.",
        )
    return {**values, **results}


_CODES = {401: Cause.CREDENTIALS, 403: Cause.CREDENTIALS, 404: Cause.UNKNOWN, 429: Cause.THROTTLED}
_WORDS: tuple[tuple[Cause, tuple[str, ...]], ...] = (
    (Cause.QUOTA, ("quota", "maximum number of resources", "limit exceeded", "overlimit")),
    (Cause.CAPACITY, ("insufficient capacity", "no capacity", "resource_pool_exhausted")),
    (Cause.UNKNOWN, ("unable to find", "not found", "no such", "does not exist")),
    (Cause.CREDENTIALS, ("credential", "signature", "unauthorized", "authentication")),
)


def _error(title: str, code: int, words: str) -> CloudError:
    text = " ".join(words.split())[:300].rstrip(".") or f"status {code}"
    lower = text.lower()
    cause = next((cause for cause, marks in _WORDS if any(mark in lower for mark in marks)), None)
    if cause is None:
        # 530 to 535 are what CloudStack answers when it could not do what it understood.
        fails = code == 0 or 500 <= code < 530
        cause = _CODES.get(code, Cause.UNANSWERED if fails else Cause.REFUSED)
    return CloudError(cause, f"{title}: {text}.")


def _region(location: Any) -> str:
    return str(location.name or _DEFAULT_REGION)


def _type(size: Any) -> MachineType:
    extra = size.extra or {}
    vcpus = extra.get("cpu") or extra.get("vcpus") or extra.get("guestCpus")
    vcpus = vcpus or getattr(size, "vcpu", None) or getattr(size, "cpu", None) or 0
    return MachineType(str(size.name), float(vcpus), int(float(size.ram or 0) * (1 << 20)))


_STATES = {
    "running": ResourceState.READY,
    "stopped": ResourceState.STOPPED,
    "paused": ResourceState.STOPPED,
    "suspended": ResourceState.STOPPED,
    "stopping": ResourceState.STOPPING,
    # Drivers put there what failed, and what was removed and keeps its disk: both must go.
    "terminated": ResourceState.FAILED,
    "error": ResourceState.FAILED,
}


def _machine(region: str, node: Any, tags: Tags) -> Machine:
    extra = node.extra or {}
    public, private = list(node.public_ips or ()), list(node.private_ips or ())
    addresses = [str(getattr(entry, "address", entry)) for entry in (*public, *private)]
    created = node.created_at
    return Machine(
        Kind.MACHINE,
        str(node.id),
        region,
        tags,
        _STATES.get(str(node.state), ResourceState.PENDING),
        name=str(node.name),
        created_s=created.timestamp() if created is not None else None,
        type=str(extra.get("size_name") or getattr(node.size, "name", "") or extra.get("type", "")),
        image=str(extra.get("image_id") or getattr(node.image, "id", "") or ""),
        address=addresses[0] if addresses else "",
        private_address=str(getattr(private[0], "address", private[0])) if private else "",
        problem="the cloud shows it as failed or removed" if node.state == "terminated" else "",
    )


def _named(tags: Tags, number: int) -> str:
    """Returns a name that holds the tags, and the token, for clouds that tag too late or never."""
    return tags.as_name(f"{tags.token}-{number}")


def _tags_of_name(name: str) -> Tags | None:
    tags = Tags.from_name(name)
    if tags is None:
        return None
    parts = name.split(".")
    token = parts[4].rpartition("-")[0] if len(parts) > 4 else ""
    return Tags(tags.run, tags.owner, tags.expires_s, token)


def _short(tags: Tags, number: int) -> str:
    """Returns a name of letters, digits and hyphens, for clouds whose names are names of hosts."""
    return f"nephoscope-{tags.token[:32]}-{number}"


def _by_labels(driver: Any, location: Any, key: str) -> _Listing:
    for node in driver.list_nodes():
        tags = Tags.from_mapping((node.extra or {}).get(key) or {})
        if tags is not None:
            yield node, tags


# CloudStack: tags come by a second call, so that the tags are in the display name.


def _cloudstack_options(settings: CloudSettings, secrets: _Secrets) -> Any:
    named = {"key": secrets["key"], "secret": secrets["secret"]}
    url = settings.endpoint or secrets["endpoint"]
    return (), {**named, "url": url, "secure": url.startswith("https:")}


def _cloudstack_request(driver: Any, request: MachineRequest, number: int) -> Mapping[str, Any]:
    locations = [entry for entry in driver.list_locations() if _region(entry) == request.region]
    networks = [
        entry for entry in driver.ex_list_networks() if request.network in (entry.id, entry.name)
    ]
    if request.network and not networks:
        raise CloudError(Cause.UNKNOWN, f"CloudStack: there is no network '{request.network}'.")
    return {
        "name": _short(request.tags, number),
        "ex_displayname": _named(request.tags, number),
        "location": locations[0],
        "ex_userdata": request.user_data or None,
        "ex_start_vm": True,
        "networks": networks or None,
        "ex_rootdisksize": -(-request.disk_bytes // (1 << 30)) if request.disk_bytes else None,
    }


def _cloudstack_nodes(driver: Any, location: Any) -> _Listing:
    """Its `list_nodes` reads one page, and no display names."""
    page, results = 1, list[Mapping[str, Any]]()
    while True:
        query = {"page": page, "pagesize": _PAGE, "listall": "true"}
        if location is not None:
            query["zoneid"] = location.id
        answer = driver._sync_request("listVirtualMachines", params=query)
        machines = answer.get("virtualmachine") or []
        results += machines
        # A server may hold its pages smaller than what was asked for.
        if not machines or len(results) >= int(answer.get("count") or 0):
            break
        page += 1
    for entry in results:
        tags = _tags_of_name(str(entry.get("displayname", "")))
        if tags is not None:
            public = [entry["publicip"]] if entry.get("publicip") else None
            yield driver._to_node(data=entry, public_ips=public), tags


# OpenNebula: its OCCI service, up to version 4. Libcloud 3.9 sends no name, whatever it is given,
# so that the tags are in the context, which the service lists.

_CONTEXT = "nephoscope"


def _opennebula_options(settings: CloudSettings, secrets: _Secrets) -> Any:
    parts = urlsplit(settings.endpoint or secrets["endpoint"])
    secure = parts.scheme == "https"
    port = parts.port or (443 if secure else 80)
    return (secrets["user"], secrets["password"]), {
        "secure": secure,
        "host": parts.hostname,
        "port": port,
        "api_version": "3.8",
    }


def _opennebula_request(driver: Any, request: MachineRequest, number: int) -> Mapping[str, Any]:
    networks = [
        entry
        for entry in driver.ex_list_networks()
        if request.network in (str(entry.id), entry.name)
    ]
    for entry in networks:
        entry.address = None  # that of the whole network, which no machine can have
    if request.network and not networks:
        raise CloudError(Cause.UNKNOWN, f"OpenNebula: there is no network '{request.network}'.")
    name = _named(request.tags, number)
    context = {_CONTEXT: name}
    if request.user_data:
        script = base64.b64encode(request.user_data.encode()).decode()
        context |= {"USER_DATA": script, "USER_DATA_ENCODING": "base64"}
    return {"name": name, "networks": networks or None, "context": context}


def _opennebula_nodes(driver: Any, location: Any) -> _Listing:
    for node in driver.list_nodes():
        context = (node.extra or {}).get("context") or {}
        tags = _tags_of_name(context.get(_CONTEXT) or "")
        if tags is not None:
            yield node, tags


# Google: labels at creation; its service account is a file in JSON.


def _google_options(settings: CloudSettings, secrets: _Secrets) -> Any:
    path = Path(secrets["file"]).expanduser()
    try:
        account = json.loads(regular.read_text(path))
        named = {"project": account["project_id"], "auth_type": "SA"}
        return (account["client_email"], str(path)), named
    except (OSError, ValueError, KeyError, TypeError):
        raise CloudError(
            Cause.CREDENTIALS,
            f"Google: {path} is no file of a service account.",
            "Get one with `gcloud iam service-accounts keys create`.",
        ) from None


def _google_request(driver: Any, request: MachineRequest, number: int) -> Mapping[str, Any]:
    return {
        "name": _short(request.tags, number),
        "location": request.region,
        "ex_labels": request.tags.as_mapping(),
        "ex_metadata": {"startup-script": request.user_data} if request.user_data else None,
        "ex_preemptible": request.market == "spot" or None,
        "ex_network": request.network or "default",
        "ex_disk_size": -(-request.disk_bytes // (1 << 30)) if request.disk_bytes else None,
        "use_existing_disk": False,
    }


def _google_nodes(driver: Any, location: Any) -> _Listing:
    zone = location.name if location is not None else "all"
    for node in driver.list_nodes(ex_zone=zone):
        tags = Tags.from_mapping((node.extra or {}).get("labels") or {})
        if tags is not None:
            yield node, tags


# Azure: a machine needs a network card, which has a name that holds the tags.


_AZURE_NAME = 80
"""Characters that the name of a network card may have."""


def _azure_options(settings: CloudSettings, secrets: _Secrets) -> Any:
    return (), {
        "tenant_id": secrets["tenant"],
        "subscription_id": secrets["subscription_id"],
        "key": secrets["client_id"],
        "secret": secrets["secret"],
    }


def _azure_request(driver: Any, request: MachineRequest, number: int) -> Mapping[str, Any]:
    import asyncssh
    from libcloud.compute.base import NodeAuthSSHKey

    group, slash, network = request.network.partition("/")
    if not slash:
        raise CloudError(
            Cause.REFUSED,
            "Azure: a machine needs a resource group and a virtual network in it.",
            "Write `network: GROUP/NETWORK`.",
        )
    vnets = [entry for entry in driver.ex_list_networks() if entry.name == network]
    subnets = [subnet for entry in vnets for subnet in driver.ex_list_subnets(entry)]
    name = _named(request.tags, number)
    if not subnets or len(name) > _AZURE_NAME:
        why = "no subnet in" if not subnets else "a longer name than it takes in"
        raise CloudError(Cause.UNKNOWN, f"Azure: there is {why} network '{request.network}'.")
    # The user data sets the login; the API wants one too, of which nobody keeps the private half.
    unused = asyncssh.generate_private_key("ssh-rsa").export_public_key("openssh").decode()
    locations = [entry for entry in driver.list_locations() if _region(entry) == request.region]
    card = driver.ex_create_network_interface(name, subnets[0], group, locations[0])
    return {
        "name": _short(request.tags, number),
        "auth": NodeAuthSSHKey(unused),
        "location": locations[0],
        "ex_resource_group": group,
        "ex_nic": card,
        "ex_tags": request.tags.as_mapping(),
        "ex_customdata": request.user_data,
        "ex_use_managed_disks": True,
        "ex_os_disk_delete": True,
        "ex_disk_size": -(-request.disk_bytes // (1 << 30)) if request.disk_bytes else None,
    }


def _azure_cards(driver: Any, region: str) -> _Listing:
    for group in driver.ex_list_resource_groups():
        for card in driver.ex_list_nics(group.name):
            tags = _tags_of_name(str(card.name))
            place = str(card.location).replace(" ", "").lower()
            if tags is not None and place == region.replace(" ", "").lower():
                yield card, tags


def _card(region: str, card: Any, tags: Tags) -> CloudResource:
    return CloudResource(Kind.PORT, str(card.id), region, tags, name=str(card.name))


# Rackspace: OpenStack with metadata at creation.


def _rackspace_options(settings: CloudSettings, secrets: _Secrets) -> Any:
    return (secrets["username"], secrets["api_key"]), {"region": secrets.get("region", "dfw")}


def _rackspace_request(driver: Any, request: MachineRequest, number: int) -> Mapping[str, Any]:
    return {
        "name": _short(request.tags, number),
        "ex_metadata": request.tags.as_mapping(),
        "ex_userdata": request.user_data or None,
        "ex_config_drive": True,
    }


DRIVERS: dict[str, Driver] = {
    "azure": Driver(
        "Azure",
        "azure_arm",
        {
            "tenant": "AZURE_TENANT_ID",
            "subscription_id": "AZURE_SUBSCRIPTION_ID",
            "client_id": "AZURE_CLIENT_ID",
            "secret": "AZURE_CLIENT_SECRET",
        },
        _azure_options,
        _azure_request,
        lambda driver, location: _by_labels(driver, location, "tags"),
        "~/.azure/credentials",
        "default",
        cards=True,
    ),
    "google": Driver(
        "Google",
        "gce",
        {"file": "GOOGLE_APPLICATION_CREDENTIALS"},
        _google_options,
        _google_request,
        _google_nodes,
    ),
    "opennebula": Driver(
        "OpenNebula",
        "opennebula",
        {"endpoint": "ONE_OCCI_URL", "user": "ONE_USERNAME", "password": "ONE_PASSWORD"},
        _opennebula_options,
        _opennebula_request,
        _opennebula_nodes,
        "~/.one/occi.ini",
        "default",
    ),
    "cloudstack": Driver(
        "CloudStack",
        "cloudstack",
        {
            "endpoint": "CLOUDSTACK_ENDPOINT",
            "key": "CLOUDSTACK_KEY",
            "secret": "CLOUDSTACK_SECRET",
        },
        _cloudstack_options,
        _cloudstack_request,
        _cloudstack_nodes,
        "~/.cloudstack.ini",
        "cloudstack",
    ),
    "rackspace": Driver(
        "Rackspace",
        "rackspace",
        {"username": "RAX_USERNAME", "api_key": "RAX_API_KEY"},
        _rackspace_options,
        _rackspace_request,
        lambda driver, location: _by_labels(driver, location, "metadata"),
        "~/.rackspace_cloud_credentials",
        "rackspace_cloud",
    ),
}
"""Word in plans -> the cloud."""
