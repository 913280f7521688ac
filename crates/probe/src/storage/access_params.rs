//! Parameters that say where a store is and how it is reached, the same for every benchmark of stores.
pub use crate::http::requests::spec::AUTHORISED_HOSTS;
use crate::storage::settings::StorageService;
use nephoscope_wire::spec::Param;

const HOUR_NS: i64 = 3_600_000_000_000;

pub const SERVICE: Param =
    Param::choice("service", "local", StorageService::NAMES).doc("Kind of the store.");
pub const DIRECTORY: Param = Param::text("directory", "").doc(
    "Parent of the objects: a local directory (empty takes $TMPDIR, else /var/tmp), or a path in the \
     bucket or on the server.",
);
pub const ENDPOINT: Param = Param::text("endpoint", "")
    .doc("URL of the service; USER@HOST:PORT for SFTP. Empty takes the public one of S3 and gcs.");
pub const BUCKET: Param =
    Param::text("bucket", "").doc("Bucket of S3 and gcs, container of azblob.");
pub const REGION: Param = Param::text("region", "us-east-1").doc("Region of an S3 service.");
pub const CREDENTIALS_FILE: Param = Param::text("credentials_file", "")
    .doc("File on the target with NAME=VALUE lines; empty takes the environment.");
pub const TLS_CA_FILE: Param = Param::text("tls_ca_file", "").doc(
    "PEM file with the certificates to trust; empty takes SSL_CERT_FILE, else those of the system.",
);
pub const SSH_HOST_KEYS: Param =
    Param::choice("ssh_host_keys", "strict", &["strict", "add", "accept"])
        .doc("SFTP to hosts that known_hosts lacks: refuse, add them, or accept any key.");
pub const SYNC: Param =
    Param::switch("sync", true).doc("Sync each local file before its write counts as done.");
pub const RETRIES: Param =
    Param::count("retries", 6, 0..=20).doc("Times that a failed request is sent again.");
pub const TIMEOUT: Param = Param::int("timeout_ns", 60_000_000_000, 1_000_000..=HOUR_NS)
    .doc("Time limit of one request, or of one part of a larger object.");
