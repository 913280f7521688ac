//! TLS 1.2 and 1.3 on the engine's connections, by rustls; cryptography by graviola, which is Rust and
//! assembly, so that the probe needs no C compiler.
use super::failures::{self, Failure, TLS};
use super::socket::NonblockingSocket;
use crate::error::{FailureKind, ProbeError, Result};
use crate::trial::Trial;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::Resumption;
use rustls::crypto::{verify_tls12_signature, verify_tls13_signature, CryptoProvider};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    ClientConfig, ClientConnection, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
};
use std::io::{ErrorKind, IoSlice, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// HTTP/2 by the name that ALPN has for it.
const H2: &[u8] = b"h2";
/// A sound handshake over the longest path takes less.
const PATIENCE: Duration = Duration::from_secs(5);
/// Where distributions keep the certificates of authorities.
const AUTHORITIES: [&str; 3] =
    ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem"];

/// What the TLS of all connections has in common.
#[derive(Clone, Debug)]
pub struct TlsClient {
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
}

impl TlsClient {
    /// From the parameters of a trial; name: the host that the certificate has to be for.
    pub fn of(trial: &Trial, name: &str) -> Result<Self> {
        let params = &trial.params;
        let authorities = match params.text("tls_ca_file") {
            _ if !params.bool("tls_verify") => None,
            path => Some(trusted(path)),
        };
        let protocol = if params.text("version") == "2" { H2 } else { b"http/1.1" };
        Self::new(
            name,
            authorities.as_deref(),
            params.text("tls_version"),
            params.bool("tls_resume"),
            protocol,
        )
    }

    /// authorities: a file of certificates; any certificate is accepted without one. version: 1.2, 1.3
    /// or auto. resumes: whether a connection may take up the session of an earlier one. protocol: what is
    /// spoken inside, by the name that ALPN has for it.
    pub fn new(
        name: &str,
        authorities: Option<&str>,
        version: &str,
        resumes: bool,
        protocol: &[u8],
    ) -> Result<Self> {
        check_cpu()?;
        let versions: &[&rustls::SupportedProtocolVersion] = match version {
            "1.2" => &[&rustls::version::TLS12],
            "1.3" => &[&rustls::version::TLS13],
            _ => rustls::ALL_VERSIONS,
        };
        let provider = Arc::new(rustls_graviola::default_provider());
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(versions)
            .map_err(|error| failed(&format!("TLS {version} is not available: {error}.")))?;
        let mut config = match authorities {
            Some(path) => builder.with_root_certificates(read_authorities(path)?),
            None => {
                builder.dangerous().with_custom_certificate_verifier(Arc::new(AnyOne(provider)))
            }
        }
        .with_no_client_auth();
        config.alpn_protocols = vec![protocol.to_vec()];
        if !resumes {
            config.resumption = Resumption::disabled();
        }
        let name = ServerName::try_from(name.to_owned()).map_err(|_| {
            ProbeError::usage(
                format!("'{name}' is no name that a certificate can be for."),
                "Name the host as its certificate does.",
            )
        })?;
        Ok(Self { config: Arc::new(config), name })
    }

    pub fn connection(&self) -> Result<ClientConnection, Error> {
        let mut connection = ClientConnection::new(Arc::clone(&self.config), self.name.clone())?;
        // A request is written whole, whatever its length.
        connection.set_buffer_limit(None);
        Ok(connection)
    }

    /// Makes one handshake with the server, so that what is wrong is one sentence.
    pub fn check(&self, address: &SocketAddr) -> Result<()> {
        let attempt = || {
            let mut stream = TcpStream::connect_timeout(address, PATIENCE)?;
            stream.set_read_timeout(Some(PATIENCE))?;
            stream.set_write_timeout(Some(PATIENCE))?;
            let mut connection = self.connection().map_err(std::io::Error::other)?;
            while connection.is_handshaking() {
                connection.complete_io(&mut stream)?;
            }
            let wants_h2 = self.config.alpn_protocols.iter().any(|protocol| protocol == H2);
            if wants_h2 && connection.alpn_protocol() != Some(H2) {
                return Err(std::io::Error::other("the server does not speak HTTP/2"));
            }
            Ok(())
        };
        attempt().map_err(|error: std::io::Error| {
            failed(&format!("TLS with {address} failed: {}.", words(&error)))
        })
    }
}

/// Returns the settings of clients that check certificates. authorities: a file of certificates; empty
/// takes the system's; without it no server is trusted.
#[cfg(feature = "storage")]
pub fn client_config(authorities: Option<&str>) -> Result<ClientConfig> {
    let roots = match authorities {
        None => RootCertStore::empty(),
        Some(path) => {
            check_cpu()?;
            read_authorities(&trusted(path))?
        }
    };
    let provider = Arc::new(rustls_graviola::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| failed(&format!("TLS is not available: {error}.")))?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}

/// Returns the file with the certificates that this machine trusts: that of SSL_CERT_FILE (as in
/// OpenSSL), else the system's; empty where there is none.
pub fn system_authorities() -> String {
    std::env::var("SSL_CERT_FILE").ok().filter(|path| !path.is_empty()).unwrap_or_else(|| {
        let path = AUTHORITIES.into_iter().find(|path| Path::new(path).exists());
        path.unwrap_or_default().to_owned()
    })
}

/// Returns the file of `tls_ca_file`, or where that is empty, of the machine.
fn trusted(path: &str) -> String {
    if path.is_empty() {
        system_authorities()
    } else {
        path.to_owned()
    }
}

/// Returns the end of the sentence on a handshake that failed; a server that speaks no TLS waits for
/// more, answers in its own language, or hangs up.
fn words(error: &std::io::Error) -> String {
    let cause = error.get_ref().and_then(|cause| cause.downcast_ref::<Error>());
    match (error.kind(), cause) {
        (ErrorKind::WouldBlock | ErrorKind::TimedOut, _) => {
            format!("no TLS answer within {} s (is the address http://?)", PATIENCE.as_secs())
        }
        (_, Some(Error::InvalidMessage(_))) => {
            "the server answered something else than TLS (is the address http://?)".to_owned()
        }
        (ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset | ErrorKind::BrokenPipe, _) => {
            "the server ended the connection during the handshake (is the address http://?)"
                .to_owned()
        }
        _ => error.to_string(),
    }
}

fn failed(sentence: &str) -> ProbeError {
    let hint = "Check the name in the URL, `tls_version`, and `tls_ca_file` or `tls_verify`.";
    ProbeError::new(FailureKind::Failed, "no_tls", sentence, hint)
}

fn read_authorities(path: &str) -> Result<RootCertStore> {
    let mut store = RootCertStore::empty();
    let why = match CertificateDer::pem_file_iter(path) {
        Ok(certificates) => {
            store.add_parsable_certificates(certificates.flatten());
            "it holds no certificate".to_owned()
        }
        Err(error) => error.to_string(),
    };
    if !store.is_empty() {
        return Ok(store);
    }
    Err(ProbeError::usage(
        format!("The certificates of authorities in '{path}' cannot be used: {why}."),
        "Name a PEM file by `tls_ca_file` or SSL_CERT_FILE, or switch `tls_verify` off.",
    ))
}

/// The cryptography uses instructions of CPUs since 2015 without an alternative.
fn check_cpu() -> Result<()> {
    // `std::is_x86_feature_detected` and its like take literals only.
    #[cfg(target_arch = "x86_64")]
    let features = [
        ("aes", is_x86_feature_detected!("aes")),
        ("pclmulqdq", is_x86_feature_detected!("pclmulqdq")),
        ("bmi1", is_x86_feature_detected!("bmi1")),
        ("adx", is_x86_feature_detected!("adx")),
        ("avx", is_x86_feature_detected!("avx")),
        ("avx2", is_x86_feature_detected!("avx2")),
    ];
    #[cfg(target_arch = "aarch64")]
    let features = [
        ("neon", std::arch::is_aarch64_feature_detected!("neon")),
        ("aes", std::arch::is_aarch64_feature_detected!("aes")),
        ("pmull", std::arch::is_aarch64_feature_detected!("pmull")),
        ("sha2", std::arch::is_aarch64_feature_detected!("sha2")),
    ];
    let missing = features.into_iter().find(|(_, present)| !present);
    match missing {
        None => Ok(()),
        Some((feature, _)) => Err(ProbeError::new(
            FailureKind::Lacks,
            "no_tls_here",
            format!("TLS needs instructions ({feature}) that this CPU does not have."),
            "Load the server without TLS, or from another machine.",
        )),
    }
}

/// Returns the kind of a failed call on a connection.
pub fn failure_of(error: &std::io::Error) -> Failure {
    let is_tls = error.get_ref().is_some_and(|cause| cause.is::<Error>());
    if is_tls {
        TLS
    } else {
        failures::of_error(error)
    }
}

/// Writes what waits to be sent; true when all is sent.
pub fn write(
    connection: &mut ClientConnection,
    socket: &NonblockingSocket,
) -> Result<bool, std::io::Error> {
    while connection.wants_write() {
        match connection.write_tls(&mut SocketIo(socket)) {
            Ok(_) => {}
            Err(error) if super::socket::is_wait(&error) => return Ok(false),
            Err(error) => return Err(error),
        }
    }
    Ok(true)
}

struct SocketIo<'a>(&'a NonblockingSocket);

impl Write for SocketIo<'_> {
    fn write(&mut self, bytes: &[u8]) -> Result<usize, std::io::Error> {
        self.0.write(bytes)
    }

    fn write_vectored(&mut self, parts: &[IoSlice]) -> Result<usize, std::io::Error> {
        self.0.write_vectored(parts)
    }

    fn flush(&mut self) -> Result<(), std::io::Error> {
        Ok(())
    }
}

/// Accepts every certificate; signatures are checked all the same, as part of the work.
#[derive(Debug)]
struct AnyOne(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyOne {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, cert, dss, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, cert, dss, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
