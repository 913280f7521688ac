//! # What it measures
//! What a machine reaches of another one: whether the other answers requests for its Ethernet address
//! (ARP), echo requests, and packets to ports; and which frames between other stations pass by. Between
//! machines of two tenants these are the holes in their isolation.
//!
//! # How
//! Each probe is sent `attempts` times, and the next one only after an answer or `wait_ns`. `arp` asks
//! for the address from the interface that leads there, which only a machine of the same broadcast
//! domain answers. `arp-vlan-N` does so in a frame with the tag of VLAN N, which a port of one VLAN has
//! to refuse. `arp-foreign` does so under `foreign_address`, one that this machine does not have: an
//! answer means that nobody checks the sender. A TCP port that refuses a connection and a UDP port whose
//! host reports that it is closed have answered. For `listen_ns` the interface receives all frames that
//! come to it; those to other stations are counted, and not looked into.
//!
//! # Known truth
//! Namespaces at a bridge with and without VLANs, with and without rules (nftables) at the machine that
//! is asked, and a bridge that floods every frame.
//!
//! # Cross-check
//! `arping`, `ping`, `nmap -Pn -p`; `tcpdump` for the frames.
//!
//! # Overhead
//! A few small packets for each probe.
//!
//! # Caveats
//! Only hosts that are stated to be yours are asked. A machine that stores the sender of an ARP request
//! remembers `foreign_address` for about a minute: take one that no machine has. No answer is no proof
//! of isolation: a UDP port with a server that stays silent is not told from one behind a filter, and a
//! way that is open in one direction only is not seen. A frame of another VLAN may arrive without an
//! answer that finds back. Needs root or CAP_NET_RAW, and IPv4.
use crate::error::{ProbeError, Result};
use crate::http::requests::spec::AUTHORISED_HOSTS;
use crate::net::ethernet::{local_address, ForeignFrames, FrameSocket, Interface};
use crate::net::probing::icmp_socket::{IcmpSocket, HEADER_BYTES};
use crate::net::probing::wait_readable;
use crate::net::target::{check_authorised, resolve};
use crate::trial::{factors, Trial};
use nephoscope_linux::clock;
use nephoscope_wire::spec::{Metric, Param, Resource, Spec};
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream, UdpSocket};
use std::os::fd::AsRawFd;
use std::time::Duration;

pub const SPEC: Spec = Spec {
    id: "net.reach",
    summary: "What a machine reaches of another one: ARP, VLANs, echo, ports; frames of others",
    params: &[
        Param::text("host", "127.0.0.1").doc("Name or IPv4 address of the machine that is asked."),
        AUTHORISED_HOSTS
            .doc("Hosts beyond this machine that are yours to ask, by name or address."),
        Param::ints("tcp_ports", &[22], 1..=65_535)
            .doc("TCP ports to which a connection is tried."),
        Param::ints("udp_ports", &[], 1..=65_535).doc("UDP ports to which a datagram is sent."),
        Param::ints("vlans", &[], 1..=4094)
            .doc("VLANs by whose tags requests for the address leave."),
        Param::text("foreign_address", "")
            .doc("Unused IPv4 address under which the host is asked for its own; empty: not."),
        Param::count("attempts", 3, 1..=100).doc("Number of times that each probe is sent."),
        Param::int("wait_ns", 200_000_000, 1_000_000..=10_000_000_000)
            .doc("Time to wait for each answer."),
        Param::int("listen_ns", 1_000_000_000, 0..=3_600_000_000_000)
            .doc("Time in which frames to other stations are counted."),
    ],
    metrics: &[
        Metric::neutral("answered_ratio").share().headline().doc(
            "Share of a probe's attempts that the host answered, refusals included; by probe.",
        ),
        Metric::neutral("accepted_ratio")
            .share()
            .doc("Share of attempts at a TCP port that became connections; by probe."),
        Metric::neutral("foreign_unicast_frames_count")
            .headline()
            .doc("Frames between other stations that came to this interface."),
        Metric::neutral("foreign_broadcast_frames_count")
            .doc("Frames of other stations to all of them or to a group."),
    ],
    overhead: "a few small packets for each probe",
    source: "RFC 826; RFC 1122; IEEE 802.1Q",
    ..Spec::about(Resource::Network)
};

/// Answers to the attempts of a probe. accepted: those that are connections, for TCP ports.
#[derive(Clone, Copy, Default)]
struct Answers {
    answered: u64,
    accepted: u64,
}

/// The answer to one attempt.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Answer {
    Accepted,
    /// By the host, or by a router about a closed port of it.
    Refused,
    None,
}

impl From<bool> for Answer {
    fn from(is_answered: bool) -> Self {
        if is_answered {
            Self::Accepted
        } else {
            Self::None
        }
    }
}

pub fn run(trial: &mut Trial) -> Result<()> {
    let host = trial.params.text("host").to_owned();
    let addresses = resolve(&host, 0)?;
    check_authorised(&host, &addresses, &trial.params.texts("authorised_hosts"))?;
    let to = addresses.iter().find_map(|address| match address.ip() {
        IpAddr::V4(ip) => Some(ip),
        IpAddr::V6(_) => None,
    });
    let to = to.ok_or_else(|| {
        ProbeError::usage(format!("{host} has no IPv4 address."), "Name a host that has one.")
    })?;
    let foreign = foreign_address(trial)?;
    let frames = match local_address(to.into()) {
        Some(IpAddr::V4(own)) => Interface::with(own)?.map(|interface| (own, interface)),
        _ => None,
    };
    let frames = match frames {
        Some((own, interface)) => Some((own, FrameSocket::open(interface)?)),
        None => None,
    };
    trial.prepared()?;
    match &frames {
        Some((own, socket)) => ask_by_frames(trial, socket, to, *own, foreign)?,
        None => trial.out.note(format!(
            "No Ethernet interface leads to {to}: requests for its address and foreign frames are left out."
        )),
    }
    ask_by_packets(trial, to)
}

fn foreign_address(trial: &Trial) -> Result<Option<Ipv4Addr>> {
    let text = trial.params.text("foreign_address");
    if text.is_empty() {
        return Ok(None);
    }
    text.parse().map(Some).map_err(|_| {
        ProbeError::usage(
            format!("foreign_address '{text}' is no IPv4 address."),
            "Set it to an address of the host's network that no machine has.",
        )
    })
}

/// Listens, then asks for the host's station in each way.
fn ask_by_frames(
    trial: &mut Trial,
    socket: &FrameSocket,
    to: Ipv4Addr,
    own: Ipv4Addr,
    foreign: Option<Ipv4Addr>,
) -> Result<()> {
    let foreign_frames = listen(trial, socket)?;
    trial.out.emit("foreign_unicast_frames_count", foreign_frames.unicast as f64, factors! {})?;
    trial.out.emit(
        "foreign_broadcast_frames_count",
        foreign_frames.broadcast as f64,
        factors! {},
    )?;
    let wait_ns = trial.params.u64("wait_ns");
    let arp = attempt(trial, || Ok(socket.resolve(to, own, None, wait_ns)?.into()))?;
    emit(trial, "arp", arp)?;
    for vlan in trial.params.ints("vlans") {
        let tagged =
            attempt(trial, || Ok(socket.resolve(to, own, Some(vlan as u16), wait_ns)?.into()))?;
        emit(trial, &format!("arp-vlan-{vlan}"), tagged)?;
    }
    if let Some(foreign) = foreign {
        let answers = attempt(trial, || Ok(socket.resolve(to, foreign, None, wait_ns)?.into()))?;
        emit(trial, "arp-foreign", answers)?;
    }
    Ok(())
}

/// Counts foreign frames for the time that is set, in steps that obey the session.
fn listen(trial: &Trial, socket: &FrameSocket) -> Result<ForeignFrames> {
    const STEP_NS: u64 = 50_000_000;
    let end_ns = clock::monotonic_ns() + trial.params.u64("listen_ns");
    let mut counts = ForeignFrames::default();
    socket.receive_all()?;
    socket.discard_received();
    while clock::monotonic_ns() < end_ns && !trial.session.is_stopped() {
        trial.session.check()?;
        socket.count_foreign(end_ns.min(clock::monotonic_ns() + STEP_NS), &mut counts);
    }
    Ok(counts)
}

fn ask_by_packets(trial: &mut Trial, to: Ipv4Addr) -> Result<()> {
    let wait_ns = trial.params.u64("wait_ns");
    let icmp = attempt(trial, || Ok(echo(to, wait_ns)?.into()))?;
    emit(trial, "icmp", icmp)?;
    for port in trial.params.ints("tcp_ports") {
        let to = SocketAddr::new(to.into(), port as u16);
        let answers = attempt(trial, || Ok(connect(to, wait_ns)))?;
        let probe = format!("tcp-{port}");
        emit(trial, &probe, answers)?;
        let ratio = answers.accepted as f64 / trial.params.u64("attempts") as f64;
        trial.out.emit("accepted_ratio", ratio, factors! {"probe": probe})?;
    }
    for port in trial.params.ints("udp_ports") {
        let to = SocketAddr::new(to.into(), port as u16);
        let answers = attempt(trial, || Ok(send_datagram(to, wait_ns)?.into()))?;
        emit(trial, &format!("udp-{port}"), answers)?;
    }
    Ok(())
}

/// Makes every attempt of a probe.
fn attempt(trial: &Trial, mut once: impl FnMut() -> Result<Answer>) -> Result<Answers> {
    let mut answers = Answers::default();
    for _ in 0..trial.params.u64("attempts") {
        trial.session.check()?;
        let answer = once()?;
        answers.answered += u64::from(answer != Answer::None);
        answers.accepted += u64::from(answer == Answer::Accepted);
    }
    Ok(answers)
}

fn emit(trial: &mut Trial, probe: &str, answers: Answers) -> Result<()> {
    let ratio = answers.answered as f64 / trial.params.u64("attempts") as f64;
    trial.out.emit("answered_ratio", ratio, factors! {"probe": probe})
}

/// Whether an echo request is answered. A host to which no packet can leave does not answer.
fn echo(to: Ipv4Addr, wait_ns: u64) -> Result<bool> {
    const PAYLOAD_BYTES: usize = 24;
    let socket = match IcmpSocket::open(to.into()) {
        Ok(socket) => socket,
        // No route leads there.
        Err(error) if error.name == "unreachable" => return Ok(false),
        Err(error) => return Err(error),
    };
    let mut packet = [0u8; HEADER_BYTES + PAYLOAD_BYTES];
    socket.write_header(&mut packet, 0);
    if socket.send(&packet).is_err() {
        return Ok(false);
    }
    let mut buffer = [0u8; 2048];
    let until_ns = clock::monotonic_ns() + wait_ns;
    while wait_readable(socket.as_raw_fd(), until_ns) {
        match socket.receive(&mut buffer) {
            Ok(Some(_)) => return Ok(true),
            // A router reports that the host cannot be reached, or the kernel that nobody resolves it.
            Err(_) => return Ok(false),
            Ok(None) => {}
        }
        if clock::monotonic_ns() >= until_ns {
            break;
        }
    }
    Ok(false)
}

fn connect(to: SocketAddr, wait_ns: u64) -> Answer {
    match TcpStream::connect_timeout(&to, Duration::from_nanos(wait_ns)) {
        Ok(_) => Answer::Accepted,
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => Answer::Refused,
        Err(_) => Answer::None,
    }
}

/// Whether a datagram is answered, by a server or by the report that the port is closed.
fn send_datagram(to: SocketAddr, wait_ns: u64) -> Result<bool> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))
        .and_then(|socket| {
            socket.set_read_timeout(Some(Duration::from_nanos(wait_ns)))?;
            Ok(socket)
        })
        .map_err(|error| ProbeError::os("A socket", &error))?;
    if socket.connect(to).is_err() || socket.send(&[0]).is_err() {
        return Ok(false);
    }
    match socket.recv(&mut [0u8; 2048]) {
        Ok(_) => Ok(true),
        Err(error) => Ok(error.kind() == ErrorKind::ConnectionRefused),
    }
}
