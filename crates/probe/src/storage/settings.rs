//! What a transfer is to do, checked.
use crate::error::{ProbeError, Result};
use crate::trial::parameters;
use nephoscope_wire::params::Params;

/// Parts of lasting objects; few of those are larger.
#[cfg(feature = "storage")]
const LASTING_PART_BYTES: usize = 8 << 20;

/// Kinds of stores, by their names in parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StorageService {
    Local,
    S3,
    Webdav,
    Sftp,
    Azblob,
    Gcs,
    Webhdfs,
}

impl StorageService {
    pub const NAMES: &'static [&'static str] =
        &["local", "s3", "webdav", "sftp", "azblob", "gcs", "webhdfs"];

    fn of(name: &str) -> Self {
        match name {
            "s3" => Self::S3,
            "webdav" => Self::Webdav,
            "sftp" => Self::Sftp,
            "azblob" => Self::Azblob,
            "gcs" => Self::Gcs,
            "webhdfs" => Self::Webhdfs,
            _ => Self::Local,
        }
    }

    pub fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }
}

/// When bytes are compared by hash with those that were written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verify {
    /// Within every measured read.
    During,
    /// In a read of its own after the measured ones.
    After,
    Never,
}

#[derive(Clone, Debug)]
pub struct StorageSettings {
    pub service: StorageService,
    pub directory: String,
    /// Sizes in ascending order, each once.
    pub sizes: Vec<u64>,
    /// Objects of each size and client.
    pub objects: u64,
    pub clients: usize,
    pub is_shuffled: bool,
    pub is_synced: bool,
    pub verify: Verify,
    pub transactions_ns: u64,
    pub seed: u64,
    /// Parts in which larger objects are sent to services, and how many of one object at once.
    #[cfg(feature = "storage")]
    pub part_bytes: usize,
    #[cfg(feature = "storage")]
    pub parts_at_once: usize,
}

impl StorageSettings {
    pub fn of(params: &Params) -> Result<Self> {
        let service = StorageService::of(params.text("service"));
        let mut sizes: Vec<u64> =
            params.ints("object_bytes").into_iter().map(i64::cast_unsigned).collect();
        sizes.sort_unstable();
        sizes.dedup();
        if sizes.is_empty() {
            return Err(ProbeError::usage(
                "storage.transfer: object_bytes is an empty list.",
                "Name at least one size in bytes.",
            ));
        }
        let verify = match (params.text("verify"), service) {
            ("never", _) => Verify::Never,
            ("after", _) | ("auto", StorageService::Local) => Verify::After,
            _ => Verify::During,
        };
        Ok(Self {
            service,
            directory: params.text("directory").to_owned(),
            sizes,
            objects: params.u64("objects"),
            clients: params.size("clients"),
            is_shuffled: params.text("order") == "random",
            is_synced: params.bool("sync"),
            verify,
            transactions_ns: params.u64("transactions_ns"),
            seed: parameters::seed(params),
            #[cfg(feature = "storage")]
            part_bytes: params.size("part_bytes"),
            #[cfg(feature = "storage")]
            parts_at_once: params.size("parts_at_once"),
        })
    }

    /// Of objects that are written once and read for years, by one client.
    pub fn of_lasting(params: &Params, seed: u64) -> Self {
        Self {
            service: StorageService::of(params.text("service")),
            directory: params.text("directory").to_owned(),
            sizes: vec![params.u64("object_bytes")],
            objects: params.u64("objects"),
            clients: 1,
            is_shuffled: false,
            is_synced: params.bool("sync"),
            verify: Verify::During,
            transactions_ns: 0,
            seed,
            #[cfg(feature = "storage")]
            part_bytes: LASTING_PART_BYTES,
            #[cfg(feature = "storage")]
            parts_at_once: 1,
        }
    }

    /// Bytes that are stored at once.
    pub fn stored_bytes(&self) -> u64 {
        let per_object: u64 = self.sizes.iter().fold(0, |sum, size| sum.saturating_add(*size));
        per_object.saturating_mul(self.objects).saturating_mul(self.clients as u64)
    }
}
