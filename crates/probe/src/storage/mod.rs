//! Objects in stores: local files and mounts here, services over the network by `OpenDAL` in the
//! program that is built with the feature `storage`.
pub mod access_params;
pub mod clients;
pub mod content;
pub mod durability;
pub mod lasting;
pub mod ledger;
mod local;
pub mod passes;
#[cfg(feature = "storage")]
mod remote;
pub mod report;
pub mod settings;
pub mod transactions;

use crate::disk::folder::Folder;
use crate::error::{FailureKind, ProbeError, Result};
use crate::trial::Trial;
use content::{Content, Object};
use settings::{StorageService, StorageSettings};

/// One client's access to a store, with buffers and connections of its own.
pub trait Store: Send {
    /// Writes an object whole; returns when the store has acknowledged it.
    fn write(&mut self, content: &Content, object: &Object) -> Result<()>;

    /// Reads an object in order, piece by piece; returns the number of its bytes.
    fn read(&mut self, object: &Object, take: &mut dyn FnMut(&[u8])) -> Result<u64>;

    /// Returns the size of an object as the store states it.
    fn size(&mut self, object: &Object) -> Result<u64>;

    /// Removes an object from the caches of this machine; returns whether it is in none of them.
    fn drop_cache(&mut self, object: &Object) -> Result<bool>;

    /// Requests that failed and were sent again.
    fn retries(&self) -> u64 {
        0
    }
}

/// Where all objects of a trial are, below one name that no other trial uses.
pub enum ObjectPlace {
    Local(Folder),
    #[cfg(feature = "storage")]
    Remote(Box<remote::RemoteStore>),
}

impl ObjectPlace {
    /// Makes the place, after removing what trials that were killed have left.
    pub fn make(trial: &mut Trial, settings: &StorageSettings) -> Result<Self> {
        match settings.service {
            StorageService::Local => local::make(trial, settings).map(Self::Local),
            #[cfg(feature = "storage")]
            _ => remote::RemoteStore::make(trial, settings)
                .map(|place| Self::Remote(Box::new(place))),
            #[cfg(not(feature = "storage"))]
            _ => Err(no_services()),
        }
    }

    /// Returns the access of one client.
    pub fn connect(&self, trial: &Trial, settings: &StorageSettings) -> Result<Box<dyn Store>> {
        match self {
            Self::Local(folder) => Ok(Box::new(local::Local::new(trial, settings, folder.path()))),
            #[cfg(feature = "storage")]
            Self::Remote(place) => place.connect(),
        }
    }

    /// Removes all objects of the trial.
    pub fn remove(self) -> Result<()> {
        match self {
            Self::Local(folder) => folder.remove(),
            #[cfg(feature = "storage")]
            Self::Remote(place) => place.remove(),
        }
    }
}

/// The refusal of the program without the libraries of services.
#[cfg(not(feature = "storage"))]
fn no_services() -> ProbeError {
    ProbeError::new(
        FailureKind::Lacks,
        "no_storage_services",
        "This program transfers local files only.",
        "Use nephoscope-storage, which `make storage` builds.",
    )
}

/// An object that was there is there no more.
pub fn vanished(object: &Object) -> ProbeError {
    ProbeError::new(
        FailureKind::Failed,
        "object_vanished",
        format!("The object {} was written, and the store does not have it.", object.name),
        "See what else removes objects there, or whether reads follow writes in this store.",
    )
}
