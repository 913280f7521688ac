"""Configuration of the services of an OpenStack cloud: the files that each reads, as texts."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field

REGION = "RegionOne"
PORTS = {
    "identity": 5000,
    "placement": 8778,
    "image": 9292,
    "compute": 8774,
    "network": 9696,
    "volumev3": 8776,
    "ec2": 8788,
}
DATABASES = (
    "keystone",
    "glance",
    "placement",
    "nova_api",
    "nova",
    "nova_cell0",
    "neutron",
    "ec2api",
)
PAGE = 32
"""How many machines one answer lists. EC2's interface asks for one page, and forgets machines that
it does not see on it: the tenants of the campaign have fewer."""
FAKE, QEMU = "fake", "qemu"
"""Hosts of the cloud, each in a zone of its name: nova's fake driver, and QEMU without KVM."""

Sections = Mapping[str, Mapping[str, object]]


def _drawn() -> str:
    return secrets.token_hex(12)


@dataclass(frozen=True)
class Site:
    """Address of the cloud's services and the passwords that they use, new ones for each."""

    address: str
    database: str = field(default_factory=_drawn, repr=False)
    messages: str = field(default_factory=_drawn, repr=False)
    service: str = field(default_factory=_drawn, repr=False)
    admin: str = field(default_factory=_drawn, repr=False)
    renter: str = field(default_factory=_drawn, repr=False)
    shared: str = field(default_factory=_drawn, repr=False)

    def url(self, service: str) -> str:
        """Address of a service's API."""
        path = {"identity": "/v3", "compute": "/v2.1", "volumev3": "/v3/%(project_id)s"}
        return f"http://{self.address}:{PORTS[service]}{path.get(service, '')}"


def text(sections: Sections) -> str:
    """Writes sections in the format of oslo.config."""
    lines = []
    for name, values in sections.items():
        lines += [f"[{name}]", *(f"{key} = {value}" for key, value in values.items()), ""]
    return "\n".join(lines)


def files(site: Site) -> dict[str, str]:
    """Returns every file of configuration, by its path in the root."""
    made = {
        "/etc/keystone/keystone.conf": _keystone(site),
        "/etc/placement/placement.conf": _placement(site),
        "/etc/glance/glance-api.conf": _glance(site),
        "/etc/nova/nova.conf": _nova(site, FAKE),
        "/etc/nova/nova-qemu.conf": _nova(site, QEMU),
        "/etc/neutron/neutron.conf": _neutron(site),
        "/etc/neutron/ml2.ini": {
            "ml2": {
                "type_drivers": "flat,local",
                "tenant_network_types": "local",
                "mechanism_drivers": "linuxbridge",
            },
            "ml2_type_flat": {"flat_networks": "*"},
        },
        "/etc/neutron/bridge.ini": {
            "linux_bridge": {"physical_interface_mappings": "guests:guests0"},
            "vxlan": {"enable_vxlan": "false"},
            "securitygroup": {"enable_security_group": "false", "firewall_driver": "noop"},
        },
        "/etc/ec2api/ec2api.conf": _ec2api(site),
    }
    lines = {
        "/etc/libvirt/qemu.conf": (
            # No control groups and no namespaces of its own: the room already is both.
            "namespaces = [ ]",
            "cgroup_controllers = [ ]",
            'security_driver = "none"',
            'user = "root"',
            'group = "root"',
            "remember_owner = 0",
            'stdio_handler = "file"',
        ),
        "/etc/libvirt/libvirtd.conf": (
            'auth_unix_rw = "none"',
            'unix_sock_rw_perms = "0700"',
            f'host_uuid = "{secrets.token_hex(4)}-0000-4000-8000-{secrets.token_hex(6)}"',
        ),
        "/etc/rabbitmq/rabbitmq.conf": (
            "listeners.tcp.default = 127.0.0.1:5672",
            "default_user = cloud",
            f"default_pass = {site.messages}",
            "log.console = true",
        ),
        "/etc/ec2api/credentials": (site.service,),
    }
    return {
        **{path: text(sections) for path, sections in made.items()},
        **{path: "\n".join(rows) + "\n" for path, rows in lines.items()},
    }


def _database(site: Site, name: str) -> dict[str, object]:
    return {"connection": f"mysql+pymysql://cloud:{site.database}@127.0.0.1/{name}"}


def _messages(site: Site) -> str:
    return f"rabbit://cloud:{site.messages}@127.0.0.1:5672/"


def _identity(site: Site) -> dict[str, object]:
    return {
        "auth_type": "password",
        "auth_url": site.url("identity"),
        "project_domain_name": "Default",
        "user_domain_name": "Default",
        "project_name": "service",
        "username": "svc",
        "password": site.service,
        "region_name": REGION,
    }


def _tokens(site: Site) -> dict[str, object]:
    return {
        **_identity(site),
        "memcached_servers": "127.0.0.1:11211",
        "www_authenticate_uri": site.url("identity"),
    }


def _keystone(site: Site) -> Sections:
    return {
        "DEFAULT": {"use_stderr": "true"},
        "database": _database(site, "keystone"),
        "token": {"provider": "fernet"},
        # Of one process: EC2's interface asks for a token with each of its requests, and each
        # service behind it has that checked.
        "cache": {"enabled": "true", "backend": "dogpile.cache.memory_pickle"},
        "identity": {"password_hash_rounds": 4},
    }


def _placement(site: Site) -> Sections:
    return {
        "DEFAULT": {"use_stderr": "true"},
        "api": {"auth_strategy": "keystone"},
        "placement_database": _database(site, "placement"),
        "keystone_authtoken": _tokens(site),
    }


def _glance(site: Site) -> Sections:
    folder = "/var/lib/glance"
    return {
        "DEFAULT": {
            "use_stderr": "true",
            "enabled_backends": "f:file",
            "bind_host": site.address,
            "workers": 1,
            "worker_self_reference_url": site.url("image"),
        },
        "glance_store": {"default_backend": "f"},
        "f": {"filesystem_store_datadir": f"{folder}/images"},
        "os_glance_staging_store": {"filesystem_store_datadir": f"{folder}/staging"},
        "os_glance_tasks_store": {"filesystem_store_datadir": f"{folder}/tasks"},
        "database": _database(site, "glance"),
        "paste_deploy": {"flavor": "keystone"},
        "keystone_authtoken": _tokens(site),
    }


def _nova(site: Site, host: str) -> Sections:
    driver = {FAKE: "fake.FakeDriver", QEMU: "libvirt.LibvirtDriver"}[host]
    return {
        "DEFAULT": {
            "use_stderr": "true",
            "state_path": f"/var/lib/nova-{host}",
            "my_ip": site.address,
            "transport_url": _messages(site),
            "compute_driver": driver,
            "host": host,
            "enabled_apis": "osapi_compute",
            "osapi_compute_listen": site.address,
            "osapi_compute_workers": 1,
            "force_config_drive": "true",
            # There is one bridge for all, which nobody has to report as ready.
            "vif_plugging_is_fatal": "false",
            "vif_plugging_timeout": 0,
            "ram_allocation_ratio": 1.0,
            "cpu_allocation_ratio": 32.0,
            "reserved_host_memory_mb": 0,
            # Each zone has one host.
            "allow_resize_to_same_host": "true",
            # What was deleted while this service was down; half an hour by default.
            "running_deleted_instance_poll_interval": 10,
        },
        "api_database": _database(site, "nova_api"),
        "database": _database(site, "nova"),
        # Short pages, so that tests need few machines to fill one.
        "api": {"auth_strategy": "keystone", "max_limit": PAGE},
        "conductor": {"workers": 1},
        "scheduler": {"workers": 1, "discover_hosts_in_cells_interval": 5},
        "glance": {"api_servers": site.url("image")},
        "placement": _identity(site),
        "neutron": {**_identity(site), "metadata_proxy_shared_secret": site.shared},
        "service_user": _identity(site),
        "keystone_authtoken": _tokens(site),
        "oslo_concurrency": {"lock_path": f"/var/lib/nova-{host}/locks"},
        "vnc": {"enabled": "false"},
        # Some machines advertise a /dev/kvm in which ordinary guests hang.
        "libvirt": {"virt_type": "qemu", "cpu_mode": "none", "inject_partition": -2},
    }


def _neutron(site: Site) -> Sections:
    return {
        "DEFAULT": {
            "use_stderr": "true",
            "host": QEMU,
            "core_plugin": "ml2",
            "service_plugins": "router",
            "transport_url": _messages(site),
            "api_workers": 1,
            "rpc_workers": 1,
            # EC2's interface leaves connections open; a hundred of them hold all of the pool, and
            # no request is accepted until the first of them is idle for a quarter of an hour.
            "wsgi_keep_alive": "false",
            "bind_host": site.address,
            "dhcp_agent_notification": "false",
        },
        "experimental": {"linuxbridge": "true"},
        "agent": {"root_helper": "sudo neutron-rootwrap /etc/neutron/rootwrap.conf"},
        "database": _database(site, "neutron"),
        "keystone_authtoken": _tokens(site),
        "nova": _identity(site),
        "oslo_concurrency": {"lock_path": "/var/lib/neutron/locks"},
    }


def _ec2api(site: Site) -> Sections:
    return {
        "DEFAULT": {
            "use_stderr": "true",
            "state_path": "/var/lib/ec2api",
            "ec2api_listen": site.address,
            "ec2api_listen_port": PORTS["ec2"],
            "ec2api_workers": 1,
            "api_paste_config": "/etc/ec2api/api-paste.ini",
            "keystone_ec2_tokens_url": f"{site.url('identity')}/ec2tokens",
            "nova_service_type": "compute",
            "external_network": "outside",
            "disable_ec2_classic": "True",
        },
        "database": _database(site, "ec2api"),
        "keystone_authtoken": _tokens(site),
        "oslo_concurrency": {"lock_path": "/var/lib/ec2api"},
    }
