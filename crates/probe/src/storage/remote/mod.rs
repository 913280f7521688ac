//! Services over the network, through Apache `OpenDAL`.
mod bounded;
mod credentials;
mod failures;
mod prefix;
mod services;

use super::content::{Content, Object};
use super::settings::StorageSettings;
use super::{vanished, Store};
use crate::error::{ProbeError, Result};
use crate::trial::session::Session;
use crate::trial::Trial;
use bytes::Bytes;
use credentials::Credentials;
use failures::Failures;
use futures::future::{select, Either};
use futures::StreamExt;
use opendal_core::{Buffer, ErrorKind, Operator};
use prefix::Prefix;
use services::Access;
use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};

const READING: &str = "Reading an object";
/// A cancelled trial ends the transfers under way within this time.
const CANCELLED_WITHIN: Duration = Duration::from_millis(50);

/// A name of the trial's own in a service, and the way to it.
pub struct RemoteStore {
    access: Access,
    session: Session,
    client: RemoteClient,
    prefix: String,
}

impl RemoteStore {
    /// Makes the place: checks access by an object of one byte, and removes what killed trials left.
    pub fn make(trial: &mut Trial, settings: &StorageSettings) -> Result<Self> {
        let credentials = Credentials::read(trial)?;
        let access = Access::of(trial, settings, credentials)?;
        let prefix = Prefix::draw(trial.session.time_left())?;
        let mut client = RemoteClient::connect(&access, trial.session, String::new())?;
        let abandoned = client.abandoned(&prefix)?;
        for left in &abandoned {
            client.remove_all(left)?;
        }
        if !abandoned.is_empty() {
            let count = abandoned.len();
            trial.out.note(format!("Objects of {count} trials that were killed are removed."));
        }
        let prefix = prefix.name();
        let mut place = Self { access, session: trial.session, client, prefix };
        match place.check(settings.seed) {
            Ok(()) => Ok(place),
            Err(error) => {
                // The failure is what counts; the next trial removes what is left.
                let _ = place.remove();
                Err(error)
            }
        }
    }

    fn check(&mut self, seed: u64) -> Result<()> {
        let content = Content::new(seed);
        let mut random = nephoscope_wire::random::Random::new(seed);
        let object = content.object(format!("{}/check", self.prefix), 1, &mut random);
        self.client.write(&content, &object)?;
        self.client.read(&object, &mut |_| ()).map(|_| ())
    }

    pub fn connect(&self) -> Result<Box<dyn Store>> {
        let client =
            RemoteClient::connect(&self.access, self.session, format!("{}/", self.prefix))?;
        Ok(Box::new(client))
    }

    pub fn remove(mut self) -> Result<()> {
        self.client.remove_all(&self.prefix)
    }
}

/// A name in a service whose objects stay after the trial.
pub struct RemovableStore {
    access: Access,
    session: Session,
    prefix: String,
}

impl RemovableStore {
    /// Reads the credentials; asks the service nothing.
    pub fn open(trial: &mut Trial, settings: &StorageSettings, prefix: &str) -> Result<Self> {
        let credentials = Credentials::read(trial)?;
        let access = Access::of(trial, settings, credentials)?;
        Ok(Self { access, session: trial.session, prefix: prefix.to_owned() })
    }

    pub fn connect(&self) -> Result<Box<dyn Store>> {
        let folder = format!("{}/", self.prefix);
        Ok(Box::new(RemoteClient::connect(&self.access, self.session, folder)?))
    }

    pub fn remove(self) -> Result<()> {
        RemoteClient::connect(&self.access, self.session, String::new())?.remove_all(&self.prefix)
    }
}

/// One client: connections and an event loop of its own.
struct RemoteClient {
    runtime: Runtime,
    operator: Operator,
    session: Session,
    failures: Failures,
    retries: Arc<AtomicU64>,
    takes_parts: bool,
    removes_in_batches: bool,
    part_bytes: usize,
    parts_at_once: usize,
    /// In front of every object's name.
    folder: String,
}

impl RemoteClient {
    fn connect(access: &Access, session: Session, folder: String) -> Result<Self> {
        let retries = Arc::new(AtomicU64::new(0));
        let built = Builder::new_current_thread().enable_all().build();
        let runtime = built.map_err(|error| ProbeError::os("Making an event loop", &error))?;
        let operator = {
            let _entered = runtime.enter();
            access.operator(Arc::clone(&retries))?
        };
        let takes_parts = operator.info().capability().write_can_multi;
        let (part_bytes, parts_at_once) = (access.part_bytes, access.parts_at_once);
        let failures = access.failures.clone();
        Ok(Self {
            runtime,
            operator,
            session,
            failures,
            retries,
            takes_parts,
            removes_in_batches: access.removes_in_batches(),
            part_bytes,
            parts_at_once,
            folder,
        })
    }

    /// Returns the names of trials that have ended and left objects.
    fn abandoned(&self, own: &Prefix) -> Result<Vec<String>> {
        let listed = self.wait(async {
            let mut names = Vec::new();
            let mut lister = self.operator.lister("/").await?;
            while let Some(entry) = lister.next().await {
                let name = entry?.name().trim_end_matches('/').to_owned();
                if own.is_abandoned(&name) {
                    names.push(name);
                }
            }
            Ok(names)
        });
        listed.or_else(|error| {
            self.session.check()?;
            match error.kind() {
                // Nothing was ever written there.
                ErrorKind::NotFound => self.failures.check_bucket(&error).map(|()| Vec::new()),
                _ => Err(self.failures.named("Listing objects", &error)),
            }
        })
    }

    fn remove_all(&mut self, prefix: &str) -> Result<()> {
        let path = format!("{prefix}/");
        let removing = async {
            if self.removes_in_batches {
                return self.operator.delete_with(&path).recursive(true).await;
            }
            // The whole list first: where its next page begins may be counted from its start.
            for entry in self.operator.list_with(&path).recursive(true).await? {
                self.operator.delete(entry.path()).await?;
            }
            Ok(())
        };
        let removed = self.runtime.block_on(removing);
        removed.map_err(|error| self.failures.named("Removing objects", &error))
    }

    fn path(&self, object: &Object) -> String {
        format!("{}{}", self.folder, object.name)
    }

    fn named(&self, what: &str, object: &Object, error: &opendal_core::Error) -> ProbeError {
        if let Err(ended) = self.session.check() {
            return ended;
        }
        match error.kind() {
            ErrorKind::NotFound if what == READING => {
                self.failures.check_bucket(error).err().unwrap_or_else(|| vanished(object))
            }
            _ => self.failures.named(what, error),
        }
    }
}

impl RemoteClient {
    /// Runs an operation to its end, or until the trial is cancelled.
    fn wait<T>(
        &self,
        work: impl Future<Output = opendal_core::Result<T>>,
    ) -> opendal_core::Result<T> {
        self.runtime.block_on(async {
            match select(pin!(work), pin!(until_ended(self.session))).await {
                Either::Left((result, _)) => result,
                Either::Right(_) => Err(opendal_core::Error::new(ErrorKind::Unexpected, "ended")),
            }
        })
    }

    /// Sends an object in parts; takes back what was sent where that fails or the trial is cancelled,
    /// so that no unfinished upload is left in the service.
    async fn send_parts(
        &self,
        path: &str,
        content: &Content,
        object: &Object,
    ) -> opendal_core::Result<()> {
        let block = Bytes::from_owner(content.block());
        let options = self.operator.writer_with(path).chunk(self.part_bytes);
        let mut writer = options.concurrent(self.parts_at_once).await?;
        for range in content.ranges(object, self.part_bytes) {
            let ended = self.session.check().is_err();
            let sent = match ended {
                true => Err(opendal_core::Error::new(ErrorKind::Unexpected, "ended")),
                false => writer.write(block.slice(range)).await,
            };
            if let Err(error) = sent {
                let _ = writer.abort().await;
                return Err(error);
            }
        }
        writer.close().await.map(|_| ())
    }
}

async fn until_ended(session: Session) {
    while session.check().is_ok() {
        tokio::time::sleep(CANCELLED_WITHIN).await;
    }
}

impl Store for RemoteClient {
    fn write(&mut self, content: &Content, object: &Object) -> Result<()> {
        let path = self.path(object);
        let in_parts = self.takes_parts && object.bytes > self.part_bytes as u64;
        let sent = if in_parts {
            self.runtime.block_on(self.send_parts(&path, content, object))
        } else {
            let block = Bytes::from_owner(content.block());
            let slices = content.ranges(object, usize::MAX).map(|range| block.slice(range));
            let whole = Buffer::from(slices.collect::<Vec<_>>());
            self.wait(self.operator.write(&path, whole)).map(|_| ())
        };
        sent.map_err(|error| self.named("Writing an object", object, &error))
    }

    fn read(&mut self, object: &Object, take: &mut dyn FnMut(&[u8])) -> Result<u64> {
        let path = self.path(object);
        let received = self.wait(async {
            let mut reading = self.operator.reader_with(&path);
            if self.parts_at_once > 1 {
                reading = reading.chunk(self.part_bytes).concurrent(self.parts_at_once);
            }
            let mut stream = reading.await?.into_stream(0..object.bytes).await?;
            let mut bytes = 0;
            while let Some(buffer) = stream.next().await {
                for piece in buffer? {
                    bytes += piece.len() as u64;
                    take(&piece);
                }
            }
            Ok(bytes)
        });
        received.map_err(|error| self.named(READING, object, &error))
    }

    fn size(&mut self, object: &Object) -> Result<u64> {
        let path = self.path(object);
        let facts = self.wait(self.operator.stat(&path));
        facts
            .map(|facts| facts.content_length())
            .map_err(|error| self.named(READING, object, &error))
    }

    fn drop_cache(&mut self, _: &Object) -> Result<bool> {
        Ok(false)
    }

    fn retries(&self) -> u64 {
        self.retries.load(Ordering::Relaxed)
    }
}
