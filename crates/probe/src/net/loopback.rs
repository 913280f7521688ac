//! Throughput and round trip of TCP connections on 127.0.0.1, with both ends in this process.
use super::connection::{bound_waiting, is_wait, no_loopback, stalled, End, STALLED_NS};
use super::meter::ByteMeter;
use crate::error::{FailureKind, ProbeError, Result};
use crate::memory::buffer::{Buffer, Pages};
use crate::threads::workers::{self, JoinedWorker};
use crate::timing::closed_loop::{ClosedLoopResult, CompletionWindow};
use crate::timing::timed;
use crate::trial::session::Session;
use nephoscope_linux::clock;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};

/// The CPUs of the sending and of the receiving ends; `None` leaves them to the scheduler.
#[derive(Clone, Copy, Debug)]
pub struct Pins {
    pub sender: Option<usize>,
    pub receiver: Option<usize>,
}

/// Returns the connecting and the accepting end of a connection on a free port. The accepting side
/// takes only the peer that has the connecting side's address and port, which no other socket of the
/// machine has at the same time.
fn connect(session: Session) -> Result<(End, End)> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(|e| no_loopback(&e))?;
    let address = listener.local_addr().map_err(|e| no_loopback(&e))?;
    bound_waiting(&listener)?;
    let near = TcpStream::connect(address).map_err(|e| no_loopback(&e))?;
    let near_address = near.local_addr().map_err(|e| no_loopback(&e))?;
    Ok((End::of(session, near)?, accept_own(session, &listener, near_address)?))
}

/// Accepts until the peer is the one at `address`; hangs up on others.
fn accept_own(session: Session, listener: &TcpListener, address: SocketAddr) -> Result<End> {
    let until_ns = clock::monotonic_ns() + STALLED_NS;
    while clock::monotonic_ns() < until_ns {
        session.check()?;
        match listener.accept() {
            Ok((stream, peer)) if peer == address => return End::of(session, stream),
            Ok(_) => {} // A stranger; dropping the stream closes it.
            Err(error) if is_wait(&error) => {}
            Err(error) => return Err(no_loopback(&error)),
        }
    }
    Err(stalled("Accepting our own connection", "127.0.0.1", STALLED_NS))
}

fn check_nothing_lost(what: &str, sent: u64, received: u64) -> Result<()> {
    if sent == received {
        return Ok(());
    }
    Err(ProbeError::new(
        FailureKind::Failed,
        "bytes_lost",
        format!("{sent} {what} were sent on 127.0.0.1 and {received} arrived."),
        "Run it again; if it happens again, look at the kernel's log (dmesg).",
    ))
}

/// Returns the bytes received per second over `streams` connections; calls `gate` when they are
/// connected.
pub fn throughput(
    session: Session,
    streams: usize,
    send_bytes: usize,
    duration_ns: u64,
    pins: Pins,
    gate: impl FnOnce() -> Result<()>,
) -> Result<f64> {
    let pairs = (0..streams).map(|_| connect(session)).collect::<Result<Vec<_>, _>>()?;
    gate()?;
    let stops: Vec<_> = pairs.iter().map(|_| AtomicBool::new(false)).collect();
    let now_ns = clock::monotonic_ns();
    std::thread::scope(|scope| {
        let start = |((near, far), stop)| {
            let meter = ByteMeter::open(now_ns + duration_ns / 10, duration_ns);
            let receive = move || receive(far, send_bytes, meter, stop);
            let receiver = workers::start(scope, pins.receiver, receive);
            (receiver, workers::start(scope, pins.sender, move || send(near, send_bytes, stop)))
        };
        let threads: Vec<_> = pairs.into_iter().zip(&stops).map(start).collect();
        let mut rate = 0.0;
        for (receiver, sender) in threads {
            let (received, sent) =
                (receiver.and_then(JoinedWorker::join), sender.and_then(JoinedWorker::join));
            let received = received?;
            check_nothing_lost("bytes", sent?, received.total_bytes)?;
            rate += received.bytes_per_s()?;
        }
        Ok(rate)
    })
}

/// Sends until the receiver has seen enough; returns the bytes sent.
fn send(mut end: End, send_bytes: usize, stop: &AtomicBool) -> Result<u64> {
    let mut buffer = Buffer::map(send_bytes, Pages::Default)?;
    buffer.touch_all(end.session())?;
    let data = &buffer.as_slice()[..send_bytes];
    let mut sent_bytes = 0;
    let section = timed::start();
    while !stop.load(Ordering::Relaxed) {
        end.session().check()?;
        sent_bytes += end.write(data)? as u64;
    }
    section.stop_with_kernel_io();
    end.end()?;
    Ok(sent_bytes)
}

/// Receives until the sender ends; sets `stop` when the time is over.
fn receive(
    mut end: End,
    read_bytes: usize,
    mut meter: ByteMeter,
    stop: &AtomicBool,
) -> Result<ByteMeter> {
    let mut buffer = Buffer::map(read_bytes, Pages::Default)?;
    buffer.touch_all(end.session())?;
    let space = &mut buffer.as_mut_slice()[..read_bytes];
    let section = timed::start();
    loop {
        end.session().check()?;
        let bytes = end.read(space)?;
        if bytes == 0 {
            break;
        }
        if !meter.received(clock::monotonic_ns(), bytes as u64) {
            stop.store(true, Ordering::Relaxed);
        }
    }
    section.stop_with_kernel_io();
    Ok(meter)
}

/// Sends messages there and back, one at a time; calls `gate` when there is a connection.
pub fn round_trips(
    session: Session,
    bytes: usize,
    duration_ns: u64,
    pins: Pins,
    gate: impl FnOnce() -> Result<()>,
) -> Result<ClosedLoopResult> {
    let (near, far) = connect(session)?;
    gate()?;
    std::thread::scope(|scope| {
        let echo = workers::start(scope, pins.receiver, move || echo(far, bytes));
        let asker = workers::start(scope, pins.sender, move || ask(near, bytes, duration_ns));
        let (sent, echoed) =
            (asker.and_then(JoinedWorker::join), echo.and_then(JoinedWorker::join));
        let (window, messages) = sent?;
        check_nothing_lost("messages", messages, echoed?)?;
        CompletionWindow::outcome([window])
    })
}

/// Sends a message and waits until it is back, again and again; returns how many there were.
fn ask(mut end: End, bytes: usize, duration_ns: u64) -> Result<(CompletionWindow, u64)> {
    let mut message = vec![0x5A; bytes];
    let mut window = CompletionWindow::open(clock::monotonic_ns(), duration_ns);
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

/// Sends every message back; returns how many there were.
fn echo(mut end: End, bytes: usize) -> Result<u64> {
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
    use std::io::Read;

    const FREE: Pins = Pins { sender: None, receiver: None };

    #[test]
    fn messages_take_plausible_times() {
        // Fewer than 10 messages a second are broken, 100 ns a message does not exist: this checks
        // the arithmetic of units.
        let outcome = round_trips(Session::detached(), 64, 50_000_000, FREE, || Ok(())).unwrap();
        assert!((10.0..1e7).contains(&outcome.operations_per_s), "{outcome:?}");
        let in_flight = outcome.operations_per_s * outcome.latency.mean() / 1e9;
        assert!((0.9..1.1).contains(&in_flight), "{in_flight}");
    }

    #[test]
    fn streams_carry_plausible_rates() {
        // A loopback slower than 1 MB/s is broken, one faster than 1 TB/s does not exist: this
        // checks the arithmetic of units.
        let rate =
            throughput(Session::detached(), 2, 64 << 10, 50_000_000, FREE, || Ok(())).unwrap();
        assert!((1e6..1e12).contains(&rate), "{rate}");
    }

    #[test]
    fn a_lost_byte_is_noticed() {
        assert_eq!(check_nothing_lost("bytes", 2, 1).unwrap_err().name, "bytes_lost");
        assert!(check_nothing_lost("bytes", 2, 2).is_ok());
    }

    #[test]
    fn what_goes_in_at_one_end_comes_out_at_the_other() {
        let (mut near, mut far) = connect(Session::detached()).unwrap();
        near.write_all(b"there").unwrap();
        let mut five = [0u8; 5];
        assert!(far.read_exact(&mut five).unwrap());
        assert_eq!(&five, b"there");
        near.end().unwrap();
        assert_eq!(far.read(&mut five).unwrap(), 0);
        assert!(!far.read_exact(&mut five).unwrap());
    }

    #[test]
    fn an_unauthenticated_peer_that_comes_first_is_disconnected() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        bound_waiting(&listener).unwrap();
        let address = listener.local_addr().unwrap();
        let mut unauthenticated = TcpStream::connect(address).unwrap();
        std::io::Write::write_all(&mut unauthenticated, b"let me in").unwrap();
        let near = TcpStream::connect(address).unwrap();
        let near_address = near.local_addr().unwrap();
        let far = accept_own(Session::detached(), &listener, near_address).unwrap();
        assert_eq!(far.peer_address().unwrap(), near_address);
        // Closed with its bytes unread: end of stream, or a reset.
        let hung_up = unauthenticated.read(&mut [0u8; 1]);
        assert!(!matches!(hung_up, Ok(1..)), "{hung_up:?}");
    }
}
