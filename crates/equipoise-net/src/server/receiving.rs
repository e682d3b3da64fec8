use equipoise_session::multipath::{self, MultipathEndpoint as _, MultipathInput, MultipathOutput, PathId};
use equipoise_session::rtp::{self, ReceiverConfig, SessionError};
use equipoise_session::{Endpoint as _, Input, Output};

use crate::Time;

/// The receiving end of a session, over one path or several.
pub(super) enum Receiving {
    /// What it hears and sends is of path 0; what it sees is the session's.
    One(rtp::Receiver),
    Several(multipath::Receiver),
}

impl Receiving {
    pub(super) fn new(config: ReceiverConfig, several: bool) -> Result<Self, SessionError> {
        Ok(if several {
            Self::Several(multipath::Receiver::new(config)?)
        } else {
            Self::One(rtp::Receiver::new(config)?)
        })
    }

    /// The source of its reports.
    pub(super) const fn ssrc(&self) -> u32 {
        match self {
            Self::One(receiver) => receiver.ssrc(),
            Self::Several(receiver) => receiver.ssrc(),
        }
    }

    pub(super) fn handle(&mut self, now: Time, input: MultipathInput<'_>) {
        match (self, input) {
            (Self::Several(receiver), input) => receiver.handle(now.assume_clock(), input),
            (Self::One(receiver), MultipathInput::Datagram { datagram, .. }) => {
                receiver.handle(now.assume_clock(), Input::Datagram(datagram));
            }
            (Self::One(receiver), MultipathInput::Stop) => receiver.handle(now.assume_clock(), Input::Stop),
            // A receiver gets no payload, and learns of paths from what comes in.
            (Self::One(receiver), _) => receiver.handle(now.assume_clock(), Input::Timer),
        }
    }

    pub(super) fn poll(&mut self) -> Option<MultipathOutput<'_>> {
        match self {
            Self::Several(receiver) => receiver.poll(),
            Self::One(receiver) => receiver.poll().map(|output| match output {
                Output::Transmit(transmit) => MultipathOutput::Transmit { path: PathId(0), transmit },
                Output::Payload { missing, payload } => MultipathOutput::Payload { missing, payload },
                Output::Event(event) => MultipathOutput::Event { path: None, event },
            }),
        }
    }

    pub(super) fn wake(&self) -> Option<Time> {
        let at = match self {
            Self::One(receiver) => receiver.wake(),
            Self::Several(receiver) => receiver.wake(),
        };
        at.map(|wake| wake.at.assume_clock())
    }
}
