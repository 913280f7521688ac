//! Why a request failed: the value of the factor `kind` in `errors_count`.
use std::io::{Error, ErrorKind};

/// A stable name; a protocol adds its own.
pub type Failure = &'static str;

pub const REFUSED: Failure = "refused";
pub const RESET: Failure = "reset";
pub const UNREACHABLE: Failure = "unreachable";
/// The server ended the connection before the end of the response.
pub const CLOSED_EARLY: Failure = "closed_early";
pub const TIMEOUT: Failure = "timeout";
/// Bytes that are no response of the protocol.
pub const GARBAGE: Failure = "garbage";
/// More bytes than the response has by its own account.
pub const WRONG_LENGTH: Failure = "wrong_length";
/// Bytes on a connection that no request had asked for; the only kind that is no request.
pub const UNREQUESTED: Failure = "unasked_bytes";
/// Due in the measured time, but every connection was busy until its end.
pub const UNSENT: Failure = "unsent";
/// Any other failure of a socket.
pub const SOCKET: Failure = "socket";

/// The server refused the password, or wants one.
pub const AUTHENTICATION: Failure = "authentication";
/// The server has no memory for a value.
pub const OUT_OF_MEMORY: Failure = "out_of_memory";
/// Another node of a cluster has the key.
pub const MOVED: Failure = "moved";
/// Any other error that a server reports.
pub const ERROR_REPLY: Failure = "error_reply";
/// A value of another length than the one that was stored.
pub const WRONG_VALUE: Failure = "wrong_value";

pub const STATUS_4XX: Failure = "status_4xx";
pub const STATUS_5XX: Failure = "status_5xx";
/// Any other status that was not expected.
pub const STATUS_OTHER: Failure = "status_other";
/// Another body than the expected one.
pub const WRONG_BODY: Failure = "wrong_body";
/// The head of a response, those of interim responses before it included, is too long or has too many
/// lines.
pub const ENDLESS_HEADERS: Failure = "endless_headers";

/// The server ended an HTTP/2 connection because of an error.
pub const GOAWAY: Failure = "goaway";
/// The server gave up one stream of HTTP/2.
pub const STREAM_RESET: Failure = "stream_reset";

/// The handshake failed, or what came afterwards was no TLS.
pub const TLS: Failure = "tls";

/// Limits of the generator, which say nothing about the server.
pub const NO_PORT: Failure = "no_free_port";
pub const NO_DESCRIPTOR: Failure = "no_free_descriptor";

/// Returns the kind of a failed call on a socket.
pub fn of_error(error: &Error) -> Failure {
    match (error.kind(), error.raw_os_error()) {
        (ErrorKind::ConnectionRefused, _) => REFUSED,
        (ErrorKind::ConnectionReset | ErrorKind::BrokenPipe | ErrorKind::ConnectionAborted, _) => {
            RESET
        }
        (ErrorKind::TimedOut, _) => TIMEOUT,
        (_, Some(libc::EHOSTUNREACH | libc::ENETUNREACH | libc::ENETDOWN)) => UNREACHABLE,
        (_, Some(libc::EADDRNOTAVAIL)) => NO_PORT,
        (_, Some(libc::EMFILE | libc::ENFILE | libc::ENOBUFS | libc::ENOMEM)) => NO_DESCRIPTOR,
        _ => SOCKET,
    }
}

/// Returns the end of the sentence about a request that failed so.
pub fn words(failure: Failure) -> &'static str {
    match failure {
        REFUSED => "the connection was refused",
        RESET => "the connection was reset",
        UNREACHABLE => "the host is unreachable",
        CLOSED_EARLY => "the server closed the connection early",
        TIMEOUT => "the time limit passed",
        GARBAGE => "the answer was not of the protocol",
        WRONG_LENGTH => "the answer had more bytes than it stated",
        AUTHENTICATION => "the server wants a password, or another one",
        OUT_OF_MEMORY => "the server has no memory for a value",
        MOVED => "another node of its cluster has the keys",
        ERROR_REPLY => "the server replied with an error",
        WRONG_VALUE => "a value had another length than the one that was stored",
        GOAWAY => "the server gave up its HTTP/2 connection",
        STREAM_RESET => "the server reset its HTTP/2 stream",
        TLS => "TLS failed",
        STATUS_4XX => "the status was 4xx",
        STATUS_5XX => "the status was 5xx",
        STATUS_OTHER => "the status was not one of those expected",
        WRONG_BODY => "the body was not the expected one",
        ENDLESS_HEADERS => "the headers were endless",
        UNREQUESTED => "the server sent bytes that no request asked for",
        UNSENT => "no connection was free",
        _ => failure,
    }
}
