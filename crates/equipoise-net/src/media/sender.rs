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
/// Dropping it ends the session with a goodbye and discards waiting payload; [`close`](Self::close) sends that payload
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
    /// If the future is dropped before it completes, a session that is already open is ended.
    ///
    /// # Errors
    /// [`NetError::NothingToCarry`] for generated media, [`NetError::NoAnswer`] and [`NetError::Refused`] if the
    /// receiver opens no session, [`NetError::Session`] for an invalid packet size or payload type, and the system's
    /// errors.
    ///
    /// # Panics
    /// If called outside of a tokio runtime.
    pub async fn open(config: SendConfig, controller: BoxedController) -> Result<Self, NetError> {
        let any: IpAddr =
            if config.peer.is_ipv6() { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() };
        Self::open_on(Socket::bind((any, 0).into(), &Clock::new())?, config, controller).await
    }

    /// Opens a session to `config.peer` on the given socket; otherwise as [`open`](Self::open).
    ///
    /// # Errors
    /// As [`open`](Self::open), except for errors of opening a socket.
    ///
    /// # Panics
    /// If called outside of a tokio runtime.
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
        // The handshake blocks until an answer arrives.
        blocking(move || {
            let (running, payloads) = send(socket, &config, controller, tally)?;
            let (running, payloads) = (Leaving::new(running), payloads.ok_or(NetError::NothingToCarry)?);
            Ok(Self { running, payloads, config, local, rate, measurement, key_frames_wanted })
        })
        .await
    }

    /// Sends the next bytes of the stream, of any length, or one RTP packet. Waits while there is no room: while
    /// [`PayloadSender::MOST`] bytes wait in the channel, in addition to as many in the session itself.
    ///
    /// If the future is dropped before it completes, a first part of the payload may be sent; none of it if the payload
    /// is 64 kB or shorter.
    ///
    /// # Errors
    /// [`Closed`] if the session is over.
    pub async fn send(&self, payload: &[u8]) -> Result<(), Closed> {
        self.payloads.push_async(payload).await
    }

    /// Sends payload if there is room for all of it now; otherwise returns false and sends nothing. For live media,
    /// which must not wait.
    ///
    /// # Errors
    /// [`Closed`] if the session is over.
    pub fn try_send(&self, payload: &[u8]) -> Result<bool, Closed> {
        self.payloads.try_push(payload)
    }

    /// The payload channel, for another thread or task that passes payload or waits for room. [`close`](Self::close)
    /// does not end the session while a clone of the channel exists.
    pub const fn payloads(&self) -> &PayloadSender {
        &self.payloads
    }

    /// Bytes passed and not yet sent. This number divided by the rate is the delay of the next bytes. Live media has to
    /// keep it small itself, by passing less than the rate for a while.
    pub fn waiting(&self) -> usize {
        self.payloads.waiting()
    }

    /// The controller's rate of IP packets; see [`payload_rate`](Self::payload_rate). Closed when the session is over.
    pub fn target_rate(&self) -> watch::Receiver<Rate> {
        self.rate.clone()
    }

    /// The payload rate that remains of a rate of IP packets: the rate for an encoder.
    pub fn payload_rate(&self, rate: Rate) -> Rate {
        self.config.payload_rate(rate)
    }

    /// Measurements from the receiver's reports, updated with each report. Closed when the session is over.
    pub fn measurements(&self) -> watch::Receiver<Measurement> {
        self.measurement.clone()
    }

    /// Number of key frames that the receiver has requested since the session began. Closed when the session is over.
    pub fn key_frames_wanted(&self) -> watch::Receiver<u64> {
        self.key_frames_wanted.clone()
    }

    /// The local address, with the actual port.
    pub const fn local_address(&self) -> SocketAddr {
        self.local
    }

    /// Sends waiting payload, says goodbye, and waits until both are done.
    ///
    /// How long this takes depends on the rate. It never ends if the receiver fell silent, so set a time limit. If the
    /// future is dropped before it completes, the session still ends, but waiting payload is discarded.
    ///
    /// # Errors
    /// The error that ended the session early, if any.
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
