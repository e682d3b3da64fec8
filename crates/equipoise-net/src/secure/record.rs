//! Reads the parts of DTLS records that are not encrypted (RFC 6347, Sec. 4.1, 4.2; RFC 9147, Sec. 4, 5).

use std::borrow::Cow;

/// Types of DTLS records (RFC 5246, Sec. 6.2.1).
const ALERT: u8 = 21;
const HANDSHAKE: u8 = 22;
/// Types of handshake messages (RFC 6347, Sec. 4.3.2).
const CLIENT_HELLO: u8 = 1;
const SERVER_HELLO: u8 = 2;
const HELLO_VERIFY_REQUEST: u8 = 3;
/// Length of a record's header, in bytes: type, version, epoch, number, length.
const HEADER: usize = 13;
/// Length of a handshake message's header, in bytes: type, length, sequence number, fragment offset, fragment length.
const HANDSHAKE_HEADER: usize = 12;
/// A ServerHello with this random value is a `HelloRetryRequest`, which requests the cookie (RFC 8446, Sec. 4.1.3).
const RETRY: [u8; 32] = [
    0xCF, 0x21, 0xAD, 0x74, 0xE5, 0x9A, 0x61, 0x11, 0xBE, 0x1D, 0x8C, 0x02, 0x1E, 0x65, 0xB8, 0x91, 0xC2, 0xA2, 0x11,
    0x16, 0x7A, 0xBB, 0x8C, 0x5E, 0x07, 0x9E, 0x09, 0xE2, 0xC8, 0xA8, 0x33, 0x9C,
];

/// The random value in a ClientHello. The second ClientHello, which contains the cookie, has the same value.
pub(crate) type ClientRandom = [u8; 32];

/// A fragment of a ClientHello.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hello {
    /// The random value; `None` if this is not the first fragment of the ClientHello.
    pub(crate) random: Option<ClientRandom>,
    /// Whether this is the second ClientHello, which contains the cookie.
    pub(crate) is_second: bool,
}

/// The unencrypted records at the beginning of a datagram. For each record: its type, all its bytes, and its content.
fn clear(datagram: &[u8]) -> impl Iterator<Item = (u8, &[u8], &[u8])> {
    let mut rest = datagram;
    std::iter::from_fn(move || {
        let (header, after) = rest.split_at_checked(HEADER)?;
        let length = usize::from(u16::from_be_bytes([header[11], header[12]]));
        // Records with epoch 0 are not encrypted.
        let content = after.get(..length).filter(|_| header[3..5] == [0, 0])?;
        let (whole, left) = rest.split_at(HEADER + length);
        rest = left;
        Some((header[0], whole, content))
    })
}

fn first_message(datagram: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (_, _, content) = clear(datagram).next().filter(|(kind, ..)| *kind == HANDSHAKE)?;
    let (header, body) = content.split_at_checked(HANDSHAKE_HEADER)?;
    Some((header[0], header, body))
}

/// The random value in a ClientHello or ServerHello, which follows the version; `None` if the message is too short.
fn random_of(body: &[u8]) -> Option<[u8; 32]> {
    body.get(2..34)?.try_into().ok()
}

/// The ClientHello at the beginning of a datagram; `None` if there is none.
pub(crate) fn hello(datagram: &[u8]) -> Option<Hello> {
    let (_, header, body) = first_message(datagram).filter(|(kind, ..)| *kind == CLIENT_HELLO)?;
    let is_first_part = header[6..9] == [0; 3];
    Some(Hello { random: random_of(body).filter(|_| is_first_part), is_second: header[4..6] != [0, 0] })
}

/// Whether a datagram begins with a message that may answer a ClientHello.
pub(crate) fn answers_hello(datagram: &[u8]) -> bool {
    matches!(first_message(datagram), Some((HELLO_VERIFY_REQUEST | SERVER_HELLO, ..)))
}

/// Whether a server's datagram is a request for the cookie.
pub(crate) fn asks_for_cookie(datagram: &[u8]) -> bool {
    match first_message(datagram) {
        Some((HELLO_VERIFY_REQUEST, ..)) => true,
        Some((SERVER_HELLO, _, body)) => random_of(body) == Some(RETRY),
        _ => false,
    }
}

/// Removes unencrypted alerts from a datagram, because anybody may have written them. Returns the remaining records,
/// and the description code of the last alert (RFC 5246, Sec. 7.2).
pub(crate) fn without_clear_alerts(datagram: &[u8]) -> (Cow<'_, [u8]>, Option<u8>) {
    let mut alert = None;
    let mut kept = Vec::new();
    let mut end = 0;
    for (kind, whole, content) in clear(datagram) {
        end += whole.len();
        if kind == ALERT {
            alert = content.get(1).copied().or(alert);
            alert.get_or_insert_default();
        } else {
            kept.extend_from_slice(whole);
        }
    }
    if alert.is_none() {
        return (Cow::Borrowed(datagram), None);
    }
    kept.extend_from_slice(datagram.get(end..).unwrap_or_default());
    (Cow::Owned(kept), alert)
}
