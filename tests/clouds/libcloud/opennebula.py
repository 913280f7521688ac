"""A double of OpenNebula's OCCI service, as its reference of 3.8 has it: compute, storage, network
and instance_type pools in XML, Basic authorisation with the SHA-1 of the password."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import threading
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tests.servers import serving

USER, PASSWORD = "user-of-the-double", "password-of-the-double"
IMAGE, LIMIT = "debian-12", 4
TYPES = {"small": (1, 1024), "large": (4, 8192)}


@dataclass
class OpenNebula:
    """Its state. machines: id -> the XML that made it."""

    port: int = 0
    machines: dict[str, ET.Element] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)
    made: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def answer(self, method: str, path: str, body: bytes) -> tuple[int, str]:
        """Status and body of a request."""
        _, pool, *rest = path.split("/")
        with self.lock:
            if method == "GET" and not rest:
                return 200, {
                    "compute": self._computes,
                    "storage": self._storages,
                    "network": lambda: "<NETWORK_COLLECTION/>",
                    "instance_type": self._types,
                }[pool]()
            if pool == "compute" and method == "POST":
                return self._make(body)
            if pool == "compute" and rest and rest[0] in self.machines:
                if method == "DELETE":
                    del self.machines[rest[0]]
                    return 204, ""
                if method == "PUT":
                    return 202, self._compute(rest[0])
                return 200, self._compute(rest[0])
            if pool == "instance_type" and rest and rest[0] in TYPES:
                return 200, _type(rest[0])
            if pool == "storage" and method == "GET":
                return 200, f"<STORAGE><ID>7</ID><NAME>{IMAGE}</NAME></STORAGE>"
        return 404, f"{path} not found"

    def _make(self, body: bytes) -> tuple[int, str]:
        wanted = ET.fromstring(body)
        if wanted.findtext("INSTANCE_TYPE") not in TYPES:
            return 500, "Error creating compute: instance type not found"
        if len(self.machines) >= LIMIT:
            return 500, f"[VirtualMachineAllocate] user [2] limit exceeded, {LIMIT} VMs in quota."
        self.made += 1
        id_ = str(self.made)
        self.machines[id_] = wanted
        return 201, self._compute(id_)

    def _compute(self, id_: str) -> str:
        wanted = self.machines[id_]
        made = ET.Element("COMPUTE", {"href": f"{self.url}/compute/{id_}"})
        for tag, text in (
            ("ID", id_),
            ("NAME", wanted.findtext("NAME") or f"one-{id_}"),
            ("STATE", "ACTIVE"),
        ):
            ET.SubElement(made, tag).text = text
        ET.SubElement(made, "INSTANCE_TYPE").text = wanted.findtext("INSTANCE_TYPE")
        disk = ET.SubElement(made, "DISK", {"id": "0"})
        ET.SubElement(disk, "STORAGE", {"href": f"{self.url}/storage/7", "name": IMAGE})
        context = wanted.find("CONTEXT")
        made.extend([context] if context is not None else [])
        nic = ET.SubElement(made, "NIC")
        ET.SubElement(nic, "NETWORK", {"href": f"{self.url}/network/1", "name": "lan"})
        ET.SubElement(nic, "IP").text = f"10.2.0.{int(id_) % 250 + 1}"
        return ET.tostring(made, "unicode")

    def _computes(self) -> str:
        links = "".join(f'<COMPUTE href="{self.url}/compute/{id_}"/>' for id_ in self.machines)
        return f"<COMPUTE_COLLECTION>{links}</COMPUTE_COLLECTION>"

    def _storages(self) -> str:
        link = f'<STORAGE href="{self.url}/storage/7" name="{IMAGE}"/>'
        return f"<STORAGE_COLLECTION>{link}</STORAGE_COLLECTION>"

    def _types(self) -> str:
        types = "".join(
            f'<INSTANCE_TYPE href="{self.url}/instance_type/{name}" name="{name}"/>'
            for name in TYPES
        )
        return f"<INSTANCE_TYPE_COLLECTION>{types}</INSTANCE_TYPE_COLLECTION>"


def _type(name: str) -> str:
    cpus, mib = TYPES[name]
    values = f"<ID>{name}</ID><NAME>{name}</NAME><CPU>{cpus}</CPU><MEMORY>{mib}</MEMORY>"
    return f"<INSTANCE_TYPE>{values}</INSTANCE_TYPE>"


def is_authorised(header: str) -> bool:
    digest = hashlib.sha1(PASSWORD.encode()).hexdigest()
    return header == f"Basic {base64.b64encode(f'{USER}:{digest}'.encode()).decode()}"


@contextlib.contextmanager
def running() -> Iterator[OpenNebula]:
    """Serves it on loopback."""
    cloud = OpenNebula()

    class Handler(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            status, text = 401, "User not authorized"
            if is_authorised(self.headers.get("Authorization", "")):
                status, text = cloud.answer(self.command, self.path.partition("?")[0], body)
            content = text.encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/xml")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = do_PUT = do_DELETE = _answer  # noqa: N815 - names of the library

        def log_message(self, format: str, *arguments: object) -> None:
            """Nothing is logged."""

    with serving(ThreadingHTTPServer(("127.0.0.1", 0), Handler)) as cloud.port:
        yield cloud
