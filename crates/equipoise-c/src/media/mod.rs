//! Media sessions between hosts, the same as those of `equipoise send` and `equipoise receive`. Each sender has its own
//! thread, and each receiver has one thread for all of its sessions.

mod events;
pub mod receiver;
pub mod sender;

use std::ffi::c_char;
use std::net::{SocketAddr, ToSocketAddrs as _};

use equipoise::units::Span;
use equipoise_net::Key;

use crate::border::text;
use crate::error::{Fault, eq_error};

/// Kind of payload: a stream of bytes, such as the output of an encoder. The bytes are delivered in order; a read may
/// combine or divide the bytes of several writes.
pub const EQ_PAYLOAD_STREAM: i32 = 0;
/// Kind of payload: complete RTP packets, which are delivered unchanged.
pub const EQ_PAYLOAD_RTP: i32 = 1;
/// Maximum length of the payload of one write or one read, in bytes.
pub const EQ_PAYLOAD_MAX: usize = 262_144;

/// Reads the key that sender and receiver of a session share. Returns `None` if `key` is null and `insecure` is set.
///
/// # Safety
/// `key` is null or a C string.
unsafe fn key(key: *const c_char, insecure: i32) -> Result<Option<Key>, Fault> {
    match (key.is_null(), insecure) {
        (true, 0) => {
            let words = "`key` is NULL: give the text of a file of `equipoise keygen`, or set `insecure` to 1";
            Err(Fault::new(eq_error::EQ_E_KEY, words))
        }
        (true, _) => Ok(None),
        // SAFETY: the caller guarantees that the text is valid.
        (false, 0) => Ok(Some(Key::from_base64(unsafe { text(key, "key") }?)?)),
        (false, _) => Err(Fault::new(eq_error::EQ_E_KEY, "there is a `key`, and `insecure` is set: leave one out")),
    }
}

/// Resolves an address of the form "host:port".
///
/// # Safety
/// `address` is null or a C string.
unsafe fn address(address: *const c_char) -> Result<SocketAddr, Fault> {
    // SAFETY: the caller guarantees that the text is valid.
    let address = unsafe { text(address, "address") }?;
    let wrong = |why: &dyn std::fmt::Display| {
        let words = format!("`{address}` is no address: {why}; write \"host:port\" or \"[2001:db8::1]:5004\"");
        Fault::new(eq_error::EQ_E_ARGUMENT, words)
    };
    let mut found = address.to_socket_addrs().map_err(|error| wrong(&error))?;
    found.next().ok_or_else(|| wrong(&"the host has none"))
}

/// Converts a time span to seconds; NaN if the time span is unknown.
fn seconds(span: Option<Span>) -> f64 {
    span.map_or(f64::NAN, Span::as_secs_f64)
}
