//! The ledger of objects that are read back for years: what was written, when, with which hash, and
//! the last answer to each of them. It is replaced whole, so that a kill leaves the old or the new one.
use crate::error::{FailureKind, ProbeError, Result};
use nephoscope_wire::input::read_text;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fs::{DirBuilder, File};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Version of the file; another one is refused.
pub const FORMAT: u32 = 1;

/// The last definite answer to an object. One that could not be asked keeps its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ObjectState {
    /// About to be written; a kill may have come before or after.
    Planned,
    Intact,
    Lost,
    Damaged,
}

/// One object. Times are seconds since 1970-01-01 UTC.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LedgerObject {
    pub number: u64,
    pub bytes: u64,
    /// In hexadecimal digits.
    pub sha256: String,
    pub state: ObjectState,
    /// When it was written and first read back.
    pub written_s: u64,
    /// When it was last read back intact.
    pub intact_s: u64,
    /// When its state was first answered; 0 while planned.
    pub since_s: u64,
}

/// Where the objects are. A ledger belongs to one place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LedgerPlace {
    pub service: String,
    pub endpoint: String,
    pub bucket: String,
    pub directory: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Content {
    format: u32,
    #[serde(flatten)]
    place: LedgerPlace,
    prefix: String,
    seed: u64,
    objects: Vec<LedgerObject>,
}

/// A ledger that no other process uses meanwhile.
#[derive(Debug)]
pub struct Ledger {
    path: PathBuf,
    content: Content,
    _lock: File,
}

impl Ledger {
    /// Opens the ledger `name` in `directory`; begins one, with a prefix of its own, where there is none.
    ///
    /// Refuses a ledger of another place, one in use, and one whose bytes are not those that were written.
    pub fn open(directory: &Path, name: &str, place: LedgerPlace) -> Result<Self> {
        let made = DirBuilder::new().recursive(true).mode(0o700).create(directory);
        made.map_err(|error| failed("Creating", directory, &error))?;
        let lock = lock(&directory.join(format!("{name}.lock")), name)?;
        let path = directory.join(format!("{name}.ledger"));
        let content = match std::fs::exists(&path) {
            Ok(true) => parse(&path)?,
            Ok(false) => begin(name, place.clone())?,
            Err(error) => return Err(failed("Reading", &path, &error)),
        };
        if content.place != place {
            let (is, requested) = (words(&content.place), words(&place));
            return Err(ProbeError::usage(
                format!("The ledger {} is of objects in {is}, not in {requested}.", path.display()),
                "Correct the parameters of the place, or give these objects another `name`.",
            ));
        }
        Ok(Self { path, content, _lock: lock })
    }

    pub fn prefix(&self) -> &str {
        &self.content.prefix
    }

    pub fn seed(&self) -> u64 {
        self.content.seed
    }

    pub fn objects(&self) -> &[LedgerObject] {
        &self.content.objects
    }

    pub fn objects_mut(&mut self) -> &mut Vec<LedgerObject> {
        &mut self.content.objects
    }

    /// Returns the number of the next object; none is used twice.
    pub fn next_number(&self) -> u64 {
        self.content.objects.iter().map(|object| object.number + 1).max().unwrap_or(0)
    }

    /// Writes the ledger to the disk; the old one stays until the new one is complete.
    pub fn save(&self) -> Result<()> {
        let text = text_of(&self.content);
        let new = self.path.with_extension("new");
        let written = (|| {
            let mut options = File::options();
            let mut file =
                options.write(true).create(true).truncate(true).mode(0o600).open(&new)?;
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            std::fs::rename(&new, &self.path)?;
            File::open(self.path.parent().unwrap_or(Path::new("/")))?.sync_all()
        })();
        written.map_err(|error| failed("Writing", &self.path, &error))
    }

    /// Removes the ledger.
    pub fn remove(self) -> Result<()> {
        match std::fs::remove_file(&self.path) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(failed("Removing", &self.path, &error))
            }
            _ => Ok(()),
        }
    }
}

fn begin(name: &str, place: LedgerPlace) -> Result<Content> {
    let [noise, seed]: [u64; 2] = [
        u64::from_le_bytes(crate::net::random_bytes()?),
        u64::from_le_bytes(crate::net::random_bytes()?),
    ];
    let prefix = format!("nephoscope-durability-{name}-{noise:016x}");
    Ok(Content { format: FORMAT, place, prefix, seed, objects: Vec::new() })
}

fn lock(path: &Path, name: &str) -> Result<File> {
    let opened = File::options().write(true).create(true).truncate(false).open(path);
    let file = opened.map_err(|error| failed("Opening", path, &error))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(std::fs::TryLockError::WouldBlock) => Err(ProbeError::new(
            FailureKind::Failed,
            "ledger_in_use",
            format!("Another process checks the objects '{name}' now."),
            "Wait until it has ended, or give these objects another `name`.",
        )),
        Err(std::fs::TryLockError::Error(error)) => Err(failed("Locking", path, &error)),
    }
}

/// The content as one line of JSON, and its SHA-256 in a second one.
fn text_of(content: &Content) -> String {
    let line = serde_json::to_string(content).expect("plain data");
    format!("{line}\n{}\n", hexadecimal(&Sha256::digest(line.as_bytes())))
}

fn parse(path: &Path) -> Result<Content> {
    let text = read_text(path).map_err(|error| damaged(path, &error.to_string()))?;
    let mut lines = text.lines();
    let (line, digest) = (lines.next().unwrap_or(""), lines.next().unwrap_or(""));
    if hexadecimal(&Sha256::digest(line.as_bytes())) != digest {
        return Err(damaged(path, "its checksum is wrong"));
    }
    let content: Content =
        serde_json::from_str(line).map_err(|error| damaged(path, &error.to_string()))?;
    match content.format {
        FORMAT => Ok(content),
        version => Err(damaged(path, &format!("its format is {version}, and {FORMAT} is known"))),
    }
}

pub fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn words(place: &LedgerPlace) -> String {
    let parts = [&place.service, &place.endpoint, &place.bucket, &place.directory];
    parts
        .iter()
        .filter(|part| !part.is_empty())
        .map(|part| part.as_str())
        .collect::<Vec<_>>()
        .join(" ")
}

fn damaged(path: &Path, why: &str) -> ProbeError {
    ProbeError::new(
        FailureKind::Failed,
        "ledger_damaged",
        format!("The ledger {} cannot be read: {why}.", path.display()),
        "Restore it from a copy; without it nobody knows what the objects were.",
    )
}

fn failed(what: &str, path: &Path, error: &std::io::Error) -> ProbeError {
    crate::disk::errors::named(&format!("{what} the ledger"), path, error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::folder::Folder;
    use crate::disk::place;

    fn at(directory: &str) -> LedgerPlace {
        let [service, endpoint, bucket] = ["local", "", ""].map(str::to_owned);
        LedgerPlace { service, endpoint, bucket, directory: directory.to_owned() }
    }

    fn open(folder: &Folder, directory: &str) -> Result<Ledger> {
        Ledger::open(folder.path(), "photos", at(directory))
    }

    #[test]
    fn a_ledger_is_read_as_it_was_saved_and_is_of_one_place() {
        let folder = Folder::make(&place::directory("")).unwrap();
        let mut ledger = open(&folder, "/a").unwrap();
        let object = LedgerObject {
            number: 7,
            bytes: 5,
            sha256: hexadecimal(&[1, 255]),
            state: ObjectState::Planned,
            written_s: 1,
            intact_s: 2,
            since_s: 3,
        };
        ledger.objects_mut().push(object.clone());
        ledger.save().unwrap();
        let prefix = ledger.prefix().to_owned();
        assert_eq!(open(&folder, "/a").unwrap_err().name, "ledger_in_use");
        drop(ledger);
        let again = open(&folder, "/a").unwrap();
        assert_eq!(
            (again.objects(), again.prefix(), again.next_number()),
            (&[object][..], &*prefix, 8)
        );
        drop(again);
        let refused = open(&folder, "/b").unwrap_err();
        assert!(refused.message.contains("local /a, not in local /b"), "{}", refused.message);
        let path = folder.path().join("photos.ledger");
        let text = std::fs::read_to_string(&path).unwrap().replace("planned", "intact");
        std::fs::write(&path, text).unwrap();
        assert_eq!(open(&folder, "/a").unwrap_err().name, "ledger_damaged");
    }
}
