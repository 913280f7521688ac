"""Kubernetes over REST: a pod is a machine, its limits are its type.

A namespace is a region; a zone is that of nodes, or one node by its name. Programs are started by
the API's exec, so that a pod needs no ssh server and no address that the controller reaches.
"""

from __future__ import annotations

import base64
import contextlib
import re
import time
import urllib.parse
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, ClassVar

from nephoscope.measure.cloud.machine_sizes import parse_size, size_name, sizes_up_to
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
from nephoscope.measure.cloud.provider import Cause, CloudError, CloudSettings, CloudTraits
from nephoscope.measure.cloud.user_data import LEASE_FILE
from nephoscope.measure.targets.exec.kubeconfig import Connection, connect
from nephoscope.measure.targets.exec.rest import Answer, NotReached, words_of_failure

PAGE = 500
"""Pods that one page of a listing holds at most."""

EXTENSION_S = 3600
"""How far the expiry of a pod can be moved: the API lets no deadline of a pod be set later, so that
the first one lies so much behind the expiry. It is the second line of defence: the first process of
the pod ends at its expiry, which is a label."""

_ZONE, _HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
_RUN = "nephoscope-run"
_NAME, _TYPE = "nephoscope.dev/name", "nephoscope.dev/type"
_CONTAINER = "machine"
_LARGEST = (64.0, 256 << 30)
"""What a machine may have where this user may not see the nodes."""

_FIRST_PROCESS = f"""
trap 'exit 0' TERM USR1 USR2
[ ! -r /nephoscope/user-data ] || sh /nephoscope/user-data
while :; do
  end=$(tr -d tz </nephoscope/expires)
  [ "$(date -u +%Y%m%d%H%M%S)" -lt "${{end:-0}}" ] || exit 0
  read -r up _ </proc/uptime
  end=$(cat {LEASE_FILE} 2>/dev/null) || end=
  [ -z "$end" ] || [ "${{up%%.*}}" -lt "$end" ] || exit 0
  sleep 5 & wait $!
done
"""
"""It ends with the lease: its own (the label) and that of the user data, whose `poweroff` may be
missing in the image or may signal it only."""

_LOST = frozenset(
    {
        *("ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName"),
        *("CreateContainerConfigError", "CreateContainerError", "RunContainerError"),
    }
)
"""Reasons for which a container waits and that do not pass by themselves."""

_IMAGE = re.compile(r"[a-z0-9][a-z0-9._:/-]*(:[A-Za-z0-9_][A-Za-z0-9._-]*|@sha256:[0-9a-f]{64})")


def open(settings: CloudSettings) -> KubernetesCloud:
    """Returns the cluster of the kubeconfig `endpoint`, by its context `profile`."""
    return KubernetesCloud(settings)


class KubernetesCloud:
    """See `Provider`."""

    traits: ClassVar[CloudTraits] = CloudTraits(
        kinds=frozenset({Kind.MACHINE}), tokens=True, per_second=20.0, rents=False
    )

    def __init__(self, settings: CloudSettings) -> None:
        self._settings = settings
        self._at: Connection = connect(settings.endpoint, settings.profile)

    def account(self) -> Account:
        """See `Provider.account`: the user that the API takes us for, and the quotas of the
        context's namespace."""
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
        results = self._ask("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", body)
        user = str(results["status"]["userInfo"]["username"])
        quotas: dict[str, tuple[float | None, float | None]] = {}
        with contextlib.suppress(CloudError):
            path = f"/api/v1/namespaces/{self._at.namespace}/resourcequotas"
            for entry in self._ask("GET", path)["items"]:
                status = entry.get("status") or {}
                for key, limit in (status.get("hard") or {}).items():
                    used = (status.get("used") or {}).get(key)
                    quotas[key] = (_number(used) if used is not None else None, _number(limit))
        return Account(user, self._at.context, quotas)

    def regions(self) -> Sequence[str]:
        """See `Provider.regions`: the namespaces, or the context's where others are not shown."""
        try:
            results = self._ask("GET", "/api/v1/namespaces")
        except CloudError as error:
            if error.cause is not Cause.CREDENTIALS or "forbidden" not in error.message:
                raise
            return [self._at.namespace]
        return [str(entry["metadata"]["name"]) for entry in results["items"]]

    def zones(self, region: str) -> Sequence[str]:
        """See `Provider.zones`: zones of the nodes, and the nodes themselves."""
        self._known(region)
        nodes = self._nodes()
        zones = {labels[_ZONE] for labels in map(_labels, nodes) if _ZONE in labels}
        return [*sorted(zones), *sorted(str(entry["metadata"]["name"]) for entry in nodes)]

    def types(self, region: str) -> Sequence[MachineType]:
        """See `Provider.types`: the usual sizes that fit into the largest node."""
        self._known(region)
        return sizes_up_to(*self._largest())

    def image(self, region: str, name: str) -> str:
        """See `Provider.image`: with its tag or digest, for `latest` is another one tomorrow."""
        if not _IMAGE.fullmatch(name):
            raise CloudError(
                Cause.UNKNOWN,
                f"Kubernetes: '{name}' names no image with a tag.",
                "Write it with its tag or digest, e.g. debian:12.",
            )
        return name

    def prices(self, request: MachineRequest) -> MachinePrices | None:
        """See `Provider.prices`: the nodes are paid for, not the pods."""
        return None

    def storage_prices(self, region: str, type: str) -> StoragePrices | None:
        """See `Provider.storage_prices`."""
        return None

    def create(self, request: Request) -> Sequence[CloudResource]:
        """See `Provider.create`. A name holds the token, so that a repeated call makes nothing."""
        if not isinstance(request, MachineRequest) or request.placement_group:
            raise CloudError(Cause.REFUSED, "Kubernetes makes pods, and groups none of them.")
        size = parse_size("Kubernetes", request.type)
        vcpus, memory = self._largest()
        if size.vcpus > vcpus or size.memory_bytes > memory:
            raise CloudError(
                Cause.CAPACITY,
                f"Kubernetes: no node is as large as {request.type}; the largest takes "
                f"{size_name(vcpus, memory >> 20 << 20)}.",
            )
        made: list[CloudResource] = []
        try:
            for number in range(request.count):
                made.append(self._create_pod(request, size, number))
        except CloudError as error:
            if error.cause is not Cause.QUOTA or len(made) < request.at_least:
                for entry in made if not error.passes else ():
                    self.delete(entry)
                raise
        return made

    def resources(
        self, region: str, run: str | None = None, kinds: Collection[Kind] | None = None
    ) -> Sequence[CloudResource]:
        """See `Provider.resources`."""
        selector = f"{_RUN}={run}" if run else _RUN
        pods = list(self._list(f"/api/v1/namespaces/{region}/pods", selector))
        zones = self._zones_of_nodes() if pods else {}
        made = [self._machine(region, pod, zones) for pod in pods]
        return [entry for entry in made if entry is not None]

    def delete(self, resource: CloudResource) -> None:
        """See `Provider.delete`; the pod stays listed until its node has ended it."""
        with contextlib.suppress(_NoSuchPod):
            self._ask("DELETE", f"/api/v1/namespaces/{resource.region}/pods/{resource.id}")

    def act(self, machine: Machine, action: Action, value: str = "") -> None:
        """See `Provider.act`: a pod that ended does not come back."""
        raise CloudError(Cause.REFUSED, f"Kubernetes: {action} is nothing that a pod can do.")

    def attach(self, machine: Machine, volume: CloudResource) -> None:
        """See `Provider.attach`."""
        raise CloudError(Cause.REFUSED, "Kubernetes attaches no volume to a pod that runs.")

    def detach(self, volume: CloudResource) -> None:
        """See `Provider.detach`."""
        raise CloudError(Cause.REFUSED, "Kubernetes detaches no volume from a pod that runs.")

    def console(self, machine: Machine) -> str:
        """See `Provider.console`: the last lines of the pod's log."""
        path = f"/api/v1/namespaces/{machine.region}/pods/{machine.id}/log?tailLines=200"
        with _translated():
            answer = self._at.server.request("GET", path)
        return answer.text if answer.good else ""

    def extend(self, resource: CloudResource, expires_s: int) -> None:
        """See `Provider.extend`; by an hour at most."""
        path = f"/api/v1/namespaces/{resource.region}/pods/{resource.id}"
        pod = self._ask("GET", path)
        began = _seconds((pod.get("status") or {}).get("startTime")) or time.time()
        if expires_s > began + int(pod["spec"].get("activeDeadlineSeconds") or 1 << 40):
            raise CloudError(
                Cause.REFUSED,
                f"Kubernetes: {resource.id} cannot live longer than an hour beyond its first end.",
                "Rent it for a longer time.",
            )
        tags = Tags(resource.tags.run, resource.tags.owner, expires_s, resource.tags.token)
        body = {"metadata": {"labels": tags.as_mapping()}}
        self._ask("PATCH", path, body, content_type="application/merge-patch+json")

    def _create_pod(self, request: MachineRequest, size: MachineType, number: int) -> Machine:
        name = f"nephoscope-{request.tags.token[:32]}-{number}"
        pods = f"/api/v1/namespaces/{request.region}/pods"
        try:
            pod = self._ask("POST", pods, self._pod(request, size, name))
        except _Exists:
            pod = self._ask("GET", f"{pods}/{name}")
        machine = self._machine(request.region, pod, {})
        if machine is None or machine.tags.token != request.tags.token:
            raise CloudError(Cause.REFUSED, f"Kubernetes: {name} belongs to somebody else.")
        if request.user_data:
            try:
                self._create_user_data(request, name, str(pod["metadata"]["uid"]))
            except CloudError as error:
                if not error.passes:
                    self.delete(machine)
                raise
        return machine

    def _create_user_data(self, request: MachineRequest, name: str, uid: str) -> None:
        """A secret that the pod owns, and with which it is removed. The pod waits for it: made in
        this order, no secret can be left alone."""
        owner = {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": uid}
        labels = request.tags.as_mapping()
        body = {
            "metadata": {"name": name, "labels": labels, "ownerReferences": [owner]},
            "immutable": True,
            "data": {"user-data": base64.b64encode(request.user_data.encode()).decode()},
        }
        with contextlib.suppress(_Exists):
            self._ask("POST", f"/api/v1/namespaces/{request.region}/secrets", body)

    def _pod(self, request: MachineRequest, size: MachineType, name: str) -> Mapping[str, Any]:
        limits = {"cpu": f"{size.vcpus:g}", "memory": str(size.memory_bytes)}
        if request.disk_bytes:
            limits["ephemeral-storage"] = str(request.disk_bytes)
        label = {
            "path": "expires",
            "fieldRef": {"fieldPath": "metadata.labels['nephoscope-expires']"},
        }
        sources: list[Mapping[str, Any]] = [{"downwardAPI": {"items": [label]}}]
        if request.user_data:
            sources.append({"secret": {"name": name}})
        container = {
            "name": _CONTAINER,
            "image": request.image,
            "imagePullPolicy": "IfNotPresent",
            "command": ["/bin/sh", "-c", _FIRST_PROCESS],
            "resources": {"limits": limits, "requests": limits},
            "volumeMounts": [{"name": "nephoscope", "mountPath": "/nephoscope", "readOnly": True}],
        }
        spec: dict[str, Any] = {
            "containers": [container],
            "volumes": [{"name": "nephoscope", "projected": {"sources": sources}}],
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 5,
            "activeDeadlineSeconds": max(
                1, request.tags.expires_s - int(time.time()) + EXTENSION_S
            ),
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "hostNetwork": request.network == "host",
        }
        if request.zone:
            nodes = [str(entry["metadata"]["name"]) for entry in self._nodes()]
            spec["nodeSelector"] = {_HOST if request.zone in nodes else _ZONE: request.zone}
        return {
            "metadata": {
                "name": name,
                "labels": {
                    **request.tags.as_mapping(),
                    "app.kubernetes.io/managed-by": "nephoscope",
                },
                "annotations": {_NAME: request.name, _TYPE: request.type},
            },
            "spec": spec,
        }

    def _machine(
        self, region: str, pod: Mapping[str, Any], zones: Mapping[str, str]
    ) -> Machine | None:
        metadata, status, spec = pod["metadata"], pod.get("status") or {}, pod["spec"]
        tags = Tags.from_mapping(_labels(pod))
        if tags is None:
            return None
        name = str(metadata["name"])
        notes = metadata.get("annotations") or {}
        state, problem = _state(metadata, status)
        node = str(spec.get("nodeName") or "")
        return Machine(
            Kind.MACHINE,
            name,
            region,
            tags,
            state,
            zone=zones.get(node, ""),
            name=str(notes.get(_NAME, "")),
            created_s=_seconds(metadata.get("creationTimestamp")),
            type=str(notes.get(_TYPE, "")),
            image=str(spec["containers"][0]["image"]),
            private_address=str(status.get("podIP") or ""),
            host=node,
            problem=problem,
            target={
                "kind": "pod",
                "pod": name,
                "namespace": region,
                "container": _CONTAINER,
                "context": self._settings.profile or self._at.context,
                "kubeconfig": self._settings.endpoint,
            },
        )

    def _nodes(self) -> Sequence[Mapping[str, Any]]:
        """The nodes; none where this user may not see them."""
        try:
            return list(self._list("/api/v1/nodes"))
        except CloudError as error:
            if error.cause is not Cause.CREDENTIALS:
                raise
            return []

    def _zones_of_nodes(self) -> Mapping[str, str]:
        return {
            str(entry["metadata"]["name"]): _labels(entry).get(_ZONE, "") for entry in self._nodes()
        }

    def _largest(self) -> tuple[float, int]:
        results = [(entry.get("status") or {}).get("allocatable") or {} for entry in self._nodes()]
        sizes = [
            (_number(entry.get("cpu", "0")), int(_number(entry.get("memory", "0"))))
            for entry in results
        ]
        return max(sizes, default=_LARGEST)

    def _known(self, region: str) -> None:
        if region not in self.regions():
            raise CloudError(
                Cause.UNKNOWN,
                f"Kubernetes: there is no namespace '{region}'.",
                "See `kubectl get namespaces`.",
            )

    def _list(self, path: str, selector: str = "") -> Iterator[Mapping[str, Any]]:
        """Objects of a listing, page by page."""
        query = {"limit": str(PAGE), **({"labelSelector": selector} if selector else {})}
        while True:
            results = self._ask("GET", f"{path}?{urllib.parse.urlencode(query)}")
            yield from results.get("items") or ()
            following = (results.get("metadata") or {}).get("continue")
            if not following:
                return
            query["continue"] = str(following)

    def _ask(
        self, method: str, path: str, body: object = None, content_type: str = "application/json"
    ) -> Mapping[str, Any]:
        with _translated():
            answer = self._at.server.request(method, path, body, content_type=content_type)
        if not answer.good:
            raise _error(answer)
        return answer.document


class _NoSuchPod(CloudError):
    """What was asked for is not there."""


class _Exists(CloudError):
    """What is to be made is there already."""


def _error(answer: Answer) -> CloudError:
    words = " ".join(str(answer.document.get("message") or answer.text).split())[:300].rstrip(".")
    message = f"Kubernetes: {words or f'status {answer.status}'}."
    reason = answer.document.get("reason")
    if answer.status == 404:
        return _NoSuchPod(Cause.UNKNOWN, message)
    if reason == "AlreadyExists":
        return _Exists(Cause.REFUSED, message)
    if answer.status == 403 and "exceeded quota" in words:
        return CloudError(Cause.QUOTA, message, "See `kubectl describe quota`.")
    if answer.status in (401, 403):
        hint = (
            "Get new credentials of the cluster." if answer.status == 401 else "Ask for the right."
        )
        return CloudError(Cause.CREDENTIALS, message, hint)
    if answer.status == 429:
        return CloudError(Cause.THROTTLED, message)
    if answer.status >= 500:
        return CloudError(Cause.UNANSWERED, message)
    return CloudError(Cause.REFUSED, message)


@contextlib.contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except NotReached as error:
        raise CloudError(
            Cause.UNREACHABLE,
            f"Kubernetes does not answer: {words_of_failure(error)}.",
            "Check the server of the kubeconfig.",
        ) from error
    except OSError as error:
        words = words_of_failure(error)
        raise CloudError(Cause.UNANSWERED, f"Kubernetes gave no answer: {words}.") from error


def _state(metadata: Mapping[str, Any], status: Mapping[str, Any]) -> tuple[ResourceState, str]:
    """State of a pod, and the words for why it is not running."""
    if metadata.get("deletionTimestamp"):
        return ResourceState.LEAVING, ""
    words = ": ".join(str(status[key]) for key in ("reason", "message") if status.get(key))
    phase = status.get("phase")
    if phase == "Succeeded":
        return ResourceState.STOPPED, "it ended"
    if phase == "Failed":
        ended = status.get("reason") == "DeadlineExceeded"
        return (ResourceState.STOPPED if ended else ResourceState.FAILED), words or "it ended"
    containers = status.get("containerStatuses") or ()
    for state in (entry.get("state") or {} for entry in containers):
        waiting = state.get("waiting") or {}
        if waiting.get("reason") in _LOST:
            return (
                ResourceState.FAILED,
                f"{waiting['reason']}: {waiting.get('message', '')}".rstrip(": "),
            )
        if phase == "Running" and state.get("running"):
            return ResourceState.READY, ""
    for entry in status.get("conditions") or ():
        if entry["type"] == "PodScheduled" and entry["status"] == "False":
            return ResourceState.PENDING, str(entry.get("message", ""))
    return ResourceState.PENDING, ""


_SUFFIXES = {
    "n": 1e-9,
    "u": 1e-6,
    "m": 1e-3,
    "": 1.0,
    "k": 1e3,
    "M": 1e6,
    "G": 1e9,
    "T": 1e12,
    "P": 1e15,
    "E": 1e18,
    "Ki": 2**10,
    "Mi": 2**20,
    "Gi": 2**30,
    "Ti": 2**40,
    "Pi": 2**50,
}


def _number(quantity: object) -> float:
    """Returns a quantity of Kubernetes ('500m', '1Gi') as a number; 0 for what is none."""
    match = re.fullmatch(r"([0-9.]+(?:e[0-9]+)?)([A-Za-z]*)", str(quantity))
    return float(match[1]) * _SUFFIXES.get(match[2], 0.0) if match else 0.0


def _labels(entry: Mapping[str, Any]) -> Mapping[str, str]:
    return entry["metadata"].get("labels") or {}


def _seconds(text: Any) -> float | None:
    with contextlib.suppress(TypeError, ValueError):
        return datetime.fromisoformat(text).timestamp()
    return None
