//! Transactions: objects of one byte, one after the other by one client, and by all clients at once.
//! One over the time of a serial request is no capacity: c clients may do c times as many, or fewer.
use super::clients::{together, ClientPass, StorageClient};
use super::settings::StorageSettings;
use crate::error::Result;
use hdrhistogram::Histogram;
use nephoscope_linux::clock;

/// Objects of each client, in turn.
const OBJECTS: u64 = 8;

/// What a number of clients did within the set time.
#[derive(Debug)]
pub struct Transactions {
    pub operation: &'static str,
    pub clients: usize,
    pub per_s: f64,
    pub latency: Histogram<u64>,
}

/// Measures reads and writes by one client, and by all where there are more.
pub fn measure(
    clients: &mut [StorageClient],
    settings: &StorageSettings,
) -> Result<Vec<Transactions>> {
    for (index, client) in clients.iter_mut().enumerate() {
        client.take_objects(index, 1, OBJECTS);
        for number in 0..client.objects.len() {
            client.write(number)?;
        }
    }
    let mut counts = vec![1, clients.len()];
    counts.dedup();
    let mut all = Vec::new();
    for operation in ["read", "write"] {
        for count in &counts {
            let times = together(&mut clients[..*count], |client| {
                repeat(client, operation == "write", settings.transactions_ns)
            })?;
            all.push(summed(operation, &times));
        }
    }
    Ok(all)
}

fn repeat(client: &mut StorageClient, writes: bool, duration_ns: u64) -> Result<ClientPass> {
    let mut times = ClientPass::begin();
    while times.ended_ns - times.started_ns < duration_ns {
        for number in 0..client.objects.len() {
            let started_ns = clock::monotonic_ns();
            if writes { client.write(number) } else { client.read(number, false) }?;
            times.transferred(started_ns, 1);
        }
    }
    Ok(times)
}

fn summed(operation: &'static str, times: &[ClientPass]) -> Transactions {
    let mut latency = crate::timing::closed_loop::latency_histogram();
    // Each client's own time: the others' last round is no part of it.
    let rate = |pass: &ClientPass| {
        pass.latency.len() as f64 * 1e9 / (pass.ended_ns - pass.started_ns) as f64
    };
    for pass in times {
        latency.add(&pass.latency).expect("histograms of the same bounds");
    }
    let per_s = times.iter().map(rate).sum();
    Transactions { operation, clients: times.len(), per_s, latency }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_of_clients_add_up() {
        let client = |ended_ns| {
            let mut latency = crate::timing::closed_loop::latency_histogram();
            latency.record_n(10, 5).unwrap();
            ClientPass { started_ns: 0, ended_ns, busy_ns: 50, bytes: 5, latency }
        };
        let summary = summed("read", &[client(1_000_000_000), client(500_000_000)]);
        assert_eq!((summary.clients, summary.latency.len()), (2, 10));
        assert!((summary.per_s - 15.0).abs() < 1e-9);
    }
}
