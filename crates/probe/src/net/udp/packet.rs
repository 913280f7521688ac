//! What a datagram carries: whose it is, which it is, when it was to be sent and when it was.
use sha2::{Digest, Sha256};

/// Bytes of the header; the rest of a datagram is padding.
pub const HEADER_BYTES: usize = 56;

/// Number of the datagrams that only try whether there is a way.
pub const HELLO: u64 = u64::MAX;

/// The header. Times are nanoseconds: `*_ns` of the sender's monotonic clock, `*_wall_ns` since the
/// epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Header {
    pub flow_id: u64,
    /// Which one it is, from 0.
    pub sequence: u64,
    /// When it was to be sent.
    pub intended_ns: u64,
    pub sent_ns: u64,
    /// When it was sent, on the wall clock.
    pub sent_wall_ns: u64,
    /// When the far side received it.
    pub far_received_wall_ns: u64,
    /// When the far side sent it back.
    pub far_sent_wall_ns: u64,
}

impl Header {
    /// Writes it to the head of a datagram of at least [`HEADER_BYTES`].
    #[inline]
    pub fn write(&self, datagram: &mut [u8]) {
        let words = [
            self.flow_id,
            self.sequence,
            self.intended_ns,
            self.sent_ns,
            self.sent_wall_ns,
            self.far_received_wall_ns,
            self.far_sent_wall_ns,
        ];
        for (place, word) in datagram.chunks_exact_mut(8).zip(words) {
            place.copy_from_slice(&word.to_be_bytes());
        }
    }

    /// Reads it; `None` when the datagram is shorter than a header.
    #[inline]
    pub fn read(datagram: &[u8]) -> Option<Self> {
        let head = datagram.get(..HEADER_BYTES)?;
        let word = |index: usize| {
            let bytes = head[index * 8..index * 8 + 8].try_into().expect("8 bytes");
            u64::from_be_bytes(bytes)
        };
        Some(Self {
            flow_id: word(0),
            sequence: word(1),
            intended_ns: word(2),
            sent_ns: word(3),
            sent_wall_ns: word(4),
            far_received_wall_ns: word(5),
            far_sent_wall_ns: word(6),
        })
    }
}

/// The flow_id that belongs to a token: who has not got the token cannot guess it, and who sees it
/// on the wire learns nothing about the token.
pub fn flow_id(token: &str) -> u64 {
    let digest = Sha256::new().chain_update(b"nephoscope session ").chain_update(token).finalize();
    u64::from_be_bytes(digest[..8].try_into().expect("a digest is longer"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_comes_back_as_it_was_written() {
        let header = Header {
            flow_id: flow_id("a token"),
            sequence: 7,
            intended_ns: 1,
            sent_ns: 2,
            sent_wall_ns: u64::MAX,
            far_received_wall_ns: 3,
            far_sent_wall_ns: 4,
        };
        let mut datagram = [0xAA; 64];
        header.write(&mut datagram);
        assert_eq!(Header::read(&datagram), Some(header));
        assert_eq!(datagram[HEADER_BYTES..], [0xAA; 8]);
        assert_eq!(Header::read(&datagram[..HEADER_BYTES - 1]), None);
    }

    #[test]
    fn sessions_differ_as_tokens_do() {
        assert_eq!(flow_id("one"), flow_id("one"));
        assert_ne!(flow_id("one"), flow_id("two"));
    }
}
