//! How a session is opened: four messages, none of which lets a stranger make the receiver speak to somebody else.
//!
//! ```text
//!   sender                          receiver
//!     Open(nonce) ─────────────────▶          nothing is remembered
//!              ◀──────── Retry(cookie)        shorter than what was asked
//!     Open(nonce, cookie) ─────────▶          the address is the sender's: a session is made
//!              ◀──── Accept(nonce, nonce)     both derive the session's keys
//! ```
//!
//! Open, Accept are authenticated where there is a key. No answer is longer than what it answers. The first byte tells
//! these messages from RTP, RTCP, STUN, DTLS and TURN on one port (RFC 7983, Sec. 7).

use std::net::{IpAddr, SocketAddr};

use equipoise_session::rtp::Payload;
use ring::hmac;
use subtle::ConstantTimeEq as _;

use super::key::{Key, Nonce};

/// A message of the handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Message {
    /// The sender wants a session.
    Open(Open),
    /// The receiver wants to see that the sender's address is its own.
    Retry {
        /// The sender's number.
        nonce: Nonce,
        /// To be sent back.
        cookie: Nonce,
    },
    /// The session is open.
    Accept {
        /// The sender's number.
        nonce: Nonce,
        /// The receiver's number.
        answer: Nonce,
        /// The source of its reports.
        ssrc: u32,
    },
    /// There will be no session.
    Refuse {
        /// The sender's number.
        nonce: Nonce,
        /// Why.
        reason: Refusal,
    },
}

/// What a sender wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Open {
    /// The sender's number.
    pub(crate) nonce: Nonce,
    /// The receiver's cookie; zeros where there is none yet.
    pub(crate) cookie: Nonce,
    /// The source of its packets.
    pub(crate) ssrc: u32,
    /// What they carry.
    pub(crate) payload: Payload,
    /// The session is to be encrypted.
    pub(crate) secure: bool,
    /// It has several paths. A path joins it by asking for it with the number that it was opened with.
    pub(crate) several: bool,
}

/// Why a receiver wants no session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It takes encrypted sessions only.
    NeedsKey,
    /// It has no key.
    HasNoKey,
    /// Its key is another one.
    OtherKey,
    /// It serves as many sessions as it may.
    Full,
    /// Another session has this source number.
    SourceInUse,
}

const MAGIC: [u8; 3] = [b'e', b'q', 1];
const OPEN: u8 = 1;
const RETRY: u8 = 2;
const ACCEPT: u8 = 3;
const REFUSE: u8 = 4;
/// Every message is this long: no answer is longer than its question.
pub(crate) const LENGTH: usize = 80;
/// Where the message authentication code stands.
const MAC: usize = LENGTH - 16;

impl Refusal {
    const ALL: [Self; 5] = [Self::NeedsKey, Self::HasNoKey, Self::OtherKey, Self::Full, Self::SourceInUse];

    /// The reason in words, with what would help.
    pub const fn words(self) -> &'static str {
        match self {
            Self::NeedsKey => "it takes encrypted sessions only; give its key",
            Self::HasNoKey => "it has no key; start it with one, or send without",
            Self::OtherKey => "its key is another one",
            Self::Full => "it serves as many sessions as it may",
            Self::SourceInUse => "another session has this source number (SSRC)",
        }
    }

    fn code(self) -> u8 {
        Self::ALL.iter().position(|reason| *reason == self).unwrap_or(0) as u8
    }
}

/// Whether a datagram is a message of the handshake.
pub(crate) fn is_handshake(datagram: &[u8]) -> bool {
    datagram.starts_with(&MAGIC) && datagram.len() == LENGTH
}

impl Message {
    /// The bytes, authenticated where there is a key.
    pub(crate) fn encode(&self, key: Option<&Key>) -> [u8; LENGTH] {
        let mut out = [0; LENGTH];
        let mut put = |at: usize, bytes: &[u8]| out[at..at + bytes.len()].copy_from_slice(bytes);
        put(0, &MAGIC);
        match self {
            Self::Open(open) => {
                let payload = match open.payload {
                    Payload::Generated => 0,
                    Payload::Stream => 1,
                    Payload::Rtp => 2,
                };
                put(3, &[OPEN, u8::from(open.secure) | payload << 1 | u8::from(open.several) << 3]);
                put(8, &open.nonce);
                put(24, &open.cookie);
                put(40, &open.ssrc.to_be_bytes());
            }
            Self::Retry { nonce, cookie } => {
                put(3, &[RETRY]);
                put(8, nonce);
                put(24, cookie);
            }
            Self::Accept { nonce, answer, ssrc } => {
                put(3, &[ACCEPT]);
                put(8, nonce);
                put(24, answer);
                put(40, &ssrc.to_be_bytes());
            }
            Self::Refuse { nonce, reason } => {
                put(3, &[REFUSE, reason.code()]);
                put(8, nonce);
            }
        }
        if let Some(key) = key {
            let code = hmac::sign(key.handshake(), &out[..MAC]);
            out[MAC..].copy_from_slice(&code.as_ref()[..16]);
        }
        out
    }

    /// What a datagram says; whether it is authentic is another question. `None` where it is no such message.
    pub(crate) fn parse(datagram: &[u8]) -> Option<Self> {
        if !is_handshake(datagram) {
            return None;
        }
        let nonce = |at: usize| -> Option<Nonce> { datagram.get(at..at + 16)?.try_into().ok() };
        let number = || Some(u32::from_be_bytes(datagram.get(40..44)?.try_into().ok()?));
        let flags = *datagram.get(4)?;
        Some(match *datagram.get(3)? {
            OPEN if flags < 16 => Self::Open(Open {
                nonce: nonce(8)?,
                cookie: nonce(24)?,
                ssrc: number()?,
                payload: match flags >> 1 & 3 {
                    0 => Payload::Generated,
                    1 => Payload::Stream,
                    2 => Payload::Rtp,
                    _ => return None,
                },
                secure: flags & 1 != 0,
                several: flags & 8 != 0,
            }),
            RETRY => Self::Retry { nonce: nonce(8)?, cookie: nonce(24)? },
            ACCEPT => Self::Accept { nonce: nonce(8)?, answer: nonce(24)?, ssrc: number()? },
            REFUSE => Self::Refuse { nonce: nonce(8)?, reason: *Refusal::ALL.get(usize::from(flags))? },
            _ => return None,
        })
    }
}

/// Whether a message carries the code of this key.
pub(crate) fn is_authentic(datagram: &[u8], key: &Key) -> bool {
    let Some((message, code)) = datagram.split_at_checked(MAC) else { return false };
    let expected = hmac::sign(key.handshake(), message);
    expected.as_ref()[..16].ct_eq(code).into()
}

/// Makes and knows cookies without remembering them.
#[derive(Debug)]
pub(crate) struct CookieJar {
    secret: hmac::Key,
}

impl CookieJar {
    /// How long a cookie is good for, in seconds; twice that at the most.
    const PERIOD_S: u64 = 60;

    pub(crate) fn new(secret: &[u8; 32]) -> Self {
        Self { secret: hmac::Key::new(hmac::HMAC_SHA256, secret) }
    }

    /// The cookie of an address and a session to be, at a time in seconds.
    pub(crate) fn bake(&self, address: SocketAddr, open: &Open, at_s: u64) -> Nonce {
        self.of_period(address, open, at_s / Self::PERIOD_S)
    }

    pub(crate) fn knows(&self, address: SocketAddr, open: &Open, at_s: u64) -> bool {
        let period = at_s / Self::PERIOD_S;
        [period, period.wrapping_sub(1)].into_iter().any(|period| {
            let expected = self.of_period(address, open, period);
            bool::from(expected.ct_eq(&open.cookie))
        })
    }

    fn of_period(&self, address: SocketAddr, open: &Open, period: u64) -> Nonce {
        let mut context = hmac::Context::with_key(&self.secret);
        match address.ip() {
            IpAddr::V4(ip) => context.update(&ip.octets()),
            IpAddr::V6(ip) => context.update(&ip.octets()),
        }
        context.update(&address.port().to_be_bytes());
        context.update(&open.nonce);
        context.update(&open.ssrc.to_be_bytes());
        context.update(&period.to_be_bytes());
        let mut cookie = [0; 16];
        cookie.copy_from_slice(&context.sign().as_ref()[..16]);
        cookie
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open() -> Open {
        let (nonce, cookie, ssrc) = ([7; 16], [9; 16], 0x0102_0304);
        Open { nonce, cookie, ssrc, payload: Payload::Rtp, secure: true, several: true }
    }

    fn messages() -> [Message; 4] {
        [
            Message::Open(open()),
            Message::Retry { nonce: [1; 16], cookie: [2; 16] },
            Message::Accept { nonce: [1; 16], answer: [2; 16], ssrc: 3 },
            Message::Refuse { nonce: [1; 16], reason: Refusal::SourceInUse },
        ]
    }

    #[test]
    fn messages_come_back_and_none_is_longer_than_another() {
        for message in messages() {
            let bytes = message.encode(None);
            assert_eq!(Message::parse(&bytes), Some(message));
            assert!(!(0x80..0xC0).contains(&bytes[0]), "not to be taken for RTP");
            for end in 0..LENGTH {
                assert_eq!(Message::parse(&bytes[..end]), None);
            }
        }
    }

    #[test]
    fn a_code_holds_for_its_key_and_its_message_alone() {
        let [key, other] =
            [b"0123456789abcdef", b"0123456789abcdeg"].map(|secret| Key::new(secret).expect("long enough"));
        let bytes = Message::Open(open()).encode(Some(&key));
        assert!(is_authentic(&bytes, &key));
        assert!(!is_authentic(&bytes, &other));
        assert!(!is_authentic(&Message::Open(open()).encode(None), &key));
        for at in 0..LENGTH {
            let mut changed = bytes;
            changed[at] ^= 1;
            assert!(!is_authentic(&changed, &key), "byte {at}");
        }
    }

    #[test]
    fn a_cookie_is_good_for_its_address_and_session_for_a_while() {
        let jar = CookieJar::new(&[5; 32]);
        let [here, there] = ["192.0.2.1:5000", "192.0.2.2:5000"].map(|text| text.parse().expect("an address"));
        let baked = Open { cookie: jar.bake(here, &open(), 1000), ..open() };
        assert!(jar.knows(here, &baked, 1000) && jar.knows(here, &baked, 1059));
        assert!(!jar.knows(there, &baked, 1000), "another address");
        assert!(!jar.knows(here, &Open { ssrc: 5, ..baked }, 1000), "another session");
        assert!(!jar.knows(here, &baked, 1200), "too old");
        assert!(!jar.knows(here, &open(), 1000), "no cookie of ours");
    }
}
