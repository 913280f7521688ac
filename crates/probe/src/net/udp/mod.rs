//! Datagrams: what is in them, when they are due, which have been seen, and many at a time.
pub mod batch;
pub mod losses;
pub mod pace;
pub mod packet;
pub mod sender;
pub mod slots;
pub mod socket_address;
pub mod tracker;
