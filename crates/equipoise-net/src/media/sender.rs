use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use equipoise::control::BoxedController;
use equipoise::units::Rate;
use equipoise_session::rtp::{Payload, Sender};
use tokio::runtime::Handle;
use tokio::sync::watch;

use super::measurement::{Measurement, Publishers, Summary, Tally};
use super::news::publisher;
use crate::leaving::{Leaving, blocking};
use crate::{Clock, Closed, NetError, PayloadSender, Running, SendConfig, Socket, send};

/// The sending end of a session, for tasks.
///
/// Dropping it ends the session with a goodbye and without what still waits to be sent; [`close`](Self::close) sends that
/// first.
#[derive(Debug)]
pub struct MediaSender {
    running: Leaving<Running<Sender, Tally>>,
    payloads: PayloadSender,
    config: SendConfig,
    local: SocketAddr,
    rate: watch::Receiver<Rate>,
    measurement: watch::Receiver<Measurement>,
    key_frames_wanted: watch::Receiver<u64>,
}

impl MediaSender {
    /// Opens a session to `config.peer` from any free port.
    ///
    /// Where it is given up before it is ready, a session that is open by then ends.
    ///
    /// # Errors
    /// [`NetError::NothingToCarry`] for generated media, [`NetError::NoAnswer`] and [`NetError::Refused`] where the receiver
    /// gives no session, [`NetError::Session`] for a packet size or payload type that cannot be, and what the system says.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub async fn open(config: SendConfig, controller: BoxedController) -> Result<Self, NetError> {
        let any: IpAddr =
            if config.peer.is_ipv6() { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() };
        Self::open_on(Socket::bind((any, 0).into(), &Clock::new())?, config, controller).await
    }

    /// Opens a session to `config.peer` on a socket of one's own choice, as [`open`](Self::open) does.
    ///
    /// # Errors
    /// As [`open`](Self::open), except for a port that is taken.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub async fn open_on(socket: Socket, config: SendConfig, controller: BoxedController) -> Result<Self, NetError> {
        if config.payload == Payload::Generated {
            return Err(NetError::NothingToCarry);
        }
        let (runtime, local) = (Handle::current(), socket.address());
        let (tell_rate, rate) = publisher(&runtime, controller.allowance().rate.unwrap_or(Rate::ZERO));
        let (tell_measurement, measurement) = publisher(&runtime, Measurement::default());
        let (tell_wanted, key_frames_wanted) = publisher(&runtime, 0);
        let tally =
            Tally::new(Publishers { rate: tell_rate, measurement: tell_measurement, key_frames_wanted: tell_wanted });
        // The handshake waits for an answer.
        blocking(move || {
            let (running, payloads) = send(socket, &config, controller, tally)?;
            let (running, payloads) = (Leaving::new(running), payloads.ok_or(NetError::NothingToCarry)?);
            Ok(Self { running, payloads, config, local, rate, measurement, key_frames_wanted })
        })
        .await
    }

    /// Sends the next bytes of the stream, of any length, or one RTP packet, and waits while there is no room for it:
    /// while [`PayloadSender::MOST`] bytes wait already, besides as many in the session itself.
    ///
    /// Where it is given up before it ends, some part of the payload from its beginning is sent; of 64 kB or less, nothing.
    ///
    /// # Errors
    /// [`Closed`] where the session is over.
    pub async fn send(&self, payload: &[u8]) -> Result<(), Closed> {
        self.payloads.push_async(payload).await
    }

    /// Sends payload where there is room for all of it at once; false where there is not, and nothing is sent. For live
    /// media, which would be late.
    ///
    /// # Errors
    /// [`Closed`] where the session is over.
    pub fn try_send(&self, payload: &[u8]) -> Result<bool, Closed> {
        self.payloads.try_push(payload)
    }

    /// Where its payload goes, for another thread or task that gives some or waits for room. The session does not end by
    /// [`close`](Self::close) while there is a clone of it.
    pub const fn payloads(&self) -> &PayloadSender {
        &self.payloads
    }

    /// Bytes that were given and have not left; divided by the rate, how late the next ones leave. Live media has to keep this
    /// small itself, by giving less than the rate for a while.
    pub fn waiting(&self) -> usize {
        self.payloads.waiting()
    }

    /// The rate that the controller allows, of IP packets; see [`payload_rate`](Self::payload_rate). Closed when the session
    /// is over.
    pub fn target_rate(&self) -> watch::Receiver<Rate> {
        self.rate.clone()
    }

    /// What a rate of IP packets leaves for payload: what an encoder may give.
    pub fn payload_rate(&self, rate: Rate) -> Rate {
        self.config.payload_rate(rate)
    }

    /// What the receiver's reports tell, from one to the next. Closed when the session is over.
    pub fn measurements(&self) -> watch::Receiver<Measurement> {
        self.measurement.clone()
    }

    /// How often the receiver has wanted a key frame of the encoder, since the session began. Closed when the session is over.
    pub fn key_frames_wanted(&self) -> watch::Receiver<u64> {
        self.key_frames_wanted.clone()
    }

    /// Where it sends from; the port is the one that was chosen.
    pub const fn local_address(&self) -> SocketAddr {
        self.local
    }

    /// Sends what waits, says goodbye, and waits for that.
    ///
    /// That lasts as long as the rate makes it, and without end where the receiver fell silent: put a limit to it. Given up
    /// before it ends, it ends the session all the same, without what still waits.
    ///
    /// # Errors
    /// What made the session fail, if something did.
    pub async fn close(self) -> Result<Summary, NetError> {
        let Self { running, payloads, mut measurement, .. } = self;
        drop(payloads);
        while measurement.changed().await.is_ok() {}
        let finished = running.end(Running::join).await?;
        let tally = finished.observer;
        Ok(Summary {
            packets: tally.packets,
            bytes: tally.bytes,
            measurement: tally.measurement,
            ended_by_peer: tally.ended_by_peer,
            host: finished.stats,
        })
    }
}
