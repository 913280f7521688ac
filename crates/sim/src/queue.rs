//! One open queue: arrivals, service times, equal servers; compared with the closed forms.
use crate::arrivals::{ArrivalTimes, Arrivals};
use crate::error::{positive, refuse, Result};
use crate::processor_sharing::ProcessorSharing;
use crate::random::{Distribution, RandomStream};
use crate::statistics::{Durations, TimeWeighted};
use crate::{simulate, EventQueue, Model, Nanos, SECOND};
use std::collections::VecDeque;

pub use crate::geo::scenario::Discipline;

#[derive(Clone, Debug)]
pub struct Queue {
    pub arrivals: Arrivals,
    /// Service time of a request in nanoseconds.
    pub service: Distribution,
    pub discipline: Discipline,
    pub servers: u32,
    /// Number of requests, all of which are served.
    pub requests: u64,
}

#[derive(Clone, Debug)]
pub struct QueueOutcome {
    pub response: Durations,
    /// Number of requests in the system.
    pub in_system: TimeWeighted,
    /// Time of the last departure.
    pub end: Nanos,
    pub events: u64,
}

impl QueueOutcome {
    /// Returns Little's law as a ratio, mean number in the system over arrival rate times mean
    /// response: 1, except for rounding to nanoseconds. None without requests.
    pub fn little_ratio(&self) -> Option<f64> {
        let rate = self.response.count() as f64 / self.end as f64;
        Some(self.in_system.mean(self.end)? / (rate * self.response.moments().mean()?))
    }
}

impl Queue {
    /// Returns the offered load over the capacity.
    pub fn utilisation(&self) -> f64 {
        let per_ns = self.arrivals.per_s() / SECOND as f64;
        per_ns * self.service.mean_ns() / f64::from(self.servers)
    }

    /// Returns an error for no servers, or a utilisation of 1 or more, at which the queue would only
    /// grow.
    pub fn check(&self) -> Result<()> {
        positive("servers", f64::from(self.servers))?;
        let utilisation = self.utilisation();
        if utilisation >= 1.0 {
            return refuse(
                format!("The queue is offered {utilisation:.2} times its capacity."),
                "Lower the arrival rate or the service time, or add servers.",
            );
        }
        Ok(())
    }

    /// Simulates the queue from empty until all requests are served.
    pub fn run(&self, seed: u64, replication: u64) -> Result<QueueOutcome> {
        self.check()?;
        let mut simulation = QueueSimulation {
            arrivals: self.arrivals.start(RandomStream::new(seed, replication, 0)),
            service: self.service,
            service_stream: RandomStream::new(seed, replication, 1),
            arrivals_left: self.requests,
            servers: match self.discipline {
                Discipline::Fifo => Servers::Fifo { idle: self.servers, waiting: VecDeque::new() },
                Discipline::Sharing => Servers::Sharing(ProcessorSharing::new(self.servers), 0),
            },
            response: Durations::default(),
            in_system: TimeWeighted::default(),
        };
        let mut events = EventQueue::default();
        simulation.schedule_arrival(&mut events);
        simulate(&mut simulation, &mut events, Nanos::MAX - 1);
        let QueueSimulation { response, in_system, .. } = simulation;
        Ok(QueueOutcome {
            response,
            in_system,
            end: in_system.last_change(),
            events: events.processed(),
        })
    }
}

#[derive(Clone, Copy, Debug)]
enum QueueEvent {
    Arrival,
    /// A server completes the request that arrived at that time.
    Departure(Nanos),
    /// The next of the shared requests completes, if the number is that of the last announcement.
    NextCompletion(u64),
}

enum Servers {
    /// Number of idle servers, and arrival times of the requests that wait.
    Fifo { idle: u32, waiting: VecDeque<Nanos> },
    /// With the number of the last announcement of a completion.
    Sharing(ProcessorSharing<()>, u64),
}

struct QueueSimulation {
    arrivals: ArrivalTimes,
    service: Distribution,
    service_stream: RandomStream,
    arrivals_left: u64,
    servers: Servers,
    response: Durations,
    in_system: TimeWeighted,
}

impl QueueSimulation {
    fn schedule_arrival(&mut self, events: &mut EventQueue<QueueEvent>) {
        if let Some(left) = self.arrivals_left.checked_sub(1) {
            self.arrivals_left = left;
            events.schedule_at(self.arrivals.next_time(), QueueEvent::Arrival);
        }
    }

    #[inline]
    fn start_service(&mut self, arrived: Nanos, events: &mut EventQueue<QueueEvent>) {
        let service_ns = self.service.draw(&mut self.service_stream);
        let service_ns = self.service_stream.round(service_ns);
        events.schedule_after(service_ns, QueueEvent::Departure(arrived));
    }

    fn handle_sharing(&mut self, event: QueueEvent, events: &mut EventQueue<QueueEvent>) {
        let now = events.now();
        let Servers::Sharing(sharing, announced) = &mut self.servers else { return };
        if matches!(event, QueueEvent::NextCompletion(number) if number != *announced) {
            return;
        }
        while let Some(completed) = sharing.pop_completed(now) {
            self.in_system.decrement(now);
            self.response.add(completed.response_ns);
        }
        if matches!(event, QueueEvent::Arrival) {
            self.in_system.increment(now);
            sharing.arrive(now, self.service.draw(&mut self.service_stream), ());
        }
        *announced += 1;
        let next =
            sharing.next_completion().map(|time| (time, QueueEvent::NextCompletion(*announced)));
        if matches!(event, QueueEvent::Arrival) {
            self.schedule_arrival(events);
        }
        if let Some((time, completion)) = next {
            events.schedule_at(time, completion);
        }
    }
}

impl Model for QueueSimulation {
    type Event = QueueEvent;

    #[inline]
    fn handle(&mut self, event: QueueEvent, events: &mut EventQueue<QueueEvent>) {
        let now = events.now();
        match (&mut self.servers, event) {
            (Servers::Fifo { idle, waiting }, QueueEvent::Arrival) => {
                let starts = *idle > 0;
                if starts {
                    *idle -= 1;
                } else {
                    waiting.push_back(now);
                }
                self.in_system.increment(now);
                self.schedule_arrival(events);
                if starts {
                    self.start_service(now, events);
                }
            }
            (Servers::Fifo { idle, waiting }, QueueEvent::Departure(arrived)) => {
                let next = waiting.pop_front();
                *idle += u32::from(next.is_none());
                self.in_system.decrement(now);
                self.response.add((now - arrived) as f64);
                if let Some(arrived) = next {
                    self.start_service(arrived, events);
                }
            }
            _ => self.handle_sharing(event, events),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::closed_forms;
    use crate::replicate::replicate;
    use crate::testing::interval;

    const RATE: f64 = 800.0;

    /// Asserts that the 99 % interval over 12 replications of the mean response over its closed form
    /// contains 1.
    fn assert_mean(service: Distribution, discipline: Discipline, servers: u32, exact_s: f64) {
        let queue = Queue {
            arrivals: Arrivals::poisson(RATE * f64::from(servers)).unwrap(),
            service,
            discipline,
            servers,
            requests: 400_000,
        };
        let ratios = replicate(12, 0, |replication| {
            let outcome = queue.run(2026, replication).unwrap();
            let little = outcome.little_ratio().unwrap();
            assert!((little - 1.0).abs() < 1e-6, "Little's law: {little}");
            outcome.response.moments().mean().unwrap() / SECOND as f64 / exact_s
        });
        let seen = interval(&ratios, 0.99);
        assert!(seen.low <= 1.0 && 1.0 <= seen.high, "{seen:?}");
    }

    #[test]
    fn m_m_1() {
        let exact = closed_forms::mmc_response(1, RATE, 1e-3);
        assert_mean(Distribution::Exponential(1e6), Discipline::Fifo, 1, exact);
    }

    #[test]
    fn m_m_c() {
        for servers in [2, 50] {
            let exact = closed_forms::mmc_response(servers, RATE * f64::from(servers), 1e-3);
            assert_mean(Distribution::Exponential(1e6), Discipline::Fifo, servers, exact);
        }
    }

    #[test]
    fn m_d_1() {
        assert_mean(
            Distribution::Constant(1e6),
            Discipline::Fifo,
            1,
            closed_forms::mg1_response(RATE, 1e-3, 0.0),
        );
    }

    #[test]
    fn m_g_1_processor_sharing() {
        let exact = closed_forms::mg1_sharing_response(RATE, 1e-3);
        for service in [
            Distribution::Exponential(1e6),
            Distribution::Constant(1e6),
            Distribution::Hyper(0.1, 5.5e6, 0.5e6),
            Distribution::log_normal(1e6, 1.5).unwrap(),
        ] {
            assert_mean(service, Discipline::Sharing, 1, exact);
        }
    }

    #[test]
    fn requests_are_served_in_order_of_arrival() {
        let queue = Queue {
            arrivals: Arrivals::bursts(3, RATE).unwrap(),
            service: Distribution::Exponential(1e6),
            discipline: Discipline::Fifo,
            servers: 1,
            requests: 5_000,
        };
        // Each request starts when the one before it has left.
        let mut arrivals = queue.arrivals.start(RandomStream::new(3, 0, 0));
        let mut services = RandomStream::new(3, 0, 1);
        let (mut end, mut responses) = (0, Durations::default());
        for _ in 0..queue.requests {
            let arrived = arrivals.next_time();
            let service_ns = queue.service.draw(&mut services);
            end = arrived.max(end) + services.round(service_ns);
            responses.add((end - arrived) as f64);
        }
        let seen = queue.run(3, 0).unwrap();
        assert_eq!((seen.response.moments(), seen.end), (responses.moments(), end));
    }

    #[test]
    fn the_same_seed_gives_the_same_bits() {
        let queue = Queue {
            arrivals: Arrivals::poisson(RATE).unwrap(),
            service: Distribution::Exponential(1e6),
            discipline: Discipline::Sharing,
            servers: 1,
            requests: 5_000,
        };
        let run = |threads| {
            replicate(6, threads, |replication| {
                let seen = queue.run(1, replication).unwrap();
                (seen.response.moments().mean().unwrap().to_bits(), seen.end, seen.events)
            })
        };
        assert_eq!(run(1), run(3));
        assert_ne!(run(1)[0], run(1)[1]);
    }

    #[test]
    fn an_overloaded_queue_is_refused_before_it_runs() {
        let queue = |per_s| Queue {
            arrivals: Arrivals::poisson(per_s).unwrap(),
            service: Distribution::Exponential(1e6),
            discipline: Discipline::Fifo,
            servers: 2,
            requests: 10,
        };
        assert!(queue(2000.0).run(1, 0).unwrap_err().message.contains("1.00 times"));
        assert!(Queue { servers: 0, ..queue(1.0) }.run(1, 0).is_err());
        assert_eq!(Queue { requests: 0, ..queue(1.0) }.run(1, 0).unwrap().response.count(), 0);
    }
}
