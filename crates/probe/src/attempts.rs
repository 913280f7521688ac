//! Tests that need a quiet core: bounded retries, each attempt shown, the bound always the same.
use std::thread;
use std::time::Duration;

/// The first attempt and one after each pause: other programs' bursts last seconds, so that attempts
/// right after each other would all fall into one. 13 s in all before a test fails.
const PAUSES_MS: [u64; 7] = [100, 200, 400, 800, 1600, 3200, 6400];

/// Measures until an attempt is `Ok`; what an attempt found is shown either way. Fails the test when
/// none was.
#[track_caller]
pub fn attempt(what: &str, mut measure: impl FnMut() -> Result<String, String>) {
    let mut pauses = PAUSES_MS.iter();
    for number in 1.. {
        let found = measure();
        let (Ok(said) | Err(said)) = &found;
        eprintln!("{what}, attempt {number}: {said}");
        if found.is_ok() {
            return;
        }
        match pauses.next() {
            Some(pause_ms) => thread::sleep(Duration::from_millis(*pause_ms)),
            None => panic!("{what}: none of {number} attempts held the bound"),
        }
    }
}

/// `Ok` where the bound was held.
pub fn holds(held: bool, said: String) -> Result<String, String> {
    if held {
        Ok(said)
    } else {
        Err(said)
    }
}
