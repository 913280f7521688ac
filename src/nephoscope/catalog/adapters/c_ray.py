"""c-ray, by John Tsiombikas: a small ray tracer."""

from __future__ import annotations

from nephoscope.catalog.adapters.declare import Figure, adapter
from nephoscope.catalog.adapters.frame import ToolCommand
from nephoscope.catalog.adapters.quantities import Params, threads, time, whole
from nephoscope.catalog.meaning import Resource

_HEAD = "c 0 6 -17 45 0 -1 0\nl -50 100 -50\nl 40 40 150\ns 0 -1000 2 999 0.1 0.2 0.6 80 0.8\n"


def _scene(spheres: int) -> str:
    """Returns rows of reflecting spheres above a large one, seen from above."""
    places = [(index % 12, index // 12) for index in range(spheres)]
    lines = [
        f"s {column - 5.5:.1f} {-0.6 + 0.02 * row:.2f} {row - 4:.1f} 0.45 "
        f"{0.2 + 0.06 * column:.2f} 0.5 {0.9 - 0.06 * (row % 12):.2f} 50 0.4\n"
        for column, row in places
    ]
    return _HEAD + "".join(lines)


def _command(params: Params) -> ToolCommand:
    size = ("-s", f"{params['width']}x{params['height']}", "-r", str(params["rays"]))
    words = (*size, "-t", str(params["threads"]), "-o", "image")
    space = 3 * params["width"] * params["height"]
    return ToolCommand(words, input=_scene(params["spheres"]), needs_bytes=space)


ADAPTER = adapter(
    "c-ray",
    "c-ray: time to trace the rays of an image",
    resource=Resource.CPU,
    tool="c-ray-mt",
    minimum="1.1",
    install="make, in c-ray-mt of github.com/jtsiomb/c-ray (release 1.1), and that folder in PATH",
    source="Tsiombikas, c-ray, github.com/jtsiomb/c-ray",
    version=r"^c-ray-mt v([0-9]+\.[0-9]+)\n",
    version_command=("-s", "1x1", "-o", "image"),
    on_stderr=True,
    params=(
        whole("width", 800, 1, 100_000, "Width of the image, in pixels (`-s`)."),
        whole("height", 600, 1, 100_000, "Height of the image, in pixels (`-s`)."),
        whole("rays", 4, 1, 10_000, "Rays of a pixel (`-r`)."),
        whole("spheres", 144, 0, 10_000, "Spheres of the scene."),
        threads("Threads (`-t`)."),
    ),
    command=_command,
    figures=(
        Figure(
            time("render_ns", "Time to render the image.", headline=True),
            r"^Rendering took: [0-9]+ seconds \(([0-9]+) milliseconds\)\n",
            1e6,
        ),
    ),
    overhead="one CPU for each thread",
    measures="How fast a CPU computes in floating point with all data in its caches.",
    how="""
Rays are traced through a scene of reflecting spheres, which is made here; the image goes to a
file in the scratch folder.""",
    truth="The time grows in proportion to the pixels and to the rays of each.",
    cross_check="`cpu.pi`; `sysbench.cpu`.",
    caveats="""
The program is `c-ray-mt` of release 1.1, the one that benchmarks mean; other programs have its
name. Its times are of this scene, and not comparable with published ones of its own scenes. It
counts whole milliseconds. The compiler's options decide (vector instructions). No package of
Debian has it: the captures are of version 1.1, built from its source; set-ups for tests do not
install it.""",
)
