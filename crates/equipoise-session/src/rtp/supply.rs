use alloc::boxed::Box;
use alloc::vec::Vec;

use equipoise::control::QueuedFrame;
use equipoise::units::{Instant, SenderClock, Span};
use equipoise_path::source::Content;

use super::frames::{FrameQueue, LiveMedia, Room};
use super::outbox::Outbox;
use super::stream::{Generated, Packetiser};

/// Where generated media comes from.
#[derive(Clone, Debug, Default)]
pub enum Supply {
    /// As much as the rate allows, without end: a load to measure with.
    #[default]
    Unlimited,
    /// So much and no more, each packet from its time on. What the reports say was lost is sent again, as packets of their
    /// own: the transmission is complete when all has arrived.
    Content(Content),
    /// The frames of encoders that follow the rate. What was lost is not sent again.
    Live(Box<LiveMedia>),
}

/// A time in which the application has nothing to send: muted, on hold, or over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pause {
    /// When it begins.
    pub from: Instant<SenderClock>,
    /// When it ends; `None` for never.
    pub until: Option<Instant<SenderClock>>,
}

/// What of a supply is there to be sent.
#[derive(Clone, Debug)]
pub(super) struct Stock {
    kind: Kind,
    pauses: Vec<Pause>,
    start: Instant<SenderClock>,
    /// Packets sent, and packets known to be lost.
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

    /// Packets of a content that has an end.
    pub(super) fn packets(&self) -> Option<u64> {
        if let Kind::Content(content) = &self.kind { Some(content.packets()) } else { None }
    }

    /// How much faster than the rate frames leave; `None` for what comes in no frames.
    pub(super) fn pacing(&self) -> Option<f64> {
        if let Kind::Live(queue) = &self.kind { Some(queue.pacing()) } else { None }
    }

    /// Time has come to `now`; encoders may fill `room`, and `tell` is told of frames as they join what waits.
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

    /// Whether a packet can be sent at `now`. Frames that were captured before a pause are sent in it.
    pub(super) fn has(&self, now: Instant<SenderClock>) -> bool {
        match &self.kind {
            Kind::Unlimited => self.covering(now).is_none(),
            Kind::Content(content) => {
                self.outstanding() < content.ready(now - self.start) && self.covering(now).is_none()
            }
            Kind::Live(queue) => !queue.is_empty(),
        }
    }

    /// When, from `now` on, there may be a packet, where there is none now; `None` where there will be none unless one is lost.
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

    /// The content of the next packet, which leaves at `now`; `None` where there is none.
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

    /// So many more packets are known to be lost.
    pub(super) fn on_lost(&mut self, packets: u64) {
        self.lost = self.lost.saturating_add(packets).min(self.sent);
    }

    /// Packets sent and not known to be lost.
    fn outstanding(&self) -> u64 {
        self.sent - self.lost
    }

    /// The pause in which `at` lies.
    fn covering(&self, at: Instant<SenderClock>) -> Option<&Pause> {
        self.pauses.iter().find(|pause| pause.from <= at && pause.until.is_none_or(|until| at < until))
    }
}
