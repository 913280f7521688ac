//! Replications of a queue on so many threads: `replications NUMBER THREADS`; `benchmarks/` compares.
use nephoscope_sim::arrivals::Arrivals;
use nephoscope_sim::queue::{Discipline, Queue};
use nephoscope_sim::random::Distribution;
use nephoscope_sim::replicate::replicate;

fn main() {
    let mut words = std::env::args().skip(1);
    let mut number = || words.next().and_then(|word| word.parse::<usize>().ok());
    let (Some(replications), Some(threads)) = (number(), number()) else {
        eprintln!("usage: replications NUMBER THREADS");
        std::process::exit(2);
    };
    let queue = Queue {
        arrivals: Arrivals::poisson(40_000.0).expect("a rate"),
        service: Distribution::Exponential(1e6),
        discipline: Discipline::Fifo,
        servers: 50,
        requests: 2_000_000,
    };
    let means = replicate(replications, threads, |replication| {
        queue.run(1, replication).expect("it is not overloaded").response.moments().mean()
    });
    let sum: f64 = means.iter().flatten().sum();
    eprintln!("{replications} replications, mean response {:.0} ns", sum / replications as f64);
}
