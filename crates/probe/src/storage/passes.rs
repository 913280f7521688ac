//! Passes over the objects of one size: all are written, read in another order with cold and with warm
//! caches, and at last each is written again and read at once.
use super::clients::{together, ClientPass, StorageClient};
use super::settings::{StorageSettings, Verify};
use crate::error::Result;
use nephoscope_linux::clock;

/// What all clients did in one pass.
#[derive(Debug)]
pub struct StoragePass {
    pub operation: &'static str,
    /// State of the caches; `None` for writes.
    pub cache: Option<&'static str>,
    pub object_bytes: u64,
    pub clients: Vec<ClientPass>,
}

impl StoragePass {
    /// Bytes per second of all clients together, from the first start to the last end. Reads right
    /// after writes have the writes in between: the clients' own rates are added there.
    pub fn bytes_per_s(&self) -> f64 {
        if self.operation == "read_after_write" {
            return self.clients.iter().map(ClientPass::bytes_per_s).sum();
        }
        let bytes: u64 = self.clients.iter().map(|times| times.bytes).sum();
        let started_ns = self.clients.iter().map(|times| times.started_ns).min().unwrap_or(0);
        let ended_ns = self.clients.iter().map(|times| times.ended_ns).max().unwrap_or(0);
        bytes as f64 * 1e9 / (ended_ns - started_ns).max(1) as f64
    }

    /// Jain's index of the clients' rates: 1 where all are equal, one over their number where one of
    /// them gets everything; `None` for one client.
    pub fn fairness(&self) -> Option<f64> {
        let rates: Vec<f64> = self.clients.iter().map(ClientPass::bytes_per_s).collect();
        let (sum, squares) = (rates.iter().sum::<f64>(), rates.iter().map(|r| r * r).sum::<f64>());
        (rates.len() > 1).then(|| sum * sum / (rates.len() as f64 * squares))
    }
}

/// Makes all passes over new objects of one size.
pub fn of_size(
    clients: &mut [StorageClient],
    settings: &StorageSettings,
    bytes: u64,
) -> Result<Vec<StoragePass>> {
    for (index, client) in clients.iter_mut().enumerate() {
        client.take_objects(index, bytes, settings.objects);
    }
    let hashes = settings.verify == Verify::During;
    let nothing = |_: &mut StorageClient, _| Ok(());
    let read = |client: &mut StorageClient, number| client.read(number, hashes);
    let pass =
        |operation, cache, clients| StoragePass { operation, cache, object_bytes: bytes, clients };
    let mut passes = vec![pass(
        "write",
        None,
        together(clients, |client| each(client, nothing, StorageClient::write))?,
    )];
    if settings.is_shuffled {
        for client in clients.iter_mut() {
            client.random.shuffle(&mut client.objects);
        }
    }
    let all_cold = together(clients, drop_caches)?.into_iter().all(|cold| cold);
    for cache in [if all_cold { "cold" } else { "unknown" }, "warm"] {
        let times = together(clients, |client| each(client, nothing, read))?;
        passes.push(pass("read", Some(cache), times));
    }
    // The last pass: where objects are replaced, a file system may still discard the blocks of the
    // former ones for seconds (mount option `discard`), which would slow cold reads down.
    let after = together(clients, |client| each(client, StorageClient::write, read))?;
    passes.push(pass("read_after_write", Some("warm"), after));
    if settings.verify == Verify::After {
        together(clients, |client| each(client, nothing, |client, n| client.read(n, true)))?;
    }
    Ok(passes)
}

/// Times `work` on each object, one after the other; `before` is no part of the time.
fn each(
    client: &mut StorageClient,
    before: impl Fn(&mut StorageClient, usize) -> Result<()>,
    work: impl Fn(&mut StorageClient, usize) -> Result<()>,
) -> Result<ClientPass> {
    let mut times = ClientPass::begin();
    for number in 0..client.objects.len() {
        before(client, number)?;
        let started_ns = clock::monotonic_ns();
        work(client, number)?;
        times.transferred(started_ns, client.objects[number].bytes);
    }
    Ok(times)
}

fn drop_caches(client: &mut StorageClient) -> Result<bool> {
    let mut all_cold = true;
    for object in &client.objects {
        client.session.check()?;
        all_cold &= client.store.drop_cache(object)?;
    }
    Ok(all_cold)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timing::closed_loop::latency_histogram;

    fn times(started_ns: u64, ended_ns: u64, busy_ns: u64, bytes: u64) -> ClientPass {
        ClientPass { started_ns, ended_ns, busy_ns, bytes, latency: latency_histogram() }
    }

    fn pass(operation: &'static str, clients: Vec<ClientPass>) -> StoragePass {
        StoragePass { operation, cache: None, object_bytes: 1, clients }
    }

    #[test]
    fn rates_count_from_the_first_start_to_the_last_end() {
        let clients = || vec![times(0, 1_000, 500, 100), times(500, 2_000, 1_000, 300)];
        assert!((pass("write", clients()).bytes_per_s() - 2e8).abs() < 1.0);
        assert!((pass("read_after_write", clients()).bytes_per_s() - 5e8).abs() < 1.0);
    }

    #[test]
    fn fairness_is_jains_index() {
        let of = |rates: &[u64]| {
            pass("read", rates.iter().map(|rate| times(0, 1, 1_000, *rate)).collect()).fairness()
        };
        assert_eq!(of(&[5]), None);
        assert!((of(&[5, 5, 5, 5]).unwrap() - 1.0).abs() < 1e-12);
        assert!((of(&[1, 3]).unwrap() - 0.8).abs() < 1e-12);
    }
}
