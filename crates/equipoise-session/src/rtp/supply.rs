use alloc::boxed::Box;
use alloc::vec::Vec;

use equipoise::control::QueuedFrame;
use equipoise::units::{Instant, SenderClock, Span};
use equipoise_path::source::Content;

use super::frames::{FrameQueue, LiveMedia, Room};
use super::outbox::Outbox;
use super::stream::{Generated, Packetiser};

/// The source of generated media.
#[derive(Clone, Debug, Default)]
pub enum Supply {
    /// Unlimited media, sent as fast as the rate allows: load for measurements.
    #[default]
    Unlimited,
    /// A finite content. Each packet becomes available at a given time. If packets are reported as lost, their content
    /// is sent again in new packets. The transmission is complete when all of the content has arrived.
    Content(Content),
    /// Frames of encoders whose target follows the rate. Lost packets are not sent again.
    Live(Box<LiveMedia>),
}

/// A time in which the application has no media to send, because it is muted, on hold, or finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pause {
    /// When the pause begins.
    pub from: Instant<SenderClock>,
    /// When the pause ends; `None` for never.
    pub until: Option<Instant<SenderClock>>,
}

/// The state of a source of generated media.
#[derive(Clone, Debug)]
pub(super) struct Stock {
    kind: Kind,
    pauses: Vec<Pause>,
    start: Instant<SenderClock>,
    /// Number of packets that were sent, and number of these that are known to be lost.
    sent: u64,
    lost: u64,
}

#[derive(Clone, Debug)]
enum Kind {
    Unlimited,
    Content(Content),
    Live(Box<FrameQueue>),
}

impl Stock {
    pub(super) fn new(supply: Supply, pauses: Vec<Pause>, start: Instant<SenderClock>) -> Self {
        let kind = match supply {
            Supply::Unlimited => Kind::Unlimited,
            Supply::Content(content) => Kind::Content(content),
            Supply::Live(media) => Kind::Live(Box::new(FrameQueue::new(*media, start))),
        };
        Self { kind, pauses, start, sent: 0, lost: 0 }
    }

    /// Returns the total number of packets of a finite content; `None` for other media.
    pub(super) fn packets(&self) -> Option<u64> {
        if let Kind::Content(content) = &self.kind { Some(content.packets()) } else { None }
    }

    /// Returns the pacing rate of frames as a multiple of the session's rate; `None` if there are no frames.
    pub(super) fn pacing(&self) -> Option<f64> {
        if let Kind::Live(queue) = &self.kind { Some(queue.pacing()) } else { None }
    }

    /// Advances time to `now`. `room` contains the rate that encoders may use. Calls `tell` for each video frame that
    /// is queued. If there is no video, calls `tell` for each audio frame that is queued.
    pub(super) fn advance(
        &mut self,
        now: Instant<SenderClock>,
        room: Room,
        tell: &mut dyn FnMut(QueuedFrame),
        outbox: &mut Outbox,
    ) {
        let Kind::Live(queue) = &mut self.kind else { return };
        for pause in self.pauses.iter().filter(|pause| pause.from <= now) {
            let last = pause.until.map_or(now, |until| until - Span::from_nanos(1));
            queue.pass_over(last.min(now));
        }
        queue.capture(now, room, tell, outbox);
    }

    /// Whether a packet can be sent at `now`. Frames captured before a pause are still sent during the pause.
    pub(super) fn has(&self, now: Instant<SenderClock>) -> bool {
        match &self.kind {
            Kind::Unlimited => self.covering(now).is_none(),
            Kind::Content(content) => {
                self.outstanding() < content.ready(now - self.start) && self.covering(now).is_none()
            }
            Kind::Live(queue) => !queue.is_empty(),
        }
    }

    /// If no packet is available at `now`, returns the next time at which one may be available. Returns `None` if there
    /// is no such time, or if a packet becomes available only when another packet is lost.
    pub(super) fn next_at(&self, now: Instant<SenderClock>) -> Option<Instant<SenderClock>> {
        let at = match &self.kind {
            Kind::Unlimited => Some(self.start),
            Kind::Content(content) => content.ready_at(self.outstanding()).map(|at| self.start + at),
            Kind::Live(queue) => queue.next_at(),
        };
        let mut at = at?.max(now);
        while let Some(pause) = self.covering(at) {
            at = pause.until?;
        }
        Some(at)
    }

    /// Returns the content of the next packet, which is sent at `now`; `None` if no packet is available.
    pub(super) fn take(&mut self, now: Instant<SenderClock>, packetiser: &Packetiser) -> Option<Generated> {
        let full = packetiser.full(now);
        if !self.has(now) {
            return None;
        }
        self.sent += 1;
        match &mut self.kind {
            Kind::Unlimited | Kind::Content(_) => Some(full),
            Kind::Live(queue) => queue.next(full.media),
        }
    }

    /// Records that `packets` more packets are lost.
    pub(super) fn on_lost(&mut self, packets: u64) {
        self.lost = self.lost.saturating_add(packets).min(self.sent);
    }

    /// Returns the number of packets that were sent and are not known to be lost.
    fn outstanding(&self) -> u64 {
        self.sent - self.lost
    }

    /// Returns the pause that contains the time `at`, if any.
    fn covering(&self, at: Instant<SenderClock>) -> Option<&Pause> {
        self.pauses.iter().find(|pause| pause.from <= at && pause.until.is_none_or(|until| at < until))
    }
}
