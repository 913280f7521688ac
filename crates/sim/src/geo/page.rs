//! Page loads: a document and the objects that it references, each of one round trip or more.
//!
//! A new connection costs a round trip, TLS 1.3 one more and TLS 1.2 two. A server may send no more than
//! its window before an acknowledgement; the window is small at first and grows by what is acknowledged
//! (slow start), so that a page of a few hundred kilobytes ends before the line is full: far users wait
//! for round trips, not for bandwidth. After the document, the objects are requested over parallel
//! connections, one after another on each, or all at once on one connection (`multiplexed`).
//!
//! There is no packet loss, acknowledgements are immediate, and active connections share the line
//! equally. Names are resolved already; no connection is reused from an earlier page. A sender that
//! paces each window (BBR) takes longer: in a lab, an eighth for a page of 210 kilobytes.
//!
//! Sources: Kurose & Ross, Computer Networking (2001), 3.7.2 (latency of slow start); RFC 3390 and
//! RFC 6928 (initial windows); RFC 5246 and RFC 8446 (round trips of TLS 1.2 and 1.3); Dukkipati et
//! al., An argument for increasing TCP's initial congestion window, CCR 40(3), 2010.
use crate::error::{positive, refuse, Result};
use crate::SECOND;
use serde::Deserialize;

/// Encryption.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub enum Tls {
    /// No encryption.
    #[serde(rename = "none")]
    None,
    /// Two round trips before the first request.
    #[serde(rename = "1.2")]
    V12,
    /// One round trip before the first request.
    #[default]
    #[serde(rename = "1.3")]
    V13,
}

impl Tls {
    fn round_trips(self) -> f64 {
        match self {
            Self::None => 0.0,
            Self::V12 => 2.0,
            Self::V13 => 1.0,
        }
    }
}

/// A page, and how it is loaded.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Page {
    /// Size of the document in bytes, which is loaded first.
    pub document_bytes: u64,
    /// Number of objects that the document references.
    pub objects: u32,
    /// Size of each object in bytes.
    pub object_bytes: u64,
    /// Size of each request in bytes.
    pub request_bytes: u64,
    /// Maximum number of parallel connections.
    pub connections: u32,
    /// Requests all objects at once on the first connection (HTTP/2).
    pub multiplexed: bool,
    /// Encryption.
    pub tls: Tls,
    /// Initial congestion window in bytes: 4096 formerly, ten segments today.
    pub initial_window_bytes: u64,
    /// Maximum window in bytes, the receive window of the client.
    pub window_max_bytes: u64,
    /// Segment size in bytes.
    pub segment_bytes: u64,
}

impl Default for Page {
    fn default() -> Self {
        Self {
            document_bytes: 30_000,
            objects: 20,
            object_bytes: 15_000,
            request_bytes: 500,
            connections: 6,
            multiplexed: false,
            tls: Tls::V13,
            initial_window_bytes: 14_600,
            window_max_bytes: 4 << 20,
            segment_bytes: 1460,
        }
    }
}

/// Requests that reach a site together, and the network times before and after their service.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Exchange {
    /// Until the site has the requests: connection, encryption, transfer.
    pub up_ns: f64,
    pub requests: u32,
    /// From the end of the service until the last byte has arrived.
    pub down_ns: f64,
}

/// The exchanges of one page load.
#[derive(Clone, Debug, PartialEq)]
pub struct Exchanges {
    pub document: Exchange,
    /// The objects: parallel chains of successive exchanges. The page is complete when all have ended.
    pub chains: Vec<Vec<Exchange>>,
}

impl Exchanges {
    /// Returns the load time if the site takes `site_ns` for each exchange.
    pub fn load_ns(&self, site_ns: f64) -> f64 {
        let duration = |exchange: &Exchange| exchange.up_ns + site_ns + exchange.down_ns;
        let chain = |chain: &Vec<Exchange>| chain.iter().map(duration).sum::<f64>();
        duration(&self.document) + self.chains.iter().map(chain).fold(0.0, f64::max)
    }
}

/// A connection with its window.
struct PageConnection<'a> {
    page: &'a Page,
    rtt_ns: f64,
    bytes_per_ns: f64,
    window: u64,
}

impl<'a> PageConnection<'a> {
    fn new(page: &'a Page, rtt_ns: f64, bytes_per_ns: f64) -> Self {
        Self { page, rtt_ns, bytes_per_ns, window: page.initial_window_bytes }
    }

    /// Returns the time before the first request.
    fn opening_ns(&self) -> f64 {
        self.rtt_ns * (1.0 + self.page.tls.round_trips())
    }

    fn line_ns(&self, bytes: u64) -> f64 {
        bytes as f64 / self.bytes_per_ns
    }

    fn up_ns(&self, requests: u32) -> f64 {
        self.rtt_ns / 2.0 + self.line_ns(self.page.request_bytes * u64::from(requests))
    }

    /// Returns the time from the departure of the first byte to the arrival of the last. A window that is
    /// sent before its first segment is acknowledged leaves the line idle until then.
    fn down_ns(&mut self, bytes: u64) -> f64 {
        let (mut left, mut time) = (bytes, self.rtt_ns / 2.0);
        while left > self.window {
            let acknowledged = self.line_ns(self.page.segment_bytes) + self.rtt_ns;
            time += self.line_ns(self.window).max(acknowledged);
            left -= self.window;
            self.grow(self.window);
        }
        time += self.line_ns(left);
        self.grow(left);
        time
    }

    fn grow(&mut self, acknowledged: u64) {
        self.window = self.window.saturating_add(acknowledged).min(self.page.window_max_bytes);
    }

    fn exchange(&mut self, opening_ns: f64, requests: u32, bytes: u64) -> Exchange {
        let up_ns = opening_ns + self.up_ns(requests);
        Exchange { up_ns, requests, down_ns: self.down_ns(bytes) }
    }
}

impl Page {
    /// Returns an error for no connections, and for sizes of 0.
    pub fn check(&self, key: &str) -> Result<()> {
        for (name, value) in [
            ("connections", u64::from(self.connections)),
            ("document_bytes", self.document_bytes),
            ("request_bytes", self.request_bytes),
            ("segment_bytes", self.segment_bytes),
            ("initial_window_bytes", self.initial_window_bytes),
        ] {
            positive(&format!("{key}.{name}"), value as f64)?;
        }
        if self.window_max_bytes < self.initial_window_bytes {
            let (max, first) = (self.window_max_bytes, self.initial_window_bytes);
            return refuse(
                format!("{key}.initial_window_bytes {first} is above window_max_bytes {max}."),
                "Raise window_max_bytes, or lower initial_window_bytes.",
            );
        }
        Ok(())
    }

    /// Returns the number of requests of one load.
    pub fn requests(&self) -> u32 {
        self.objects + 1
    }

    /// Returns the bytes that one load downloads.
    pub fn response_bytes(&self) -> u64 {
        self.document_bytes + u64::from(self.objects) * self.object_bytes
    }

    /// Returns the exchanges of one load over a line of that round trip and bandwidth.
    pub fn exchanges(&self, rtt_ns: f64, bytes_per_s: f64) -> Exchanges {
        let bytes_per_ns = bytes_per_s / SECOND as f64;
        let mut first = PageConnection::new(self, rtt_ns, bytes_per_ns);
        let opening_ns = first.opening_ns();
        let document = first.exchange(opening_ns, 1, self.document_bytes);
        if self.objects == 0 {
            return Exchanges { document, chains: Vec::new() };
        }
        if self.multiplexed {
            let bytes = u64::from(self.objects) * self.object_bytes;
            let all = first.exchange(0.0, self.objects, bytes);
            return Exchanges { document, chains: vec![vec![all]] };
        }
        let connections = self.connections.min(self.objects);
        let bytes_per_ns = bytes_per_ns / f64::from(connections);
        first.bytes_per_ns = bytes_per_ns;
        let chains = (0..connections).map(|number| {
            let mut own = PageConnection::new(self, rtt_ns, bytes_per_ns);
            // The first chain reuses the document's connection; objects are assigned in turn.
            let connection = if number == 0 { &mut first } else { &mut own };
            let objects = (self.objects - number).div_ceil(connections);
            (0..objects)
                .map(|object| {
                    let opens = number > 0 && object == 0;
                    let opening_ns = if opens { connection.opening_ns() } else { 0.0 };
                    connection.exchange(opening_ns, 1, self.object_bytes)
                })
                .collect()
        });
        Exchanges { document, chains: chains.collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MS: f64 = 1e6;
    const RTT: f64 = 100.0 * MS;

    fn page(document_bytes: u64, objects: u32) -> Page {
        Page {
            document_bytes,
            objects,
            object_bytes: 4096,
            initial_window_bytes: 4096,
            tls: Tls::None,
            ..Page::default()
        }
    }

    /// Milliseconds over a line of 100 ms whose bandwidth does not count.
    fn far_ms(page: &Page) -> f64 {
        page.exchanges(RTT, f64::INFINITY).load_ns(0.0) / MS
    }

    #[test]
    fn one_window_takes_two_round_trips() {
        assert_eq!(far_ms(&page(4096, 0)), 200.0);
        assert_eq!(far_ms(&page(4097, 0)), 300.0);
    }

    #[test]
    fn the_initial_window_saves_round_trips() {
        // 320 kB in windows of 4, 8, 16, … kB: the seventh is the last, after six waits.
        let once = page(320 << 10, 0);
        assert_eq!(far_ms(&once), 100.0 + 100.0 + 600.0);
        // From ten segments 14.6, 29.2, 58.4, 116.8, 233.6 kB: the fifth, after four.
        let today = Page { initial_window_bytes: 14_600, ..once };
        assert_eq!(far_ms(&today), 100.0 + 100.0 + 400.0);
        // What the client takes in holds the window: 4, 8, 8, … kB: 40 after the first.
        let held = Page { window_max_bytes: 8192, ..page(4096 + 40 * 8192, 0) };
        assert_eq!(far_ms(&held), 200.0 + 40.0 * 100.0);
    }

    #[test]
    fn encryption_takes_one_round_trip_or_two() {
        for (tls, wanted) in [(Tls::None, 200.0), (Tls::V13, 300.0), (Tls::V12, 400.0)] {
            assert_eq!(far_ms(&Page { tls, ..page(4096, 0) }), wanted);
        }
    }

    #[test]
    fn connections_side_by_side() {
        // One: the document's 200 ms, then 12 objects, 100 ms each.
        let single = Page { connections: 1, ..page(4096, 12) };
        assert_eq!(far_ms(&single), 200.0 + 1200.0);
        // Six: two objects each; five of the six are opened first.
        assert_eq!(far_ms(&Page { connections: 6, ..single.clone() }), 200.0 + 100.0 + 200.0);
        // More connections than objects are not opened.
        let many = Page { connections: 50, ..single.clone() };
        assert_eq!(many.exchanges(RTT, f64::INFINITY).chains.len(), 12);
        assert_eq!(far_ms(&many), 200.0 + 200.0);
        // All on one: 48 kB through windows of 8, 16, 32 kB: two waits.
        assert_eq!(far_ms(&Page { multiplexed: true, ..single }), 200.0 + 100.0 + 200.0);
    }

    #[test]
    fn each_exchange_waits_for_the_site() {
        let page = Page { connections: 6, ..page(4096, 12) };
        let all = page.exchanges(RTT, f64::INFINITY);
        assert_eq!(all.load_ns(7.0 * MS), (500.0 + 3.0 * 7.0) * MS);
        let requests: u32 = all.chains.iter().flatten().map(|exchange| exchange.requests).sum();
        assert_eq!(requests + all.document.requests, page.requests());
        assert_eq!(page.response_bytes(), 13 * 4096);
    }

    #[test]
    fn a_slow_line_leaves_no_pause() {
        // Kurose's formula 2 RTT + O/R + P (RTT + S/R) - (2^P - 1) S/R with a window of one segment
        // of 536 bytes, 100,000 bytes, 1 Mbit/s: S/R 4.288 ms, P 5 of 8 windows.
        let page = Page {
            segment_bytes: 536,
            initial_window_bytes: 536,
            request_bytes: 1,
            ..page(100_000, 0)
        };
        let request_ms = 0.008;
        let wanted = 200.0 + 800.0 + 5.0 * 104.288 - 31.0 * 4.288 + request_ms;
        let seen = page.exchanges(RTT, 125_000.0).load_ns(0.0) / MS;
        assert!((seen - wanted).abs() < 1e-6, "{seen} against {wanted}");
        // At 28 kbit/s S/R is 153 ms: one pause, P = 1.
        let slow = page.exchanges(RTT, 3500.0).load_ns(0.0) / MS;
        assert!((slow - (300.0 + 100_001.0 / 3.5)).abs() < 1e-6, "{slow}");
    }

    #[test]
    fn connections_share_the_line() {
        // 10 objects of 4096 bytes over 10 connections: 1 MB/s is 0.1 MB/s for each. The document
        // had the line alone. Requests of 500 bytes are 0.5 ms and 5 ms.
        let page = Page { connections: 10, ..page(4096, 10) };
        let wanted = 200.0 + 0.5 + 4.096 + 100.0 + 100.0 + 5.0 + 40.96;
        let seen = page.exchanges(RTT, 1e6).load_ns(0.0) / MS;
        assert!((seen - wanted).abs() < 1e-6, "{seen} against {wanted}");
    }

    #[test]
    fn invalid_pages_are_refused() {
        let refused = |page: Page| page.check("user_bases.eu.page").unwrap_err().to_string();
        assert!(refused(Page { connections: 0, ..Page::default() }).contains("connections is 0"));
        assert!(refused(Page { segment_bytes: 0, ..Page::default() }).contains("eu.page.segment"));
        let held = refused(Page { window_max_bytes: 1000, ..Page::default() });
        assert!(held.contains("14600 is above window_max_bytes 1000"), "{held}");
        assert!(Page::default().check("page").is_ok());
        assert!(serde_json::from_str::<Page>("{\"tls\": \"1.2\", \"objects\": 0}").is_ok());
        assert!(serde_json::from_str::<Page>("{\"colour\": 1}").is_err());
    }

    proptest! {
        /// A larger window, a nearer site, a wider line: never slower.
        #[test]
        fn improvements_never_slow_a_load(
            document_bytes in 1u64..1_000_000,
            objects in 0u32..60,
            object_bytes in 0u64..200_000,
            connections in 1u32..12,
            multiplexed: bool,
            rtt_ms in 0.0f64..600.0,
            bytes_per_s in 1e3f64..1e9,
        ) {
            let page =
                Page { document_bytes, objects, object_bytes, connections, multiplexed, ..Page::default() };
            let load = |page: &Page, rtt, rate| page.exchanges(rtt, rate).load_ns(0.0);
            let (rtt, least) = (rtt_ms * MS, 1.0 + 1e-12);
            let usual = load(&page, rtt, bytes_per_s) * least;
            let small = Page { initial_window_bytes: 4096, ..page.clone() };
            prop_assert!(load(&page, rtt * 0.8, bytes_per_s) <= usual);
            prop_assert!(load(&page, rtt, bytes_per_s * 1.5) <= usual);
            prop_assert!(load(&page, rtt, bytes_per_s) <= load(&small, rtt, bytes_per_s) * least);
            let plain = Page { tls: Tls::None, ..page.clone() };
            prop_assert!(load(&plain, rtt, bytes_per_s) <= usual);
            // Nothing is faster than its bytes, and its two round trips with encryption's one.
            let bytes = page.response_bytes() as f64 / bytes_per_s * SECOND as f64;
            prop_assert!(usual >= bytes && usual >= 3.0 * rtt);
        }
    }
}
