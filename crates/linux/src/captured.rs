//! Files of a machine as a test captured them, in a temporary folder.
use crate::files::Files;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

/// A folder with captured files that goes away with the value.
pub struct Captured {
    root: PathBuf,
}

impl Captured {
    /// Writes `(path, text)` pairs below a fresh temporary folder.
    pub fn new(files: &[(&str, &str)]) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = format!(
            "nephoscope-test-{}-{}",
            std::process::id(),
            NEXT.fetch_add(1, Ordering::Relaxed)
        );
        let captured = Self { root: std::env::temp_dir().join(name) };
        std::fs::create_dir_all(&captured.root).unwrap();
        for (path, text) in files {
            let path = captured.root.join(path.trim_start_matches('/'));
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        captured
    }

    pub fn link(&self, path: &str, target: &str) {
        let path = self.root.join(path.trim_start_matches('/'));
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(target, path).unwrap();
    }

    pub fn files(&self) -> Files {
        Files::under(&self.root)
    }
}

impl Drop for Captured {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.root);
    }
}
