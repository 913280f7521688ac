//! A place in a store whose objects stay after the trial.
use super::local::Local;
use super::settings::{StorageService, StorageSettings};
use super::Store;
use crate::disk::{errors, place};
use crate::error::{ProbeError, Result};
use crate::trial::Trial;
use std::io::ErrorKind;
use std::path::PathBuf;

/// Objects below one name, and the access to them.
pub struct LastingPlace {
    pub store: Box<dyn Store>,
    /// The folder of local objects.
    folder: Option<PathBuf>,
    #[cfg(feature = "storage")]
    remote: Option<super::remote::RemovableStore>,
}

impl LastingPlace {
    /// Opens the place; neither asks the store nor creates anything.
    pub fn open(trial: &mut Trial, settings: &StorageSettings, prefix: &str) -> Result<Self> {
        if settings.service != StorageService::Local {
            return Self::open_service(trial, settings, prefix);
        }
        let folder = place::directory(&settings.directory).join(prefix);
        Ok(Self {
            store: Box::new(Local::new(trial, settings, &folder)),
            folder: Some(folder),
            #[cfg(feature = "storage")]
            remote: None,
        })
    }

    #[cfg(feature = "storage")]
    fn open_service(trial: &mut Trial, settings: &StorageSettings, prefix: &str) -> Result<Self> {
        let remote = super::remote::RemovableStore::open(trial, settings, prefix)?;
        Ok(Self { store: remote.connect()?, folder: None, remote: Some(remote) })
    }

    #[cfg(not(feature = "storage"))]
    fn open_service(_: &mut Trial, _: &StorageSettings, _: &str) -> Result<Self> {
        Err(super::no_services())
    }

    /// Makes room for objects that are to be written.
    pub fn prepare(&self, bytes: u64) -> Result<()> {
        let Some(folder) = &self.folder else { return Ok(()) };
        let directory = folder.parent().unwrap_or(folder);
        place::check_space(directory, bytes)?;
        match std::fs::create_dir(folder) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => {
                Err(errors::named("Creating a folder", directory, &error))
            }
            _ => Ok(()),
        }
    }

    /// Returns what may take local objects away that no disk has lost.
    pub fn caution(&self) -> Option<String> {
        let folder = self.folder.as_ref()?;
        let cleaned = ["/tmp", "/var/tmp", "/run", "/dev/shm"];
        cleaned.iter().any(|directory| folder.starts_with(directory)).then(|| {
            format!(
                "{} is cleaned by the system: an object that it removes counts as lost. Set \
                 `directory` to another one.",
                folder.parent().unwrap_or(folder).display()
            )
        })
    }

    /// Removes all objects.
    pub fn remove(self) -> Result<(), ProbeError> {
        #[cfg(feature = "storage")]
        if let Some(remote) = self.remote {
            return remote.remove();
        }
        let Some(folder) = self.folder else { return Ok(()) };
        match std::fs::remove_dir_all(&folder) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(errors::named("Removing a folder", &folder, &error))
            }
            _ => Ok(()),
        }
    }
}
