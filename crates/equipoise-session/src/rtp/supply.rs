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
    /// As much as the rate allows, without end: a load for measurements.
    #[default]
    Unlimited,
    /// A finite content; each packet becomes available at its own time. Packets reported as lost are sent again as new
    /// packets; the transmission is complete when everything has arrived.
    Content(Content),
    /// Frames of encoders that follow the rate. Lost packets are not sent again.
    Live(Box<LiveMedia>),
}

/// A time in which the application has nothing to send: muted, on hold, or finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pause {
    /// When the pause begins.
    pub from: Instant<SenderClock>,
    /// When the pause ends; `None` for never.
    pub until: Option<Instant<SenderClock>>,
}

/// The state of a supply.
#[derive(Clone, Debug)]
pub(super) struct Stock {
    kind: Kind,
    pauses: Vec<Pause>,
    start: Instant<SenderClock>,
    /// Number of packets sent, and number of these that are known to be lost.
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

    /// Total number of packets of a finite content.
    pub(super) fn packets(&self) -> Option<u64> {
        if let Kind::Content(content) = &self.kind { Some(content.packets()) } else { None }
    }

    /// Pacing rate of frames as a multiple of the rate; `None` if there are no frames.
    pub(super) fn pacing(&self) -> Option<f64> {
        if let Kind::Live(queue) = &self.kind { Some(queue.pacing()) } else { None }
    }

    /// Advances time to `now`. Encoders may use the rate in `room`, and `tell` is called with each frame that is
    /// queued.
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

    /// Whether a packet can be sent at `now`. Frames captured before a pause are still sent during it.
    pub(super) fn has(&self, now: Instant<SenderClock>) -> bool {
        match &self.kind {
            Kind::Unlimited => self.covering(now).is_none(),
            Kind::Content(content) => {
                self.outstanding() < content.ready(now - self.start) && self.covering(now).is_none()
            }
            Kind::Live(queue) => !queue.is_empty(),
        }
    }

    /// When the next packet may be available, from `now` on, if there is none now; `None` if there will be none unless
    /// a packet is lost.
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

    /// The content of the next packet, sent at `now`; `None` if there is none.
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

    /// Packets sent and not known to be lost.
    fn outstanding(&self) -> u64 {
        self.sent - self.lost
    }

    /// The pause that contains `at`.
    fn covering(&self, at: Instant<SenderClock>) -> Option<&Pause> {
        self.pauses.iter().find(|pause| pause.from <= at && pause.until.is_none_or(|until| at < until))
    }
}
