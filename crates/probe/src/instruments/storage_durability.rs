//! # What it measures
//! Whether objects in a store are still what was written, over months and years: how many are intact, lost,
//! damaged and unreachable, and for how long they have been observed. A store is one of those of
//! `storage.transfer`.
//!
//! # How
//! The first trial of a `name` writes `objects` objects of `object_bytes` random bytes, reads each back, and
//! notes its SHA-256 in a ledger on the target. Every further trial reads all of them back. *Intact* is an
//! object of the size and SHA-256 that were written; *damaged* one that has others, twice in a row; *lost*
//! one of which the store answers that it does not exist; *unreachable* one without any of these answers,
//! such as no connection, no access or an I/O error. An unreachable object keeps its last answer. Lost and damaged objects
//! stay in the ledger, and as many new ones are written. One that comes back is counted as `returned_count`.
//!
//! The ledger is `NAME.ledger` in `ledger_directory`. It is replaced whole, with a checksum, before objects are
//! written and after each check, so that a kill at any moment loses neither an object nor an answer. One process at a time uses
//! it. `operation` remove removes the objects and the ledger.
//!
//! Repeat it with `nephoscope watch`. The rate of loss follows from the losses and `exposure_ns`.
//!
//! # Known truth
//! Objects that are removed are lost, a flipped bit and a cut or longer object are damaged, a server that is
//! stopped makes all unreachable and loses none; each is counted exactly.
//!
//! # Cross-check
//! `sha256sum` on the objects, whose hashes are in the ledger.
//!
//! # Overhead
//! The space of the objects for as long as they are checked; each check reads them once, with two requests an
//! object, and a third for a damaged one.
//!
//! # Caveats
//! A store has far fewer losses than a check can see: no loss among N object-years bounds the annual rate by
//! 3 / N. A place where nothing is left, not even its mark, is more often a disk that is not mounted: the trial
//! fails until `counts_total_loss` is set. A local object whose pages cannot be dropped from the cache is read from memory. Times are those of the machine's clock.
use crate::disk::place;
use crate::error::{ProbeError, Result};
use crate::storage::access_params;
use crate::storage::durability::{self, DurabilityCheck, DurabilityRules};
use crate::storage::lasting::LastingPlace;
use crate::storage::ledger::{Ledger, LedgerPlace};
use crate::storage::settings::{StorageService, StorageSettings};
use crate::trial::{factors, Trial};
use nephoscope_linux::clock;
use nephoscope_wire::params::Params;
use nephoscope_wire::spec::{Metric, Param, RequestLoop, Resource, Spec, Unit};
use std::path::PathBuf;

pub const SPEC: Spec = Spec {
    id: "storage.durability",
    summary: "Objects read back by hash over months: intact, lost, damaged, unreachable",
    params: &[
        Param::text("name", "").doc("Name of the set of objects, such as its bucket's; a ledger has one name."),
        Param::choice("operation", "check", &["check", "remove"])
            .doc("Check the objects, or remove them and their ledger."),
        access_params::SERVICE,
        access_params::DIRECTORY,
        access_params::ENDPOINT,
        access_params::BUCKET,
        access_params::REGION,
        access_params::CREDENTIALS_FILE,
        access_params::TLS_CA_FILE,
        access_params::SSH_HOST_KEYS,
        access_params::AUTHORISED_HOSTS,
        Param::count("objects", 100, 1..=10_000).doc("Number of objects at risk."),
        Param::int("object_bytes", 65_536, 1..=16 << 20).in_unit(Unit::Bytes).doc("Size of new objects."),
        Param::text("ledger_directory", "").doc(
            "Directory of the ledger on the target; empty takes nephoscope/durability below \
             $XDG_STATE_HOME, else below ~/.local/state.",
        ),
        Param::switch("counts_total_loss", false)
            .doc("Count every object as lost where nothing is left in the place."),
        access_params::SYNC,
        access_params::RETRIES,
        access_params::TIMEOUT,
    ],
    metrics: &[
        Metric::lower("lost_count").headline().doc("Number of objects of which the store answers that they do not exist."),
        Metric::lower("damaged_count").doc("Number of objects whose size or SHA-256 is another one."),
        Metric::lower("unreachable_count").doc("Number of objects without an answer in this check."),
        Metric::higher("intact_count").doc("Number of objects whose last answer has the right SHA-256."),
        Metric::neutral("returned_count").doc("Number of objects that were lost or damaged and are intact again."),
        Metric::neutral("written_count").doc("Number of objects that this check wrote."),
        Metric::neutral("exposure_ns").doc(
            "Time that objects were observed, from the writing to the last intact answer, summed over all.",
        ),
        Metric::neutral("removed_count").doc("Number of objects of a ledger that was removed."),
    ],
    overhead: "space for all objects; each check reads them once",
    source: "Delgado, Cloud computing: Performance evaluation, 2010, section 4.2.3.4",
    request_loop: RequestLoop::Closed,
    ..Spec::about(Resource::Disk)
};

pub fn run(trial: &mut Trial) -> Result<()> {
    let name = checked_name(&trial.params)?;
    let place = place_of(&trial.params);
    let mut ledger = Ledger::open(&ledger_directory(&trial.params)?, &name, place)?;
    let settings = StorageSettings::of_lasting(&trial.params, ledger.seed());
    let prefix = ledger.prefix().to_owned();
    let mut place = match LastingPlace::open(trial, &settings, &prefix) {
        Ok(place) => place,
        Err(error) => {
            let silent = error.name == "no_server" && trial.params.text("operation") == "check";
            let seen = silent.then(|| durability::without_store(&ledger, &error.message));
            let Some(seen) = seen.flatten() else { return Err(error) };
            trial.prepared()?;
            seen.notes.iter().for_each(|note| trial.out.note(note.clone()));
            return emit(trial, &seen);
        }
    };
    trial.prepared()?;
    if trial.params.text("operation") == "remove" {
        let objects = ledger.objects().len();
        place.remove()?;
        ledger.remove()?;
        return trial.out.emit("removed_count", objects as f64, factors! {});
    }
    let rules = DurabilityRules {
        objects: trial.params.u64("objects"),
        bytes: trial.params.u64("object_bytes"),
        counts_total_loss: trial.params.bool("counts_total_loss"),
    };
    let now_s = clock::realtime_ns() / 1_000_000_000;
    let seen = durability::check(&mut place, &mut ledger, &rules, trial.session, now_s)?;
    for note in place.caution().iter().chain(&seen.notes) {
        trial.out.note(note.clone());
    }
    emit(trial, &seen)
}

fn emit(trial: &mut Trial, seen: &DurabilityCheck) -> Result<()> {
    for (metric, value) in [
        ("lost_count", seen.lost),
        ("damaged_count", seen.damaged),
        ("unreachable_count", seen.unreachable),
        ("intact_count", seen.intact),
        ("returned_count", seen.returned),
        ("written_count", seen.written),
    ] {
        trial.out.emit(metric, value as f64, factors! {})?;
    }
    trial.out.emit("exposure_ns", seen.exposure_s as f64 * 1e9, factors! {})
}

/// Refuses names that are no file name everywhere.
fn checked_name(params: &Params) -> Result<String> {
    let name = params.text("name");
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if (1..=40).contains(&name.len()) && name.bytes().all(is_plain) {
        return Ok(name.to_owned());
    }
    Err(ProbeError::usage(
        format!(
            "storage.durability: '{}' is no name of objects.",
            name.chars().take(60).collect::<String>()
        ),
        "Set `name` to up to 40 lower-case letters, digits and '-'.",
    ))
}

fn place_of(params: &Params) -> LedgerPlace {
    let text = |id: &str| params.text(id).to_owned();
    let is_local = params.text("service") == StorageService::Local.name();
    let directory = if is_local {
        place::directory(params.text("directory")).display().to_string()
    } else {
        text("directory")
    };
    LedgerPlace {
        service: text("service"),
        endpoint: text("endpoint"),
        bucket: text("bucket"),
        directory,
    }
}

fn ledger_directory(params: &Params) -> Result<PathBuf> {
    let named = params.text("ledger_directory");
    if !named.is_empty() {
        return Ok(place::directory(named));
    }
    let of =
        |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let state = of("XDG_STATE_HOME").or_else(|| of("HOME").map(|home| home.join(".local/state")));
    state.map(|state| state.join("nephoscope/durability")).ok_or_else(|| {
        ProbeError::usage(
            "storage.durability: there is no home directory for the ledger.",
            "Set `ledger_directory` to a directory that stays.",
        )
    })
}
