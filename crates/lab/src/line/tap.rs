//! TAP devices: made inside a network namespace, gone when their descriptor closes.
use super::config::{self, Port};
use crate::error::{outcome, LabError, FAILED, MISSING};
use crate::namespaces::Namespace;
use std::fs::File;
use std::io::{self, Seek};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::path::Path;

/// Packets that the device keeps for us; 10 ms of the smallest ones at line rate.
const RING_PACKETS: i32 = 4096;

/// A device whose packets are ours.
#[derive(Debug)]
pub struct Tap {
    fd: OwnedFd,
    /// `/proc/net/dev` of its namespace: what it dropped before we could read.
    statistics: Option<File>,
    name: String,
}

impl Tap {
    /// Makes the device in its namespace and sets it up; the thread is back in its own afterwards.
    pub fn make(port: &Port) -> Result<Self, LabError> {
        let Some(netns) = &port.netns else {
            return Self::make_here(port);
        };
        let own = Namespace::open(Path::new("/proc/thread-self/ns/net"), libc::CLONE_NEWNET)?;
        Namespace::open(netns, libc::CLONE_NEWNET)?.join()?;
        let made = Self::make_here(port);
        own.join()?;
        made
    }

    fn make_here(port: &Port) -> Result<Self, LabError> {
        let fd = open_tun()?;
        let what = |doing: &str| format!("{doing} the device {}", port.name);
        let mut request = request(&port.name);
        // No extra header: each packet is seen as it is, segmented and with its checksum.
        request.ifr_ifru.ifru_flags = (libc::IFF_TAP | libc::IFF_NO_PI) as i16;
        control(fd.as_raw_fd(), libc::TUNSETIFF as _, &mut request).map_err(|error| match error
            .raw_os_error()
        {
            Some(libc::EBUSY) => LabError::new(
                FAILED,
                format!("There is a device {} in this namespace already.", port.name),
                "Take the lab down that made it, or choose another name.",
            ),
            _ => LabError::os(&what("Making"), &error),
        })?;
        // SAFETY: a plain system call; the descriptor returned is ours alone.
        let socket = unsafe {
            let socket = libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0);
            if socket < 0 {
                return Err(LabError::last("Opening a socket"));
            }
            OwnedFd::from_raw_fd(socket)
        };
        configure(socket.as_raw_fd(), port)
            .map_err(|error| LabError::os(&what("Configuring"), &error))?;
        let statistics = File::open("/proc/thread-self/net/dev").ok();
        Ok(Self { fd, statistics, name: port.name.clone() })
    }

    pub fn fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }

    /// Reads one packet; `None` when there is none.
    #[inline]
    pub fn read(&self, buffer: &mut [u8]) -> Option<usize> {
        // SAFETY: writes at most the buffer's length into it.
        let read = unsafe { libc::read(self.fd(), buffer.as_mut_ptr().cast(), buffer.len()) };
        (read > 0).then_some(read as usize)
    }

    /// Writes one packet; whether the device took it.
    #[inline]
    pub fn write(&self, packet: &[u8]) -> bool {
        // SAFETY: reads the packet's length from it.
        let written = unsafe { libc::write(self.fd(), packet.as_ptr().cast(), packet.len()) };
        written == packet.len() as isize
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

fn open_tun() -> Result<OwnedFd, LabError> {
    let path = c"/dev/net/tun";
    let flags = libc::O_RDWR | libc::O_NONBLOCK | libc::O_CLOEXEC;
    // SAFETY: a constant string; the descriptor returned is ours alone.
    let fd = unsafe { libc::open(path.as_ptr(), flags) };
    if fd >= 0 {
        // SAFETY: just opened.
        return Ok(unsafe { OwnedFd::from_raw_fd(fd) });
    }
    let error = io::Error::last_os_error();
    match error.raw_os_error() {
        Some(libc::ENOENT | libc::ENODEV | libc::ENXIO) => Err(LabError::new(
            MISSING,
            "This machine has no /dev/net/tun, through which the delay line gets packets.",
            "Run: modprobe tun",
        )),
        _ => Err(LabError::os("Opening /dev/net/tun", &error)),
    }
}

fn request(name: &str) -> libc::ifreq {
    // SAFETY: a plain struct for which zero is a value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, byte) in request.ifr_name.iter_mut().zip(name.bytes().take(15)) {
        *to = byte as libc::c_char;
    }
    request
}

fn configure(socket: RawFd, port: &Port) -> io::Result<()> {
    if let Some(mac) = port.mac.as_deref().and_then(|text| config::parse_mac(text).ok()) {
        let mut wanted = request(&port.name);
        let mut data = [0 as libc::c_char; 14];
        for (to, byte) in data.iter_mut().zip(mac) {
            *to = byte as libc::c_char;
        }
        let sa_family = libc::ARPHRD_ETHER;
        wanted.ifr_ifru.ifru_hwaddr = libc::sockaddr { sa_family, sa_data: data };
        control(socket, libc::SIOCSIFHWADDR as _, &mut wanted)?;
    }
    let mut wanted = request(&port.name);
    wanted.ifr_ifru.ifru_mtu = port.mtu.cast_signed();
    control(socket, libc::SIOCSIFMTU as _, &mut wanted)?;
    let mut wanted = request(&port.name);
    wanted.ifr_ifru.ifru_metric = RING_PACKETS;
    control(socket, libc::SIOCSIFTXQLEN as _, &mut wanted)?;
    let mut wanted = request(&port.name);
    wanted.ifr_ifru.ifru_flags = libc::IFF_UP as i16;
    control(socket, libc::SIOCSIFFLAGS as _, &mut wanted)
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
