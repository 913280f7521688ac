//! Where the static programs are that the set-up built. A package of its own: in the packages of the
//! programs, each of these tests would have every program compiled once more.
use std::path::PathBuf;

/// The path of a static program for this machine.
///
/// # Panics
/// Where it was not built.
#[must_use]
pub fn path_of(program: &str) -> PathBuf {
    let folder = format!("../../src/nephoscope/_probe/{}-linux", std::env::consts::ARCH);
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(folder).join(program);
    assert!(path.is_file(), "{} was not built. Run `make probe`, then test again.", path.display());
    path
}
