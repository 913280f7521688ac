//! The mounts of this process, from `/proc/self/mountinfo` (Linux `Documentation/filesystems/proc.rst`).

/// A line of `/proc/self/mountinfo`.
#[derive(Debug, PartialEq, Eq)]
pub struct Mount<'text> {
    /// The folder of the file system that is mounted.
    pub root: String,
    /// Where it is mounted.
    pub point: String,
    /// Type of the file system.
    pub kind: &'text str,
    pub source: String,
    /// Options of the file system, separated by commas.
    pub options: &'text str,
}

/// Reads the text of `/proc/self/mountinfo`; lines of another form are left out.
pub fn parse(mountinfo: &str) -> impl Iterator<Item = Mount<'_>> {
    mountinfo.lines().filter_map(|line| {
        let (before, after) = line.split_once(" - ")?;
        let mut before = before.split(' ').skip(3);
        let (root, point) = (unescape(before.next()?), unescape(before.next()?));
        let mut after = after.split(' ');
        let (kind, source, options) = (after.next()?, unescape(after.next()?), after.next()?);
        Some(Mount { root, point, kind, source, options })
    })
}

/// Undoes the octal escapes of mount tables (`\040` is a space).
fn unescape(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.as_bytes();
    while let [first, rest @ ..] = bytes {
        let digits = if *first == b'\\' { rest.get(..3) } else { None };
        let value = digits
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 8).ok());
        if let Some(value) = value {
            out.push(value);
            bytes = &rest[3..];
        } else {
            out.push(*first);
            bytes = rest;
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn optional_fields_and_spaces_in_paths_are_read() {
        let text = "24 29 0:22 / /sys rw,nosuid shared:7 - sysfs sysfs rw\n\
                    31 24 0:27 /docker/\\040a /mnt/my\\040groups rw - cgroup2 cgroup2 rw,nsdelegate\n\
                    no mount\n";
        let mounts: Vec<_> = parse(text).collect();
        assert_eq!(mounts.len(), 2);
        assert_eq!((mounts[0].kind, mounts[0].point.as_str()), ("sysfs", "/sys"));
        assert_eq!(
            (mounts[1].root.as_str(), mounts[1].point.as_str()),
            ("/docker/ a", "/mnt/my groups")
        );
        assert_eq!((mounts[1].kind, mounts[1].options), ("cgroup2", "rw,nsdelegate"));
    }
}
