//! Clients that transfer at the same time, each with a store and objects of its own.
use super::content::{Content, Object};
use super::settings::StorageSettings;
use super::{ObjectPlace, Store};
use crate::error::{FailureKind, ProbeError, Result};
use crate::threads::team;
use crate::timing::closed_loop::latency_histogram;
use crate::trial::session::Session;
use crate::trial::Trial;
use hdrhistogram::Histogram;
use nephoscope_linux::clock;
use nephoscope_wire::random::Random;
use sha2::{Digest, Sha256};
use std::sync::Barrier;

/// One client: its access to the store, its objects of the size in turn, its random numbers.
pub struct StorageClient {
    pub store: Box<dyn Store>,
    pub objects: Vec<Object>,
    pub random: Random,
    pub content: Content,
    pub session: Session,
    /// Objects whose bytes were read and had the right hash.
    pub verified: u64,
    /// Time spent on hashes within measured reads.
    pub hashing_ns: u64,
}

/// What one client did in a pass.
#[derive(Debug)]
pub struct ClientPass {
    pub started_ns: u64,
    pub ended_ns: u64,
    /// Sum of the times of its transfers.
    pub busy_ns: u64,
    pub bytes: u64,
    pub latency: Histogram<u64>,
}

impl ClientPass {
    pub fn begin() -> Self {
        let now_ns = clock::monotonic_ns();
        let latency = latency_histogram();
        Self { started_ns: now_ns, ended_ns: now_ns, busy_ns: 0, bytes: 0, latency }
    }

    /// Counts a transfer that began at `started_ns` and ends now.
    pub fn transferred(&mut self, started_ns: u64, bytes: u64) {
        self.ended_ns = clock::monotonic_ns();
        let took_ns = (self.ended_ns - started_ns).max(1);
        self.busy_ns += took_ns;
        self.bytes += bytes;
        self.latency.saturating_record(took_ns);
    }

    pub fn bytes_per_s(&self) -> f64 {
        self.bytes as f64 * 1e9 / self.busy_ns.max(1) as f64
    }
}

/// Makes the clients of a trial, which have no objects yet.
pub fn connect(
    trial: &Trial,
    settings: &StorageSettings,
    place: &ObjectPlace,
) -> Result<Vec<StorageClient>> {
    team::check_can_start_threads()?;
    let content = Content::new(settings.seed);
    let client = |index: usize| {
        Ok(StorageClient {
            store: place.connect(trial, settings)?,
            objects: Vec::new(),
            random: Random::stream(settings.seed, 1 + index as u64),
            content: content.clone(),
            session: trial.session,
            verified: 0,
            hashing_ns: 0,
        })
    };
    (0..settings.clients).map(client).collect()
}

/// Has all clients do the same at once; returns what each of them found.
pub fn together<T: Send>(
    clients: &mut [StorageClient],
    work: impl Fn(&mut StorageClient) -> Result<T> + Sync,
) -> Result<Vec<T>> {
    let start = Barrier::new(clients.len());
    std::thread::scope(|scope| {
        let begin = |client| {
            let (start, work) = (&start, &work);
            scope.spawn(move || {
                start.wait();
                work(client)
            })
        };
        let threads: Vec<_> = clients.iter_mut().map(begin).collect();
        threads.into_iter().map(|thread| thread.join().expect("clients do not panic")).collect()
    })
}

impl StorageClient {
    /// Takes objects of a size, which are not in the store yet. index: this client's number.
    pub fn take_objects(&mut self, index: usize, bytes: u64, count: u64) {
        let Self { content, random, .. } = self;
        let name = |number| format!("{bytes}-{index}-{number}");
        self.objects = (0..count).map(|n| content.object(name(n), bytes, random)).collect();
    }

    pub fn write(&mut self, number: usize) -> Result<()> {
        self.session.check()?;
        self.store.write(&self.content, &self.objects[number])
    }

    /// Reads an object, and compares its length and, where `hashes`, its hash.
    pub fn read(&mut self, number: usize, hashes: bool) -> Result<()> {
        self.session.check()?;
        let (object, mut hash, mut hashing_ns) = (&self.objects[number], Sha256::new(), 0);
        let bytes = self.store.read(object, &mut |piece| {
            if hashes {
                let started_ns = clock::monotonic_ns();
                hash.update(piece);
                hashing_ns += clock::monotonic_ns() - started_ns;
            }
        })?;
        self.hashing_ns += hashing_ns;
        let name = &object.name;
        if bytes != object.bytes {
            let of = object.bytes;
            return Err(differs(format!(
                "The object {name} of {of} bytes reads as {bytes} bytes."
            )));
        }
        if hashes && <[u8; 32]>::from(hash.finalize()) != object.digest {
            return Err(differs(format!("The object {name} reads back with another SHA-256.")));
        }
        self.verified += u64::from(hashes);
        Ok(())
    }
}

fn differs(sentence: String) -> ProbeError {
    let hint = "Check the store and the path to it; no figure of this trial counts.";
    ProbeError::new(FailureKind::Failed, "object_differs", sentence, hint)
}
