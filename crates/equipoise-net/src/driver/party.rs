use equipoise_session::multipath::{MultipathEndpoint, MultipathInput, MultipathOutput, PathId};
use equipoise_session::{Endpoint, Event, Input, Output, Wake, WakeReason};

use super::Observer;
use crate::transport::Transport;
use crate::{NetError, Time};

/// The end of a session as the loop sees it, over one path or several.
pub(crate) trait Party {
    /// The endpoint.
    type Endpoint;

    /// Something happened.
    fn handle(&mut self, now: Time, input: MultipathInput<'_>, observer: &mut impl Observer);

    /// Does all that the endpoint asks. Whether its session has ended.
    fn obey(
        &mut self,
        now: Time,
        observer: &mut impl Observer,
        transport: &mut impl Transport,
    ) -> Result<bool, NetError>;

    /// When the endpoint wants its timer to ring.
    fn wake(&self) -> Option<(Time, WakeReason)>;

    /// Bytes of payload that it would take now.
    fn room(&self) -> usize;

    /// Bytes of payload that wait in it.
    fn waiting(&self) -> usize;

    /// What is left in the end.
    fn into_endpoint(self) -> Self::Endpoint;
}

/// The end of a session over one path, which is path 0.
pub(crate) struct OnePath<E>(pub(crate) E);

impl<E: Endpoint> OnePath<E> {
    fn give(&mut self, now: Time, input: Input<'_>, observer: &mut impl Observer) {
        observer.on_input(now, &input);
        self.0.handle(now.assume_clock(), input);
    }

    /// Does what the endpoint asks. Whether it asked for a report, and whether its session has ended.
    fn drain(
        &mut self,
        now: Time,
        observer: &mut impl Observer,
        transport: &mut impl Transport,
    ) -> Result<(bool, bool), NetError> {
        let (mut requested, mut ended) = (false, false);
        while let Some(output) = self.0.poll() {
            match output {
                Output::Transmit(transmit) => {
                    transport.send(PathId(0), transmit.head, transmit.media)?;
                    observer.on_transmit(now, &transmit);
                }
                Output::Event(event) => {
                    requested |= matches!(event, Event::ReportRequested { .. });
                    ended |= matches!(event, Event::Ended { .. });
                    transport.on_event(now, PathId(0), &event);
                    observer.on_event(now, &event);
                }
                Output::Payload { missing, payload } => observer.on_payload(now, missing, payload),
            }
        }
        Ok((requested, ended))
    }
}

impl<E: Endpoint> Party for OnePath<E> {
    type Endpoint = E;

    fn handle(&mut self, now: Time, input: MultipathInput<'_>, observer: &mut impl Observer) {
        let input = match input {
            MultipathInput::Datagram { datagram, .. } => Input::Datagram(datagram),
            MultipathInput::Payload { payload, .. } => Input::Payload(payload),
            MultipathInput::Timer => Input::Timer,
            MultipathInput::Stop => Input::Stop,
            // A session over one path has it from beginning to end.
            MultipathInput::Path { .. } => return,
        };
        self.give(now, input, observer);
    }

    fn obey(
        &mut self,
        now: Time,
        observer: &mut impl Observer,
        transport: &mut impl Transport,
    ) -> Result<bool, NetError> {
        let (requested, mut ended) = self.drain(now, observer, transport)?;
        if requested && let Some(load) = observer.path_load(now) {
            self.give(now, Input::PathLoad(load), observer);
            ended |= self.drain(now, observer, transport)?.1;
        }
        Ok(ended)
    }

    fn wake(&self) -> Option<(Time, WakeReason)> {
        self.0.wake().map(|Wake { at, reason }| (at.assume_clock(), reason))
    }

    fn room(&self) -> usize {
        self.0.room()
    }

    fn waiting(&self) -> usize {
        self.0.waiting()
    }

    fn into_endpoint(self) -> E {
        self.0
    }
}

/// The end of a session over several paths.
pub(crate) struct SeveralPaths<E>(pub(crate) E);

impl<E: MultipathEndpoint> Party for SeveralPaths<E> {
    type Endpoint = E;

    fn handle(&mut self, now: Time, input: MultipathInput<'_>, observer: &mut impl Observer) {
        if let MultipathInput::Path { path, change } = input {
            observer.on_path(now, path, change);
        }
        self.0.handle(now.assume_clock(), input);
    }

    fn obey(
        &mut self,
        now: Time,
        observer: &mut impl Observer,
        transport: &mut impl Transport,
    ) -> Result<bool, NetError> {
        let mut ended = false;
        while let Some(output) = self.0.poll() {
            match output {
                MultipathOutput::Transmit { path, transmit } => {
                    transport.send(path, transmit.head, transmit.media)?;
                    observer.on_transmit(now, &transmit);
                }
                MultipathOutput::Event { path: Some(path), event } => {
                    transport.on_event(now, path, &event);
                    observer.on_path_event(now, path, &event);
                }
                MultipathOutput::Event { path: None, event } => {
                    ended |= matches!(event, Event::Ended { .. });
                    observer.on_event(now, &event);
                }
                MultipathOutput::Payload { missing, payload } => observer.on_payload(now, missing, payload),
            }
        }
        Ok(ended)
    }

    fn wake(&self) -> Option<(Time, WakeReason)> {
        self.0.wake().map(|Wake { at, reason }| (at.assume_clock(), reason))
    }

    fn room(&self) -> usize {
        self.0.room()
    }

    fn waiting(&self) -> usize {
        self.0.waiting()
    }

    fn into_endpoint(self) -> E {
        self.0
    }
}
