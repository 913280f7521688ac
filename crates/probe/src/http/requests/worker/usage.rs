//! CPU time that a thread of the engine uses.
use crate::http::requests::recorder::Recorder;
use nephoscope_linux::clock;
use nephoscope_linux::proc;

/// What a thread used so far.
#[derive(Clone, Copy)]
pub struct ThreadUsage {
    at_ns: u64,
    cpu_ns: u64,
    cpu_wait_ns: Option<u64>,
    busy_wait_ns: u64,
}

impl ThreadUsage {
    pub fn read(busy_wait_ns: u64) -> Self {
        let stat = std::fs::read_to_string("/proc/thread-self/schedstat");
        Self {
            at_ns: clock::monotonic_ns(),
            cpu_ns: clock::thread_cpu_ns(),
            cpu_wait_ns: stat.ok().and_then(|stat| proc::run_queue_wait_ns(&stat)),
            busy_wait_ns,
        }
    }
}

impl Recorder {
    pub fn used(&mut self, now: &ThreadUsage, before: &ThreadUsage) {
        self.cpu_ns = now.cpu_ns - before.cpu_ns;
        let elapsed_ns = now.at_ns.saturating_sub(before.at_ns).max(1);
        let waited_ns = now.busy_wait_ns - before.busy_wait_ns;
        self.busiest_ratio = self.cpu_ns.saturating_sub(waited_ns) as f64 / elapsed_ns as f64;
        let waits = now.cpu_wait_ns.zip(before.cpu_wait_ns);
        self.cpu_wait_ns = waits.map(|(now_ns, before_ns)| now_ns.saturating_sub(before_ns));
    }
}
