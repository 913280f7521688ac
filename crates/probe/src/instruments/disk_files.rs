//! # What it measures
//! How a file system serves a mail or news server: many small files that are created, read,
//! appended to and deleted (the work of `PostMark`). Transactions per second, files and bytes per
//! second by phase, and transaction latency.
//!
//! # How
//! A scratch directory is filled with `files` files, spread over `directories` subdirectories, of
//! uniform sizes from `min_bytes` to `max_bytes`. Each of `transactions` then reads a whole file or
//! appends to one, and creates or deletes one; files are chosen at random, the operations by
//! `read_ratio` and `create_ratio`. Finally all files are deleted. Files are opened, moved in
//! blocks of `block_bytes` and closed, through the page cache. `sync` sets the durability: none,
//! each written file before it is closed (`fsync`), or all at the end of each phase (`phase`),
//! within its time. Everything follows from `seed` (SplitMix64).
//!
//! # Known truth
//! After the transactions, number and bytes of the files must be those of the seed, or the trial
//! fails. Counts equal those of a second implementation, bytes those that the kernel accounts to
//! the process.
//!
//! # Cross-check
//! `benchmarks/mail.py` runs `PostMark` with the same numbers; the adapter `postmark` is the
//! original.
//!
//! # Overhead
//! Disk space of the files; one CPU, mostly in the kernel. The directory is removed at the end;
//! after SIGKILL by the next trial in the same directory.
//!
//! # Caveats
//! Without `sync` the page cache takes part: small files then measure the file system's code and
//! memory. One operation at a time. Random choices differ from those of `PostMark`, within sampling
//! error. The directory itself is not synced: a crash may lose the name of a synced file.
use crate::disk::folder::Folder;
use crate::disk::mail::{self, Draws, Mail};
use crate::disk::mailbox::{check_files, Counts, Habits, Mailbox};
use crate::disk::place;
use crate::error::{FailureKind as ErrorKind, ProbeError, Result};
use crate::timing::closed_loop::latency_histogram;
use crate::timing::timed;
use crate::trial::factors;
use crate::trial::parameters;
use crate::trial::session::Session;
use crate::trial::{Factors, Trial};
use hdrhistogram::Histogram;
use nephoscope_linux::clock;
use nephoscope_wire::spec::{Metric, Param, RequestLoop, Resource, Spec};
use serde_json::json;

pub const SPEC: Spec = Spec {
    id: "disk.files",
    summary: "Transactions, files and bytes per second of a mail server's small files",
    params: &[
        Param::text("directory", "")
            .doc("Parent of the scratch directory; empty takes $TMPDIR, else /var/tmp."),
        Param::count("files", 3_000, 1..=10_000_000)
            .doc("Number of files created before the transactions."),
        Param::count("transactions", 15_000, 1..=100_000_000)
            .doc("Number of transactions: each reads or appends, and creates or deletes a file."),
        Param::int("min_bytes", 1 << 10, 0..=1 << 30).doc("Minimum size of a new file."),
        Param::int("max_bytes", 20 << 10, 1..=1 << 30).doc("Maximum size of a file."),
        Param::count("directories", 10, 0..=100_000)
            .doc("Number of subdirectories; 0 puts all files into one directory."),
        Param::int("block_bytes", 4096, 1..=1 << 30).doc("Bytes per read or write."),
        Param::float("read_ratio", 0.5, 0.0..=1.0)
            .doc("Share of transactions that read; the others append."),
        Param::float("create_ratio", 0.5, 0.0..=1.0)
            .doc("Share of transactions that create a file; the others delete one."),
        Param::choice("sync", "none", &["none", "fsync", "phase"])
            .doc("Durability: none, fsync of each written file, or sync at the end of a phase."),
        Param::int("seed", 42, 0..=i64::MAX)
            .doc("Random seed of files and transactions; 0 takes the clock."),
    ],
    metrics: &[
        Metric::higher("transactions_per_s").headline().doc("Transactions per second."),
        Metric::lower("transaction_latency_ns").histogram().doc("Time of a transaction."),
        Metric::lower("elapsed_ns")
            .doc("Time of a phase (create, transactions, delete) and of all three."),
        Metric::higher("files_created_per_s").doc("Files created per second, by phase."),
        Metric::higher("files_read_per_s").doc("Files read per second of the transactions."),
        Metric::higher("files_appended_per_s")
            .doc("Files appended to per second of the transactions."),
        Metric::higher("files_deleted_per_s").doc("Files deleted per second, by phase."),
        Metric::higher("read_bytes_per_s").doc("Bytes read per second, by phase."),
        Metric::higher("written_bytes_per_s").doc("Bytes written per second, by phase."),
        Metric::document("counts")
            .doc("Files and bytes of each phase, and those present after the transactions."),
    ],
    overhead: "disk space of the files, removed at the end",
    source: "Katcher, PostMark: a new file system benchmark, Network Appliance TR3022, 1997",
    request_loop: RequestLoop::Closed,
    ..Spec::about(Resource::DiskWrite)
};

pub fn run(trial: &mut Trial) -> Result<()> {
    let draws = draws(trial)?;
    let params = &trial.params;
    let sync = params.text("sync").to_owned();
    let habits = Habits {
        directories: params.u64("directories"),
        block_bytes: params.size("block_bytes"),
        fsync: sync == "fsync",
    };
    let directory = place::directory(params.text("directory"));
    // Most file systems give a file whole blocks of this size.
    let (most_files, most_bytes) = mail::peak(draws, 4096);
    place::check_space(&directory, most_bytes)?;
    check_files(&directory, most_files)?;
    if place::in_memory(&directory)? {
        trial
            .out
            .note("The directory is a tmpfs: its files live in memory, and no disk takes part.");
    }
    let folder = Folder::make(&directory)?;
    let mut work = FilesWork {
        mail: Mail::new(draws),
        mailbox: Mailbox::new(trial.session, folder, habits, draws.max_bytes, draws.seed)?,
        histogram: latency_histogram(),
        sync_phases: sync == "phase",
    };
    let counted = trial.prepared().and_then(|()| work.all_phases(trial, draws));
    let removed = work.mailbox.remove();
    counted.and(removed)
}

/// What is drawn from, checked.
fn draws(trial: &Trial) -> Result<Draws> {
    let draws: Draws = parameters::fields(&trial.params);
    let Draws { min_bytes, max_bytes, .. } = draws;
    if min_bytes > max_bytes {
        return Err(ProbeError::usage(
            format!("disk.files: min_bytes {min_bytes} is more than max_bytes {max_bytes}."),
            "Set the smaller one as min_bytes.",
        ));
    }
    Ok(Draws { seed: parameters::seed(&trial.params), ..draws })
}

struct FilesWork {
    mail: Mail,
    mailbox: Mailbox,
    histogram: Histogram<u64>,
    sync_phases: bool,
}

struct Phase {
    name: &'static str,
    elapsed_ns: u64,
    counts: Counts,
}

impl FilesWork {
    fn all_phases(&mut self, trial: &mut Trial, draws: Draws) -> Result<()> {
        let session = trial.session;
        let create = self.phase("create", |work| {
            for _ in 0..draws.files {
                session.check()?;
                let step = work.mail.create();
                work.mailbox.apply(step)?;
            }
            Ok(())
        })?;
        let transactions =
            self.phase("transactions", |work| work.transactions(session, draws.transactions))?;
        let (files, bytes) = self.compare()?;
        let delete = self.phase("delete", |work| {
            while let Some(step) = work.mail.delete() {
                session.check()?;
                work.mailbox.apply(step)?;
            }
            Ok(())
        })?;
        let seconds = transactions.elapsed_ns as f64 / 1e9;
        trial.out.emit("transactions_per_s", draws.transactions as f64 / seconds, factors! {})?;
        let all = [create, transactions, delete];
        let mut counts = Factors::new();
        for phase in &all {
            phase.emit(trial)?;
            counts.insert(phase.name.to_owned(), json!(phase.counts));
        }
        counts.insert("left".to_owned(), json!({"files": files, "bytes": bytes}));
        let elapsed_ns: u64 = all.iter().map(|phase| phase.elapsed_ns).sum();
        trial.out.emit("elapsed_ns", elapsed_ns as f64, factors! {"phase": "all"})?;
        trial.out.emit_document("counts", counts.into())?;
        trial.emit_histogram("transaction_latency_ns", &self.histogram, &factors! {})
    }

    fn phase(
        &mut self,
        name: &'static str,
        work: impl FnOnce(&mut Self) -> Result<()>,
    ) -> Result<Phase> {
        let before = self.mailbox.counts;
        let section = timed::start();
        work(self)?;
        if self.sync_phases {
            self.mailbox.sync_all()?;
        }
        let elapsed_ns = section.stop_with_kernel_io().max(1);
        Ok(Phase { name, elapsed_ns, counts: self.mailbox.counts.since(before) })
    }

    fn transactions(&mut self, session: Session, count: u64) -> Result<()> {
        let mut started_ns = clock::monotonic_ns();
        for _ in 0..count {
            session.check()?;
            for step in self.mail.transaction().into_iter().flatten() {
                self.mailbox.apply(step)?;
            }
            let now_ns = clock::monotonic_ns();
            self.histogram.saturating_record((now_ns - started_ns).max(1));
            started_ns = now_ns;
        }
        Ok(())
    }

    /// What is there has to be what the seed says; number and bytes of the files.
    fn compare(&self) -> Result<(u64, u64)> {
        let there = self.mailbox.there()?;
        let live = self.mail.live();
        let expected = (live.len() as u64, live.iter().map(|(_, bytes)| *bytes).sum());
        if there == expected {
            return Ok(there);
        }
        Err(ProbeError::new(
            ErrorKind::Failed,
            "files_differ",
            format!(
                "After the transactions {} files of {} bytes are there instead of {} of {}.",
                there.0, there.1, expected.0, expected.1
            ),
            "See what else writes there, or set `directory` to another one.",
        ))
    }
}

impl Phase {
    fn emit(&self, trial: &mut Trial) -> Result<()> {
        let factors: Factors = factors! {"phase": self.name};
        trial.out.emit("elapsed_ns", self.elapsed_ns as f64, factors.clone())?;
        let Counts { created, read, appended, deleted, read_bytes, written_bytes } = self.counts;
        let (makes, deletes) = (self.name != "delete", self.name != "create");
        let all = [
            ("files_created_per_s", created, makes),
            ("files_read_per_s", read, makes && deletes),
            ("files_appended_per_s", appended, makes && deletes),
            ("files_deleted_per_s", deleted, deletes),
            ("read_bytes_per_s", read_bytes, makes && deletes),
            ("written_bytes_per_s", written_bytes, makes),
        ];
        let seconds = self.elapsed_ns as f64 / 1e9;
        // What a phase never does is left out, and is no zero.
        for (rate, value, _) in all.into_iter().filter(|(.., does)| *does) {
            trial.out.emit(rate, value as f64 / seconds, factors.clone())?;
        }
        Ok(())
    }
}
