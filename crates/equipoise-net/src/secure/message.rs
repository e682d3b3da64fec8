//! The messages that open a session, before the session has keys, and their format on the network.

use equipoise::units::Span;
use equipoise_session::feedback::{Format, Reporting};
use equipoise_session::rtp::Payload;
use ring::hmac;
use subtle::ConstantTimeEq as _;

use super::identity::Fingerprint;
use super::{Nonce, Wanted};

/// A message that opens a session, with the DTLS records in it. In this module, "sender" means the host that requests
/// the session, and "receiver" means its peer. Both hosts send messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Message<'a> {
    /// Requests a session. Contains DTLS records only if the sender already has a cookie.
    Open(Open, &'a [u8]),
    /// The answer to an Open message without a valid cookie: the sender of the Open message must prove its address.
    Retry {
        /// The sender's random number of this attempt.
        number: Nonce,
        /// The cookie, which must be in the next Open message.
        cookie: Nonce,
    },
    /// The session is open, or a further path has joined the session.
    Accept {
        /// The sender's random number of this attempt.
        number: Nonce,
        /// The SSRC of the receiver's packets: its reports, or the media that was requested from it.
        ssrc: u32,
    },
    /// The receiver refuses the session.
    Refuse {
        /// The sender's random number of this attempt.
        number: Nonce,
        /// The reason of the refusal.
        reason: Refusal,
    },
    /// Further DTLS records from the sender.
    Up {
        /// The sender's random number of this attempt.
        number: Nonce,
        /// The DTLS records.
        records: &'a [u8],
    },
    /// DTLS records from the receiver.
    Down {
        /// The sender's random number of this attempt.
        number: Nonce,
        /// The fingerprint of the receiver's certificate.
        fingerprint: Fingerprint,
        /// The DTLS records.
        records: &'a [u8],
    },
}

/// The content of an Open message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Open {
    /// The sender's random number of this attempt.
    pub(crate) number: Nonce,
    /// The receiver's cookie; zeros if the sender has no cookie yet.
    pub(crate) cookie: Nonce,
    /// The SSRC of the sender's packets.
    pub(crate) ssrc: u32,
    /// The kind of payload in the sender's packets.
    pub(crate) payload: Payload,
    /// The per-packet feedback that is requested from the receiver; `None` for no such feedback.
    pub(crate) reporting: Option<Reporting>,
    /// Whether the session is encrypted.
    pub(crate) secure: bool,
    /// Whether the session may have several paths.
    pub(crate) several: bool,
    /// Whether a further path requests to join the open session with this `number`.
    pub(crate) joins: bool,
    /// The media that the sender of this message wants to receive. If it is set, the sender of this message later sends
    /// only reports, and the peer sends media.
    pub(crate) wanted: Option<Wanted>,
    /// The fingerprint of the sender's certificate; zeros without encryption.
    pub(crate) fingerprint: Fingerprint,
}

/// Why a receiver refuses a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The receiver accepts only encrypted sessions.
    NeedsKey,
    /// The receiver has no key.
    HasNoKey,
    /// The two hosts have different keys.
    OtherKey,
    /// The receiver has reached its maximum number of sessions.
    Full,
    /// Another session already uses this SSRC.
    SourceInUse,
    /// The receiver does not send media on request.
    SendsNothing,
    /// The requested minimum rate is higher than the receiver's sending limit minus the rates of other sessions.
    SendsEnough,
    /// The requested media or the requested feedback is not possible.
    Impossible,
}

impl Refusal {
    const ALL: [Self; 8] = [
        Self::NeedsKey,
        Self::HasNoKey,
        Self::OtherKey,
        Self::Full,
        Self::SourceInUse,
        Self::SendsNothing,
        Self::SendsEnough,
        Self::Impossible,
    ];

    /// The reason as text, in most cases with a remedy.
    pub const fn words(self) -> &'static str {
        match self {
            Self::NeedsKey => "it takes encrypted sessions only; give its key",
            Self::HasNoKey => "it has no key; start it with one, or send without",
            Self::OtherKey => "its key is another one",
            Self::Full => "it serves as many sessions as it may",
            Self::SourceInUse => "another session has this source number (SSRC)",
            Self::SendsNothing => "it sends nothing to others; its operator may allow it (--reverse-limit)",
            Self::SendsEnough => {
                "it sends to others as much as it may already; ask for less, or later (its --reverse-limit)"
            }
            Self::Impossible => {
                "it cannot send such media, or report on them so; ask for other rates, packets or reports"
            }
        }
    }

    fn code(self) -> u8 {
        Self::ALL.iter().position(|reason| *reason == self).unwrap_or(0) as u8
    }
}

const MAGIC: [u8; 2] = *b"eq";
/// The version of these messages. In version 1, keys were not negotiated by DTLS; version 2 had no requests for media.
pub(crate) const VERSION: u8 = 3;
const OPEN: u8 = 1;
const RETRY: u8 = 2;
const ACCEPT: u8 = 3;
const REFUSE: u8 = 4;
const UP: u8 = 5;
const DOWN: u8 = 6;
/// `HEAD`: length of the part that all messages have, before records and authentication code. `CODE`: length of the
/// authentication code. Both are in bytes.
const HEAD: usize = 80;
const CODE: usize = 16;
/// A flag of an Open message: the requested media is described after the first `HEAD` bytes.
const WANTS: u8 = 32;
/// Length of a message without records, in bytes. A Retry message has this length, and no request is shorter. Therefore
/// an attacker cannot use Retry messages for amplification.
pub(crate) const LENGTH: usize = HEAD + CODE;

/// Whether a datagram is a message of this protocol, of any version. The first byte distinguishes it from RTP, RTCP,
/// STUN, DTLS and TURN on the same port (RFC 7983, Sec. 7).
pub(crate) fn is_message(datagram: &[u8]) -> bool {
    datagram.starts_with(&MAGIC)
}

/// The version of a message; `None` if it is [`VERSION`] or the datagram is not a message.
pub(crate) fn other_version(datagram: &[u8]) -> Option<u8> {
    datagram.get(2).copied().filter(|version| is_message(datagram) && *version != VERSION)
}

impl<'a> Message<'a> {
    /// Encodes the message. The authentication code is computed with `key`; without a key, it is zeros.
    pub(crate) fn encode(&self, key: Option<&hmac::Key>) -> Vec<u8> {
        let mut out = vec![0; HEAD];
        let mut put = |at: usize, bytes: &[u8]| out[at..at + bytes.len()].copy_from_slice(bytes);
        put(0, &MAGIC);
        let mut head = |kind: u8, flags: u8, number: &Nonce| {
            put(2, &[VERSION, kind, flags]);
            put(8, number);
        };
        let records = match self {
            Self::Open(open, records) => {
                let payload = match open.payload {
                    Payload::Generated => 0,
                    Payload::Stream => 1,
                    Payload::Rtp => 2,
                };
                let wants = if open.wanted.is_some() { WANTS } else { 0 };
                let flags = u8::from(open.secure) | payload << 1 | u8::from(open.several) << 3;
                let flags = flags | u8::from(open.joins) << 4 | wants;
                head(OPEN, flags, &open.number);
                put(24, &open.cookie);
                put(40, &open.ssrc.to_be_bytes());
                put(44, &feedback(open.reporting));
                put(48, &open.fingerprint.0);
                records
            }
            Self::Retry { number, cookie } => {
                head(RETRY, 0, number);
                put(24, cookie);
                &[][..]
            }
            Self::Accept { number, ssrc } => {
                head(ACCEPT, 0, number);
                put(40, &ssrc.to_be_bytes());
                &[]
            }
            Self::Refuse { number, reason } => {
                head(REFUSE, reason.code(), number);
                &[]
            }
            Self::Up { number, records } => {
                head(UP, 0, number);
                records
            }
            Self::Down { number, fingerprint, records } => {
                head(DOWN, 0, number);
                put(48, &fingerprint.0);
                records
            }
        };
        if let Self::Open(Open { wanted: Some(wanted), .. }, _) = self {
            out.extend_from_slice(&wanted.encode());
        }
        out.extend_from_slice(records);
        let code = key.map(|key| hmac::sign(key, &out));
        out.extend_from_slice(code.as_ref().map_or(&[0; CODE][..], |code| &code.as_ref()[..CODE]));
        out
    }

    /// Parses a datagram, without checking the authentication code. `None` if it is not a valid message of this
    /// version.
    pub(crate) fn parse(datagram: &'a [u8]) -> Option<Self> {
        let (message, _) = datagram.split_at_checked(datagram.len().checked_sub(CODE)?)?;
        let (head, records) = message.split_at_checked(HEAD)?;
        if !is_message(head) || head[2] != VERSION {
            return None;
        }
        let nonce = |at: usize| -> Option<Nonce> { head.get(at..at + 16)?.try_into().ok() };
        let (number, flags) = (nonce(8)?, head[4]);
        let ssrc = u32::from_be_bytes(head.get(40..44)?.try_into().ok()?);
        let fingerprint = Fingerprint(head.get(48..80)?.try_into().ok()?);
        Some(match head[3] {
            OPEN if flags < 2 * WANTS => {
                let payload = match flags >> 1 & 3 {
                    0 => Payload::Generated,
                    1 => Payload::Stream,
                    2 => Payload::Rtp,
                    _ => return None,
                };
                let (secure, several, joins) = (flags & 1 != 0, flags & 8 != 0, flags & 16 != 0);
                let (cookie, reporting) = (nonce(24)?, reporting(head.get(44..48)?.try_into().ok()?).ok()?);
                let (wanted, records) = wanted(flags, reporting, records)?;
                Self::Open(
                    Open { number, cookie, ssrc, payload, reporting, secure, several, joins, wanted, fingerprint },
                    records,
                )
            }
            UP => Self::Up { number, records },
            DOWN => Self::Down { number, fingerprint, records },
            // The following messages contain no records.
            _ if !records.is_empty() => return None,
            RETRY => Self::Retry { number, cookie: nonce(24)? },
            ACCEPT => Self::Accept { number, ssrc },
            REFUSE => Self::Refuse { number, reason: *Refusal::ALL.get(usize::from(flags))? },
            _ => return None,
        })
    }
}

/// Parses the description of the requested media in an Open message, if the message has one. Returns the requested
/// media, and the records after the description. Returns `None` if the request is invalid. A valid request is for
/// [`Payload::Generated`] and for one path. If its minimum and maximum rates differ, it also requests per-packet
/// feedback.
fn wanted(flags: u8, reporting: Option<Reporting>, rest: &[u8]) -> Option<(Option<Wanted>, &[u8])> {
    if flags & WANTS == 0 {
        return Some((None, rest));
    }
    let (bytes, records) = rest.split_first_chunk()?;
    let wanted = Wanted::parse(bytes)?;
    let is_right = flags & !WANTS <= 1 && (reporting.is_some() || wanted.is_constant());
    is_right.then_some((Some(wanted), records))
}

/// Encodes the per-packet feedback in four bytes: the format (zero for no feedback), a zero, and the interval in ms.
fn feedback(reporting: Option<Reporting>) -> [u8; 4] {
    let Some(Reporting { format, interval }) = reporting else { return [0; 4] };
    let format = match format {
        Format::CongestionFeedback => 1,
        Format::TransportWide => 2,
    };
    let [high, low] = u16::try_from(interval.as_nanos() / 1_000_000).unwrap_or(u16::MAX).to_be_bytes();
    [format, 0, high, low]
}

/// Parses the four bytes that `feedback` encodes.
fn reporting([format, zero, high, low]: [u8; 4]) -> Result<Option<Reporting>, ()> {
    let interval = Span::from_millis(i64::from(u16::from_be_bytes([high, low])));
    let format = match (format, zero) {
        (0, 0) => return if interval == Span::ZERO { Ok(None) } else { Err(()) },
        (1, 0) => Format::CongestionFeedback,
        (2, 0) => Format::TransportWide,
        _ => return Err(()),
    };
    let is_right = (Reporting::SHORTEST..=Reporting::LONGEST).contains(&interval);
    if is_right { Ok(Some(Reporting { format, interval })) } else { Err(()) }
}

/// Replaces a message's authentication code and, if `records` is given, the message's records.
#[cfg(feature = "fuzz")]
pub(crate) fn sign(message: &mut Vec<u8>, records: Option<&[u8]>, key: &hmac::Key) {
    message.truncate(if records.is_some() { HEAD } else { message.len().saturating_sub(CODE) });
    message.extend_from_slice(records.unwrap_or_default());
    message.extend_from_slice(&hmac::sign(key, message).as_ref()[..CODE]);
}

/// Whether the authentication code of a message is valid for this key.
pub(crate) fn is_authentic(datagram: &[u8], key: &hmac::Key) -> bool {
    let Some(at) = datagram.len().checked_sub(CODE) else { return false };
    let (message, code) = datagram.split_at(at);
    hmac::sign(key, message).as_ref()[..CODE].ct_eq(code).into()
}

#[cfg(test)]
mod tests {
    use equipoise::units::Rate;

    use super::*;

    fn open() -> Open {
        Open {
            number: [7; 16],
            cookie: [9; 16],
            ssrc: 0x0102_0304,
            payload: Payload::Rtp,
            reporting: Some(Reporting { format: Format::CongestionFeedback, interval: Span::from_millis(500) }),
            secure: true,
            several: true,
            joins: false,
            wanted: None,
            fingerprint: Fingerprint([3; 32]),
        }
    }

    fn messages() -> [Message<'static>; 6] {
        let number = [1; 16];
        [
            Message::Open(open(), b"records"),
            Message::Retry { number, cookie: [2; 16] },
            Message::Accept { number, ssrc: 3 },
            Message::Refuse { number, reason: Refusal::SourceInUse },
            Message::Up { number, records: b"more" },
            Message::Down { number, fingerprint: Fingerprint([5; 32]), records: b"and more" },
        ]
    }

    fn key(secret: u8) -> hmac::Key {
        hmac::Key::new(hmac::HMAC_SHA256, &[secret; 32])
    }

    #[test]
    fn messages_come_back_and_no_answer_is_longer_than_a_question() {
        for message in messages() {
            let bytes = message.encode(None);
            assert_eq!(Message::parse(&bytes), Some(message));
            assert!(!(0x80..0xC0).contains(&bytes[0]) && is_message(&bytes), "not to be taken for RTP");
            for end in 0..LENGTH {
                assert_eq!(Message::parse(&bytes[..end]), None);
            }
        }
        assert_eq!(Message::Open(open(), &[]).encode(None).len(), LENGTH);
        assert!(messages()[1..4].iter().all(|answer| answer.encode(None).len() == LENGTH));
    }

    /// If this test fails, a request for media is misunderstood, or the requesting host receives other media than it
    /// requested.
    #[test]
    fn what_is_wanted_stands_before_the_records_and_goes_with_zeros_over_one_path() {
        let [min, max] = [100_000, 2_000_000].map(Rate::from_bps);
        let wanted = Wanted::new(min, max).expect("right");
        let right = Open { payload: Payload::Generated, several: false, wanted: Some(wanted), ..open() };
        let message = Message::Open(right, b"records");
        let bytes = message.encode(None);
        assert_eq!((Message::parse(&bytes), bytes.len()), (Some(message), LENGTH + Wanted::LENGTH + 7));
        assert_eq!(Message::parse(&bytes[..LENGTH + Wanted::LENGTH - 1]), None, "a part of what is wanted");
        let constant = Wanted::new(max, max).expect("right");
        let without = Open { reporting: None, ..right };
        let by_interval = Message::Open(Open { wanted: Some(constant), ..without }, b"");
        assert_eq!(Message::parse(&by_interval.encode(None)), Some(by_interval));
        for wrong in [
            without,
            Open { several: true, ..right },
            Open { joins: true, ..right },
            Open { payload: Payload::Stream, ..right },
        ] {
            assert_eq!(Message::parse(&Message::Open(wrong, b"records").encode(None)), None, "{wrong:?}");
        }
    }

    /// If this test fails, an attacker can make a server report every millisecond, or never.
    #[test]
    fn feedback_by_packet_is_none_or_in_its_limits() {
        let right = Reporting { format: Format::TransportWide, interval: Span::from_millis(50) };
        assert_eq!(feedback(Some(right)), [2, 0, 0, 50]);
        assert_eq!((reporting([2, 0, 0, 50]), reporting([0; 4])), (Ok(Some(right)), Ok(None)));
        for wrong in [[1, 0, 0, 4], [1, 0, 1, 245], [2, 1, 0, 50], [3, 0, 0, 50], [0, 0, 0, 50]] {
            assert_eq!(reporting(wrong), Err(()), "{wrong:?}");
        }
    }

    #[test]
    fn a_code_holds_for_its_key_and_its_message_alone() {
        for message in messages() {
            let bytes = message.encode(Some(&key(1)));
            assert!(is_authentic(&bytes, &key(1)) && !is_authentic(&bytes, &key(2)));
            assert!(!is_authentic(&message.encode(None), &key(1)));
            for at in 0..bytes.len() {
                let mut changed = bytes.clone();
                changed[at] ^= 1;
                assert!(!is_authentic(&changed, &key(1)), "byte {at}");
            }
        }
    }

    #[test]
    fn another_version_is_told_from_noise() {
        let mut bytes = messages()[0].encode(None);
        assert_eq!(other_version(&bytes), None);
        bytes[2] = 2;
        assert_eq!((other_version(&bytes), Message::parse(&bytes)), (Some(2), None));
        assert_eq!((other_version(b"eq"), other_version(b"not ours")), (None, None));
    }
}
