//! Files of a mail server, made and read and deleted: a step of [`mail`](super::mail) becomes system
//! calls relative to one folder. Allocates nothing once it is made.
use super::folder::Folder;
use super::mail::MailStep;
use super::pattern;
use super::{errors, place};
use crate::error::{FailureKind, ProbeError, Result};
use crate::memory::buffer::{Buffer, Pages};
use crate::trial::session::Session;
use nephoscope_wire::random::Random;
use serde::Serialize;
use std::fs::File;
use std::io::Error;
use std::os::fd::{AsRawFd, FromRawFd};
use std::path::PathBuf;

#[derive(Clone, Copy, Debug)]
pub struct Habits {
    /// Folders that the files are spread over.
    pub directories: u64,
    /// Bytes of one read or write.
    pub block_bytes: usize,
    /// Each written file is made safe on the disk before it is closed.
    pub fsync: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    pub created: u64,
    pub read: u64,
    pub appended: u64,
    pub deleted: u64,
    pub read_bytes: u64,
    pub written_bytes: u64,
}

impl Counts {
    /// What came on top of `before`.
    pub fn since(self, before: Self) -> Self {
        Self {
            created: self.created - before.created,
            read: self.read - before.read,
            appended: self.appended - before.appended,
            deleted: self.deleted - before.deleted,
            read_bytes: self.read_bytes - before.read_bytes,
            written_bytes: self.written_bytes - before.written_bytes,
        }
    }
}

#[derive(Debug)]
pub struct Mailbox {
    session: Session,
    folder: Folder,
    habits: Habits,
    data: Buffer,
    into: Buffer,
    pub counts: Counts,
    writes: u64,
}

impl Mailbox {
    /// Makes the folders in `folder`. No file has more than `max_bytes`.
    pub fn new(
        session: Session,
        folder: Folder,
        habits: Habits,
        max_bytes: u64,
        seed: u64,
    ) -> Result<Self> {
        let mut data =
            Buffer::map(usize::try_from(max_bytes).unwrap_or(usize::MAX), Pages::Default)?;
        let mut into = Buffer::map(habits.block_bytes, Pages::Default)?;
        into.touch_all(session)?;
        Random::new(seed).fill(data.as_mut_slice());
        for number in 0..habits.directories {
            session.check()?;
            let path = folder.path().join(format!("d{number}"));
            std::fs::create_dir(&path)
                .map_err(|error| errors::named("Creating a folder", folder.path(), &error))?;
        }
        Ok(Self { session, folder, habits, data, into, counts: Counts::default(), writes: 0 })
    }

    pub fn apply(&mut self, step: MailStep) -> Result<()> {
        match step {
            MailStep::Create { file, bytes } => {
                self.write(file, bytes, libc::O_CREAT | libc::O_EXCL, "Creating a file")?;
                self.counts.created += 1;
            }
            MailStep::Append { file, bytes, .. } => {
                self.write(file, bytes, libc::O_APPEND, "Opening a file")?;
                self.counts.appended += 1;
            }
            MailStep::Read { file, bytes } => {
                self.read(file, bytes)?;
                self.counts.read += 1;
            }
            MailStep::Delete { file, .. } => {
                let name = self.name(file);
                // SAFETY: a C string on the stack, our own descriptor.
                if unsafe { libc::unlinkat(self.folder.fd(), name.as_ptr().cast(), 0) } != 0 {
                    return Err(self.failed("Deleting a file"));
                }
                self.counts.deleted += 1;
            }
        }
        Ok(())
    }

    /// Number and bytes of the files that are really there.
    pub fn there(&self) -> Result<(u64, u64)> {
        let probes =
            |error: Error| errors::named("Looking at a folder", self.folder.path(), &error);
        let (mut files, mut bytes) = (0, 0);
        let folders: Vec<PathBuf> = match self.habits.directories {
            0 => vec![self.folder.path().to_owned()],
            many => (0..many).map(|n| self.folder.path().join(format!("d{n}"))).collect(),
        };
        for folder in folders {
            self.session.check()?;
            for entry in std::fs::read_dir(folder).map_err(probes)? {
                files += 1;
                bytes += entry.and_then(|entry| entry.metadata()).map_err(probes)?.len();
            }
        }
        Ok((files, bytes))
    }

    /// Writes everything of the file system to the disk.
    pub fn sync_all(&self) -> Result<()> {
        self.folder.sync_all()
    }

    pub fn remove(self) -> Result<()> {
        self.folder.remove()
    }

    /// `d3/f123`, or `f123` where there are no folders; ends in NUL bytes.
    fn name(&self, file: u64) -> [u8; 48] {
        use std::io::Write;
        let mut name = [0u8; 48];
        let mut rest = &mut name[..47];
        let written = match self.habits.directories {
            0 => write!(rest, "f{file}"),
            many => write!(rest, "d{}/f{file}", file % many),
        };
        written.expect("two numbers of 20 digits fit");
        name
    }

    fn open(&self, file: u64, flags: libc::c_int, what: &str) -> Result<File> {
        let name = self.name(file);
        let flags = flags | libc::O_CLOEXEC | libc::O_NOFOLLOW;
        loop {
            // SAFETY: a C string on the stack; the descriptor is ours alone.
            let fd = unsafe { libc::openat(self.folder.fd(), name.as_ptr().cast(), flags, 0o600) };
            if fd >= 0 {
                // SAFETY: as above.
                return Ok(unsafe { File::from_raw_fd(fd) });
            }
            if Error::last_os_error().kind() != std::io::ErrorKind::Interrupted {
                return Err(self.failed(what));
            }
            self.session.check()?;
        }
    }

    fn write(&mut self, file: u64, bytes: u64, flags: libc::c_int, what: &str) -> Result<()> {
        let handle = self.open(file, libc::O_WRONLY | flags, what)?;
        let bytes = usize::try_from(bytes).expect("the spec bounds a file");
        self.writes += 1;
        pattern::stamp(&mut self.data.as_mut_slice()[..bytes], self.writes);
        for block in self.data.as_slice()[..bytes].chunks(self.habits.block_bytes) {
            let done = self.moved(|| {
                // SAFETY: the block is this long, the descriptor is open.
                unsafe { libc::write(handle.as_raw_fd(), block.as_ptr().cast(), block.len()) }
            });
            let done = done.map_err(|()| self.failed("Writing a file"))?;
            if done != block.len() {
                return Err(errors::short_transfer(self.folder.path(), done, block.len()));
            }
            self.counts.written_bytes += done as u64;
        }
        if self.habits.fsync {
            // SAFETY: the descriptor is open.
            let synced = self.moved(|| unsafe { libc::fsync(handle.as_raw_fd()) as isize });
            synced.map_err(|()| self.failed("Syncing a file"))?;
        }
        Ok(())
    }

    fn read(&mut self, file: u64, bytes: u64) -> Result<()> {
        let handle = self.open(file, libc::O_RDONLY, "Opening a file")?;
        let (into, length) = (self.into.as_ptr(), self.habits.block_bytes);
        let mut got = 0;
        loop {
            let done = self.moved(|| {
                // SAFETY: the mapping is this long and nobody else uses it.
                unsafe { libc::read(handle.as_raw_fd(), into.cast(), length) }
            });
            match done.map_err(|()| self.failed("Reading a file"))? {
                0 => break,
                done => got += done as u64,
            }
        }
        self.counts.read_bytes += got;
        if got == bytes {
            return Ok(());
        }
        Err(ProbeError::new(
            FailureKind::Failed,
            "file_changed",
            format!(
                "A file in {} has {got} bytes instead of {bytes}.",
                self.folder.path().display()
            ),
            "See what else writes there, or set `directory` to another one.",
        ))
    }

    /// A call that moves bytes, through interruptions.
    fn moved(&self, mut call: impl FnMut() -> isize) -> Result<usize, ()> {
        loop {
            match usize::try_from(call()) {
                Ok(done) => return Ok(done),
                Err(_) => {
                    let interrupted =
                        Error::last_os_error().kind() == std::io::ErrorKind::Interrupted;
                    if !interrupted || self.session.is_cancelled() {
                        return Err(());
                    }
                }
            }
        }
    }

    fn failed(&self, what: &str) -> ProbeError {
        let error = Error::last_os_error();
        let failed = || errors::named(what, self.folder.path(), &error);
        self.session.check().err().unwrap_or_else(failed)
    }
}

/// Refuses what would not leave a tenth of `files` free, where the file system counts files.
pub fn check_files(directory: &std::path::Path, files: u64) -> Result<()> {
    match place::file_system(directory) {
        Ok(stat) if stat.f_files > 0 && stat.f_favail < files.saturating_add(files / 10) => {
            let (place, free) = (directory.display(), stat.f_favail);
            Err(errors::disk_full(format!(
                "{files} files and a tenth more do not fit in {place}: {free} are free."
            )))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::mail::{Draws, Mail};

    fn mailbox(directories: u64) -> Mailbox {
        let folder = Folder::make(&place::directory("")).unwrap();
        let habits = Habits { directories, block_bytes: 512, fsync: false };
        Mailbox::new(Session::detached(), folder, habits, 3000, 5).unwrap()
    }

    #[test]
    fn what_is_there_is_what_the_seed_says() {
        for directories in [0, 7] {
            let draws = Draws {
                files: 50,
                transactions: 200,
                min_bytes: 0,
                max_bytes: 3000,
                read_ratio: 0.5,
                create_ratio: 0.5,
                seed: 11,
            };
            let (mut mail, mut mailbox) = (Mail::new(draws), mailbox(directories));
            let mut steps: Vec<MailStep> = (0..draws.files).map(|_| mail.create()).collect();
            for _ in 0..draws.transactions {
                steps.extend(mail.transaction().into_iter().flatten());
            }
            steps.into_iter().for_each(|step| mailbox.apply(step).unwrap());
            let bytes: u64 = mail.live().iter().map(|(_, bytes)| *bytes).sum();
            assert_eq!(mailbox.there().unwrap(), (mail.live().len() as u64, bytes));
            let counts = mailbox.counts;
            assert_eq!(counts.read + counts.appended, 200);
            assert_eq!(counts.created + counts.deleted, 250);
            while let Some(step) = mail.delete() {
                mailbox.apply(step).unwrap();
            }
            assert_eq!(mailbox.there().unwrap(), (0, 0));
            mailbox.remove().unwrap();
        }
    }

    #[test]
    fn a_file_that_somebody_else_changed_is_reported() {
        let mut mailbox = mailbox(0);
        mailbox.apply(MailStep::Create { file: 3, bytes: 1500 }).unwrap();
        std::fs::write(mailbox.folder.path().join("f3"), b"short").unwrap();
        let error = mailbox.apply(MailStep::Read { file: 3, bytes: 1500 }).unwrap_err();
        assert_eq!(error.name, "file_changed");
    }

    #[test]
    fn more_files_than_fit_are_refused() {
        let directory = place::directory("");
        assert!(check_files(&directory, 1).is_ok());
        // Some file systems make room for files as they need it, and say 0: those take any number.
        if let Err(error) = check_files(&directory, u64::MAX) {
            assert_eq!((error.name, error.kind.exit_code()), ("disk_full", 4));
        }
    }
}
