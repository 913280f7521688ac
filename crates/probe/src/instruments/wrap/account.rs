//! The account as which a third-party program runs where the probe is root: some servers refuse to run
//! as root, and none should.
use crate::error::{FailureKind, ProbeError, Result};
use std::fs::{DirBuilder, File, Permissions};
use std::os::unix::fs::{chown, fchown, DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// A user of this machine.
pub struct UserAccount {
    pub uid: u32,
    pub gid: u32,
}

impl UserAccount {
    /// Returns the account of that name, from /etc/passwd; `None` where the probe's own is to be used:
    /// none is named, or the probe is not root.
    pub fn to_use(name: &str) -> Result<Option<Self>> {
        // SAFETY: asks who this process is.
        if name.is_empty() || unsafe { libc::geteuid() } != 0 {
            return Ok(None);
        }
        let table = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
        let account = table.lines().find_map(|line| parse(line, name));
        account.map(Some).ok_or_else(|| {
            ProbeError::new(
                FailureKind::Lacks,
                "no_user",
                format!("This machine has no user '{name}', as which the program would run."),
                "Install the program's package, which makes that user, or do not run as root.",
            )
        })
    }

    /// Makes a folder for the account in one of the probe's own, which stays the probe's: so it is
    /// found after a kill.
    pub fn folder_in(&self, folder: &Path) -> Result<PathBuf> {
        let path = folder.join("work");
        std::fs::set_permissions(folder, Permissions::from_mode(0o711))
            .and_then(|()| DirBuilder::new().mode(0o700).create(&path))
            .and_then(|()| chown(&path, Some(self.uid), Some(self.gid)))
            .map_err(|error| ProbeError::os("Making the user's scratch folder", &error))?;
        Ok(path)
    }

    /// Gives an open file to the account.
    pub fn own_file(&self, file: &File) -> Result<()> {
        fchown(file, Some(self.uid), Some(self.gid))
            .map_err(|error| ProbeError::os("Changing the owner of the input", &error))
    }
}

fn parse(line: &str, name: &str) -> Option<UserAccount> {
    let mut fields = line.split(':');
    if fields.next()? != name {
        return None;
    }
    let uid = fields.nth(1)?.parse().ok()?;
    Some(UserAccount { uid, gid: fields.next()?.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_is_its_line_of_the_table() {
        let line = "postgres:x:101:104:PostgreSQL administrator,,,:/var/lib/postgresql:/bin/bash";
        let account = parse(line, "postgres").unwrap();
        assert_eq!((account.uid, account.gid), (101, 104));
        assert!(parse(line, "post").is_none());
        assert!(parse("postgres:x:101", "postgres").is_none());
    }
}
