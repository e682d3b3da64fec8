//! An open session: its keys, its paths, and this end's endpoint.

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

/// How long packets under a session's earlier keys are accepted.
const OLD_KEYS: Span = Span::from_secs(5);

/// The receiving end of a session.
pub(super) type Receiving = Box<dyn Endpoint<Clock = ReceiverClock> + Send>;

/// The receiving end of a session over one path, or over several.
pub(super) fn receiving(config: ReceiverConfig, several: bool) -> Result<Receiving, SessionError> {
    Ok(if several { Box::new(multipath::Receiver::new(config)?) } else { Box::new(rtp::Receiver::new(config)?) })
}

/// This end of a session.
pub(super) enum Half {
    Receives(Receiving),
    /// Sends the requested media, at most at this rate.
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

    /// The highest rate that was granted to the peer; zero if the peer sends.
    pub(super) const fn granted(&self) -> Rate {
        match self {
            Self::Receives(_) => Rate::ZERO,
            Self::Sends(_, most) => *most,
        }
    }
}

pub(super) struct Live {
    pub(super) session: Session,
    /// The number in the Open that last opened it, and the fingerprint of its sender's certificate.
    pub(super) number: Nonce,
    pub(super) owner: Fingerprint,
    pub(super) keys: Held,
    /// The number and the keys of a later handshake. They replace the current number and keys as soon as a packet under
    /// the new keys arrives.
    pub(super) next: Option<(Nonce, Held)>,
    pub(super) earlier: Option<(Protection, Time)>,
    pub(super) half: Half,
    /// SSRC of this end's packets.
    pub(super) own_ssrc: u32,
    /// The address of each path and when it was last heard from; the index is the endpoint's path number. The sender's
    /// path numbers are in its packets, because an address may change.
    pub(super) paths: Vec<(SocketAddr, Time)>,
    /// When the endpoint's timer expires, as entered in the queue of timers.
    pub(super) wake: Option<Time>,
    pub(super) heard: Time,
    pub(super) has_media: bool,
}

/// The keys of a session, and the key with which further paths join the session.
pub(super) struct Held {
    pub(super) protection: Protection,
    pub(super) join: Option<hmac::Key>,
}

impl Live {
    /// The index of the path from this address.
    pub(super) fn path_from(&self, from: SocketAddr) -> Option<usize> {
        self.paths.iter().position(|(peer, _)| *peer == from)
    }

    /// Records that a path has this address, which the sender has proved. If there are too many paths, the path that
    /// was silent for longest is replaced.
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

    /// The path that an authentic datagram arrived on. If this end sends media, only a path with a proved address
    /// counts, so that a peer with the keys cannot redirect media to another host.
    pub(super) fn path_of(&mut self, now: Time, from: SocketAddr) -> Option<PathId> {
        let is_proved = !self.session.is_sent_to || self.path_from(from).is_some();
        is_proved.then(|| self.comes_from(now, from))
    }

    /// Writes the content of a protected datagram to `plain`. Returns false if the datagram is forged, damaged or a
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
