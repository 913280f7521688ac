"""Kind `pod`: a container of a pod of Kubernetes, in which programs are started by the API."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, Self

from pydantic import ConfigDict, Field

from nephoscope.measure.targets.kinds.record import (
    Directory,
    SideEffect,
    TargetRecord,
    Traits,
    as_name,
)

if TYPE_CHECKING:
    from nephoscope.measure.targets.probe.target import Target

_NAME = r"^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$"
_KubernetesName = Annotated[str, Field(pattern=_NAME)]


class PodRecord(TargetRecord):
    """A container of a pod; the API of its cluster starts the probe in it."""

    model_config = ConfigDict(title="PodTarget")

    form: ClassVar[str] = "pod:NAMESPACE/POD"
    trial_overhead_s: ClassVar[float] = 0.3

    kind: Literal["pod"] = Field(default="pod", description="How the machine is reached.")
    pod: _KubernetesName = Field(description="Name of the pod.")
    namespace: _KubernetesName | Literal[""] = Field(
        default="", description="Its namespace, else that of the context."
    )
    container: _KubernetesName | Literal[""] = Field(
        default="", description="Its container, else the first one."
    )
    context: str = Field(default="", description="Context of the kubeconfig, else the current one.")
    kubeconfig: str = Field(
        default="", description="File of the cluster, else $KUBECONFIG, else ~/.kube/config."
    )
    directory: Directory = ""

    @classmethod
    def from_text(cls, rest: str) -> Self | None:
        """See `TargetRecord.from_text`."""
        namespace, slash, pod = rest.partition("/")
        if not (slash and re.match(_NAME, namespace) and re.match(_NAME, pod)):
            return None
        return cls(name=as_name(pod), namespace=namespace, pod=pod)

    def traits(self) -> Traits:
        """See `TargetRecord.traits`; which node it runs on is not known before it is opened."""
        network = f"the network of the pods of {self.context or 'the current context'}"
        return Traits(
            machine=f"pod:{self.context}/{self.namespace}/{self.pod}",
            place=f"pod:{self.context}/{self.namespace}/{self.pod}/{self.container}",
            listens_on=network,
            sends_to=frozenset({network}),
            provisioned=True,
            closed_network=f"pods reach one another only, and this is {network}",
        )

    def make(self) -> Target:
        """See `TargetRecord.make`. Raises UsageError for a kubeconfig that names no cluster."""
        from dataclasses import replace

        from nephoscope.measure.targets.exec.channel import ExecTarget
        from nephoscope.measure.targets.exec.kubernetes import PodChannel, connect

        at = connect(self.kubeconfig, self.context)
        at = replace(at, namespace=self.namespace or at.namespace)
        return ExecTarget(
            self.name, PodChannel(self.name, at, self.pod, self.container, self.directory)
        )

    def side_effects(self, lab: str) -> Iterator[SideEffect]:
        """See `TargetRecord.side_effects`."""
        where = f"{self.namespace or 'its namespace'}/{self.pod}"
        yield SideEffect("pod", where, f"target {self.name}: the probe runs in its container")
        yield SideEffect(
            "far file", f"{where}:~/.cache/nephoscope", "the probe by its hash, work of a trial"
        )
