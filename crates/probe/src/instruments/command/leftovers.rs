//! Processes that the commands of a trial leave running.
use crate::error::{ProbeError, Result};
use nephoscope_linux::orphans;
use nephoscope_wire::writer::TrialWriter;
use std::io::Write;

/// Ends what the commands left running when the trial ends, however it ends.
pub struct Leftovers {
    stay: bool,
}

impl Leftovers {
    /// Adopts what will be left from here on. stay: nothing is adopted, or ended.
    pub fn watch(stay: bool) -> Result<Self> {
        if !stay {
            orphans::adopt()
                .map_err(|error| ProbeError::os("Adopting what the commands leave", &error))?;
        }
        Ok(Self { stay })
    }

    /// Frees the numbers of those that have ended by themselves; no command may run.
    pub fn reap(&self) {
        if !self.stay {
            orphans::reap();
        }
    }

    /// Ends them, and notes how many there were.
    pub fn end(mut self, out: &mut TrialWriter<impl Write>) {
        let ended = self.end_all();
        if ended > 0 {
            let (noun, verb) = if ended == 1 { ("process", "was") } else { ("processes", "were") };
            out.note(format!(
                "The commands left {ended} {noun} behind, which {verb} killed at the end of the trial \
                 (`--keep-children` leaves them)."
            ));
        }
    }

    fn end_all(&mut self) -> usize {
        if std::mem::replace(&mut self.stay, true) {
            0
        } else {
            orphans::end_all()
        }
    }
}

impl Drop for Leftovers {
    fn drop(&mut self) {
        self.end_all();
    }
}
