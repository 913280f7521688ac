"""Names of the benchmarks that other parts of the program run, or whose samples they read, by name.

Only a plan that runs one benchmark, and an analysis whose subject is one, need a name. Whatever
holds for several benchmarks is an attribute of their declarations (`catalog.meaning`).
"""

from __future__ import annotations

FINGERPRINT = "sys.fingerprint"
"""Reads the facts of a machine; its only metric is a document."""
CPU_GAPS = "cpu.gaps"
"""Measures the pauses of a busy thread: what a scheduler or a hypervisor takes away."""
CPU_HASH = "cpu.hash"
SYS_CALLS = "sys.calls"
MEM_STREAM = "mem.stream"
MEM_CACHE = "mem.cache"
MEM_LATENCY = "mem.latency"
DISK_IO = "disk.io"
DISK_SYNC = "disk.sync"
STORAGE_TRANSFER = "storage.transfer"
NET_LOOPBACK = "net.loopback"
NET_RTT = "net.rtt"
NET_THROUGHPUT = "net.throughput"
NET_QUERY = "net.query"
HTTP_LOAD = "http.load"
HTTP_SERVE = "http.serve"
LOAD_CPU = "load.cpu"
SIM_GEO = "sim.geo"
SIM_PLACE = "sim.place"
SIM_SCHEDULER = "sim.scheduler"
SIM_SELECTION = "sim.selection"
HOST_BOOT = "host.boot"
"""A benchmark that no program on the target executes: the host itself is booted."""
VOLUME_RESTORE = "volume.restore"
"""Like `HOST_BOOT`: the cloud itself does it, for a rented machine."""
LB_HAPROXY = "lb.haproxy"
LB_NGINX = "lb.nginx"
HTTP_NGINX = "http.nginx"
HTTP_APACHE = "http.apache"
