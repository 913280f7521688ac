//! Sockets that listen on this machine, from `/proc/net`: seen without connecting, because a connection
//! that says nothing counts as a client for some servers.
use nephoscope_linux::files::Files;
use serde::Deserialize;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TransportProtocol {
    #[default]
    Tcp,
    Udp,
}

/// Returns the addresses on which sockets of this network namespace listen at `port`.
pub fn addresses(
    files: &Files,
    protocol: TransportProtocol,
    port: u16,
) -> Result<Vec<IpAddr>, String> {
    // A datagram socket that is bound has state 7 (closed); 10 is LISTEN.
    let (name, state) = match protocol {
        TransportProtocol::Tcp => ("tcp", "0A"),
        TransportProtocol::Udp => ("udp", "07"),
    };
    let mut all = parse(&files.text(format!("/proc/net/{name}"))?, state, port);
    // A kernel without IPv6 has no such table.
    if let Ok(table) = files.text(format!("/proc/net/{name}6")) {
        all.extend(parse(&table, state, port));
    }
    Ok(all)
}

fn parse(table: &str, state: &str, port: u16) -> Vec<IpAddr> {
    let local = |line: &str| {
        let mut fields = line.split_whitespace().skip(1);
        let (address, its_port) = fields.next()?.split_once(':')?;
        let matches = fields.nth(1)? == state && u16::from_str_radix(its_port, 16).ok()? == port;
        matches.then(|| from_hex(address)).flatten()
    };
    table.lines().skip(1).filter_map(local).collect()
}

/// An address as the kernel prints it: 32-bit words in the machine's own order.
fn from_hex(text: &str) -> Option<IpAddr> {
    let word = |at: usize| {
        let word = u32::from_str_radix(text.get(at * 8..at * 8 + 8)?, 16).ok()?;
        Some(word.to_ne_bytes())
    };
    match text.len() {
        8 => Some(Ipv4Addr::from(word(0)?).into()),
        32 => {
            let words = [word(0)?, word(1)?, word(2)?, word(3)?].concat();
            Some(Ipv6Addr::from(<[u8; 16]>::try_from(words).ok()?).into())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, UdpSocket};

    #[test]
    fn a_listening_socket_is_seen_with_its_address() {
        let files = Files::machine();
        for address in [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)] {
            // A machine without IPv6 has no such address.
            let Ok(listener) = TcpListener::bind((address, 0)) else { continue };
            let port = listener.local_addr().unwrap().port();
            assert_eq!(addresses(&files, TransportProtocol::Tcp, port).unwrap(), [address]);
            drop(listener);
            assert!(addresses(&files, TransportProtocol::Tcp, port).unwrap().is_empty());
            let socket = UdpSocket::bind((address, 0)).unwrap();
            let port = socket.local_addr().unwrap().port();
            assert_eq!(addresses(&files, TransportProtocol::Udp, port).unwrap(), [address]);
        }
    }
}
