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

/// The sender of a session, for asynchronous applications.
///
/// If the sender is dropped, the session ends and waiting payload is discarded. [`close`](Self::close) sends the
/// waiting payload first.
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
    /// Opens a session to `config.peer` from any free local port.
    ///
    /// If the future is dropped before it completes, the session is ended as soon as it is open.
    ///
    /// # Errors
    /// [`NetError::NothingToCarry`] if the payload is configured as generated media, [`NetError::NoAnswer`],
    /// [`NetError::Refused`] and [`NetError::OtherVersion`] if the receiver opens no session, [`NetError::Session`] if
    /// the configuration is invalid or does not fit the controller, and the system's errors.
    ///
    /// # Panics
    /// If called outside of a tokio runtime.
    pub async fn open(config: SendConfig, controller: BoxedController) -> Result<Self, NetError> {
        let any: IpAddr =
            if config.peer.is_ipv6() { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() };
        Self::open_on(Socket::bind((any, 0).into(), &Clock::new())?, config, controller).await
    }

    /// Like [`open`](Self::open), but uses the given socket.
    ///
    /// # Errors
    /// The errors of [`open`](Self::open), except for errors of opening a socket.
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
        // The handshake blocks its thread until an answer arrives.
        blocking(move || {
            let (running, payloads) = send(socket, &config, controller, tally)?;
            let (running, payloads) = (Leaving::new(running), payloads.ok_or(NetError::NothingToCarry)?);
            Ok(Self { running, payloads, config, local, rate, measurement, key_frames_wanted })
        })
        .await
    }

    /// Sends one RTP packet, or any number of bytes of a stream. Waits while the channel to the session has no space.
    /// At most [`PayloadSender::MOST`] bytes wait in the channel. In addition, at most [`PayloadSender::MOST`] bytes
    /// wait in the session.
    ///
    /// If the future is dropped before it completes, a payload of 64 kB or less is sent completely or not at all. A
    /// longer payload may be sent in part.
    ///
    /// # Errors
    /// [`Closed`] if the session is over.
    pub async fn send(&self, payload: &[u8]) -> Result<(), Closed> {
        self.payloads.push_async(payload).await
    }

    /// Sends payload if there is space for all of it now. Otherwise returns false and sends nothing. This is for live
    /// media, which must not wait.
    ///
    /// # Errors
    /// [`Closed`] if the session is over.
    pub fn try_send(&self, payload: &[u8]) -> Result<bool, Closed> {
        self.payloads.try_push(payload)
    }

    /// The channel for payload. Another thread or task can use a clone of the channel to pass payload or to wait for
    /// space. [`close`](Self::close) does not end the session while a clone exists.
    pub const fn payloads(&self) -> &PayloadSender {
        &self.payloads
    }

    /// Number of bytes that were passed and not sent yet. This number divided by the payload rate is the delay of the
    /// next bytes. Applications with live media must limit this number themselves: if it is too high, they must pass
    /// data at less than the payload rate for some time.
    pub fn waiting(&self) -> usize {
        self.payloads.waiting()
    }

    /// Returns a channel with the controller's rate of IP packets. [`payload_rate`](Self::payload_rate) converts this
    /// rate for an encoder. The channel is closed when the session is over.
    pub fn target_rate(&self) -> watch::Receiver<Rate> {
        self.rate.clone()
    }

    /// Converts a rate of IP packets into the rate of payload, which an encoder can use.
    pub fn payload_rate(&self, rate: Rate) -> Rate {
        self.config.payload_rate(rate)
    }

    /// Measurements from the receiver's reports, updated with each report. The channel is closed when the session is
    /// over.
    pub fn measurements(&self) -> watch::Receiver<Measurement> {
        self.measurement.clone()
    }

    /// Number of key frames that the receiver has requested since the session began. The channel is closed when the
    /// session is over.
    pub fn key_frames_wanted(&self) -> watch::Receiver<u64> {
        self.key_frames_wanted.clone()
    }

    /// The local address of the session, with the actual port.
    pub const fn local_address(&self) -> SocketAddr {
        self.local
    }

    /// Sends the waiting payload, then ends the session. Waits until the session has ended.
    ///
    /// The duration depends on the rate. If the receiver sends nothing any more, the call may wait forever, so the
    /// caller should limit the time. If the future is dropped before it completes, the session still ends, but
    /// waiting payload is discarded.
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
