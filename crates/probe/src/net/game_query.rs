//! Queries of game servers: the messages of Source and GoldSrc games (A2S_INFO), a question before a
//! trial by either protocol, and a responder.
use super::connection::{readable, End};
use super::messages::{send_message, UdpPort};
use super::server::{listen_both, Reception};
use super::{quake3_status, random_bytes};
use crate::error::{FailureKind, ProbeError, Result};
use crate::trial::session::Session;
use crate::trial::{ListenConfig, Trial};
use serde_json::{json, Value};
use std::io::ErrorKind;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;
use std::time::Duration;

/// Every message of either protocol begins with it.
const HEAD: [u8; 4] = [0xFF; 4];
const INFO_REQUEST: &[u8] = b"\xFF\xFF\xFF\xFFTSource Engine Query\0";
const INFO: u8 = b'I';
const CHALLENGE: u8 = b'A';
const CHALLENGE_BYTES: usize = 4;
/// A server that does not answer so often is not there.
const ATTEMPTS: u32 = 5;
const PATIENCE: Duration = Duration::from_millis(500);

/// The protocol that a game server speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GameProtocol {
    /// Source and GoldSrc games.
    A2s,
    /// Games of the Quake 3 engine.
    Quake3,
}

impl GameProtocol {
    pub const WORDS: &[&str] = &["a2s", "quake3"];

    /// The protocol of one of `WORDS`.
    pub fn named(word: &str) -> Self {
        if word == "quake3" {
            Self::Quake3
        } else {
            Self::A2s
        }
    }

    fn question(self, challenge: Option<[u8; CHALLENGE_BYTES]>) -> Vec<u8> {
        match self {
            Self::A2s => request(challenge),
            Self::Quake3 => quake3_status::REQUEST.to_vec(),
        }
    }

    fn parse(self, datagram: &[u8]) -> QueryResponse {
        match self {
            Self::A2s => parse(datagram),
            Self::Quake3 => {
                quake3_status::parse(datagram).map_or(QueryResponse::Other, QueryResponse::Info)
            }
        }
    }

    /// What every answer to the question begins with.
    pub fn answer_head(self) -> &'static [u8] {
        match self {
            Self::A2s => &HEAD,
            Self::Quake3 => quake3_status::STATUS_HEAD,
        }
    }

    fn usual_port(self) -> u16 {
        match self {
            Self::A2s => 27_015,
            Self::Quake3 => 27_960,
        }
    }
}

/// Returns a request, with the number that a server asked to be told.
fn request(challenge: Option<[u8; CHALLENGE_BYTES]>) -> Vec<u8> {
    let mut request = INFO_REQUEST.to_vec();
    request.extend(challenge.into_iter().flatten());
    request
}

/// What a server says of itself, and the question that it answered.
#[derive(Debug)]
pub struct GameServer {
    pub facts: Value,
    pub question: Vec<u8>,
}

#[derive(Debug, PartialEq)]
enum QueryResponse {
    Challenge([u8; CHALLENGE_BYTES]),
    Info(Value),
    Other,
}

fn parse(datagram: &[u8]) -> QueryResponse {
    match datagram.strip_prefix(&HEAD).and_then(<[u8]>::split_first) {
        Some((&CHALLENGE, rest)) => rest
            .first_chunk()
            .map_or(QueryResponse::Other, |number| QueryResponse::Challenge(*number)),
        Some((&INFO, rest)) => parse_info(rest).map_or(QueryResponse::Other, QueryResponse::Info),
        _ => QueryResponse::Other,
    }
}

/// Protocol, four texts, the game's number, then counts of players.
fn parse_info(bytes: &[u8]) -> Option<Value> {
    let mut rest = bytes.get(1..)?;
    let mut texts = Vec::new();
    for _ in 0..4 {
        let end = rest.iter().position(|byte| *byte == 0)?;
        texts.push(String::from_utf8_lossy(&rest[..end]).into_owned());
        rest = &rest[end + 1..];
    }
    let [_, _, players, places, bots] = *rest.first_chunk()?;
    let [name, map, folder, game] = <[String; 4]>::try_from(texts).ok()?;
    Some(json!({
        "name": name, "map": map, "folder": folder, "game": game,
        "players": players, "places": places, "bots": bots,
    }))
}

/// Asks a server what it is, as a game's client does.
pub fn ask(session: Session, to: SocketAddr, protocol: GameProtocol) -> Result<GameServer> {
    let any: SocketAddr = match to {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    let prepared = UdpSocket::bind(any).and_then(|socket| {
        socket.connect(to)?;
        socket.set_read_timeout(Some(PATIENCE))?;
        Ok(socket)
    });
    let socket = prepared.map_err(|error| ProbeError::os("A socket", &error))?;
    let (mut challenge, mut buffer) = (None, [0u8; 2048]);
    for _ in 0..ATTEMPTS {
        session.check()?;
        let question = protocol.question(challenge);
        let got = socket.send(&question).and_then(|_| socket.recv(&mut buffer));
        match got.map(|bytes| protocol.parse(&buffer[..bytes])) {
            Ok(QueryResponse::Info(facts)) => return Ok(GameServer { facts, question }),
            Ok(QueryResponse::Challenge(number)) => challenge = Some(number),
            Ok(QueryResponse::Other) => {
                return Err(no_server(to, protocol, "what answers there speaks another protocol"));
            }
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
                return Err(no_server(to, protocol, "the port is closed"));
            }
            Err(_) => {}
        }
    }
    Err(no_server(to, protocol, "nothing answered"))
}

fn no_server(to: SocketAddr, protocol: GameProtocol, reason: &str) -> ProbeError {
    ProbeError::new(
        FailureKind::Failed,
        "no_game_server",
        format!("No game server answers at {to}: {reason}."),
        format!(
            "See whether the server runs, on which UDP port (often {}), which protocol it speaks, and whether a firewall lets it pass.",
            protocol.usual_port()
        ),
    )
}

/// The far side: answers the queries of the peer until it hangs up; how many there were.
pub fn serve(trial: &mut Trial, listen: &ListenConfig) -> Result<Value> {
    let (listener, socket, address) = listen_both(listen)?;
    trial.listens_at(address)?;
    let accepted = Reception::new(trial.session, &listener, &listen.token).next_peer(None)?;
    let Some(mut peer) = accepted else { return Ok(json!({"queries": 0})) };
    send_message(&mut peer, &UdpPort { udp_port: address.port() })?;
    let challenge = random_bytes()?;
    let mut queries = 0u64;
    let mut buffer = [0u8; 2048];
    while !is_over(&mut peer)? {
        let [datagrams, _] = readable([socket.as_raw_fd(), peer.as_raw_fd()], 100);
        if !datagrams {
            continue;
        }
        let Ok((bytes, from)) = socket.recv_from(&mut buffer) else { continue };
        let known = from.ip() == peer.far_ip();
        if let Some(answer) = respond(&buffer[..bytes], challenge).filter(|_| known) {
            queries += 1;
            // What cannot be sent now is lost, as on any way.
            let _ = socket.send_to(&answer, from);
        }
    }
    Ok(json!({"queries": queries}))
}

/// Whether the peer has hung up, or this side was stopped.
fn is_over(peer: &mut End) -> Result<bool> {
    peer.session().check()?;
    let hung_up = || readable([peer.as_raw_fd()], 0)[0];
    Ok(peer.session().is_stopped() || hung_up())
}

fn respond(request: &[u8], challenge: [u8; CHALLENGE_BYTES]) -> Option<Vec<u8>> {
    if request == quake3_status::REQUEST {
        return Some(quake3_status::respond());
    }
    let presented = request.strip_prefix(INFO_REQUEST)?;
    let mut answer = HEAD.to_vec();
    if presented != challenge {
        answer.push(CHALLENGE);
        answer.extend(challenge);
        return Some(answer);
    }
    const PROTOCOL: u8 = 17;
    answer.extend([INFO, PROTOCOL]);
    answer.extend_from_slice(b"Nephoscope\0none\0nephoscope\0Responder\0");
    // Number of the game, players, places, bots, dedicated, Linux, no password, not secured, version.
    answer.extend_from_slice(b"\0\0\0\0\0dl\0\x001\0");
    Some(answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_responder_asks_for_its_number_and_then_answers() {
        let challenge = [1, 2, 3, 4];
        let first = respond(&request(None), challenge).unwrap();
        assert_eq!(parse(&first), QueryResponse::Challenge(challenge));
        // No answer is longer than its question unless the asker can receive at its address.
        assert!(first.len() <= request(None).len());
        let second = respond(&request(Some(challenge)), challenge).unwrap();
        let QueryResponse::Info(facts) = parse(&second) else { panic!("{second:?}") };
        assert_eq!((&facts["name"], &facts["players"]), (&json!("Nephoscope"), &json!(0)));
        assert_eq!(parse(&respond(&request(Some([0; 4])), challenge).unwrap()), parse(&first));
        assert_eq!(respond(b"GET / HTTP/1.1", challenge), None);
        let status = respond(&GameProtocol::Quake3.question(None), challenge).unwrap();
        assert!(status.starts_with(GameProtocol::Quake3.answer_head()));
        assert!(matches!(GameProtocol::Quake3.parse(&status), QueryResponse::Info(_)));
        assert_eq!(GameProtocol::A2s.parse(&status), QueryResponse::Other);
    }

    #[test]
    fn a_server_s_answer_is_read() {
        let bytes = b"\xFF\xFF\xFF\xFFI\x11A server\0de_dust2\0cstrike\0Counter-Strike\0\x0A\0\x05\x20\x02dl\0\x01";
        let QueryResponse::Info(facts) = parse(bytes) else { panic!() };
        assert_eq!(facts["map"], "de_dust2");
        assert_eq!((&facts["players"], &facts["places"]), (&json!(5), &json!(32)));
        assert_eq!(parse(&bytes[..20]), QueryResponse::Other);
        assert_eq!(parse(b"\xFF\xFF\xFF\xFFA\x01"), QueryResponse::Other);
        assert_eq!(parse(b""), QueryResponse::Other);
    }
}
