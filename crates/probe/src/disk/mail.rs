//! The work of a mail server as a seed says it: which file is made, read, added to or deleted next,
//! and how many bytes that moves. Pure: no clock, no file.
use nephoscope_wire::random::Random;
use serde::Deserialize;

#[derive(Clone, Copy, Debug, Deserialize)]
pub struct Draws {
    /// Files made before the transactions.
    pub files: u64,
    pub transactions: u64,
    pub min_bytes: u64,
    /// Largest new file; nothing is added to a file of this size.
    pub max_bytes: u64,
    /// Probability that a transaction reads a file instead of adding to it.
    pub read_ratio: f64,
    /// Probability that it makes a file instead of deleting one.
    pub create_ratio: f64,
    pub seed: u64,
}

/// One operation on one file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MailStep {
    /// A new file of that many bytes.
    Create { file: u64, bytes: u64 },
    /// The whole file, that long, is read.
    Read { file: u64, bytes: u64 },
    /// So many bytes are added to a file that `has` some; 0 where it is full.
    Append { file: u64, has: u64, bytes: u64 },
    /// The file is deleted; it had so many bytes.
    Delete { file: u64, bytes: u64 },
}

impl MailStep {
    /// Size of the file before and after it.
    pub fn sizes(self) -> (u64, u64) {
        match self {
            Self::Create { bytes, .. } => (0, bytes),
            Self::Read { bytes, .. } => (bytes, bytes),
            Self::Append { has, bytes, .. } => (has, has + bytes),
            Self::Delete { bytes, .. } => (bytes, 0),
        }
    }
}

/// The files that are there, and the numbers still to be drawn.
#[derive(Clone, Debug)]
pub struct Mail {
    draws: Draws,
    random: Random,
    /// (number, bytes); the order is that of drawing, not of numbers.
    live: Vec<(u64, u64)>,
    next_file: u64,
}

impl Mail {
    /// Nothing is there yet. Allocates all that it will need.
    pub fn new(draws: Draws) -> Self {
        let most = usize::try_from(draws.files + draws.transactions).unwrap_or(0);
        let live = Vec::with_capacity(most);
        Self { draws, random: Random::new(draws.seed), live, next_file: 0 }
    }

    /// The files that are there: (number, bytes).
    pub fn live(&self) -> &[(u64, u64)] {
        &self.live
    }

    /// A new file: its size is uniform between the bounds, both included.
    pub fn create(&mut self) -> MailStep {
        let Draws { min_bytes, max_bytes, .. } = self.draws;
        let bytes = min_bytes + self.random.below(max_bytes - min_bytes + 1);
        let file = self.next_file;
        self.next_file += 1;
        self.live.push((file, bytes));
        MailStep::Create { file, bytes }
    }

    /// Any file goes.
    pub fn delete(&mut self) -> Option<MailStep> {
        let at = self.any()?;
        let (file, bytes) = self.live.swap_remove(at);
        Some(MailStep::Delete { file, bytes })
    }

    /// The two halves of a transaction: a file is read or added to, a file is made or deleted. Where
    /// none is there the first half falls away and the second one makes one.
    pub fn transaction(&mut self) -> [Option<MailStep>; 2] {
        let reads = self.random.bernoulli(self.draws.read_ratio);
        let first = self.any().map(|at| if reads { self.read(at) } else { self.append(at) });
        let creates = self.random.bernoulli(self.draws.create_ratio);
        let second = if creates { None } else { self.delete() };
        [first, Some(second.unwrap_or_else(|| self.create()))]
    }

    fn read(&self, at: usize) -> MailStep {
        let (file, bytes) = self.live[at];
        MailStep::Read { file, bytes }
    }

    fn append(&mut self, at: usize) -> MailStep {
        let (file, has) = self.live[at];
        let room = self.draws.max_bytes - has;
        let bytes = if room == 0 { 0 } else { 1 + self.random.below(room) };
        self.live[at].1 += bytes;
        MailStep::Append { file, has, bytes }
    }

    fn any(&mut self) -> Option<usize> {
        let there = self.live.len() as u64;
        (there > 0).then(|| self.random.below(there) as usize)
    }
}

/// Most files and most bytes (each file rounded up to `block_bytes`) that are there at once.
pub fn peak(draws: Draws, block_bytes: u64) -> (u64, u64) {
    let mut mail = Mail::new(draws);
    let (mut bytes, mut most_bytes, mut most_files) = (0, 0, 0);
    for step_index in 0..draws.files + draws.transactions {
        let created = (step_index < draws.files).then(|| [None, Some(mail.create())]);
        for step in created.unwrap_or_else(|| mail.transaction()).into_iter().flatten() {
            let (before, after) = step.sizes();
            bytes += after.next_multiple_of(block_bytes);
            bytes -= before.next_multiple_of(block_bytes);
            most_bytes = most_bytes.max(bytes);
        }
        most_files = most_files.max(mail.live().len() as u64);
    }
    (most_files, most_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    const DRAWS: Draws = Draws {
        files: 300,
        transactions: 20_000,
        min_bytes: 100,
        max_bytes: 2_000,
        read_ratio: 0.5,
        create_ratio: 0.5,
        seed: 7,
    };

    /// What is there according to the steps alone, and how many there were of each kind.
    fn played(draws: Draws) -> (Mail, BTreeMap<u64, u64>, [u64; 4]) {
        let (mut mail, mut there, mut counts) = (Mail::new(draws), BTreeMap::new(), [0; 4]);
        let mut apply = |step: MailStep| match step {
            MailStep::Create { file, bytes } => {
                assert!((draws.min_bytes..=draws.max_bytes).contains(&bytes));
                assert!(there.insert(file, bytes).is_none());
                counts[0] += 1;
            }
            MailStep::Read { file, bytes } => {
                assert_eq!(there[&file], bytes);
                counts[1] += 1;
            }
            MailStep::Append { file, has, bytes } => {
                assert_eq!(there.insert(file, has + bytes), Some(has));
                assert!(has + bytes <= draws.max_bytes);
                counts[2] += 1;
            }
            MailStep::Delete { file, bytes } => {
                assert_eq!(there.remove(&file), Some(bytes));
                counts[3] += 1;
            }
        };
        (0..draws.files).for_each(|_| apply(mail.create()));
        for _ in 0..draws.transactions {
            mail.transaction().into_iter().flatten().for_each(&mut apply);
        }
        (mail, there, counts)
    }

    #[test]
    fn the_steps_and_the_list_of_files_agree() {
        let (mail, there, [created, read, appended, deleted]) = played(DRAWS);
        let listed: BTreeMap<_, _> = mail.live().iter().copied().collect();
        assert_eq!(listed, there);
        assert_eq!(created - deleted, there.len() as u64);
        assert_eq!(created + deleted, DRAWS.files + DRAWS.transactions);
        assert_eq!(read + appended, DRAWS.transactions);
        // Half of 20 000, standard deviation 71; six of them.
        assert!(read.abs_diff(10_000) < 426 && deleted.abs_diff(10_000) < 426);
    }

    #[test]
    fn the_same_seed_says_the_same_and_another_one_something_else() {
        assert_eq!(played(DRAWS).1, played(DRAWS).1);
        assert_ne!(played(DRAWS).1, played(Draws { seed: 8, ..DRAWS }).1);
    }

    #[test]
    fn without_files_a_transaction_makes_one() {
        let draws = Draws { files: 1, create_ratio: 0.0, transactions: 100, ..DRAWS };
        let (_, there, [created, read, appended, deleted]) = played(draws);
        assert!(there.len() <= 1);
        assert_eq!(created + deleted, 101);
        assert_eq!((created, deleted), (51, 50));
        assert_eq!(read + appended, 50);
    }

    #[test]
    fn the_peak_is_the_most_that_is_ever_there() {
        let draws = Draws { transactions: 500, ..DRAWS };
        let mut mail = Mail::new(draws);
        for _ in 0..draws.files {
            mail.create();
        }
        let there = |mail: &Mail| {
            let pages = mail.live().iter().map(|(_, bytes)| bytes.next_multiple_of(512));
            (mail.live().len() as u64, pages.sum::<u64>())
        };
        let mut directories = vec![there(&mail)];
        directories.extend((0..draws.transactions).map(|_| {
            mail.transaction();
            there(&mail)
        }));
        let (files, bytes) = peak(draws, 512);
        assert_eq!(Some(files), directories.iter().map(|counts| counts.0).max());
        let most = directories.iter().map(|counts| counts.1).max().unwrap();
        // Inside a transaction a file may have grown before another one goes.
        assert!((most..=most + 2048).contains(&bytes), "{bytes}, seen {most}");
    }

    #[test]
    fn sizes_are_uniform() {
        let mut mail = Mail::new(Draws { min_bytes: 0, max_bytes: 9, ..DRAWS });
        let mut counts = [0u32; 10];
        for _ in 0..10_000 {
            let MailStep::Create { bytes, .. } = mail.create() else { unreachable!() };
            counts[bytes as usize] += 1;
        }
        // 1000 expected, standard deviation 30; six of them.
        assert!(counts.iter().all(|count| count.abs_diff(1000) < 180), "{counts:?}");
    }
}
