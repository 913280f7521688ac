//! A third-party server: started on the given address, reported as ready once it listens there, ended
//! in order at `stop`, with what it used.
//!
//! Most servers cannot check a token, so the address is what protects them: a server that listens on
//! other addresses than the given one is refused. One that can check it finds it as `{token}` in
//! its `input`.
use super::listening;
use super::output::ProgramOutput;
use super::program::ProcessGroup;
use super::{url_host, Placeholders, StartPlace, WrapJob};
use crate::error::{FailureKind, ProbeError, Result};
use crate::trial::session::Session;
use crate::trial::{ListenConfig, Trial};
use nephoscope_linux::clock;
use nephoscope_linux::files::Files;
use serde_json::{json, Value};
use std::io::Error;
use std::net::{IpAddr, SocketAddr, TcpListener, UdpSocket};
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

/// A server that does not listen by then never will.
const START_NS: u64 = 30_000_000_000;
/// Time that it has to end after SIGTERM.
const END_NS: u64 = 3_000_000_000;
/// Between two looks at its port.
const CHECK_INTERVAL_MS: libc::c_int = 20;

/// Runs the program as a server until `stop`; returns how it ended, what it used and what it printed
/// last.
pub fn serve(trial: &mut Trial, listen: &ListenConfig) -> Result<Value> {
    let job = WrapJob::parse(trial)?;
    job.check_secrets()?;
    let address = address(&job, listen.bind)?;
    let values = Placeholders::from([
        ("{address}", address.ip().to_string()),
        ("{host}", url_host(address.ip())),
        ("{port}", address.port().to_string()),
        ("{token}", listen.token.clone()),
    ]);
    let folder = job.folder()?;
    let served = StartPlace::new(&job, &folder, values).and_then(|place| {
        place.run_all(&job.prepare, trial.session)?;
        let group = place.wrapped(&job.main())?.start()?;
        let mut server = WrappedServer::new(trial.session, &job, address, group);
        server.wait_until_ready()?;
        trial.listens_at(address)?;
        let (status, counted) = server.wait_for_stop(&place)?;
        let mut report = server.report(status);
        let counted = counted + &place.run_all(&job.after, trial.session)?;
        report["stdout"] = format!("{}{counted}", report["stdout"].as_str().unwrap_or("")).into();
        Ok(report)
    });
    let removed = folder.remove();
    let served = served?;
    removed?;
    Ok(served)
}

/// Where the server is to listen: a free port where the job names none.
fn address(job: &WrapJob, bind: IpAddr) -> Result<SocketAddr> {
    let free = |_| {
        let listener = TcpListener::bind((bind, job.port))?;
        let address = listener.local_addr()?;
        // The port that is free for connections may be taken for datagrams.
        UdpSocket::bind(address).map(|_| address)
    };
    let mut attempts = (0..16).map(free);
    let bound = attempts.find(Result::is_ok).unwrap_or_else(|| free(0));
    bound.map_err(|error| {
        ProbeError::new(
            FailureKind::Lacks,
            "no_such_address",
            format!("Nothing can listen on {}: {error}.", SocketAddr::new(bind, job.port)),
            "Name an address that this machine has (ip address), and a port that is free.",
        )
    })
}

/// A server that was started.
struct WrappedServer<'a> {
    session: Session,
    job: &'a WrapJob,
    address: SocketAddr,
    group: ProcessGroup,
    output: ProgramOutput,
    usage: ProgramUsage,
}

impl<'a> WrappedServer<'a> {
    fn new(
        session: Session,
        job: &'a WrapJob,
        address: SocketAddr,
        mut group: ProcessGroup,
    ) -> Self {
        let output = ProgramOutput::of(&mut group.0, clock::monotonic_ns());
        Self { session, job, address, group, output, usage: ProgramUsage::default() }
    }

    fn wait_until_ready(&mut self) -> Result<()> {
        let until_ns = clock::monotonic_ns() + START_NS;
        while !self.is_ready()? {
            self.session.check()?;
            if let Some(status) = self.status()? {
                return Err(self.ended(status, "before it listened"));
            }
            if self.session.is_stopped() || clock::monotonic_ns() > until_ns {
                let message =
                    format!("{} did not get ready at {}.", self.job.program, self.address);
                return Err(self.failed("server_not_ready", message));
            }
            self.read_output()?;
        }
        Ok(())
    }

    /// Whether it listens, there and nowhere else, and has printed what was to be waited for.
    fn is_ready(&self) -> Result<bool> {
        let port = self.address.port();
        let listening = listening::addresses(&Files::machine(), self.job.protocol, port);
        let listening = listening.map_err(|reason| {
            let hint = "Mount /proc where the probe runs.";
            ProbeError::new(FailureKind::Lacks, "no_socket_table", format!("{reason}."), hint)
        })?;
        let wanted = self.address.ip();
        if let Some(wildcard) = listening.iter().find(|ip| ip.is_unspecified() && **ip != wanted) {
            let message = format!(
                "{} listens on {wildcard}, where any host reaches it, instead of {wanted}.",
                self.job.program
            );
            return Err(self.failed("server_listens_elsewhere", message));
        }
        let printed = self.job.ready_text.is_empty() || self.output.holds(&self.job.ready_text);
        Ok(printed && listening.contains(&wanted))
    }

    /// Waits for `stop` and ends the server; returns how it ended, and what the closing programs
    /// printed while it still served.
    fn wait_for_stop(&mut self, place: &StartPlace) -> Result<(ExitStatus, String)> {
        while !self.session.is_stopped() {
            self.session.check()?;
            if let Some(status) = self.status()? {
                // Some servers end after the client that they were told to expect.
                return match status.success() {
                    true => Ok((status, String::new())),
                    false => Err(self.ended(status, "while it served")),
                };
            }
            self.read_output()?;
        }
        let counted = place.run_all(&self.job.closing, self.session)?;
        self.group.signal(libc::SIGTERM);
        let until_ns = clock::monotonic_ns() + END_NS;
        loop {
            self.session.check()?;
            if let Some(status) = self.status()? {
                return Ok((status, counted));
            }
            if clock::monotonic_ns() > until_ns {
                self.group.signal(libc::SIGKILL);
            }
            self.read_output()?;
        }
    }

    fn read_output(&mut self) -> Result<()> {
        if self.output.is_ended() {
            clock::nap(CHECK_INTERVAL_MS as u64 * 1_000_000);
            return Ok(());
        }
        self.output.read(CHECK_INTERVAL_MS)?;
        self.output.keep_tails();
        Ok(())
    }

    fn status(&mut self) -> Result<Option<ExitStatus>> {
        let exit = ended(self.group.0.id().cast_signed())?;
        Ok(exit.map(|(status, usage)| {
            self.usage = usage;
            status
        }))
    }

    /// How it ended, what it used and what it printed last.
    fn report(&mut self, status: ExitStatus) -> Value {
        self.read_rest();
        let (stdout, stderr) = self.output.tails();
        json!({
            "program": self.job.program,
            "exit": status.code(),
            "signal": status.signal(),
            "stdout": stdout,
            "stderr": stderr,
            "cpu_ns": self.usage.cpu_ns,
            "max_rss_bytes": self.usage.max_rss_bytes,
        })
    }

    /// What was printed last may still be in the pipes; a descendant may hold them open.
    fn read_rest(&mut self) {
        let until_ns = clock::monotonic_ns() + 200_000_000;
        while !self.output.is_ended() && clock::monotonic_ns() < until_ns {
            if self.output.read(CHECK_INTERVAL_MS).is_err() {
                return;
            }
        }
    }

    fn ended(&mut self, status: ExitStatus, when: &str) -> ProbeError {
        self.read_rest();
        let program = &self.job.program;
        let mut error = self.failed("server_ended", format!("{program} ended {when} ({status})."));
        if let Some(signal) = status.signal() {
            error.hint = match signal {
                libc::SIGKILL => {
                    "Someone ended it, or the kernel did because memory ran out (see \
                                  `dmesg`); run it again, with smaller parameters in that case."
                }
                libc::SIGTERM | libc::SIGINT | libc::SIGHUP => "Someone ended it; run it again.",
                _ => "It crashed: see the kernel's log (`dmesg`) and the program's own reports.",
            }
            .to_owned();
        }
        error
    }

    /// An error with the server's own last words.
    fn failed(&self, name: &'static str, message: String) -> ProbeError {
        let (stdout, stderr) = self.output.tails();
        let lines: Vec<_> = stderr.lines().chain(stdout.lines()).collect();
        let last = lines.iter().rev().find(|line| !line.trim().is_empty());
        let hint = match last {
            Some(line) => format!("Correct its arguments; its output ends with: {}", line.trim()),
            None => "Correct its arguments; it printed nothing.".to_owned(),
        };
        ProbeError::new(FailureKind::Failed, name, message, hint)
    }
}

/// What a program has used, with those of its descendants that it waited for.
#[derive(Default)]
struct ProgramUsage {
    cpu_ns: u64,
    max_rss_bytes: u64,
}

/// How a child ended and what it used; `None` while it runs. It is waited for here, once.
fn ended(pid: libc::pid_t) -> Result<Option<(ExitStatus, ProgramUsage)>> {
    // SAFETY: fills two plain values.
    let (waited, status, usage) = unsafe {
        let (mut status, mut usage): (libc::c_int, libc::rusage) = (0, std::mem::zeroed());
        let waited = libc::wait4(pid, &raw mut status, libc::WNOHANG, &raw mut usage);
        (waited, status, usage)
    };
    match waited {
        0 => return Ok(None),
        -1 => return Err(ProbeError::os("Waiting for the server", &Error::last_os_error())),
        _ => {}
    }
    let usage = ProgramUsage {
        cpu_ns: clock::of_timeval_ns(usage.ru_utime) + clock::of_timeval_ns(usage.ru_stime),
        max_rss_bytes: usage.ru_maxrss.cast_unsigned() * 1024,
    };
    Ok(Some((ExitStatus::from_raw(status), usage)))
}
