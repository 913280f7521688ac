//! Files of a local file system or mount as objects, by plain system calls: a library in between would
//! be measured with them.
use super::content::{Content, Object};
use super::settings::StorageSettings;
use super::{vanished, Store};
use crate::disk::folder::Folder;
use crate::disk::scratch::Scratch;
use crate::disk::{errors, place};
use crate::error::{ProbeError, Result};
use crate::trial::session::Session;
use crate::trial::Trial;
use std::fs::{File, OpenOptions};
use std::io::{Error, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

/// Bytes of one read or write: a size at which disks and network file systems run at full speed.
const CHUNK_BYTES: usize = 1 << 20;

/// Makes the folder of a trial's files.
pub fn make(trial: &mut Trial, settings: &StorageSettings) -> Result<Folder> {
    let directory = place::directory(&settings.directory);
    place::check_space(&directory, settings.stored_bytes())?;
    if place::in_memory(&directory)? {
        trial
            .out
            .note("The directory is a tmpfs: its files live in memory, and no disk takes part.");
    }
    Folder::make(&directory)
}

/// One client's files.
pub struct Local {
    session: Session,
    folder: PathBuf,
    is_synced: bool,
    buffer: Vec<u8>,
}

impl Local {
    pub fn new(trial: &Trial, settings: &StorageSettings, folder: &Path) -> Self {
        Self {
            session: trial.session,
            folder: folder.to_owned(),
            is_synced: settings.is_synced,
            // Written once, so that no page of it is faulted in during a transfer.
            buffer: vec![1; CHUNK_BYTES],
        }
    }

    fn open(&self, object: &Object) -> Result<File> {
        File::open(self.folder.join(&object.name)).map_err(|error| match error.kind() {
            ErrorKind::NotFound => vanished(object),
            _ => self.named("Opening a file", &error),
        })
    }

    fn named(&self, what: &str, error: &Error) -> ProbeError {
        errors::named(what, &self.folder, error)
    }
}

impl Store for Local {
    fn write(&mut self, content: &Content, object: &Object) -> Result<()> {
        let path = self.folder.join(&object.name);
        let opened = OpenOptions::new().write(true).create(true).truncate(true).open(path);
        let mut file = opened.map_err(|error| self.named("Creating a file", &error))?;
        for piece in content.pieces(object, CHUNK_BYTES) {
            self.session.check()?;
            file.write_all(piece).map_err(|error| self.named("Writing a file", &error))?;
        }
        if self.is_synced {
            file.sync_all().map_err(|error| self.named("Syncing a file", &error))?;
        }
        Ok(())
    }

    fn read(&mut self, object: &Object, take: &mut dyn FnMut(&[u8])) -> Result<u64> {
        let mut file = self.open(object)?;
        let mut bytes = 0;
        loop {
            self.session.check()?;
            match file.read(&mut self.buffer) {
                Ok(0) => return Ok(bytes),
                Ok(length) => {
                    bytes += length as u64;
                    take(&self.buffer[..length]);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(self.named("Reading a file", &error)),
            }
        }
    }

    fn size(&mut self, object: &Object) -> Result<u64> {
        let facts = self.open(object)?.metadata();
        facts.map(|facts| facts.len()).map_err(|error| self.named("Looking at a file", &error))
    }

    fn drop_cache(&mut self, object: &Object) -> Result<bool> {
        let file = self.open(object)?;
        let scratch = Scratch { session: self.session, file, directory: self.folder.clone() };
        // Only what is on the disk can be dropped.
        scratch.sync()?;
        scratch.drop_cache();
        Ok(scratch.cached_ratio().is_some_and(|ratio| ratio < 0.01))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nephoscope_wire::random::Random;

    fn local(folder: &Path) -> Local {
        let folder = folder.to_owned();
        Local {
            session: Session::detached(),
            folder,
            is_synced: false,
            buffer: vec![1; CHUNK_BYTES],
        }
    }

    #[test]
    fn an_object_reads_back_as_it_was_written_and_vanishes_with_a_sentence() {
        let folder = Folder::make(&place::directory("")).unwrap();
        let mut store = local(folder.path());
        let content = Content::new(3);
        let object = content.object("one".to_owned(), 5_000_000, &mut Random::new(1));
        store.write(&content, &object).unwrap();
        let mut read = Vec::new();
        let bytes = store.read(&object, &mut |piece| read.extend_from_slice(piece)).unwrap();
        assert_eq!(bytes, object.bytes);
        assert_eq!(read, content.pieces(&object, usize::MAX).collect::<Vec<_>>().concat());
        std::fs::remove_file(folder.path().join("one")).unwrap();
        assert_eq!(store.read(&object, &mut |_| ()).unwrap_err().name, "object_vanished");
    }
}
