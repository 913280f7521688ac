//! What the network benchmarks share: random bytes, and a connection that nobody else can take.
pub mod client;
pub mod connection;
pub mod goodput;
pub mod loopback_ends;
pub mod messages;
pub mod meter;
pub mod round_trip;
pub mod rtt_client;
pub mod rtt_server;
pub mod server;
pub mod tcp_info;
pub mod throughput;
pub mod udp;
pub mod variation;

use crate::error::ProbeError;

/// Fills `bytes` from the kernel's generator.
pub fn random_bytes(bytes: &mut [u8]) -> Result<(), ProbeError> {
    let mut done = 0;
    while done < bytes.len() {
        let rest = &mut bytes[done..];
        // SAFETY: the slice is writable and as long as said.
        let got = unsafe { libc::getrandom(rest.as_mut_ptr().cast(), rest.len(), 0) };
        match usize::try_from(got) {
            Ok(got) => done += got,
            Err(_) => {
                let error = std::io::Error::last_os_error();
                if error.kind() != std::io::ErrorKind::Interrupted {
                    return Err(ProbeError::os("getrandom", &error));
                }
            }
        }
    }
    Ok(())
}
