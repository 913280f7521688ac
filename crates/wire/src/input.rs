//! Text that the caller names by a path.
use std::fs::OpenOptions;
use std::io::{Error, ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

/// Longest text; scenarios with 65,535 sites are shorter.
const MAX_BYTES: u64 = 64 << 20;
/// Between two looks whether a pipe has more.
const PIPE_CHECK_INTERVAL: Duration = Duration::from_millis(1);

/// Reads a file, or a pipe until its writers have closed it. A named pipe that nobody writes to is
/// empty, and a device that never ends is too long.
pub fn read_text(path: &Path) -> Result<String, Error> {
    // Else opening a named pipe waits for somebody who writes to it.
    let file = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path)?;
    let (mut bytes, mut limited) = (Vec::new(), file.take(MAX_BYTES + 1));
    while let Err(error) = limited.read_to_end(&mut bytes) {
        if error.kind() != ErrorKind::WouldBlock {
            return Err(error);
        }
        std::thread::sleep(PIPE_CHECK_INTERVAL);
    }
    if bytes.len() as u64 > MAX_BYTES {
        return Err(Error::new(ErrorKind::InvalidData, "it is longer than 64 MiB"));
    }
    String::from_utf8(bytes).map_err(|_| Error::new(ErrorKind::InvalidData, "it is not UTF-8 text"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_never_ends_is_refused() {
        let error = read_text(Path::new("/dev/zero")).unwrap_err();
        assert_eq!(error.to_string(), "it is longer than 64 MiB");
        assert!(read_text(Path::new("/")).is_err());
        assert_eq!(read_text(Path::new("/dev/null")).unwrap(), "");
    }
}
