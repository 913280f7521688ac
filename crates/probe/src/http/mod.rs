//! Requests and responses: the engine of request generators, the protocols on it (HTTP/1.1, HTTP/2,
//! key-value stores), the server with known answers, and probes of services.
mod decimal;
pub mod http1;
pub mod http2;
pub mod kv;
pub mod observe;
pub mod requests;
pub mod server;
