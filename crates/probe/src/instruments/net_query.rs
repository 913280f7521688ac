//! # What it measures
//! How fast a game server answers: the round-trip time of the server query of Source and GoldSrc
//! games (A2S_INFO over UDP) or of games of the Quake 3 engine (getstatus), as their players and
//! `qstat` see it.
//!
//! # How
//! Queries leave by a schedule that no answer delays, each from a port of its own, since answers carry
//! no number. With `protocol` a2s, the server's request for a challenge number is fulfilled before the
//! trial and counts as an answer in it. `host` and `port` name any game server; without a host the far side answers by
//! the same protocol. An answer that takes longer than `late_after_ns` is late, and counts all the
//! same.
//!
//! # Known truth
//! Against the far side all queries are answered, and its count agrees. Captured answers of servers
//! are parsed.
//!
//! # Cross-check
//! `qstat -a2s` or `-q3s`; `net.rtt` with `protocol` icmp to the same host, which leaves the server out.
//!
//! # Overhead
//! `rate_per_s` queries of 13 to 29 bytes and their answers, which have a kilobyte with quake3.
//!
//! # Caveats
//! Game servers limit the rate of queries of one address and answer once a frame: a high rate measures
//! the limit, as loss. ioquake3 answers ten queries at once and then one per second of each address.
use crate::error::Result;
use crate::http::requests::spec::AUTHORISED_HOSTS;
use crate::load;
use crate::net::client::reach;
pub use crate::net::game_query::serve;
use crate::net::game_query::{self, GameProtocol};
use crate::net::messages::{receive_message, UdpPort};
use crate::net::probing::one_socket_each::{OneSocketEach, ProbeExchange};
use crate::net::probing::{
    self, probe_samples, ProbingConfig, HOST, LATE_AFTER, STORED_PROBES, WAIT,
};
use crate::trial::Trial;
use nephoscope_wire::spec::{joined, Metric, Param, RequestLoop, Resource, Spec};
use std::net::SocketAddr;

pub const SPEC: Spec = Spec {
    id: "net.query",
    summary: "Round-trip time of a game server's query (A2S, Quake 3)",
    params: &[
        HOST.doc("Name or address of a game server; empty takes the far side."),
        Param::choice("protocol", "a2s", GameProtocol::WORDS)
            .doc("Query of the game server: a2s of Source and GoldSrc games, quake3 of the Quake 3 engine."),
        Param::int("port", 27_015, 1..=65_535).doc("UDP port of the game server; quake3: often 27960."),
        Param::float("rate_per_s", 10.0, 0.0..=10_000.0)
            .doc("Queries per second; 0 sends each when the one before was answered."),
        AUTHORISED_HOSTS.doc("Hosts beyond this machine that are yours to send more than 100 queries per second, by name or address."),
        load::DURATION,
        load::INTERVAL,
        WAIT,
        LATE_AFTER,
        STORED_PROBES,
    ],
    // All but the kernel's times, which answers at a socket each do not have.
    metrics: &joined::<_, 22>(&[
        probe_samples::METRICS.split_at(2).0,
        probe_samples::METRICS.split_at(3).1,
        &[Metric::document("game_server").doc("What the server says of itself.")],
    ]),
    overhead: "rate_per_s datagrams of 13 to 29 bytes, and their answers",
    source: "Valve's server queries (A2S_INFO); ioquake3 (getstatus); qstat",
    two_sided: true,
    load: true,
    request_loop: RequestLoop::Open,
    ..Spec::about(Resource::Network)
};

pub fn run(trial: &mut Trial) -> Result<()> {
    let config = ProbingConfig::of(trial)?;
    let host = trial.params.text("host").to_owned();
    let port = trial.params.u64("port") as u16;
    let protocol = GameProtocol::named(trial.params.text("protocol"));
    // The far side answers as long as the connection to it is open.
    let (to, _far) = if host.is_empty() {
        let peer = trial.session.read_peer(SPEC.id)?;
        let mut far = reach(trial.session, &peer)?;
        let UdpPort { udp_port } = receive_message(&mut far)?;
        (SocketAddr::new(peer.address, udp_port), Some(far))
    } else {
        (probing::destination(trial, &host, port, config.per_s)?, None)
    };
    let server = game_query::ask(trial.session, to, protocol)?;
    let answer = protocol.answer_head().to_vec();
    let exchange = ProbeExchange::Datagram { question: server.question, answer };
    let mut prober = OneSocketEach::new(to, exchange)?;
    let result = probing::run(trial, &config, &mut prober)?;
    trial.out.emit_document("game_server", server.facts)?;
    probe_samples::emit_all(trial, &result, config.per_s)
}
