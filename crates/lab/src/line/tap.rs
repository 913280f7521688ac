//! TAP devices: made inside a network namespace, gone when their descriptor closes.
use super::config::{self, Port};
use crate::error::{call_failed, failed, missing, os_error, Result};
use libc::__c_anonymous_ifr_ifru as Request;
use nephoscope_linux::call::outcome;
use nephoscope_linux::namespaces::Namespace;
use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixDatagram;
use std::path::Path;

/// Packets that the device keeps for us; 10 ms of the smallest ones at line rate.
const RING_PACKETS: i32 = 4096;

/// A device whose packets are ours.
#[derive(Debug)]
pub struct Tap {
    file: File,
    /// `/proc/net/dev` of its namespace: what it dropped before we could read.
    statistics: Option<File>,
    name: String,
}

impl Tap {
    /// Makes the device in its namespace and sets it up; the thread is back in its own afterwards.
    pub fn make(port: &Port) -> Result<Self> {
        let Some(netns) = &port.netns else {
            return Self::make_here(port);
        };
        let open = |path: &Path| Namespace::open(path, libc::CLONE_NEWNET);
        let own = open(Path::new("/proc/thread-self/ns/net")).map_err(call_failed)?;
        open(netns).and_then(|namespace| namespace.join()).map_err(call_failed)?;
        let tap = Self::make_here(port);
        own.join().map_err(call_failed)?;
        tap
    }

    fn make_here(port: &Port) -> Result<Self> {
        let file = open_tun()?;
        let what = |doing: &str| format!("{doing} the device {}", port.name);
        let mut request = request(&port.name);
        // No extra header: each packet is seen as it is, segmented and with its checksum.
        request.ifr_ifru.ifru_flags = (libc::IFF_TAP | libc::IFF_NO_PI) as i16;
        control(file.as_raw_fd(), libc::TUNSETIFF as _, &mut request).map_err(
            |error| match error.raw_os_error() {
                Some(libc::EBUSY) => failed(
                    format!("There is a device {} in this namespace already.", port.name),
                    "Take the lab down that made it, or choose another name.",
                ),
                _ => os_error(&what("Making"), &error),
            },
        )?;
        configure(port).map_err(|error| os_error(&what("Configuring"), &error))?;
        let statistics = File::open("/proc/thread-self/net/dev").ok();
        Ok(Self { file, statistics, name: port.name.clone() })
    }

    pub fn fd(&self) -> RawFd {
        self.file.as_raw_fd()
    }

    /// Reads one packet; `None` when there is none.
    #[inline]
    pub fn read(&self, buffer: &mut [u8]) -> Option<usize> {
        (&self.file).read(buffer).ok().filter(|read| *read > 0)
    }

    /// Writes one packet; whether the device took it.
    #[inline]
    pub fn write(&self, packet: &[u8]) -> bool {
        (&self.file).write(packet).is_ok_and(|written| written == packet.len())
    }

    /// Packets that the device dropped because we did not read them in time; none where the
    /// namespace hides its statistics.
    pub fn dropped(&self) -> Option<u64> {
        dropped_in(&whole_text(self.statistics.as_ref()?).ok()?, &self.name)
    }
}

/// Reads an open file from its start: the kernel gives a page of its statistics at a time.
fn whole_text(mut file: &File) -> io::Result<String> {
    file.rewind()?;
    io::read_to_string(file)
}

/// The transmit drops of a device in the text of `/proc/net/dev`.
fn dropped_in(text: &str, name: &str) -> Option<u64> {
    let numbers = text.lines().find_map(|line| {
        let (device, numbers) = line.split_once(':')?;
        (device.trim() == name).then_some(numbers)
    })?;
    // Eight columns of receiving, then bytes, packets, errors, drops of transmitting.
    numbers.split_whitespace().nth(11)?.parse().ok()
}

fn open_tun() -> Result<File> {
    let mut options = File::options();
    options.read(true).write(true).custom_flags(libc::O_NONBLOCK);
    options.open("/dev/net/tun").map_err(|error| match error.raw_os_error() {
        Some(libc::ENOENT | libc::ENODEV | libc::ENXIO) => missing(
            "This machine has no /dev/net/tun, through which the delay line gets packets.",
            "Run: modprobe tun",
        ),
        _ => os_error("Opening /dev/net/tun", &error),
    })
}

fn request(name: &str) -> libc::ifreq {
    // SAFETY: a plain struct for which zero is a value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, byte) in request.ifr_name.iter_mut().zip(name.bytes().take(15)) {
        *to = byte as libc::c_char;
    }
    request
}

fn configure(port: &Port) -> io::Result<()> {
    // Any socket will do.
    let socket = UnixDatagram::unbound()?;
    let set = |command: u32, value: Request| {
        let mut wanted = request(&port.name);
        wanted.ifr_ifru = value;
        control(socket.as_raw_fd(), command, &mut wanted)
    };
    if let Some(mac) = port.mac.as_deref().and_then(|text| config::parse_mac(text).ok()) {
        let mut sa_data = [0 as libc::c_char; 14];
        for (to, byte) in sa_data.iter_mut().zip(mac) {
            *to = byte as libc::c_char;
        }
        let ifru_hwaddr = libc::sockaddr { sa_family: libc::ARPHRD_ETHER, sa_data };
        set(libc::SIOCSIFHWADDR as _, Request { ifru_hwaddr })?;
    }
    set(libc::SIOCSIFMTU as _, Request { ifru_mtu: port.mtu.cast_signed() })?;
    set(libc::SIOCSIFTXQLEN as _, Request { ifru_metric: RING_PACKETS })?;
    set(libc::SIOCSIFFLAGS as _, Request { ifru_flags: libc::IFF_UP as i16 })
}

fn control(fd: RawFd, command: u32, request: &mut libc::ifreq) -> io::Result<()> {
    // SAFETY: the commands used here read and write one ifreq. Their type differs between C
    // libraries.
    outcome(unsafe { libc::ioctl(fd, command as _, std::ptr::from_mut(request)) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_whole_statistics_are_read_each_time() {
        let lines: String = (0..300).map(|n| format!("{n:200}\n")).collect();
        let path = std::env::temp_dir().join(format!("nephoscope-lab-{}", std::process::id()));
        std::fs::write(&path, &lines).unwrap();
        let file = File::open(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        for _ in 0..2 {
            assert_eq!(whole_text(&file).unwrap(), lines);
        }
    }

    #[test]
    fn drops_are_the_devices_own() {
        let text = "Inter-|   Receive  |  Transmit\n face |bytes packets errs drop\n    \
                    lo: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16\n  eth0:10 20 30 40 50 60 70 80 90 \
                    100 110 120 130 140 150 160\n";
        assert_eq!(dropped_in(text, "eth0"), Some(120));
        assert_eq!(dropped_in(text, "lo"), Some(12));
        assert_eq!(dropped_in(text, "eth"), None);
    }
}
