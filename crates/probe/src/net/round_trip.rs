//! Small messages there and back over a TCP connection, one at a time.
use super::connection::{End, Pair};
use super::loopback_ends::{check_nothing_lost, Pins};
use crate::closed_loop::{Outcome, Window};
use crate::error::ProbeError;
use crate::session::Session;
use crate::workers::{self, Worker};
use crate::{clock, timed};

/// Messages there and back, one at a time; calls `gate` when there is a connection.
pub fn round_trips(
    session: Session,
    bytes: usize,
    duration_ns: u64,
    pins: Pins,
    gate: impl FnOnce() -> Result<(), ProbeError>,
) -> Result<Outcome, ProbeError> {
    let Pair { near, far } = Pair::connect(session)?;
    gate()?;
    std::thread::scope(|scope| {
        let echo = workers::start(scope, pins.receiver, move || echo(far, bytes));
        let asker = workers::start(scope, pins.sender, move || ask(near, bytes, duration_ns));
        let (asked, echoed) = (asker.and_then(Worker::join), echo.and_then(Worker::join));
        let (window, messages) = asked?;
        check_nothing_lost("messages", messages, echoed?)?;
        Window::outcome([window])
    })
}

/// Sends a message and waits until it is back, again and again; gives how many there were.
fn ask(mut end: End, bytes: usize, duration_ns: u64) -> Result<(Window, u64), ProbeError> {
    let mut message = vec![0x5A; bytes];
    let mut window = Window::open(clock::monotonic_ns(), duration_ns);
    let mut messages = 0;
    let section = timed::start();
    let mut started_ns = clock::monotonic_ns();
    loop {
        end.session().check()?;
        end.write_all(&message)?;
        let whole = end.read_exact(&mut message)?;
        messages += u64::from(whole);
        let now_ns = clock::monotonic_ns();
        if !whole || !window.completed(now_ns, now_ns - started_ns) {
            break;
        }
        started_ns = now_ns;
    }
    section.stop_with_kernel_io();
    end.end()?;
    Ok((window, messages))
}

/// Sends every message back; gives how many there were.
fn echo(mut end: End, bytes: usize) -> Result<u64, ProbeError> {
    let mut message = vec![0; bytes];
    let mut messages = 0;
    let section = timed::start();
    while end.read_exact(&mut message)? {
        end.session().check()?;
        end.write_all(&message)?;
        messages += 1;
    }
    section.stop_with_kernel_io();
    Ok(messages)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_take_plausible_times() {
        let free = Pins { sender: None, receiver: None };
        // Fewer than 10 messages a second are broken, 100 ns a message does not exist: this checks
        // the arithmetic of units.
        let outcome = round_trips(Session::detached(), 64, 50_000_000, free, || Ok(())).unwrap();
        assert!((10.0..1e7).contains(&outcome.operations_per_s), "{outcome:?}");
        let in_flight = outcome.operations_per_s * outcome.latency.mean() / 1e9;
        assert!((0.9..1.1).contains(&in_flight), "{in_flight}");
    }
}
