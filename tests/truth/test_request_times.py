"""http.load and kv.load against a server with a plan: each time, count and rate follows from it."""

from __future__ import annotations

import ssl
import subprocess
import time
from pathlib import Path
from statistics import mean

import planned_server
import pytest
from channel import controlled
from cpu_truth import group, last_cpu
from line_truth import Wire, both_ways
from planned_server import Answer, answering, params_of
from storage_servers import CERTIFICATES
from tests import hardware
from tests.attempts import attempt
from tests.hardware import Feature
from tests.tools import needs
from trials import Trial, command, needs_root, real_time, run, run_words

needs_tap = hardware.needs(Feature.TUN, Path("/dev/net/tun").exists())
BENCHMARKS = ("http.load", "kv.load")
MS = 1e6

# Three intervals of 200 ms with eight requests each; the first interval is the warm-up. Each answer
# comes in two parts. In each interval the fourth takes longest.
INTERVAL_S, EACH, STEP_S, TIMEOUT_S = 0.2, 8, 0.022, 0.25
DUE_S = [0.2 * k + 0.005 + STEP_S * j for k in range(3) for j in range(EACH)]
PARTS_S = ((0.002, 0.002), (0.004, 0.003), (0.003, 0.007))
LONGEST = Answer(0.006, 0.012)
UNANSWERED, BROKEN = 9, 18
PLAN = [Answer(*PARTS_S[number // EACH]) for number in range(3 * EACH)]
for _slow in (3, 11, 19):
    PLAN[_slow] = LONGEST
PLAN[UNANSWERED] = Answer(kind="none")
PLAN[BROKEN] = Answer(kind="error")
LIMITS_NS = [9_000_000, 15_000_000, 240_000_000]

TIMES = (
    "latency_ns",
    "unanswered_ns",
    "service_time_ns",
    "first_byte_ns",
    "interval_latency_p50_ns",
    "interval_latency_p99_ns",
    "interval_latency_max_ns",
)
COUNTS = (
    "requests_per_s",
    "due_count",
    "pace_ratio",
    "offered_per_s",
    "received_bytes_per_s",
    "sent_count",
    "completed_count",
    "errors_count",
    "error_ratio",
    "connections_count",
    "interval_requests_per_s",
    "interval_errors_count",
)


def planned_trial(benchmark: str, times: Path) -> tuple[Trial, planned_server.Planned]:
    """One trial of the plan, and the server that followed it."""
    times.write_text("".join(f"{due_s:.6f}\n" for due_s in DUE_S))
    pacing = {
        "arrivals": "file",
        "arrivals_file": str(times),
        "connections": 6,
        "warmup_ns": int(INTERVAL_S * 1e9),
        "duration_ns": int(2 * INTERVAL_S * 1e9),
        "interval_ns": int(INTERVAL_S * 1e9),
        "timeout_ns": int(TIMEOUT_S * 1e9),
    }
    shares = {"latency_limits_ns": LIMITS_NS} if benchmark == "kv.load" else {}
    with real_time(inherited=True), answering(benchmark, PLAN) as server:
        trial = run(benchmark, {**pacing, **shares, **params_of(benchmark, server)})
    return trial, server


def off_ms(trial: Trial, server: planned_server.Planned) -> dict[str, float]:
    """By how much each time (ms) exceeds what the server itself noted or the plan says."""
    measured = [n for n in range(EACH, 3 * EACH) if n not in (UNANSWERED, BROKEN)]
    noted = server.times
    own = {
        "service_time_ns": mean(noted[n].end - noted[n].read for n in measured),
        "first_byte_ns": mean(noted[n].first - noted[n].read for n in measured),
    }
    own["latency_ns"] = (own["service_time_ns"] * len(measured) + TIMEOUT_S) / (len(measured) + 1)
    off = {name: trial.histogram(name)[1] / MS - 1e3 * own_s for name, own_s in own.items()}
    off["unanswered_ns"] = trial.histogram("unanswered_ns")[1] / MS - 1e3 * TIMEOUT_S
    for k in range(3):
        # The one without a response has no time in its interval, nor has the one that failed.
        answered = [n for n in range(EACH * k, EACH * (k + 1)) if n not in (UNANSWERED, BROKEN)]
        own_ms = sorted(1e3 * (noted[n].end - noted[n].read) for n in answered)
        wanted = {"p50": own_ms[(len(own_ms) - 1) // 2], "p99": own_ms[-1], "max": own_ms[-1]}
        for name, ms in wanted.items():
            off[f"{name} of {k}"] = trial.series(f"interval_latency_{name}_ns")[k] / MS - ms
    return off


def check_counts(trial: Trial, server: planned_server.Planned, error: str) -> None:
    seconds = 2 * INTERVAL_S
    assert trial.one("sent_count") == trial.one("due_count") == len(server.times) == 24
    assert trial.one("completed_count") == 22
    assert trial.by("errors_count", "kind") == {"any": 2, error: 1, "timeout": 1}
    assert trial.one("error_ratio") == pytest.approx(2 / 24)
    # The first one only tries whether there is a server.
    assert trial.one("connections_count") == server.accepted - 1 == 6
    assert trial.one("offered_per_s") == pytest.approx(16 / seconds)
    assert trial.one("requests_per_s") == pytest.approx(14 / seconds)
    received = 14 * server.bytes_of("value") + server.bytes_of("error")
    assert trial.one("received_bytes_per_s") == pytest.approx(received / seconds)
    assert trial.series("interval_requests_per_s") == pytest.approx([40, 35, 35])
    # The time limit of the request of the second interval is over in the third one.
    assert trial.series("interval_errors_count") == [0, 0, 2]
    ends = sorted(times.end for times in server.times if times.end)
    pace = (len(ends) - 1) / (ends[-1] - ends[0]) / (23 / (DUE_S[-1] - DUE_S[0]))
    assert trial.one("pace_ratio") == pytest.approx(pace, rel=0.03)


def is_on_time(server: planned_server.Planned) -> bool:
    """Whether the server kept to its plan: each answer within the interval that the plan names."""
    noted = server.times
    late = [t.end - t.read - a.total_s for t, a in zip(noted, PLAN, strict=False) if t.end]
    return len(noted) == len(PLAN) and max(late) < 0.01


@pytest.mark.truth("http.load", *TIMES, *COUNTS, "responses_count")
def test_times_and_counts_of_http_are_those_of_the_plan(tmp_path: Path) -> None:
    def measure() -> tuple[str, bool]:
        trial, server = planned_trial("http.load", tmp_path / "times")
        if not is_on_time(server):
            return "the server itself was late", False
        check_counts(trial, server, "status_5xx")
        assert trial.by("responses_count", "status") == {200: 22, 500: 1}
        return judged(off_ms(trial, server))

    attempt("a plan of HTTP", measure)


@pytest.mark.truth("kv.load", *TIMES, *COUNTS, "within_ratio")
def test_times_and_counts_of_a_store_are_those_of_the_plan(tmp_path: Path) -> None:
    def measure() -> tuple[str, bool]:
        trial, server = planned_trial("kv.load", tmp_path / "times")
        if not is_on_time(server):
            return "the server itself was late", False
        check_counts(trial, server, "error_reply")
        # Of 15: six of 7 ms, six of 10 ms, two of 18 ms, and one without a response.
        shares = trial.by("within_ratio", "limit_ns")
        held = list(shares) == LIMITS_NS
        held &= list(shares.values()) == pytest.approx([6 / 15, 12 / 15, 14 / 15])
        text, on_time = judged(off_ms(trial, server))
        return f"{text}; shares {list(shares.values())}", on_time and held

    attempt("a plan of a store", measure)


def judged(off: dict[str, float]) -> tuple[str, bool]:
    # Nothing is faster than its server (histograms keep 3 digits). Sending, waking up and reading
    # take the generator far less than a millisecond at rest.
    held = all(-0.02 <= ms <= 1.2 for name, ms in off.items() if "unanswered" not in name)
    # A hundredth of the limit passes between two looks at it.
    held &= -0.3 <= off["unanswered_ns"] <= 5
    return ", ".join(f"{name} {ms:+.2f} ms" for name, ms in off.items()), held


DELAY_MS = 10


@needs_root
@needs("ip")
@needs_tap
@pytest.mark.parametrize(
    ("benchmark", "tls_version", "round_trips"),
    [
        pytest.param(
            "http.load",
            "1.3",
            1,
            marks=pytest.mark.truth("http.load", "connect_ns", "tls_handshake_ns"),
        ),
        pytest.param(
            "http.load",
            "1.2",
            2,
            marks=pytest.mark.truth("http.load", "connect_ns", "tls_handshake_ns"),
        ),
        pytest.param("kv.load", "", 0, marks=pytest.mark.truth("kv.load", "connect_ns")),
    ],
)
def test_a_connection_takes_a_round_trip_and_a_handshake_one_or_two(
    benchmark: str, tls_version: str, round_trips: int
) -> None:
    connections = 5
    work = {"connections": connections, "warmup_ns": 0, "duration_ns": 200_000_000}
    context = None
    if tls_version:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(CERTIFICATES / "server.pem", CERTIFICATES / "server.key")

    def measure() -> tuple[str, bool]:
        with real_time(inherited=True), Wire(both_ways(delay_ns=int(DELAY_MS * MS))) as wire:
            wire.warm()
            with answering(benchmark, [Answer()], wire.listener(), context) as server:
                params = {**params_of(benchmark, server), "authorised_hosts": [wire.far_address]}
                if tls_version:
                    params["url"] = server.url.replace("http:", "https:")
                    params |= {"tls_verify": False, "tls_version": tls_version}
                trial = run(benchmark, {**work, **params}, before=wire.near)
        count, connect_ns = trial.histogram("connect_ns")
        assert count == trial.one("connections_count") == connections
        # The line promises half a millisecond each way; cryptography takes some more.
        text, held = f"connected in {connect_ns / MS:.2f} ms", 20 <= connect_ns / MS <= 22
        if tls_version:
            count, handshake_ns = trial.histogram("tls_handshake_ns")
            assert count == connections
            least_ms = 2 * DELAY_MS * round_trips
            text += f", handshake {handshake_ns / MS:.2f} of {least_ms} ms"
            held &= least_ms <= handshake_ns / MS <= least_ms + 8
        return text, held

    attempt(f"{benchmark} {tls_version} through 20 ms", measure)


PAUSE_S = 0.15


@pytest.mark.parametrize("benchmark", BENCHMARKS)
@pytest.mark.truth("http.load", "late_sends_ratio", "send_delay_ns")
@pytest.mark.truth("kv.load", "late_sends_ratio", "send_delay_ns")
def test_a_generator_that_stands_still_says_how_late_it_sent(benchmark: str) -> None:
    """Stopped for a while, it sends late what was due meanwhile: each by what was left of it."""
    rate, seconds = 200, 0.6
    pacing = {"arrivals": "constant", "rate_per_s": float(rate), "connections": 60, "warmup_ns": 0}

    def measure() -> tuple[str, bool]:
        with real_time(inherited=True), answering(benchmark, [Answer()]) as server:
            params = {**pacing, **params_of(benchmark, server), "duration_ns": int(seconds * 1e9)}
            with controlled("run", benchmark, params) as generator:
                generator.ready()
                generator.say("go")
                time.sleep(0.2)
                stopped_s = generator.stop_for(PAUSE_S)
                trial = generator.trial()
        late = trial.one("late_sends_ratio") * rate * seconds
        delays = [(s["value"] / 1e9, s["count"]) for s in trial.all("send_delay_ns")]
        assert sum(count for _, count in delays) == rate * seconds
        total_s = sum(value * count for value, count in delays)
        # Due every 5 ms: the delays are an arithmetic series of these steps, at either edge of one
        # more or less; those of less than a millisecond are not late. It catches up with some more.
        wanted, step_s = stopped_s * rate, 1 / rate
        held = wanted - 1.5 <= late <= wanted + 5
        held &= stopped_s - step_s - 0.001 <= max(delays)[0] <= stopped_s + 0.003
        held &= abs(total_s / (stopped_s * wanted / 2) - 1) <= 0.08
        text = f"{late:.1f} of {wanted:.1f} late, longest {1e3 * max(delays)[0]:.1f} ms, "
        return f"{text}sum {total_s:.3f} s of {stopped_s * wanted / 2:.3f} s", held

    attempt(f"{benchmark} stopped for {PAUSE_S} s", measure)


@needs_root
@pytest.mark.parametrize("benchmark", BENCHMARKS)
@pytest.mark.truth("http.load", "generator_cpus", "generator_cpu_ns", "generator_busy_ratio")
@pytest.mark.truth("kv.load", "generator_cpus", "generator_cpu_ns", "generator_busy_ratio")
def test_the_kernel_accounts_the_cpu_time_of_the_generator(benchmark: str) -> None:
    seconds = 1.5
    work = {"connections": 8, "warmup_ns": 0, "duration_ns": int(seconds * 1e9)}

    def measure() -> tuple[str, bool]:
        with real_time(inherited=True), answering(benchmark, [Answer()]) as server:
            words = command(benchmark, {**work, **params_of(benchmark, server)})
            trial = run_words(words)
        cpu_s = trial.cpu_s
        cpus, busiest = trial.one("generator_cpus"), trial.one("generator_busy_ratio")
        each_s = trial.one("generator_cpu_ns") / 1e9
        # The kernel's account has the start of the program too: some 20 ms, of 90 that may be.
        held = -0.005 <= cpu_s / seconds - cpus <= 0.06 and cpus >= 0.05
        # One thread, which never waits busily; responses of the last moments are no part of it.
        held &= abs(busiest - cpus) <= 0.01
        held &= abs(each_s * trial.one("completed_count") / seconds / cpus - 1) <= 0.02
        text = f"{cpus:.3f} CPUs, {busiest:.3f} of the thread, {cpu_s / seconds:.3f} by the kernel"
        return f"{text}, {1e6 * each_s:.1f} µs each", held

    attempt(f"CPU time of {benchmark}", measure, contends=True)


@needs_root
@pytest.mark.parametrize("benchmark", BENCHMARKS)
@pytest.mark.parametrize(
    "waiting",
    [
        pytest.param(
            {"arrivals": "constant", "rate_per_s": 200.0, "spin_ns": 10_000_000},
            id="until it sends",
        ),
        pytest.param({"response_spin_ns": 10_000_000, "connections": 1}, id="for responses"),
    ],
)
@pytest.mark.truth("http.load", "generator_busy_ratio")
@pytest.mark.truth("kv.load", "generator_busy_ratio")
def test_busy_waiting_is_no_work_of_the_generator(
    benchmark: str, waiting: dict[str, object]
) -> None:
    """It waits 4 of 5 ms for the time of its next request, or 4 ms for each response."""
    work = {"cpus": [last_cpu()], "warmup_ns": 0, "duration_ns": 500_000_000}

    def measure() -> tuple[str, bool]:
        with real_time(inherited=True), answering(benchmark, [Answer(0.004)]) as server:
            trial = run_words(
                command(benchmark, {**work, **waiting, **params_of(benchmark, server)})
            )
        cpus, busiest = trial.one("generator_cpus"), trial.one("generator_busy_ratio")
        # 200 or 250 requests a second of up to 100 us each, and the turns between polls.
        return f"{cpus:.3f} CPUs, {busiest:.3f} of them work", cpus > 0.8 and 0 < busiest <= 0.1

    attempt(f"busy waiting of {benchmark}", measure, contends=True)


@needs_root
@pytest.mark.parametrize("benchmark", BENCHMARKS)
@pytest.mark.truth("http.load", "generator_cpus", "generator_wait_ratio")
@pytest.mark.truth("kv.load", "generator_cpus", "generator_wait_ratio")
def test_a_generator_beside_a_busy_program_waits_half_of_the_time(benchmark: str) -> None:
    """Both are always busy on one CPU, the generator with waiting for responses."""
    cpu = last_cpu()
    work = {"cpus": [cpu], "response_spin_ns": 10_000_000, "connections": 1, "warmup_ns": 0}
    rival = command("load.cpu", {"threads": 1, "cpus": [cpu], "duration_ns": 20_000_000_000})

    def measure() -> tuple[str, bool]:
        with (
            answering(benchmark, [Answer(0.004)]) as server,
            subprocess.Popen(favoured.inside(rival), stdout=subprocess.DEVNULL) as busy,
        ):
            try:
                words = command(benchmark, {**work, **params_of(benchmark, server)})
                trial = run_words(favoured.inside(words))
            finally:
                busy.kill()
        cpus, waited = trial.one("generator_cpus"), trial.one("generator_wait_ratio")
        # It waits while the other has the CPU, which has as much of it; the scheduler balances over
        # slices of a few ms. Where responses come late, it sleeps.
        held = abs(waited / cpus - 1) <= 0.12 and 0.65 <= waited + cpus <= 1.01
        return f"{cpus:.3f} CPUs, waited {waited:.3f} of the time", held

    with group() as favoured:
        attempt(f"{benchmark} on half a CPU", measure, contends=True)
