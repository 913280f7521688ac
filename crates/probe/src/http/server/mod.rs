//! An HTTP/1.1 server that is a known truth for load generators: it knows what it answered, when, and
//! how long each request had to take.
mod connection;
mod cpu_workers;
mod event_loop;
mod queue;
mod records;
mod request;
mod routes;
mod service_times;
mod stalls;

use crate::error::{FailureKind, ProbeError, Result};
use crate::http::requests::limits;
use crate::net::set_option;
use crate::trial::affinity;
use crate::trial::parameters;
use crate::trial::session::Session;
use event_loop::HttpServer;
use nephoscope_linux::scheduling;
use nephoscope_wire::params::Params;
use nephoscope_wire::random::Random;
pub use records::{Records, ServerCounters};
pub use routes::{BODY_BYTES_MAX, KIND_NAMES};
use serde::Deserialize;
use service_times::ServiceTimes;
use std::io::Error;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::os::fd::AsRawFd;

/// Connections that the kernel keeps until they are accepted, if it is allowed to.
const BACKLOG: libc::c_int = 65_535;
/// Descriptors for everything but connections.
const OTHER_FILES: usize = 64;

/// What a server does, by the names of the parameters of `http.serve`.
#[derive(Deserialize)]
pub struct ServerSettings {
    pub body_bytes: u64,
    pub workers: usize,
    pub service: String,
    pub service_mean_ns: u64,
    pub service_cv_ratio: f64,
    pub seed: u64,
    pub stall_every_ns: u64,
    pub stall_ns: u64,
    pub requests_per_connection: u64,
    pub idle_timeout_ns: u64,
    pub request_timeout_ns: u64,
    pub spin_ns: u64,
    pub request_body_bytes: u64,
    pub connections: usize,
    pub records: usize,
    pub cpus: Vec<usize>,
}

impl ServerSettings {
    /// Reads the parameters of `http.serve`; the limit on connections is what the system allows.
    pub fn of(id: &str, params: &Params) -> Result<Self> {
        let settings: Self = parameters::fields(params);
        let (every_ns, stall_ns) = (settings.stall_every_ns, settings.stall_ns);
        if stall_ns > 0 && stall_ns >= every_ns {
            return Err(ProbeError::usage(
                format!(
                    "{id}: stalls of {stall_ns} ns every {every_ns} ns leave no time to answer."
                ),
                "Set stall_every_ns above stall_ns, or stall_ns to 0 for no stalls.",
            ));
        }
        let files = limits::raise_open_files(u64::MAX).unwrap_or(0);
        let possible = usize::try_from(files).unwrap_or(usize::MAX).saturating_sub(OTHER_FILES);
        Ok(Self {
            seed: parameters::seed(params),
            connections: settings.connections.min(possible),
            cpus: affinity::named(id, params)?,
            ..settings
        })
    }

    fn service_times(&self) -> ServiceTimes {
        ServiceTimes::new(&self.service, self.service_mean_ns, self.service_cv_ratio, self.seed)
    }

    /// The CPUs of the threads that use CPU time: the named ones, the event loop's last.
    fn worker_cpus(&self) -> Vec<usize> {
        let mut cpus = self.cpus.clone();
        let first = usize::from(cpus.len() > 1);
        cpus.rotate_left(first);
        cpus
    }
}

/// What a server counted.
pub struct Served {
    pub counters: ServerCounters,
    pub records: Records,
    /// Seed of the service times.
    pub seed: u64,
}

/// Serves until `end_ns` (monotonic) or until it is stopped. token: what every request presents.
pub fn serve(
    settings: &ServerSettings,
    session: Session,
    listener: TcpListener,
    token: Option<String>,
    (started_ns, end_ns): (u64, u64),
) -> Result<Served> {
    if let Some(cpu) = settings.cpus.first() {
        affinity::pin(*cpu)?;
    }
    scheduling::minimise_timer_slack();
    let mut server = HttpServer::new(settings, session, listener, token, started_ns)?;
    server.run(end_ns)?;
    Ok(Served { counters: server.counters, records: server.records, seed: settings.seed })
}

/// Listens on an address; `port` 0 takes a free one.
pub fn listen(address: IpAddr, port: u16) -> Result<(TcpListener, SocketAddr)> {
    let listener = TcpListener::bind((address, port)).map_err(|error| {
        ProbeError::new(
            FailureKind::Lacks,
            "cannot_listen",
            format!("Nothing can listen on {}: {error}.", SocketAddr::new(address, port)),
            "Name an address of this machine (ip address) and a port that no program uses.",
        )
    })?;
    let fd = listener.as_raw_fd();
    let set_up = || {
        listener.set_nonblocking(true)?;
        // Accepted connections inherit it.
        set_option(fd, libc::IPPROTO_TCP, libc::TCP_NODELAY, 1)?;
        // SAFETY: only the length of its queue changes.
        if unsafe { libc::listen(fd, BACKLOG) } != 0 {
            return Err(Error::last_os_error());
        }
        listener.local_addr()
    };
    let address = set_up().map_err(|error| ProbeError::os("Setting up a socket", &error))?;
    Ok((listener, address))
}

/// What bodies consist of: printable characters, the same in every server.
fn body_pattern(bytes: usize) -> Vec<u8> {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut pattern = vec![0; bytes];
    Random::new(1).fill(&mut pattern);
    for byte in &mut pattern {
        *byte = LETTERS[usize::from(*byte & 63)];
    }
    pattern
}
