//! Which server may be put under load, and where it is.
use crate::error::{FailureKind, ProbeError, Result};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::time::Duration;

/// A handshake over the longest path takes less.
const PATIENCE: Duration = Duration::from_secs(5);

/// Returns the address of a server that accepts connections and may be put under load: one of this
/// machine, or one that the caller states to own.
pub fn reach(host: &str, port: u16, authorised: &[&str]) -> Result<SocketAddr> {
    let addresses = resolve(host, port)?;
    check_authorised(host, &addresses, authorised)?;
    let mut failure = None;
    for address in &addresses {
        match TcpStream::connect_timeout(address, PATIENCE) {
            Ok(_) => return Ok(*address),
            Err(error) => failure = failure.or(Some((*address, error))),
        }
    }
    let (address, error) = failure.expect("there is at least one address");
    Err(ProbeError::new(
        FailureKind::Failed,
        "no_server",
        format!("No server accepts a connection at {address}: {error}."),
        "Start the server, or name the port on which it listens.",
    ))
}

/// Returns a host name in the one form that all its spellings share: case does not count (RFC 4343),
/// nor does the dot that ends an absolute name.
pub fn normal_name(host: &str) -> String {
    host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase()
}

/// Returns the addresses of a host, at least one.
pub fn resolve(host: &str, port: u16) -> Result<Vec<SocketAddr>> {
    let host = &normal_name(host);
    let resolved = (host.as_str(), port).to_socket_addrs().map(Iterator::collect::<Vec<_>>);
    match resolved {
        Ok(addresses) if !addresses.is_empty() => Ok(addresses),
        result => {
            let why = result.err().map_or(String::new(), |error| format!(": {error}"));
            Err(ProbeError::new(
                FailureKind::Failed,
                "no_such_host",
                format!("The host {host} has no address{why}."),
                "Check its spelling, or name an address.",
            ))
        }
    }
}

/// Refuses a host that is neither this machine nor one that the caller states to own.
pub fn check_authorised(host: &str, addresses: &[SocketAddr], authorised: &[&str]) -> Result<()> {
    let is_own = |address: &SocketAddr| {
        let ip = address.ip().to_canonical();
        ip.is_loopback() || authorised.iter().any(|own| own.parse() == Ok(ip))
    };
    let named = |own: &&str| normal_name(own) == normal_name(host);
    if authorised.iter().any(named) || addresses.iter().all(is_own) {
        return Ok(());
    }
    Err(ProbeError::new(
        FailureKind::Usage,
        "not_authorised",
        format!("{host} is not this machine, and load could disturb its owner."),
        "If it is yours, add `--i-own-this-host HOST`, or `authorised_hosts` in a plan.",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn only_this_machine_and_named_hosts_get_load() {
        let address = |text: &str| vec![text.parse::<SocketAddr>().unwrap()];
        let allowed = |host: &str, to: &str, authorised: &[&str]| {
            check_authorised(host, &address(to), authorised).is_ok()
        };
        assert!(allowed("localhost", "127.0.0.1:80", &[]));
        assert!(allowed("::1", "[::1]:80", &[]));
        assert!(allowed("::ffff:127.0.0.1", "[::ffff:127.0.0.1]:80", &[]));
        assert!(!allowed("example.org", "192.0.2.1:80", &[]));
        assert!(!allowed("example.org", "192.0.2.1:80", &["example.com", "192.0.2.2"]));
        assert!(allowed("example.org", "192.0.2.1:80", &["Example.ORG"]));
        assert!(allowed("example.org", "192.0.2.1:80", &["192.0.2.1"]));
        assert!(allowed("EXAMPLE.org.", "192.0.2.1:80", &["example.org"]));
        let mut mixed = address("127.0.0.1:80");
        mixed.extend(address("192.0.2.1:80"));
        assert!(check_authorised("mixed", &mixed, &[]).is_err());
    }

    #[test]
    fn a_server_that_is_not_there_is_one_sentence() {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        assert_eq!(reach("127.0.0.1", port, &[]).unwrap().port(), port);
        for host in ["LOCALHOST", "localhost.", "::1", "127.0.0.1"] {
            assert!(!resolve(host, port).unwrap().is_empty(), "{host}");
        }
        drop(listener);
        assert_eq!(reach("127.0.0.1", port, &[]).unwrap_err().name, "no_server");
        assert_eq!(reach("no host", 80, &[]).unwrap_err().name, "no_such_host");
    }
}
