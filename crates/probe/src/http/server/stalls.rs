//! Times in which the server does nothing, as in a pause of a garbage collector: by schedule and on
//! command. All times are on the monotonic clock.

#[derive(Debug)]
pub struct Stalls {
    started_ns: u64,
    /// Time from the start of one scheduled stall to the next; the first is so long after the start.
    every_ns: u64,
    length_ns: u64,
    /// The last stall on command, from and until.
    commanded: (u64, u64),
}

impl Stalls {
    /// Stalls of `length_ns` every `every_ns`; none where one of them is 0.
    pub fn new(started_ns: u64, every_ns: u64, length_ns: u64) -> Self {
        Self { started_ns, every_ns, length_ns, commanded: (0, 0) }
    }

    /// Whether there is, was or will be a stall.
    #[inline]
    pub fn are_possible(&self) -> bool {
        self.is_scheduled() || self.commanded.1 > 0
    }

    fn is_scheduled(&self) -> bool {
        self.every_ns > 0 && self.length_ns > 0
    }

    /// Returns the first moment from `ns` on that lies in no stall.
    #[inline]
    pub fn resume_at(&self, ns: u64) -> u64 {
        let mut at_ns = ns;
        loop {
            let after_ns = self.after_command(self.after_schedule(at_ns));
            if after_ns == at_ns {
                return at_ns;
            }
            at_ns = after_ns;
        }
    }

    fn after_schedule(&self, ns: u64) -> u64 {
        if !self.is_scheduled() || ns < self.started_ns + self.every_ns {
            return ns;
        }
        let into_ns = (ns - self.started_ns) % self.every_ns;
        ns + self.length_ns.saturating_sub(into_ns)
    }

    fn after_command(&self, ns: u64) -> u64 {
        let (from_ns, until_ns) = self.commanded;
        if (from_ns..until_ns).contains(&ns) {
            until_ns
        } else {
            ns
        }
    }

    /// Returns when work of `work_ns` that starts at `start_ns`, outside of a stall, is done: it
    /// stands still in every stall.
    pub fn finish_at(&self, start_ns: u64, work_ns: u64) -> u64 {
        let (mut at_ns, mut left_ns) = (start_ns, work_ns);
        while let Some(stall_ns) = self.next_after(at_ns).filter(|next| at_ns + left_ns > *next) {
            left_ns -= stall_ns - at_ns;
            at_ns = self.resume_at(stall_ns);
        }
        at_ns + left_ns
    }

    /// Returns when the first stall begins after `ns`.
    fn next_after(&self, ns: u64) -> Option<u64> {
        let scheduled = self.is_scheduled().then(|| {
            let begun = ns.saturating_sub(self.started_ns) / self.every_ns;
            self.started_ns + (begun + 1) * self.every_ns
        });
        let commanded = Some(self.commanded.0).filter(|from_ns| *from_ns > ns);
        scheduled.into_iter().chain(commanded).min()
    }

    /// Stalls from now on for so long; returns by how much work that is under way is delayed. A
    /// command that comes in a stall lengthens it.
    pub fn begin(&mut self, now_ns: u64, length_ns: u64) -> u64 {
        let from_ns = self.resume_at(now_ns);
        self.commanded = (from_ns, from_ns + length_ns);
        self.resume_at(now_ns) - from_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scheduled_stalls_begin_one_period_after_the_start() {
        let stalls = Stalls::new(1000, 100, 10);
        for (ns, resumes) in
            [(0, 0), (1000, 1000), (1005, 1005), (1099, 1099), (1100, 1110), (1109, 1110)]
        {
            assert_eq!(stalls.resume_at(ns), resumes, "{ns}");
        }
        assert_eq!(stalls.resume_at(1110), 1110);
        assert_eq!(stalls.resume_at(1200), 1210);
    }

    #[test]
    fn work_stands_still_in_a_stall() {
        let stalls = Stalls::new(0, 100, 10);
        assert_eq!(stalls.finish_at(50, 20), 70);
        assert_eq!(stalls.finish_at(50, 50), 100);
        assert_eq!(stalls.finish_at(95, 20), 125);
        // 5 before 100, 90 after 110, 5 after 210.
        assert_eq!(stalls.finish_at(95, 100), 215);
        assert_eq!(Stalls::new(0, 0, 10).finish_at(95, 100), 195);
    }

    #[test]
    fn a_command_stalls_at_once_and_is_added_to_a_stall() {
        let mut stalls = Stalls::new(0, 100, 10);
        assert_eq!(stalls.begin(50, 20), 20);
        assert_eq!((stalls.resume_at(60), stalls.resume_at(70)), (70, 70));
        // During the stall from 200 to 210.
        assert_eq!(stalls.begin(205, 20), 20);
        assert_eq!(stalls.resume_at(206), 230);
    }
}
