"""Programs of Kubernetes, built from the Go module proxy: minutes the first time, then cached."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

from tests.clouds import roots
from tests.hardware import Feature, lacking

HERE = Path(__file__).parent
VERSION = "v1.34.3"
PROGRAMS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet")
LIMIT_S = 3600.0


def programs() -> Path:
    """A layer of a root, with the programs in usr/local/bin."""
    texts = [(HERE / name).read_bytes() for name in ("go.mod", "go.sum")]
    digest = hashlib.sha256(b"".join(texts)).hexdigest()[:12]
    return roots.made_once(roots.cache("kubernetes"), f"programs-{digest}", _build)


def _build(part: Path) -> None:
    go = shutil.which("go") or "/usr/local/go/bin/go"
    if not Path(go).exists():
        lacking(Feature.CLOUD_ROOT, "go is missing (apt-get install golang)")
    bin_folder = part / "usr" / "local" / "bin"
    bin_folder.mkdir(parents=True)
    sources = roots.cache("kubernetes") / "build"
    sources.mkdir(exist_ok=True)
    for name in ("go.mod", "go.sum"):
        shutil.copy(HERE / name, sources / name)
    version = "k8s.io/component-base/version"
    flags = (
        f"-s -w -X {version}.gitVersion={VERSION} -X {version}.gitMajor=1 -X {version}.gitMinor=34"
    )
    done = subprocess.run(
        [
            *("nice", go, "build", "-p", "2", "-mod=mod", "-trimpath", "-buildvcs=false"),
            *("-ldflags", flags, "-o", f"{bin_folder}/"),
            *(f"k8s.io/kubernetes/cmd/{program}" for program in PROGRAMS),
        ],
        cwd=sources,
        env={**os.environ, "CGO_ENABLED": "0", "GOFLAGS": ""},
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
    )
    if done.returncode != 0:
        lacking(Feature.CLOUD_ROOT, (done.stderr.strip().splitlines() or [""])[-1][:300])
