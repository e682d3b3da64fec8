//! An open session of a server: its keys, its paths, and the server's endpoint.

use std::net::SocketAddr;

use equipoise::units::{Rate, ReceiverClock, Span};
use equipoise_session::multipath::{self, MAX_PATHS};
use equipoise_session::rtp::{self, ReceiverConfig, SessionError};
use equipoise_session::{Endpoint, Input, Output, PathId};
use ring::hmac;

use super::Session;
use crate::Time;
use crate::secure::door::Known;
use crate::secure::protection::Protection;
use crate::secure::{Fingerprint, Nonce};

/// How long packets with the previous keys of a session are accepted after the first packet with new keys.
const OLD_KEYS: Span = Span::from_secs(5);

/// The receiver of a session, over any number of paths.
pub(super) type Receiving = Box<dyn Endpoint<Clock = ReceiverClock> + Send>;

/// Creates the receiver of a session, over several paths if `several`, otherwise over one path.
pub(super) fn receiving(config: ReceiverConfig, several: bool) -> Result<Receiving, SessionError> {
    Ok(if several { Box::new(multipath::Receiver::new(config)?) } else { Box::new(rtp::Receiver::new(config)?) })
}

/// The server's endpoint of a session.
pub(super) enum Half {
    Receives(Receiving),
    /// The server sends the requested media, at this rate at most.
    Sends(Box<rtp::Sender>, Rate),
}

impl Half {
    pub(super) fn handle(&mut self, now: Time, input: Input<'_>) {
        match self {
            Self::Receives(receiver) => receiver.handle(now.assume_clock(), input),
            Self::Sends(sender, _) => sender.handle(now.assume_clock(), input),
        }
    }

    pub(super) fn poll(&mut self) -> Option<Output<'_>> {
        match self {
            Self::Receives(receiver) => receiver.poll(),
            Self::Sends(sender, _) => sender.poll(),
        }
    }

    pub(super) fn wake(&self) -> Option<Time> {
        match self {
            Self::Receives(receiver) => receiver.wake().map(|wake| wake.at.assume_clock()),
            Self::Sends(sender, _) => sender.wake().map(|wake| wake.at.assume_clock()),
        }
    }

    /// The maximum rate at which the server may send in this session; zero if the peer sends.
    pub(super) const fn granted(&self) -> Rate {
        match self {
            Self::Receives(_) => Rate::ZERO,
            Self::Sends(_, most) => *most,
        }
    }
}

pub(super) struct Live {
    pub(super) session: Session,
    /// The number in the Open message that last opened the session. `owner` is the fingerprint of the sender's
    /// certificate.
    pub(super) number: Nonce,
    pub(super) owner: Fingerprint,
    pub(super) keys: Held,
    /// The number and the keys of a later handshake. They replace the current number and keys as soon as a packet
    /// encrypted with the new keys arrives.
    pub(super) next: Option<(Nonce, Held)>,
    pub(super) earlier: Option<(Protection, Time)>,
    pub(super) half: Half,
    /// SSRC of the server's packets.
    pub(super) own_ssrc: u32,
    /// For each path: its address, and when a datagram last arrived from it. The index is the server's number of
    /// the path. The sender's number of the path, which is in the packets, may be different.
    pub(super) paths: Vec<(SocketAddr, Time)>,
    /// The time of this session in the server's queue of timers; `None` if no timer is set.
    pub(super) wake: Option<Time>,
    pub(super) heard: Time,
    pub(super) has_media: bool,
}

/// The keys of a session, and the key that authenticates requests of further paths to join the session.
pub(super) struct Held {
    pub(super) protection: Protection,
    pub(super) join: Option<hmac::Key>,
}

impl Live {
    /// The index of the path with the address `from`; `None` if there is no such path.
    pub(super) fn path_from(&self, from: SocketAddr) -> Option<usize> {
        self.paths.iter().position(|(peer, _)| *peer == from)
    }

    /// Records that a path has the address `from`. If the session already has its maximum number of paths, this path
    /// replaces the path from which nothing has arrived for the longest time.
    pub(super) fn comes_from(&mut self, now: Time, from: SocketAddr) -> PathId {
        let most = if self.session.is_multipath { MAX_PATHS } else { 1 };
        let at = self.path_from(from).unwrap_or_else(|| {
            if self.paths.len() < most {
                self.paths.push((from, now));
                return self.paths.len() - 1;
            }
            let heard = |(_, (_, heard)): &(usize, &(SocketAddr, Time))| *heard;
            self.paths.iter().enumerate().min_by_key(heard).map_or(0, |(at, _)| at)
        });
        self.paths[at] = (from, now);
        self.session.peer = self.paths[0].0;
        PathId(at as u16)
    }

    pub(super) fn known(&self) -> Known<'_> {
        Known {
            number: self.number,
            owner: self.owner,
            several: self.session.is_multipath,
            is_sent_to: self.session.is_sent_to,
            join: self.keys.join.as_ref(),
        }
    }

    /// Returns the path on which an authentic datagram from `from` arrived. If the server sends media and the address
    /// is not verified, returns `None`, so that a peer with the keys cannot redirect media to another host.
    pub(super) fn path_of(&mut self, now: Time, from: SocketAddr) -> Option<PathId> {
        let is_proved = !self.session.is_sent_to || self.path_from(from).is_some();
        is_proved.then(|| self.comes_from(now, from))
    }

    /// Decrypts a datagram and writes its content to `plain`. Returns false if the datagram is forged, damaged or a
    /// replay.
    pub(super) fn unprotect(&mut self, now: Time, datagram: &[u8], plain: &mut Vec<u8>) -> bool {
        let ssrc = self.session.ssrc;
        if self.keys.protection.unprotect(datagram, ssrc, plain) {
            return true;
        }
        if self.next.as_mut().is_some_and(|(_, next)| next.protection.unprotect(datagram, ssrc, plain))
            && let Some((number, next)) = self.next.take()
        {
            let before = std::mem::replace(&mut self.keys, next);
            (self.number, self.earlier) = (number, Some((before.protection, now + OLD_KEYS)));
            return true;
        }
        self.earlier = self.earlier.take().filter(|(_, until)| now < *until);
        self.earlier.as_mut().is_some_and(|(earlier, _)| earlier.unprotect(datagram, ssrc, plain))
    }
}
