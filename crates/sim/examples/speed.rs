//! Requests per CPU second of the queue; `benchmarks/` compares with peers.
use nephoscope_sim::arrivals::Arrivals;
use nephoscope_sim::queue::{Discipline, Queue};
use nephoscope_sim::random::Distribution;

fn main() {
    for (name, discipline, servers, load) in [
        ("M/M/50", Discipline::Fifo, 50, 0.8),
        ("M/M/1", Discipline::Fifo, 1, 0.8),
        ("M/M/5000", Discipline::Fifo, 5000, 0.8),
        ("M/M/1 shared", Discipline::Sharing, 1, 0.8),
    ] {
        let queue = Queue {
            arrivals: Arrivals::poisson(1000.0 * load * f64::from(servers)).unwrap(),
            service: Distribution::Exponential(1e6),
            discipline,
            servers,
            requests: 5_000_000,
        };
        let began = std::time::Instant::now();
        let outcome = queue.run(1, 0).unwrap();
        let spent = began.elapsed().as_secs_f64();
        eprintln!(
            "{name}: {:.2} M requests/s, mean {:.5} ms",
            5.0 / spent,
            outcome.response.moments().mean().unwrap() / 1e6
        );
    }
}
