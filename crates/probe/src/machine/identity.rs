//! A stable name for the machine that does not give its identity away.
use super::Section;
use nephoscope_linux::files::{Fact, Files};
use sha2::{Digest, Sha256};

/// Ties the hash to this program, so that it matches nobody else's hash of the same identifier.
const SALT: &str = "nephoscope machine identity 1:";

/// The first 16 hexadecimal digits of the salted SHA-256 of `text`.
pub fn hashed(text: &str) -> String {
    let digest = Sha256::new().chain_update(SALT).chain_update(text.trim()).finalize();
    digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

pub fn section(files: &Files) -> Section {
    let mut section = Section::new("identity");
    section.put("machine_id_hash", machine_id(files).map(|id| hashed(&id)));
    section
}

fn machine_id(files: &Files) -> Fact<String> {
    let usable = |id: String| {
        let zero = id.chars().all(|c| c == '0' || c == '-');
        // systemd writes this word into images that are to get their identifier at first boot.
        if zero || id == "uninitialized" {
            return Err("/etc/machine-id is not initialised".to_owned());
        }
        Ok(id)
    };
    let first = files.line("/etc/machine-id").and_then(usable);
    first.or_else(|reason| {
        let sources = [
            "/var/lib/dbus/machine-id",
            "/sys/class/dmi/id/product_uuid",
            // Only until it boots again, but until then it is the same machine for certain.
            "/proc/sys/kernel/random/boot_id",
        ];
        sources.iter().find_map(|path| files.line(path).and_then(usable).ok()).ok_or(reason)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use nephoscope_linux::captured::Captured;

    fn hash(files: &[(&str, &str)]) -> serde_json::Value {
        section(&Captured::new(files).files()).into_parts().0["machine_id_hash"].clone()
    }

    #[test]
    fn the_hash_is_stable_salted_and_short() {
        let id = "3d1219c7c4c5404aaa1f6d2a48adfda4";
        let hashed = hash(&[("/etc/machine-id", id)]);
        assert_eq!(hashed, hash(&[("/etc/machine-id", &format!("{id}\n"))]));
        let hex = hashed.as_str().unwrap();
        assert!(hex.len() == 16 && hex.chars().all(|c| c.is_ascii_hexdigit()));
        let plain: String =
            Sha256::digest(id).iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        assert_ne!(hex, plain, "without the salt anybody could recognise the machine");
    }

    #[test]
    fn an_uninitialised_identifier_is_none() {
        assert!(hash(&[("/etc/machine-id", "uninitialized\n")]).is_null());
        let uuid = ("/sys/class/dmi/id/product_uuid", "EC2A1B2C-0000-1111-2222-333344445555\n");
        let boot = ("/proc/sys/kernel/random/boot_id", "8d1f2c3b-1111-4222-8333-444455556666\n");
        assert!(!hash(&[("/etc/machine-id", ""), uuid]).is_null());
        assert!(!hash(&[boot]).is_null());
        assert_eq!(hash(&[boot, uuid]), hash(&[uuid]));
        assert!(hash(&[]).is_null());
    }
}
