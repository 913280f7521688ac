"""The providers: one file and one line of `PROVIDERS` each.

The libraries that they stand on are extras of the package (`pip install nephoscope[aws]`) and are
imported when a provider is opened.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from nephoscope.core.errors import Lacking, UsageError
from nephoscope.core.reading.sentences import did_you_mean
from nephoscope.core.records import dataclass
from nephoscope.measure.cloud.provider import CloudSettings, Provider


@dataclass(frozen=True, slots=True)
class ProviderEntry:
    """Where a provider is. extra: of the package, that it needs; '' for none. library: what is
    imported then; title: as its makers write it. policy: module of its permissions."""

    module: str
    title: str
    extra: str = ""
    library: str = ""
    policy: str = ""


PROVIDERS: dict[str, ProviderEntry] = {
    "ec2": ProviderEntry("ec2", "Amazon EC2", "aws", "boto3", policy="ec2_policy"),
    "openstack": ProviderEntry("openstack", "OpenStack", "openstack", "openstack"),
    "libvirt": ProviderEntry("libvirt", "libvirt", "libvirt", "libvirt"),
    "kubernetes": ProviderEntry("kubernetes", "Kubernetes"),
    "lxd": ProviderEntry("lxd", "LXD or Incus"),
    "hosts": ProviderEntry("hosts", "existing hosts"),
    "azure": ProviderEntry("libcloud", "Azure", "libcloud", "libcloud"),
    "google": ProviderEntry("libcloud", "Google", "libcloud", "libcloud"),
    "opennebula": ProviderEntry("libcloud", "OpenNebula", "libcloud", "libcloud"),
    "cloudstack": ProviderEntry("libcloud", "CloudStack", "libcloud", "libcloud"),
    "rackspace": ProviderEntry("libcloud", "Rackspace", "libcloud", "libcloud"),
}
"""Word in plans and options -> the provider; in the order of lists and pages."""


def policy_of(word: str, bucket: str = "", prefix: str = "") -> Mapping[str, Any]:
    """Returns the permissions that a provider needs, as its cloud writes them down.

    bucket, prefix: of the results of fleets. Raises UsageError where the cloud has no such
    document.
    """
    entry = _entry(word)
    if not entry.policy:
        raise UsageError(
            f"{entry.title} has no policy document.",
            "Its credentials need to create, list and remove what `nephoscope cloud up` names.",
        )
    made: Any = import_module(f"{__name__}.{entry.policy}").policy(bucket=bucket, prefix=prefix)
    policy: Mapping[str, Any] = made
    return policy


def _entry(word: str) -> ProviderEntry:
    if word not in PROVIDERS:
        near = did_you_mean(word, PROVIDERS)
        raise UsageError(f"'{word}' is no provider{near}.", f"Write one of {', '.join(PROVIDERS)}.")
    return PROVIDERS[word]


def open_provider(settings: CloudSettings) -> Provider:
    """Returns a provider. Raises UsageError for an unknown one, Lacking without its library."""
    entry = _entry(settings.provider)
    if entry.library:
        try:
            import_module(entry.library)
        except ImportError:
            raise Lacking(
                f"Renting from {entry.title} needs the Python library {entry.library}.",
                f"Install it with `pip install 'nephoscope[{entry.extra}]'`.",
            ) from None
    made: Any = import_module(f"{__name__}.{entry.module}").open(settings)
    provider: Provider = made
    return provider
