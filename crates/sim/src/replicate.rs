//! Replications of a model with different seeds, on several threads.
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Mutex;
use std::thread;

/// Returns the results of replications 0, 1, …, in that order whatever the number of threads (0: as
/// many as there are CPUs).
pub fn replicate<R: Send>(
    replications: usize,
    threads: usize,
    run: impl Fn(u64) -> R + Sync,
) -> Vec<R> {
    let cpus = || thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let threads = if threads == 0 { cpus() } else { threads }.min(replications);
    let next = AtomicUsize::new(0);
    let results = Mutex::new(Vec::with_capacity(replications));
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= replications {
                    return;
                }
                let result = run(number as u64);
                results.lock().expect("no replication panics with it").push((number, result));
            });
        }
    });
    let mut results = results.into_inner().expect("no replication panics with it");
    results.sort_unstable_by_key(|(number, _)| *number);
    results.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::replicate;
    use crate::random::RandomStream;

    #[test]
    fn results_do_not_depend_on_threads() {
        let run = |number| RandomStream::new(9, number, 0).bits() ^ number;
        let one_thread = replicate(40, 1, run);
        assert_eq!(one_thread, replicate(40, 2, run));
        assert_eq!(one_thread, replicate(40, 7, run));
        assert!(replicate(0, 0, run).is_empty());
    }
}
