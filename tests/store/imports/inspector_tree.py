"""Makes folders in the layout of Spare Cores' measurements, with figures that a test knows.

No value is of the real data: rates follow from the number of CPUs and from the speed of a type.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

META = {"start": "2026-03-01T10:00:00.5", "end": "2026-03-01T10:05:00.5", "exit_code": 0}
UNREAD = ("lshw", "lstopo", "lsblk", "lsblk_topo", "lsblk_discard", "virtualization", "ffmpeg")


@dataclass(frozen=True)
class MadeType:
    """A server type. speed: operations per second of one CPU, from which the rates follow."""

    provider: str
    name: str
    cpus: int = 2
    memory_gib: float = 4.0
    speed: float = 1000.0
    cpu_model: str = "A CPU"
    architecture: str = "x86_64"
    gpus: int = 0


def redis_rps(made: MadeType) -> float:
    """Requests per second at the best pipeline depth."""
    return round(400 * made.speed * made.cpus)


def content(made: MadeType) -> dict[str, str]:
    """Returns the files of a type: path below its folder -> text."""
    speed, cpus = made.speed, made.cpus
    files = {
        "lscpu/stdout": _lscpu(made),
        "dmidecode/parsed.json": json.dumps(
            [
                {"name": "Memory Device", "props": {"Size": size, "Size:unit": "B"}}
                for size in (1 << 30, round((made.memory_gib - 1) * 2**30))
            ]
        ),
        "dmidecode/stdout": "# dmidecode 3.3\n",
        "stressngfull/stdout": "".join(f"{n},{n * speed}\n" for n in sorted({1, cpus})),
        "stressng/stderr": f"metrics:\n      bogo-ops-per-second-real-time: {cpus * speed}\n",
        "stressng/stdout": "stress-ng: info\n",
        "stressngsinglecore/stderr": f"      bogo-ops-per-second-real-time: {speed}\n",
        "stressng_benchmarks/stdout": json.dumps(
            {
                "stressors": {
                    "crypt": {str(n): {"bogo_ops_per_sec": 2 * n * speed} for n in {1, cpus}},
                    "tsc": {"1": None},
                }
            }
        ),
        "geekbench/results.json": json.dumps(
            {
                f"{name}-Core Performance": {"Score": {"score": round(factor * speed)}}
                for name, factor in (("Single", 1), ("Multi", 0.9 * cpus))
            }
        ),
        "passmark/stdout": "Version:\n  Major: 11\nResults:\n  NumTestProcesses: 2\n"
        f"  CPU_SINGLETHREAD: {speed}\n  CPU_avx512: 0\n  ME_LATENCY: {80_000 / speed}\n"
        f"  SUMM_CPU: {2 * speed}\nSystemInformation:\n  Memory: {round(made.memory_gib * 1024)}\n",
        "openssl/parsed.json": json.dumps(
            [{"algo": "sha256", "block_size": 16384, "speed": 1e6 * cpus * speed}]
        ),
        "openssl/stdout": f"+F:25:sha256:{1e6 * speed:.2f}\n",
        "compression_text/stdout": json.dumps(
            {
                "zstd": {"1": [_compressed(n, speed) for n in sorted({1, cpus})]},
                "zpaq": {
                    "1": [{"threads": 1, "ratio": None, "compress": None, "decompress": None}]
                },
            }
        ),
        "redis/stdout": _redis(made),
        "static_web/stdout": _web(made),
        "bw_mem/stdout": f"rd 0.016384 {20 * speed}\nrdwr 256.00 {9 * speed}\n",
        "membench/stdout": _membench(speed),
        "pgbench_postgres_ro_durable/stdout": _pgbench(made),
        "llm/stdout": "".join(
            json.dumps(line) + "\n" for line in (_llama(512, 0, speed), _llama(0, 128, speed / 10))
        ),
        "timing/meta.json": json.dumps(META),
    }
    for moment, second in zip(
        ("api_start", "api_end", "machine_start", "user_data_start", "user_data_end"),
        (0, 15, 9, 22, 40),
        strict=True,
    ):
        files[f"timing/7001/{moment}"] = f"2026-03-01T09:00:{second:02d}Z\n"
    if made.gpus:
        files |= {"nvidia_smi/stdout": _nvidia(made.gpus), "nvbandwidth/stdout": _nvbandwidth()}
        files["vllm/stdout"] = _vllm(speed)
    tasks = {path.partition("/")[0] for path in files}
    files |= {f"{task}/meta.json": json.dumps(META) for task in tasks}
    return files | {f"{task}/stdout": "not read\n" for task in UNREAD}


def _lscpu(made: MadeType) -> str:
    facts = {
        "Architecture:": made.architecture,
        "CPU(s):": str(made.cpus),
        "Model name:": made.cpu_model,
        "Thread(s) per core:": "2",
        "Hypervisor vendor:": "KVM",
        "L3 cache:": "32 MiB (1 instance)",
    }
    return json.dumps({"lscpu": [{"field": key, "data": value} for key, value in facts.items()]})


def _compressed(threads: int, speed: float) -> Mapping[str, Any]:
    rate = 1e5 * threads * speed
    return {
        "threads": threads,
        "extra_args": {},
        "ratio": 40.0,
        "compress": rate,
        "decompress": 3 * rate,
    }


def _redis(made: MadeType) -> str:
    head = '"operation","threads","pipeline","rps","latency","server_usr"\n'
    rates = {1: 0.1 * redis_rps(made), 16: 0.7 * redis_rps(made), 512: redis_rps(made)}
    # Little's law with 50 clients of each generator: latency in ms.
    return head + "".join(
        f'"SET",1,{depth},{rate:.0f},{1000 * 50 * made.cpus / rate:.4f},2.2\n'
        for depth, rate in rates.items()
    )


def _web(made: MadeType) -> str:
    head = '"size","threads","connections","rps","latency","failed"\n'
    rates = {2: 20 * made.speed * made.cpus, 64: 30 * made.speed * made.cpus}
    return head + "".join(
        f'"{size}",2,{connections},{rate / share:.0f},{connections * share / rate:.9f},0\n'
        for size, share in (("1k", 1), ("512k", 12))
        for connections, rate in rates.items()
    )


def _membench(speed: float) -> str:
    head = "size_kb,operation,bandwidth_mb_s,latency_ns\n"
    return head + f"16,read,{100 * speed},0\n16,latency,0,2.5\n32768,latency,0,{100_000 / speed}\n"


def _pgbench(made: MadeType) -> str:
    tpm = 60 * made.speed * made.cpus
    level = {"concurrency": 4, "tpm": tpm, "latency_avg_ms": 12.5, "tx_failed": 0}
    return json.dumps(
        {
            "score": tpm,
            "score_unit": "tpm",
            "latency_avg_ms": 12.5,
            "sizes": [{"profile": [level]}],
            # Settings of the server, which make such files as large as they are.
            "postgres": {"settings": {f"setting_{number}": "on" for number in range(400)}},
        }
    )


def _llama(prompt: int, generated: int, rate: float) -> Mapping[str, Any]:
    return {
        "model_filename": "/models/SmolLM-135M.Q4_K_M.gguf",
        "n_prompt": prompt,
        "n_gen": generated,
        "avg_ts": rate,
        "samples_ts": [rate] * 5,
    }


def _vllm(speed: float) -> str:
    line = {"model": "smol-135m", "workload": "chat"}
    rows = [
        line
        | {
            "strategy": strategy,
            "measurement": what,
            "percentile": None if u == "tokens/sec" else "mean",
            "score": x,
            "unit": u,
        }
        for strategy, what, x, u in (
            ("synchronous", "ttft", 13.5, "ms"),
            ("throughput", "total_throughput", 3 * speed, "tokens/sec"),
            ("constant", "ttft", 99.0, "ms"),
        )
    ]
    return "".join(json.dumps(row) + "\n" for row in rows)


def _nvidia(gpus: int) -> str:
    gpu = (
        '<gpu id="0"><product_name>A GPU</product_name>'
        "<fb_memory_usage>\n<total>24576 MiB</total></fb_memory_usage></gpu>"
    )
    return f"<nvidia_smi_log>{gpu * gpus}</nvidia_smi_log>"


def _nvbandwidth() -> str:
    cases = [
        {"name": "host_to_device_memcpy_ce", "status": "Passed", "sum": 12.5},
        {
            "name": "host_device_latency_sm",
            "status": "Passed",
            "sum": 1800.0,
            "bandwidth_matrix": [["900.0", "N/A"], ["N/A", "900.0"]],
        },
        {"name": "device_to_device_memcpy_read_ce", "status": "Waived"},
    ]
    return json.dumps({"nvbandwidth": {"testcases": cases}})


def make_tree(
    root: Path,
    types: Sequence[MadeType],
    files: Callable[[MadeType], Mapping[str, str]] = content,
) -> None:
    """Writes the folders of some types below `root`/data."""
    for made in types:
        for name, text in files(made).items():
            path = root / "data" / made.provider / made.name / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)


def many(count: int) -> list[MadeType]:
    """Returns types of several providers that differ in CPUs, memory and speed."""
    return [
        MadeType(
            ("alpha", "beta", "gamma", "delta")[number % 4],
            f"type-{number:05d}",
            cpus=2 ** (number % 6),
            memory_gib=2.0 * 2 ** (number % 7),
            speed=500.0 + 7 * (number * 7919 % 300),
            cpu_model=f"CPU {number % 9}",
            architecture="aarch64" if number % 5 == 0 else "x86_64",
            gpus=number % 50 == 49,
        )
        for number in range(count)
    ]


def dense(made: MadeType) -> dict[str, str]:
    """Returns the files of a type, each with as many figures as the real ones have."""
    files = content(made)
    speed, levels = made.speed, sorted({1, made.cpus})
    web = files["static_web/stdout"].splitlines()[0]
    rows = [
        f'"{size}",{threads},{threads * more},{100 * speed:.0f},0.000{threads}{more},0,4.2,7.0,1.3'
        for size in ("1k", "16k", "64k", "256k", "512k")
        for threads in (2, 4, 8)
        for more in (1, 2, 4, 8, 16)
    ]
    sizes = [*((2**n, 0) for n in range(18)), *((0, 2**n) for n in range(18))]
    llama = [_llama(prompt, generated, speed / 9) for prompt, generated in sizes]
    padding = {"samples_ns": [123456789] * 5, "cpu_info": "CPU" * 9, "model_type": "x" * 300}
    return files | {
        "static_web/stdout": "\n".join([f'{web},"a","b","c"', *rows, ""]),
        "stressng_benchmarks/stdout": json.dumps(
            {
                "stressors": {
                    f"stressor-{number}": {str(n): {"bogo_ops_per_sec": n * speed} for n in levels}
                    for number in range(85)
                }
            },
            indent=2,
        ),
        "compression_text/stdout": json.dumps(
            {
                f"algorithm-{number}": {
                    str(level): [_compressed(n, speed) for n in levels] for level in range(4)
                }
                for number in range(9)
            },
            indent=2,
        ),
        "openssl/parsed.json": json.dumps(
            [
                {"algo": f"algo-{number}", "block_size": size, "speed": 1e6 * speed}
                for number in range(11)
                for size in (16, 64, 256, 1024, 8192, 16384)
            ],
            indent=2,
        ),
        "llm/stdout": "".join(json.dumps(line | padding) + "\n" for line in llama),
        "membench/stdout": files["membench/stdout"]
        + "".join(f"{16 * 2**n},copy,{90 * speed},0\n" for n in range(40)),
        "lshw/stdout": "{}" * 20_000,
        "lstopo/lstopo.svg": "<svg/>" * 5_000,
        **{f"{task}/stderr": "x\n" for task in ("geekbench", "passmark", "llm", "membench")},
    }
