//! How each service is reached.
use super::bounded::BoundedTransport;
use super::credentials::Credentials;
use super::failures::Failures;
use crate::error::{FailureKind, ProbeError, Result};
use crate::http::http1::url::Url;
use crate::http::requests::tls;
use crate::net::target;
use crate::storage::settings::{StorageService, StorageSettings};
use crate::trial::Trial;
use opendal_core::{HttpTransporter, Operator};
use opendal_http_transport_reqwest::ReqwestTransport;
use opendal_layer_retry::{RetryEvent, RetryLayer};
use opendal_layer_timeout::TimeoutLayer;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;
use std::time::Duration;

/// The first pause before a request is sent again; each further one is twice as long, up to the second.
const PAUSES: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(4));

/// Everything that a client needs to reach a service.
pub struct Access {
    service: StorageService,
    /// The library's own settings, credentials among them.
    values: HashMap<String, String>,
    tls: rustls::ClientConfig,
    retries: usize,
    timeout: Duration,
    /// Size of the largest object.
    object_bytes: u64,
    pub part_bytes: usize,
    pub parts_at_once: usize,
    pub failures: Failures,
}

impl Access {
    /// From the parameters of a trial; refuses servers that nobody has named as their own.
    pub fn of(trial: &Trial, settings: &StorageSettings, credentials: Credentials) -> Result<Self> {
        let (params, service) = (&trial.params, settings.service);
        let endpoint = endpoint(service, params.text("endpoint"), params.text("region"))?;
        let (host, port) = address(service, &endpoint)?;
        let bucket = params.text("bucket").to_owned();
        check_bucket(service, &bucket)?;
        let mut values = keys(service, &credentials)?;
        target::reach(&host, port, &params.texts("authorised_hosts"))?;
        let mut set = |name: &str, value: &str| values.insert(name.to_owned(), value.to_owned());
        // Without a directory, files over SFTP are in the home of the account.
        if service != StorageService::Sftp || !settings.directory.is_empty() {
            set("root", &format!("/{}/", settings.directory.trim_matches('/')));
        }
        set("endpoint", &endpoint);
        match service {
            StorageService::S3 => {
                set("bucket", &bucket);
                set("region", params.text("region"));
                set("disable_config_load", "true");
            }
            StorageService::Gcs => {
                set("bucket", &bucket);
                set("disable_config_load", "true");
                set("disable_vm_metadata", "true");
            }
            StorageService::Azblob => {
                set("container", &bucket);
            }
            StorageService::Sftp => {
                set("known_hosts_strategy", params.text("ssh_host_keys"));
            }
            StorageService::Local | StorageService::Webdav | StorageService::Webhdfs => {}
        }
        let authorities = endpoint.starts_with("https:").then(|| params.text("tls_ca_file"));
        let place = format!("{} at {endpoint}", service.name());
        Ok(Self {
            service,
            values,
            tls: tls::client_config(authorities)?,
            retries: params.size("retries"),
            timeout: Duration::from_nanos(params.u64("timeout_ns")),
            object_bytes: settings.sizes.iter().copied().max().unwrap_or(0),
            part_bytes: settings.part_bytes,
            parts_at_once: settings.parts_at_once,
            failures: Failures { credentials, place, bucket },
        })
    }

    /// Returns whether objects can be removed many at once. The library leaves a shared access signature
    /// out of the requests inside a batch, so that Azure refuses them.
    pub fn removes_in_batches(&self) -> bool {
        self.service != StorageService::Azblob || !self.values.contains_key("sas_token")
    }

    /// Returns the library's access for one client. retries: where it counts requests sent again.
    pub fn operator(&self, retries: Arc<AtomicU64>) -> Result<Operator> {
        let values = self.values.clone();
        let made = match self.service {
            StorageService::S3 => Operator::from_iter::<opendal_service_s3::S3>(values),
            StorageService::Webdav => Operator::from_iter::<opendal_service_webdav::Webdav>(values),
            StorageService::Sftp => Operator::from_iter::<opendal_service_sftp::Sftp>(values),
            StorageService::Azblob => Operator::from_iter::<opendal_service_azblob::Azblob>(values),
            StorageService::Gcs => Operator::from_iter::<opendal_service_gcs::Gcs>(values),
            StorageService::Local | StorageService::Webhdfs => {
                Operator::from_iter::<opendal_service_webhdfs::Webhdfs>(values)
            }
        };
        let operator = made.map_err(|error| self.failures.named("Configuring access", &error))?;
        let client = reqwest::Client::builder()
            .no_proxy()
            .connect_timeout(self.timeout.min(Duration::from_secs(10)))
            .tls_backend_preconfigured(self.tls.clone())
            .build()
            .map_err(|error| {
                let sentence = format!("The HTTP client cannot be made: {error}.");
                ProbeError::new(FailureKind::Failed, "no_client", sentence, "Report this.")
            })?;
        let transport = BoundedTransport::new(ReqwestTransport::new(client), self.object_bytes);
        let context = operator.context().with_http_transport(HttpTransporter::new(transport));
        let (first, longest) = PAUSES;
        let timeouts = TimeoutLayer::new().with_timeout(self.timeout).with_io_timeout(self.timeout);
        let retrying = RetryLayer::new()
            .with_max_times(self.retries)
            .with_min_delay(first)
            .with_max_delay(longest)
            .with_notify(move |_: RetryEvent<'_>| {
                retries.fetch_add(1, Ordering::Relaxed);
            });
        Ok(operator.with_context(context).layer(timeouts).layer(retrying))
    }
}

fn endpoint(service: StorageService, address: &str, region: &str) -> Result<String> {
    match (service, address) {
        (StorageService::S3, "") => Ok(format!("https://s3.{region}.amazonaws.com")),
        (StorageService::Gcs, "") => Ok("https://storage.googleapis.com".to_owned()),
        (_, "") => Err(ProbeError::usage(
            format!("storage.transfer: {} needs an endpoint.", service.name()),
            "Set `endpoint` to the URL of the service, or to USER@HOST:PORT for SFTP.",
        )),
        (StorageService::Sftp, _) if !address.contains("://") => Ok(format!("ssh://{address}")),
        _ => Ok(address.trim_end_matches('/').to_owned()),
    }
}

/// Returns host and port of an endpoint.
fn address(service: StorageService, endpoint: &str) -> Result<(String, u16)> {
    let refused = |why: &str| {
        // A password may stand in it.
        let host = endpoint.rsplit('@').next().unwrap_or_default();
        ProbeError::usage(
            format!("storage.transfer: '{host}' is no endpoint: {why}."),
            "Write http://HOST:PORT or https://HOST, or USER@HOST:PORT for SFTP.",
        )
    };
    if service != StorageService::Sftp {
        let url = Url::parse(endpoint).map_err(refused)?;
        return Ok((url.host, url.port));
    }
    let rest = endpoint.strip_prefix("ssh://").ok_or_else(|| refused("its scheme is not ssh"))?;
    let (user, host) = rest.rsplit_once('@').unwrap_or(("", rest));
    if user.contains(':') {
        return Err(refused("it holds a password; ssh takes keys"));
    }
    let url = Url::parse(&format!("http://{host}")).map_err(refused)?;
    let has_port = host.ends_with(&format!(":{}", url.port));
    Ok((url.host, if has_port { url.port } else { 22 }))
}

fn check_bucket(service: StorageService, bucket: &str) -> Result<()> {
    let needed =
        matches!(service, StorageService::S3 | StorageService::Gcs | StorageService::Azblob);
    if needed != bucket.is_empty() {
        return Ok(());
    }
    let (message, hint) = if needed {
        ("needs a bucket", "Set `bucket` to an existing one.")
    } else {
        ("has no buckets", "Drop `bucket`; `directory` names the parent of the objects.")
    };
    Err(ProbeError::usage(format!("A store of kind {} {message}.", service.name()), hint))
}

/// Returns the credentials of a service by the library's names; refuses where some are missing.
fn keys(service: StorageService, credentials: &Credentials) -> Result<HashMap<String, String>> {
    let mut keys = HashMap::new();
    let mut optional = |pairs: &[(&str, &str)]| {
        for (key, name) in pairs {
            if let Some(value) = credentials.get(name) {
                keys.insert((*key).to_owned(), value.to_owned());
            }
        }
    };
    let name = service.name();
    match service {
        StorageService::S3 => {
            credentials.require(name, ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"])?;
            optional(&[
                ("access_key_id", "AWS_ACCESS_KEY_ID"),
                ("secret_access_key", "AWS_SECRET_ACCESS_KEY"),
                ("session_token", "AWS_SESSION_TOKEN"),
            ]);
        }
        StorageService::Azblob => {
            credentials.require(name, ["AZURE_STORAGE_ACCOUNT_NAME"])?;
            if credentials.get("AZURE_STORAGE_SAS_TOKEN").is_none() {
                credentials.require(name, ["AZURE_STORAGE_ACCOUNT_KEY"])?;
            }
            optional(&[
                ("account_name", "AZURE_STORAGE_ACCOUNT_NAME"),
                ("account_key", "AZURE_STORAGE_ACCOUNT_KEY"),
                ("sas_token", "AZURE_STORAGE_SAS_TOKEN"),
            ]);
        }
        StorageService::Gcs => {
            if credentials.get("GOOGLE_OAUTH_TOKEN").is_none() {
                credentials.require(name, ["GOOGLE_APPLICATION_CREDENTIALS"])?;
            }
            optional(&[
                ("credential_path", "GOOGLE_APPLICATION_CREDENTIALS"),
                ("token", "GOOGLE_OAUTH_TOKEN"),
            ]);
        }
        // Servers of these may ask for none.
        StorageService::Webdav => optional(&[
            ("username", "WEBDAV_USERNAME"),
            ("password", "WEBDAV_PASSWORD"),
            ("token", "WEBDAV_TOKEN"),
        ]),
        StorageService::Sftp => optional(&[("key", "SFTP_KEY_FILE")]),
        StorageService::Local | StorageService::Webhdfs => optional(&[
            ("user_name", "HADOOP_USER_NAME"),
            ("delegation", "HADOOP_DELEGATION_TOKEN"),
        ]),
    }
    Ok(keys)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_have_a_host_and_a_port_and_no_password() {
        let of = |service, address_text: &str| {
            endpoint(service, address_text, "eu-west-1").and_then(|whole| address(service, &whole))
        };
        assert_eq!(
            of(StorageService::S3, "").unwrap(),
            ("s3.eu-west-1.amazonaws.com".to_owned(), 443)
        );
        assert_eq!(of(StorageService::Webdav, "http://h:81/x").unwrap(), ("h".to_owned(), 81));
        assert_eq!(of(StorageService::Sftp, "me@h:2022").unwrap(), ("h".to_owned(), 2022));
        assert_eq!(of(StorageService::Sftp, "ssh://h").unwrap(), ("h".to_owned(), 22));
        for (service, address_text) in [
            (StorageService::Webdav, ""),
            (StorageService::S3, "http://id:secret@h"),
            (StorageService::Sftp, "me:secret@h"),
            (StorageService::S3, "h:9000"),
        ] {
            let error = of(service, address_text).unwrap_err();
            assert!(!error.message.contains("secret"), "{}", error.message);
        }
    }

    #[test]
    fn services_with_buckets_need_one() {
        assert!(
            check_bucket(StorageService::S3, "b").is_ok()
                && check_bucket(StorageService::Sftp, "").is_ok()
        );
        assert!(
            check_bucket(StorageService::S3, "").is_err()
                && check_bucket(StorageService::Sftp, "b").is_err()
        );
    }
}
