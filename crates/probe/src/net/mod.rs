//! The network benchmarks: connections, messages, datagrams, and the loopback of this machine.
pub mod client;
pub mod collective;
pub mod congestion_control;
pub mod connection;
pub mod ethernet;
pub mod game_query;
pub mod goodput;
pub mod loopback;
pub mod messages;
pub mod meter;
pub mod probing;
pub mod quake3_status;
pub mod round_trips;
pub mod rtt_client;
pub mod rtt_server;
pub mod server;
pub mod target;
pub mod tcp_info;
pub mod udp;
pub mod variation;

use crate::error::{ProbeError, Result};
use std::io::Error;
use std::os::fd::RawFd;

/// Returns bytes of the kernel's random generator.
pub fn random_bytes<const N: usize>() -> Result<[u8; N]> {
    const { assert!(N <= 256, "longer requests can be interrupted") };
    let mut bytes = [0u8; N];
    // SAFETY: the array is writable and N bytes long.
    let got = unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), N, 0) };
    if usize::try_from(got) == Ok(N) {
        return Ok(bytes);
    }
    Err(ProbeError::os("getrandom", &Error::last_os_error()))
}

/// Sets an option of a socket.
pub fn set_option<T: Copy>(
    socket: RawFd,
    level: libc::c_int,
    option: libc::c_int,
    value: T,
) -> Result<(), Error> {
    let length = size_of::<T>() as libc::socklen_t;
    // SAFETY: the value is of the stated size.
    match unsafe { libc::setsockopt(socket, level, option, (&raw const value).cast(), length) } {
        0 => Ok(()),
        _ => Err(Error::last_os_error()),
    }
}

/// Reads an option of a socket; returns the number of bytes that the kernel wrote, `None` if it does not
/// know the option.
pub fn read_option<const N: usize>(
    socket: RawFd,
    level: libc::c_int,
    option: libc::c_int,
    bytes: &mut [u8; N],
) -> Option<usize> {
    let mut length = N as libc::socklen_t;
    let place = bytes.as_mut_ptr().cast();
    // SAFETY: the kernel writes at most `length` bytes.
    let rc = unsafe { libc::getsockopt(socket, level, option, place, &raw mut length) };
    (rc == 0).then_some(length as usize)
}
