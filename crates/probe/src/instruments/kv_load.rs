//! # What it measures
//! How a key-value store (Redis or what speaks its protocol, memcached) answers under load: valid
//! replies per second, and the time from the intended sending of a request to the end of its reply.
//!
//! # How
//! The engine of `http.load`: one event loop per thread, closed or open loop, latencies from the
//! intended sending. Each connection keeps `pipeline` requests in flight. `operations` lists what is
//! asked for, with weights (`get=9`, `set=1`); keys are drawn uniformly or by Zipf's law, the first
//! key most often. Before the trial the values that are read are stored (`fill`); in the end all keys
//! of the workload are deleted (`delete_keys`). Keys begin with `key_prefix`, followed by a letter for
//! their type and a number of 12 digits.
//!
//! With `workload` a to f it runs a core workload of YCSB on a Redis server instead. Each record is a
//! hash of `fields` fields of `field_bytes` bytes, and a sorted set has all keys, by a hash:
//!
//! | workload | operations | records |
//! |---|---|---|
//! | a | 50 % read, 50 % update | Zipf |
//! | b | 95 % read, 5 % update | Zipf |
//! | c | read | Zipf |
//! | d | 95 % read, 5 % insert | latest first |
//! | e | 95 % scan, 5 % insert | Zipf; 1 to `scan_records` records, uniform |
//! | f | 50 % read, 50 % read-modify-write | Zipf |
//!
//! A read is HGETALL; an update HMSET of one field; an insert HMSET of all fields, then ZADD; a scan
//! ZRANGEBYSCORE, then HGETALL of each key; read-modify-write HGETALL, then HMSET. Each command waits
//! for the reply before, as in YCSB's client; a latency is that of the whole operation. Popular records
//! are scattered: an item drawn by Zipf's law from ten thousand million is hashed (FNV-1a) onto the
//! records. Of `latest`, the record that was inserted last is the most popular.
//!
//! A miss is a valid reply. An error that the server reports, a value of another length than
//! `value_bytes` and bytes that are no reply are failures, counted by kind (`error_reply`,
//! `authentication`, `out_of_memory`, `moved`, `wrong_value`, `garbage`). Only this machine gets load,
//! and hosts that `authorised_hosts` names.
//!
//! # Known truth
//! The server's own counters of commands, hits and misses (Redis `INFO`, memcached `stats`) agree.
//! Replies are the same however the network splits them. Keys have the probabilities of Zipf's law.
//! The commands of a core workload, their records and their order, as a real Redis shows them
//! (`INFO commandstats`, `MONITOR`), have the published mix and the closed form of the distribution.
//!
//! # Cross-check
//! redis-benchmark, interleaved (`benchmarks/kv_load_vs_redis_benchmark.py`).
//!
//! # Overhead
//! `threads` threads, each up to a whole CPU; the server, its memory for the values.
//!
//! # Caveats
//! Redis executes commands on one thread: more connections queue there. LPUSH makes lists longer
//! until the trial ends. Records that workload e inserts are scanned, but no scan begins there. With `pipeline` above 1 a latency includes the wait for the replies before.
use crate::error::{ProbeError, Result};
use crate::http::kv::keys::{Keys, Zipf};
use crate::http::kv::records::choice::{CoreWorkload, RecordOperation};
use crate::http::kv::records::{RecordSettings, RecordWorkload, Records};
use crate::http::kv::{filling, Dialect, KeyOperation, KeyWorkload, Kv};
use crate::http::requests::recorder::Recorder;
use crate::http::requests::{self, report, spec, EngineSettings, THREADS_MAX};
use crate::net::target;
use crate::trial::parameters;
use crate::trial::{factors, Trial};
use nephoscope_wire::input::read_text;
use nephoscope_wire::params::Params;
use nephoscope_wire::random::Random;
use nephoscope_wire::spec::{joined, Domain, Metric, Param, RequestLoop, Resource, Spec};
use std::path::Path;
use std::sync::Arc;

/// Streams of the seed from here on are those of keys and operations.
const FIRST_STREAM: u64 = 1000;
const LIST_BYTES_MAX: u64 = 16 << 20;
const RECORD_BYTES_MAX: u64 = 1 << 20;

/// What is asked of which server.
const REQUEST_PARAMS: [Param; 20] = [
    Param::choice("protocol", "redis", &["redis", "memcached", "memcached_meta"])
        .doc("Protocol of the server: RESP2, or memcached's text or meta protocol."),
    Param::text("host", "127.0.0.1").doc("Name or address of the server."),
    Param::int("port", 0, 0..=65_535)
        .doc("TCP port of the server; 0 takes 6379 (Redis) or 11211 (memcached)."),
    spec::AUTHORISED_HOSTS,
    Param::text("password_file", "").doc("File with the password of a Redis server."),
    Param::texts("operations").doc(
        "Operations (get, set, incr; lpush and lrange of Redis), each with =WEIGHT if it is \
         not 1; an empty list is get alone.",
    ),
    Param::choice("workload", "none", &["none", "a", "b", "c", "d", "e", "f"])
        .doc("Core workload of YCSB on records of Redis, instead of `operations`."),
    Param::count("fields", 10, 1..=100).doc("Fields of a record of a core workload."),
    Param::int("field_bytes", 100, 1..=1 << 16).doc("Size of a field of a record."),
    Param::count("scan_records", 100, 1..=10_000).doc("Records that a scan reads at most."),
    Param::count("keys", 10_000, 1..=1_000_000_000)
        .doc("Number of keys of each type, or of records."),
    Param::choice("key_distribution", "uniform", &["uniform", "zipf"])
        .doc("Distribution of the requests over the keys."),
    Param::float("zipf_exponent", 0.99, 0.0..=10.0)
        .doc("Exponent of Zipf's law; 0 is the uniform distribution."),
    Param::text("key_prefix", "nephoscope:").doc("Beginning of all keys."),
    Param::int("value_bytes", 128, 0..=1 << 20).doc("Size of a value."),
    Param::count("range_items", 100, 1..=10_000).doc("Elements that lrange reads."),
    Param::switch("fill", true).doc("Store the values that are read before the trial."),
    Param::switch("delete_keys", true).doc("Delete all keys of the workload in the end."),
    spec::CONNECTIONS,
    Param::count("pipeline", 1, 1..=10_000).doc("Requests in flight on each connection."),
];

/// What is reported besides, and the seed.
const REPORT_PARAMS: [Param; 2] = [
    Param::ints(
        "latency_limits_ns",
        &[1_000_000, 3_000_000, 10_000_000, 15_000_000, 23_000_000, 60_000_000],
        1..=3_600_000_000_000,
    )
    .doc("Limits whose shares within_ratio reports."),
    Param::seed().doc("Random seed of keys, operations, arrivals; 0 takes the clock."),
];

/// Replies by their time, and by whether the key was there.
const REPLIES: [Metric; 5] = [
    Metric::higher("within_ratio")
        .share()
        .doc("Share of the requests in latency_ns that had a response within limit_ns."),
    Metric::higher("hit_ratio").share().doc("Share of the keys asked for that were there."),
    Metric::neutral("hits_count")
        .doc("Number of replies with a key that was there, including warm-up."),
    Metric::neutral("misses_count").doc("Number of replies without the key, including warm-up."),
    Metric::neutral("scanned_count")
        .doc("Number of records that scans of core workloads read, including warm-up."),
];

pub const SPEC: Spec = Spec {
    id: "kv.load",
    summary: "Requests per second and latency of Redis or memcached under load",
    params: &joined::<_, 39>(&[&REQUEST_PARAMS, &spec::PACING, &REPORT_PARAMS]),
    metrics: &joined::<_, 31>(&[
        &spec::RESPONSES,
        &REPLIES,
        &spec::TIMES,
        &spec::COUNTS,
        &spec::CHECKS,
    ]),
    overhead: "threads at up to a CPU each; the server, full or at the offered rate",
    source: "redis-benchmark; RESP2 and memcached protocol descriptions; Zhuang 2012, Table 4.4; YCSB (Cooper et al., SoCC 2010)",
    two_sided: false,
    load: true,
    domain: Domain::KeyValue,
    request_loop: RequestLoop::Arrivals,
    ..Spec::about(Resource::Several)
};

enum Workload {
    Keys(Arc<KeyWorkload>),
    Records(Arc<RecordWorkload>),
}

pub fn run(trial: &mut Trial) -> Result<()> {
    let params = &trial.params;
    let dialect = parameters::choice(params, "protocol");
    let port = match (params.u64("port"), dialect) {
        (0, Dialect::Redis) => 6379,
        (0, _) => 11_211,
        (port, _) => port as u16,
    };
    let workload = match CoreWorkload::of(params.text("workload")) {
        Some(core) => Workload::Records(Arc::new(records(params, core)?)),
        None => Workload::Keys(Arc::new(workload(params)?)),
    };
    let address = target::reach(params.text("host"), port, &params.texts("authorised_hosts"))?;
    let settings =
        EngineSettings { depth: params.size("pipeline"), ..EngineSettings::of(trial, address)? };
    match workload {
        Workload::Records(records) => run_records(trial, &settings, &records),
        Workload::Keys(keys) => run_keys(trial, &settings, &keys),
    }
}

/// Runs a mix of operations on single keys.
fn run_keys(trial: &mut Trial, settings: &EngineSettings, keys: &Arc<KeyWorkload>) -> Result<()> {
    let address = settings.address;
    let (fills, deletes) = (trial.params.bool("fill"), trial.params.bool("delete_keys"));
    if fills {
        filling::fill(keys, address, trial.session)?;
    }
    let measured = requests::run(trial, settings, |thread| {
        Kv::new(Arc::clone(keys), stream(settings, thread))
    });
    note_failure(trial, deletes.then(|| filling::delete(keys, address, trial.session)))?;
    let (recorder, threads) = measured?;
    let classes = KeyOperation::ALL.map(|operation| factors! {"operation": operation.name()});
    report::emit(trial, settings, &recorder, &classes)?;
    let hits = threads.iter().map(|kv| kv.hits).sum();
    emit_replies(trial, &recorder, hits, threads.iter().map(|kv| kv.misses).sum())
}

/// Runs a core workload.
fn run_records(
    trial: &mut Trial,
    settings: &EngineSettings,
    workload: &Arc<RecordWorkload>,
) -> Result<()> {
    let (fills, deletes) = (trial.params.bool("fill"), trial.params.bool("delete_keys"));
    if fills {
        workload.fill(settings.address, settings.seed, trial.session)?;
    }
    let measured = requests::run(trial, settings, |thread| {
        Records::new(Arc::clone(workload), stream(settings, thread))
    });
    note_failure(trial, deletes.then(|| workload.delete(settings.address, trial.session)))?;
    let (recorder, threads) = measured?;
    let classes = RecordOperation::ALL.map(|operation| factors! {"operation": operation.name()});
    report::emit(trial, settings, &recorder, &classes)?;
    let hits = threads.iter().map(|records| records.hits).sum();
    emit_replies(trial, &recorder, hits, threads.iter().map(|records| records.misses).sum())?;
    let scanned: u64 = threads.iter().map(|records| records.scanned).sum();
    trial.out.emit("scanned_count", scanned as f64, factors! {})
}

fn stream(settings: &EngineSettings, thread: usize) -> Random {
    let before = settings.share.number * THREADS_MAX;
    Random::stream(settings.seed, FIRST_STREAM + (before + thread) as u64)
}

/// Keys that could not be deleted do not make the measurement invalid.
fn note_failure(trial: &mut Trial, deleted: Option<Result<()>>) -> Result<()> {
    if let Some(Err(error)) = deleted {
        trial.session.check()?;
        trial.out.note(error.message);
    }
    Ok(())
}

fn emit_replies(trial: &mut Trial, recorder: &Recorder, hits: u64, misses: u64) -> Result<()> {
    emit_shares(trial, recorder, &trial.params.ints("latency_limits_ns"))?;
    if hits + misses > 0 {
        trial.out.emit("hit_ratio", hits as f64 / (hits + misses) as f64, factors! {})?;
    }
    trial.out.emit("hits_count", hits as f64, factors! {})?;
    trial.out.emit("misses_count", misses as f64, factors! {})
}

fn emit_shares(trial: &mut Trial, recorder: &Recorder, limits_ns: &[i64]) -> Result<()> {
    for limit_ns in limits_ns {
        let limit = limit_ns.cast_unsigned();
        let (within, all) = recorder.classes.iter().fold((0, 0), |(within, all), times| {
            let unanswered = times.unanswered.count_between(0, limit);
            let answered = times.latency.count_between(0, limit) - unanswered;
            (within + answered, all + times.latency.len())
        });
        if all > 0 {
            let share = within as f64 / all as f64;
            trial.out.emit("within_ratio", share, factors! {"limit_ns": *limit_ns})?;
        }
    }
    Ok(())
}

fn workload(params: &Params) -> Result<KeyWorkload> {
    let dialect = parameters::choice(params, "protocol");
    let weights = weights(&params.texts("operations"), dialect)?;
    let key_count = params.u64("keys");
    let keys = match params.text("key_distribution") {
        "zipf" => Keys::Zipf(Zipf::new(key_count, params.float("zipf_exponent"))),
        _ => Keys::Uniform(key_count),
    };
    let prefix = prefix(params)?;
    let value_bytes = params.u64("value_bytes");
    let range_items = match weights[KeyOperation::Lrange as usize] {
        0 => 1,
        _ => params.u64("range_items"),
    };
    if value_bytes * range_items > LIST_BYTES_MAX {
        return Err(ProbeError::usage(
            format!("kv.load: lists of {range_items} values of {value_bytes} bytes exceed 16 MiB."),
            "Set a smaller `value_bytes` or `range_items`.",
        ));
    }
    let password = password(params.text("password_file"), dialect)?;
    let keys = (prefix, keys, key_count);
    Ok(KeyWorkload::new(dialect, weights, keys, (value_bytes, range_items), &password))
}

fn prefix(params: &Params) -> Result<&str> {
    let prefix = params.text("key_prefix");
    if prefix.len() > 200 || !prefix.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(ProbeError::usage(
            "kv.load: key_prefix has spaces, characters beyond ASCII or more than 200 characters.",
            "Set `key_prefix` to letters, digits and signs.",
        ));
    }
    Ok(prefix)
}

/// What a core workload asks for. Its parameters exclude those of single keys.
fn records(params: &Params, core: CoreWorkload) -> Result<RecordWorkload> {
    let letter = params.text("workload");
    let conflicts = [
        (params.text("protocol") != "redis", "protocol", "runs on Redis"),
        (!params.texts("operations").is_empty(), "operations", "has operations of its own"),
        (
            params.text("key_distribution") != "uniform",
            "key_distribution",
            "has a distribution of its own",
        ),
        (params.u64("pipeline") != 1, "pipeline", "has one operation in flight per connection"),
    ];
    if let Some((_, name, why)) = conflicts.iter().find(|(conflicts, _, _)| *conflicts) {
        let message = format!("kv.load: workload {letter} {why}.");
        return Err(ProbeError::usage(message, format!("Drop `{name}`, or `workload`.")));
    }
    let (fields, field_bytes) = (params.u64("fields"), params.u64("field_bytes"));
    if fields * field_bytes > RECORD_BYTES_MAX {
        return Err(ProbeError::usage(
            format!("kv.load: records of {fields} fields of {field_bytes} bytes exceed 1 MiB."),
            "Set a smaller `fields` or `field_bytes`.",
        ));
    }
    let password = password(params.text("password_file"), Dialect::Redis)?;
    Ok(RecordWorkload::new(
        core,
        &RecordSettings {
            records: params.u64("keys"),
            fields,
            field_bytes: field_bytes as usize,
            scan_records: params.u64("scan_records"),
            zipf_exponent: params.float("zipf_exponent"),
            key_prefix: prefix(params)?,
            password: &password,
            share: spec::share(params)?,
        },
    ))
}

fn weights(operations: &[&str], dialect: Dialect) -> Result<[u64; KeyOperation::ALL.len()]> {
    let mut weights = [0; KeyOperation::ALL.len()];
    for text in if operations.is_empty() { &["get"] } else { operations } {
        let (name, weight) = text.split_once('=').unwrap_or((text, "1"));
        let operation = KeyOperation::ALL.into_iter().find(|operation| operation.name() == name);
        let weight = weight.parse::<u64>().ok().filter(|weight| (1..=1_000_000).contains(weight));
        let (Some(operation), Some(weight)) = (operation, weight) else {
            let start: String = text.chars().take(40).collect();
            return Err(ProbeError::usage(
                format!("kv.load: '{}' is no operation with a weight.", start.escape_debug()),
                "Use get, set, incr, lpush, lrange, each with =WEIGHT (1 to 1000000) if needed.",
            ));
        };
        if matches!(operation, KeyOperation::Lpush | KeyOperation::Lrange)
            && dialect != Dialect::Redis
        {
            return Err(ProbeError::usage(
                format!("kv.load: memcached has no lists, so there is no {name}."),
                "Use get, set and incr, or a Redis server.",
            ));
        }
        weights[operation as usize] += weight;
    }
    Ok(weights)
}

fn password(path: &str, dialect: Dialect) -> Result<String> {
    if path.is_empty() {
        return Ok(String::new());
    }
    let hint = "Set `password_file` to a file whose first line is the password.";
    if dialect != Dialect::Redis {
        let message = "kv.load presents a password to Redis servers only.";
        return Err(ProbeError::usage(message, "Drop `password_file`."));
    }
    let text = read_text(Path::new(path)).map_err(|error| {
        let message = format!("kv.load: the password cannot be read from '{path}': {error}.");
        ProbeError::usage(message, hint)
    })?;
    match text.lines().next() {
        Some(line) if !line.is_empty() => Ok(line.to_owned()),
        _ => Err(ProbeError::usage(format!("kv.load: '{path}' has no password."), hint)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mix_has_operations_and_weights() {
        let weights = |texts: &[&str], dialect| weights(texts, dialect).ok();
        assert_eq!(weights(&[], Dialect::Redis), Some([1, 0, 0, 0, 0]));
        assert_eq!(weights(&["get=9", "set"], Dialect::Memcached), Some([9, 1, 0, 0, 0]));
        assert_eq!(weights(&["lrange=2", "lpush"], Dialect::Redis), Some([0, 0, 0, 1, 2]));
        for text in ["del", "get=0", "get=-1", "get=", "GET", "set=x", ""] {
            assert_eq!(weights(&[text], Dialect::Redis), None, "{text}");
        }
        assert_eq!(weights(&["lpush"], Dialect::MemcachedMeta), None);
    }
}
