//! One queue: arrivals, a service time, servers. What every larger model is made of, and what is
//! held against the closed forms.
use crate::arrivals::{Arrivals, Coming};
use crate::error::{above_zero, Refused};
use crate::random::{Lengths, Stream};
use crate::resource::{Fifo, Sharing};
use crate::tally::{OverTime, Times};
use crate::{simulate, Agenda, Model, Nanos, Stop, SECOND};

/// How long a request needs a server.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Service(pub Lengths);

impl Service {
    /// Exponential service of that mean. Refused: a mean that is not above zero.
    pub fn exponential(mean_ns: f64) -> Result<Self, Refused> {
        Ok(Self(Lengths::Exponential(above_zero("the service time", mean_ns)?)))
    }

    /// Service that always takes as long. Refused: a length that is not above zero.
    pub fn constant(length_ns: f64) -> Result<Self, Refused> {
        Ok(Self(Lengths::Constant(above_zero("the service time", length_ns)?)))
    }
}

/// How the servers serve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Discipline {
    /// In order of arrival, each to its end.
    Fifo,
    /// All at once, equally.
    Sharing,
}

/// An open queue.
#[derive(Clone, Debug)]
pub struct Queue {
    /// When requests come.
    pub arrivals: Arrivals,
    /// How long each needs a server.
    pub service: Service,
    /// How they are served.
    pub discipline: Discipline,
    /// Equal servers.
    pub servers: u32,
    /// Requests until the end, all served.
    pub requests: u64,
}

/// What was seen of a queue.
#[derive(Clone, Debug)]
pub struct Seen {
    /// Response times.
    pub response: Times,
    /// Requests in the system, as they changed.
    pub inside: OverTime,
    /// The end.
    pub ended: Nanos,
    /// Events that happened.
    pub events: u64,
}

impl Seen {
    /// Little's law, mean inside over rate times mean response: 1, but for what integer nanoseconds
    /// round. None of no request.
    pub fn little_ratio(&self) -> Option<f64> {
        let rate = self.response.count() as f64 / self.ended as f64;
        Some(self.inside.mean(self.ended)? / (rate * self.response.moments().mean()?))
    }
}

impl Queue {
    /// Utilisation: what the servers are offered over what they can do; None of a trace too short.
    pub fn utilisation(&self) -> Option<f64> {
        let per_ns = self.arrivals.per_s()? / SECOND as f64;
        Some(per_ns * self.service.0.mean_ns() / f64::from(self.servers))
    }

    /// Refused: no server; a utilisation of 1 or more, whose line would only grow.
    pub fn check(&self) -> Result<(), Refused> {
        above_zero("the number of servers", f64::from(self.servers))?;
        if let Some(utilisation) = self.utilisation().filter(|share| *share >= 1.0) {
            return Err(Refused::new(
                format!("The queue is offered {utilisation:.2} times what it can serve."),
                "Lower the arrival rate or the service time, or add servers.",
            ));
        }
        Ok(())
    }

    /// Simulates it from empty until all requests are served. Refused: what [`Queue::check`] refuses.
    pub fn run(&self, seed: u64, replication: u64) -> Result<Seen, Refused> {
        self.check()?;
        let draws = Draws {
            coming: self.arrivals.begin(Stream::of(seed, replication, 0)),
            service: Stream::of(seed, replication, 1),
            lengths: self.service.0,
            left: self.requests,
        };
        Ok(match self.discipline {
            Discipline::Fifo => run(Line { draws, fifo: Fifo::new(self.servers as usize) }),
            Discipline::Sharing => {
                run(Shared { draws, sharing: Sharing::new(self.servers), expected: 0 })
            }
        })
    }
}

/// The chance in a queue.
struct Draws {
    coming: Coming,
    service: Stream,
    lengths: Lengths,
    left: u64,
}

impl Draws {
    fn next_at(&mut self) -> Option<Nanos> {
        self.left = self.left.checked_sub(1)?;
        self.coming.next_at()
    }
}

/// A queue of either discipline, with the counts that both keep.
struct Counted<Q> {
    queue: Q,
    response: Times,
    inside: OverTime,
}

fn run<Q>(queue: Q) -> Seen
where
    Counted<Q>: Model<Event = Happening>,
    Q: HasDraws,
{
    let mut model = Counted { queue, response: Times::default(), inside: OverTime::default() };
    let mut agenda = Agenda::default();
    if let Some(at) = model.queue.draws().next_at() {
        agenda.at(at, Happening::Comes);
    }
    simulate(&mut model, &mut agenda, Nanos::MAX - 1);
    let ended = model.inside.changed();
    Seen { response: model.response, inside: model.inside, ended, events: agenda.passed() }
}

trait HasDraws {
    fn draws(&mut self) -> &mut Draws;
}

/// What happens in a queue.
#[derive(Clone, Copy, Debug)]
enum Happening {
    /// A request comes.
    Comes,
    /// A server ends the request that came then.
    Ends(Nanos),
    /// The next of the shared requests ends, unless this was overtaken: of that number only.
    Next(u64),
}

struct Line {
    draws: Draws,
    fifo: Fifo<Nanos>,
}

impl HasDraws for Line {
    fn draws(&mut self) -> &mut Draws {
        &mut self.draws
    }
}

impl Counted<Line> {
    #[inline]
    fn serve(&mut self, came: Nanos, agenda: &mut Agenda<Happening>) {
        let draws = &mut self.queue.draws;
        let length = draws.lengths.draw(&mut draws.service);
        let length = draws.service.rounded(length);
        agenda.after(length, Happening::Ends(came));
    }
}

impl Model for Counted<Line> {
    type Event = Happening;

    #[inline]
    fn happens(&mut self, event: Happening, agenda: &mut Agenda<Happening>) -> Stop {
        let now = agenda.now();
        match event {
            Happening::Comes => {
                self.inside.up(now);
                if let Some(at) = self.queue.draws.next_at() {
                    agenda.at(at, Happening::Comes);
                }
                if let Some(came) = self.queue.fifo.comes(now) {
                    self.serve(came, agenda);
                }
            }
            Happening::Ends(came) => {
                self.inside.down(now);
                self.response.add((now - came) as f64);
                if let Some(came) = self.queue.fifo.done() {
                    self.serve(came, agenda);
                }
            }
            Happening::Next(_) => {}
        }
        Stop::No
    }
}

struct Shared {
    draws: Draws,
    sharing: Sharing<()>,
    /// Number of the announcement of the next end that still holds.
    expected: u64,
}

impl HasDraws for Shared {
    fn draws(&mut self) -> &mut Draws {
        &mut self.draws
    }
}

impl Counted<Shared> {
    /// Takes what has ended, and announces what ends next.
    fn settle(&mut self, agenda: &mut Agenda<Happening>) {
        self.queue.expected += 1;
        if let Some(at) = self.queue.sharing.next_end() {
            agenda.at(at, Happening::Next(self.queue.expected));
        }
    }

    fn take(&mut self, now: Nanos) {
        while let Some(end) = self.queue.sharing.finished(now) {
            self.inside.down(now);
            self.response.add(end.response_ns);
        }
    }
}

impl Model for Counted<Shared> {
    type Event = Happening;

    fn happens(&mut self, event: Happening, agenda: &mut Agenda<Happening>) -> Stop {
        let now = agenda.now();
        match event {
            Happening::Next(number) if number != self.queue.expected => return Stop::No,
            Happening::Comes => {
                self.take(now);
                self.inside.up(now);
                let draws = &mut self.queue.draws;
                let length = draws.lengths.draw(&mut draws.service);
                if let Some(at) = draws.next_at() {
                    agenda.at(at, Happening::Comes);
                }
                self.queue.sharing.comes(now, length, ());
            }
            _ => self.take(now),
        }
        self.settle(agenda);
        Stop::No
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replicate::{interval, replicate};
    use crate::theory;

    const RATE: f64 = 800.0;

    /// Mean response over its closed form: its 99 % interval over 12 replications, each with the
    /// first tenth left out of no request but diluted by many, contains 1.
    fn holds(service: Lengths, discipline: Discipline, servers: u32, exact_s: f64) {
        let queue = Queue {
            arrivals: Arrivals::poisson(RATE * f64::from(servers)).unwrap(),
            service: Service(service),
            discipline,
            servers,
            requests: 400_000,
        };
        let ratios = replicate(12, 0, |replication| {
            let seen = queue.run(2026, replication).unwrap();
            let little = seen.little_ratio().unwrap();
            assert!((little - 1.0).abs() < 1e-6, "Little's law: {little}");
            seen.response.moments().mean().unwrap() / SECOND as f64 / exact_s
        });
        let seen = interval(&ratios, 0.99).unwrap();
        assert!(seen.low <= 1.0 && 1.0 <= seen.high, "{seen:?}");
    }

    #[test]
    fn m_m_1() {
        let exact = theory::mmc_response(1, RATE, 1e-3);
        holds(Lengths::Exponential(1e6), Discipline::Fifo, 1, exact);
    }

    #[test]
    fn m_m_c() {
        for servers in [2, 50] {
            let exact = theory::mmc_response(servers, RATE * f64::from(servers), 1e-3);
            holds(Lengths::Exponential(1e6), Discipline::Fifo, servers, exact);
        }
    }

    #[test]
    fn m_d_1() {
        holds(Lengths::Constant(1e6), Discipline::Fifo, 1, theory::mg1_response(RATE, 1e-3, 0.0));
    }

    #[test]
    fn m_g_1_shared() {
        let exact = theory::mg1_sharing_response(RATE, 1e-3);
        for lengths in [
            Lengths::Exponential(1e6),
            Lengths::Constant(1e6),
            Lengths::Hyper(0.1, 5.5e6, 0.5e6),
            Lengths::log_normal(1e6, 1.5).unwrap(),
        ] {
            holds(lengths, Discipline::Sharing, 1, exact);
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_bytes() {
        let queue = Queue {
            arrivals: Arrivals::poisson(RATE).unwrap(),
            service: Service::exponential(1e6).unwrap(),
            discipline: Discipline::Sharing,
            servers: 1,
            requests: 5_000,
        };
        let run = |threads| {
            replicate(6, threads, |replication| {
                let seen = queue.run(1, replication).unwrap();
                (seen.response.moments().mean().unwrap().to_bits(), seen.ended, seen.events)
            })
        };
        assert_eq!(run(1), run(3));
        assert_ne!(run(1)[0], run(1)[1]);
    }

    #[test]
    fn an_overloaded_queue_is_refused_before_it_runs() {
        let queue = |per_s| Queue {
            arrivals: Arrivals::poisson(per_s).unwrap(),
            service: Service::exponential(1e6).unwrap(),
            discipline: Discipline::Fifo,
            servers: 2,
            requests: 10,
        };
        assert!(queue(2000.0).run(1, 0).unwrap_err().what.contains("1.00 times"));
        assert!(Queue { servers: 0, ..queue(1.0) }.run(1, 0).is_err());
        assert_eq!(Queue { requests: 0, ..queue(1.0) }.run(1, 0).unwrap().response.count(), 0);
    }
}
