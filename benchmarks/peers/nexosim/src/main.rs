//! M/M/c by NeXosim, as one model on one thread: arguments are servers, load and requests.
use nexosim::model::{schedulable, Context, Model};
use nexosim::simulation::{Mailbox, SimInit, SimulationError};
use nexosim::time::MonotonicTime;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::time::Duration;

/// Mean service is one second.
#[derive(Serialize, Deserialize)]
struct Queue {
    free: u32,
    rate: f64,
    to_come: u64,
    to_end: u64,
    requests: u64,
    waiting: VecDeque<f64>,
    state: u64,
    now: f64,
    sum: f64,
}

#[Model]
impl Queue {
    #[nexosim(init)]
    async fn init(&mut self, cx: &Context<Self>) {
        self.next(cx);
    }

    #[nexosim(schedulable)]
    fn arrive(&mut self, at: f64, cx: &Context<Self>) {
        self.now = at;
        self.next(cx);
        if self.free > 0 {
            self.free -= 1;
            self.serve(at, cx);
        } else {
            self.waiting.push_back(at);
        }
    }

    #[nexosim(schedulable)]
    fn end(&mut self, (came, at): (f64, f64), cx: &Context<Self>) {
        self.now = at;
        self.sum += at - came;
        match self.waiting.pop_front() {
            Some(next) => self.serve(next, cx),
            None => self.free += 1,
        }
        self.to_end -= 1;
        if self.to_end == 0 {
            println!("{{\"requests\": {}, \"mean\": {}}}", self.requests, self.sum / self.requests as f64);
        }
    }

    fn next(&mut self, cx: &Context<Self>) {
        if self.to_come > 0 {
            self.to_come -= 1;
            let wait = self.exponential() / self.rate;
            let at = self.now + wait;
            cx.schedule_event(Duration::from_secs_f64(wait.max(1e-9)), schedulable!(Self::arrive), at).unwrap();
        }
    }

    fn serve(&mut self, came: f64, cx: &Context<Self>) {
        let length = self.exponential();
        let until = (came, self.now + length);
        cx.schedule_event(Duration::from_secs_f64(length.max(1e-9)), schedulable!(Self::end), until).unwrap();
    }

    /// SplitMix64, then the inverse of the distribution.
    fn exponential(&mut self) -> f64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        let uniform = ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64;
        -(1.0 - uniform).ln()
    }
}

fn main() -> Result<(), SimulationError> {
    let words: Vec<String> = std::env::args().collect();
    let number = |at: usize| words[at].parse::<f64>().expect("servers, load, requests, seed");
    let (servers, requests) = (number(1), number(3) as u64);
    let queue = Queue {
        free: servers as u32,
        rate: number(2) * servers,
        to_come: requests,
        to_end: requests,
        requests,
        waiting: VecDeque::new(),
        state: number(4) as u64,
        now: 0.0,
        sum: 0.0,
    };
    // One thread: with two it is a hundred times slower, because the threads pass one event around.
    let mut simulation =
        SimInit::with_num_threads(1).add_model(queue, Mailbox::new(), "queue").init(MonotonicTime::EPOCH)?;
    simulation.run().or(Ok(()))
}
