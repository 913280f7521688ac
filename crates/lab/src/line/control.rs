//! The control channel: lines of JSON in, lines of JSON out, on standard input and on a socket.
use crate::error::{os_error, Result};
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

/// Longest line: all pairs of 256 ports are 10 MB, and come as several lines.
const MAX_LINE: usize = 4 << 20;
const MAX_PEERS: usize = 8;

/// Bytes that have come in, given out line by line.
#[derive(Debug, Default)]
pub struct LineBuffer {
    bytes: Vec<u8>,
}

impl LineBuffer {
    /// Reads once; false at the end of the stream or of our patience. Standard input may block, so
    /// that it is read only when it is ready, and only once each time.
    pub fn fill(&mut self, mut from: impl Read) -> bool {
        let mut part = [0; 65_536];
        match from.read(&mut part) {
            Ok(read) => {
                self.bytes.extend_from_slice(&part[..read]);
                read > 0 && self.bytes.len() <= MAX_LINE
            }
            Err(error) => {
                matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
            }
        }
    }

    /// The next whole line that is no blank.
    pub fn next_line(&mut self) -> Option<String> {
        loop {
            let end = self.bytes.iter().position(|byte| *byte == b'\n')?;
            let line: Vec<u8> = self.bytes.drain(..=end).collect();
            let text = String::from_utf8_lossy(&line).trim().to_owned();
            if !text.is_empty() {
                return Some(text);
            }
        }
    }
}

/// The socket and who is connected to it.
#[derive(Debug)]
pub struct ControlSocket {
    listener: UnixListener,
    path: PathBuf,
    peers: Vec<(UnixStream, LineBuffer)>,
}

impl ControlSocket {
    /// Listens at a path, for the owner alone; a socket that a killed line left is replaced.
    pub fn listen(path: &Path) -> Result<Self> {
        let what = format!("Listening at {}", path.display());
        let socket = || -> io::Result<UnixListener> {
            if std::fs::symlink_metadata(path)
                .is_ok_and(|metadata| metadata.file_type().is_socket())
            {
                std::fs::remove_file(path)?;
            }
            let listener = UnixListener::bind(path)?;
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
            listener.set_nonblocking(true)?;
            Ok(listener)
        };
        let listener = socket().map_err(|error| os_error(&what, &error))?;
        Ok(Self { listener, path: path.to_owned(), peers: Vec::new() })
    }

    pub fn fd(&self) -> RawFd {
        self.listener.as_raw_fd()
    }

    /// Takes a new peer; its descriptor to wait on.
    pub fn accept(&mut self) -> Option<RawFd> {
        let (stream, _) = self.listener.accept().ok()?;
        if self.peers.len() >= MAX_PEERS || stream.set_nonblocking(true).is_err() {
            return None;
        }
        let fd = stream.as_raw_fd();
        self.peers.push((stream, LineBuffer::default()));
        Some(fd)
    }

    /// Reads from a peer, has each line answered, lets it go when it has ended.
    pub fn serve(&mut self, fd: RawFd, mut answer: impl FnMut(&str) -> String) {
        let Some(at) = self.peers.iter().position(|(stream, _)| stream.as_raw_fd() == fd) else {
            return;
        };
        let (stream, lines) = &mut self.peers[at];
        let mut open = lines.fill(&mut *stream);
        while let Some(line) = lines.next_line() {
            // A peer that does not read its answers is let go: the line waits for nobody.
            open &= writeln!(stream, "{}", answer(&line)).is_ok();
        }
        if !open {
            self.peers.swap_remove(at);
        }
    }
}

impl Drop for ControlSocket {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_whole_however_they_arrive() {
        let mut lines = LineBuffer::default();
        let mut received = Vec::new();
        for part in ["{\"a\"", ":1}\n\n{\"b\":2}\n{", "}\n"] {
            lines.fill(part.as_bytes());
            while let Some(line) = lines.next_line() {
                received.push(line);
            }
        }
        assert_eq!(received, ["{\"a\":1}", "{\"b\":2}", "{}"]);
    }

    #[test]
    fn a_line_without_end_is_not_kept_for_ever() {
        let mut lines = LineBuffer::default();
        let reads = (0..1000).take_while(|_| lines.fill(io::repeat(b'x'))).count();
        assert_eq!(reads, MAX_LINE / 65_536);
    }
}
