//! # What it measures
//! What a store gives to clients that write and read whole objects: throughput and time by object
//! size, fairness among clients, and transactions per second of objects of one byte. A store is a
//! local file system or mount, an S3-compatible service, WebDAV, SFTP, Azure Blob, Google Cloud
//! Storage or HDFS (WebHDFS).
//!
//! # How
//! `clients` threads, each with connections and objects of its own, make four passes over `objects`
//! objects of each size: all are written; all are read in random order, first with caches dropped
//! (`cold`), then again (`warm`); each is written again and read at once (`read_after_write`). A write ends when the store has acknowledged it; a local file has then been synced. A
//! client has one transfer in flight, of which `parts_at_once` parts of `part_bytes` may be.
//! Then objects of one byte are read and written for `transactions_ns`, by one client and by all at
//! once: one over the time of a serial request is no capacity.
//!
//! Local files are moved by system calls of 1 MiB; services by Apache OpenDAL, in the program
//! nephoscope-storage. A request that fails for a passing reason is sent again, `retries` times at
//! most, and counted. Each object has random bytes whose SHA-256 is known. Reads from services are
//! hashed as they arrive; local files are hashed in a read of their own afterwards, because hashing
//! would slow a fast disk down (`verify`). All objects are below one name, `nephoscope-…`, and are
//! removed at the end; what a killed trial left is removed by the next one in the same directory.
//!
//! Credentials come from `credentials_file` or from the environment, never from parameters.
//!
//! # Known truth
//! Bytes written and read equal those that the kernel accounts to the process. A hash that differs, an
//! object that is shorter or vanished fails the trial. A server that is killed and started again shows
//! as retries, and every hash is right.
//!
//! # Cross-check
//! `benchmarks/storage_transfer_vs_fio.py` alternates with fio on a local disk: the same files, system
//! calls and state of the disk.
//!
//! # Overhead
//! Space for all objects of all sizes; `clients` threads at up to a CPU each; network traffic of about five
//! times the objects' bytes.
//!
//! # Caveats
//! The caches of a service cannot be dropped from outside: its first read in random order has `cache`
//! unknown. Cold local files have their pages dropped, not their names and inodes. A service that
//! compresses with windows beyond 4 MiB finds repetitions in larger objects. A trial that is killed
//! while it sends parts leaves an unfinished upload, which S3 does not list; a lifecycle rule of the
//! bucket removes those. WebDAV and WebHDFS take an object in one request, without parts. SFTP needs
//! the program `ssh`; a connection of it may outlive a killed trial.
use crate::error::Result;
use crate::storage::settings::{StorageSettings, Verify};
use crate::storage::{access_params, clients, passes, report, transactions, ObjectPlace};
use crate::trial::{factors, Trial};
use nephoscope_linux::files::Files;
use nephoscope_linux::proc;
use nephoscope_wire::spec::{Metric, Param, RequestLoop, Resource, Spec};

/// Hashing that takes more of the measured reads is worth a note.
const HASHING_SHARE: f64 = 0.05;
const HOUR_NS: i64 = 3_600_000_000_000;

pub const SPEC: Spec = Spec {
    id: "storage.transfer",
    summary: "Throughput by object size, transactions per second and fairness of a store",
    params: &[
        access_params::SERVICE,
        access_params::DIRECTORY,
        access_params::ENDPOINT,
        access_params::BUCKET,
        access_params::REGION,
        access_params::CREDENTIALS_FILE,
        access_params::TLS_CA_FILE,
        access_params::SSH_HOST_KEYS,
        access_params::AUTHORISED_HOSTS,
        Param::ints("object_bytes", &[1, 1 << 10, 1 << 20, 16 << 20], 1..=1 << 30)
            .in_unit(nephoscope_wire::spec::Unit::Bytes)
            .doc("Sizes of the objects."),
        Param::count("objects", 4, 1..=100_000).doc("Number of objects of each size and client."),
        Param::count("clients", 1, 1..=256).doc("Number of clients that transfer at once."),
        Param::choice("order", "random", &["random", "sequential"])
            .doc("Order of reads, compared with that of the writes."),
        access_params::SYNC,
        Param::int("part_bytes", 8 << 20, 5 << 20..=64 << 20)
            .doc("Size of the parts in which larger objects are sent to services that take parts."),
        Param::count("parts_at_once", 1, 1..=16).doc("Parts of one object in flight."),
        Param::choice("verify", "auto", &["auto", "during", "after", "never"])
            .doc("When hashes are compared; auto: after for local files, during for services."),
        access_params::RETRIES,
        access_params::TIMEOUT,
        Param::int("transactions_ns", 500_000_000, 0..=HOUR_NS)
            .doc("Time of each measurement of transactions; 0 leaves them out."),
        Param::seed().doc("Random seed of bytes and order; 0 takes the clock."),
    ],
    metrics: &[
        report::THROUGHPUT,
        report::LATENCY,
        report::CLIENT_THROUGHPUT,
        report::FAIRNESS,
        report::SATURATION,
        report::TRANSACTIONS,
        report::TRANSACTION_LATENCY,
        Metric::lower("retries_count").doc("Number of requests that failed and were sent again."),
        Metric::neutral("verified_count")
            .doc("Number of reads whose SHA-256 was that of the object written."),
        Metric::lower("resident_bytes").doc("Peak memory of the program."),
    ],
    overhead: "space for all objects; network traffic of about five times their bytes",
    source: "Khurshid et al. 2009, section 4.1; Garfinkel, TR-08-07, Harvard University, 2007",
    request_loop: RequestLoop::Closed,
    ..Spec::about(Resource::Disk)
};

pub fn run(trial: &mut Trial) -> Result<()> {
    let settings = StorageSettings::of(&trial.params)?;
    let place = ObjectPlace::make(trial, &settings)?;
    let measured = measure(trial, &settings, &place);
    let removed = place.remove();
    measured.and(removed)
}

fn measure(trial: &mut Trial, settings: &StorageSettings, place: &ObjectPlace) -> Result<()> {
    let mut clients = clients::connect(trial, settings, place)?;
    trial.prepared()?;
    let mut all = Vec::new();
    for bytes in &settings.sizes {
        for pass in passes::of_size(&mut clients, settings, *bytes)? {
            report::emit_pass(trial, &pass)?;
            all.push(pass);
        }
    }
    report::emit_saturation(trial, &all)?;
    if settings.transactions_ns > 0 {
        let transactions = transactions::measure(&mut clients, settings)?;
        report::emit_transactions(trial, &transactions)?;
    }
    let retries: u64 = clients.iter().map(|client| client.store.retries()).sum();
    let verified: u64 = clients.iter().map(|client| client.verified).sum();
    trial.out.emit("retries_count", retries as f64, factors! {})?;
    trial.out.emit("verified_count", verified as f64, factors! {})?;
    if let Some(bytes) = peak_resident_bytes() {
        trial.out.emit("resident_bytes", bytes as f64, factors! {})?;
    }
    note_hashing(trial, settings, &clients, &all);
    Ok(())
}

/// Says where hashes have cost the measured reads time.
fn note_hashing(
    trial: &mut Trial,
    settings: &StorageSettings,
    clients: &[clients::StorageClient],
    all: &[passes::StoragePass],
) {
    let reads = all.iter().filter(|pass| pass.cache.is_some()).flat_map(|pass| &pass.clients);
    let reading_ns: u64 = reads.map(|times| times.busy_ns).sum();
    let hashing_ns: u64 = clients.iter().map(|client| client.hashing_ns).sum();
    let share = hashing_ns as f64 / reading_ns.max(1) as f64;
    if settings.verify == Verify::During && share > HASHING_SHARE {
        trial.out.note(format!(
            "Hashing took {:.0} % of the time of the reads; `verify` after leaves it out.",
            share * 100.0
        ));
    }
}

/// Returns the peak memory of this process; `getrusage` has that of its parent too, from before exec.
fn peak_resident_bytes() -> Option<u64> {
    let status = Files::machine().text("/proc/self/status").ok()?;
    proc::kib_field(&status, "VmHWM")
}
