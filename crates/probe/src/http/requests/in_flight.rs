//! A request between its sending and the end of its response.

/// A request that was given to a connection. Times are 0 until they are known.
#[derive(Clone, Copy, Debug, Default)]
pub struct InFlight {
    pub intended_ns: u64,
    /// When the connection got it.
    pub begun_ns: u64,
    pub sent_ns: u64,
    pub first_byte_ns: u64,
    pub class: u8,
}

impl InFlight {
    #[inline]
    /// Notes when the first byte of the response came.
    pub fn begin_response(&mut self, now_ns: u64) {
        if self.first_byte_ns == 0 {
            self.first_byte_ns = now_ns;
        }
    }
}
