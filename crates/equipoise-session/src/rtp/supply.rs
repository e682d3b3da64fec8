use equipoise::units::{Instant, Rate, SenderClock, Size, Span};
use equipoise_path::source::Content;
use equipoise_path::video::Encoder;

/// Where generated media comes from.
#[derive(Clone, Debug, Default)]
pub enum Supply {
    /// As much as the rate allows, without end: a load to measure with.
    #[default]
    Unlimited,
    /// So much and no more, each packet from its time on. What the reports say was lost is sent again, as packets of their
    /// own: the transmission is complete when all has arrived.
    Content(Content),
    /// The frames of an encoder that follows the rate. What was lost is not sent again.
    Encoder(Encoder),
}

/// What of it is there to be sent.
#[derive(Clone, Debug)]
pub(super) struct Stock {
    supply: Supply,
    start: Instant<SenderClock>,
    /// Media in a packet.
    media: Size,
    /// Packets sent, and packets known to be lost.
    sent: u64,
    lost: u64,
    /// Bytes that an encoder has given and no packet holds.
    coded: u64,
}

impl Stock {
    pub(super) const fn new(supply: Supply, start: Instant<SenderClock>, media: Size) -> Self {
        Self { supply, start, media, sent: 0, lost: 0, coded: 0 }
    }

    /// Packets of a content that has an end.
    pub(super) fn packets(&self) -> Option<u64> {
        if let Supply::Content(content) = &self.supply { Some(content.packets()) } else { None }
    }

    /// Time has come to `now`; an encoder may fill packets of media at `target`.
    pub(super) fn advance(&mut self, now: Instant<SenderClock>, target: Rate) {
        let Supply::Encoder(encoder) = &mut self.supply else { return };
        while encoder.next_frame().is_some_and(|at| self.start + at <= now) {
            let size = encoder.encode(target).unwrap_or(Size::ZERO);
            self.coded = self.coded.saturating_add(size.as_bytes());
        }
    }

    /// Whether a packet can be sent at `now`.
    pub(super) fn has(&self, now: Instant<SenderClock>) -> bool {
        match &self.supply {
            Supply::Unlimited => true,
            Supply::Content(content) => self.outstanding() < content.ready(now - self.start),
            Supply::Encoder(encoder) => match encoder.next_frame() {
                Some(_) => self.coded >= self.media.as_bytes(),
                // The last one is filled up.
                None => self.coded > 0,
            },
        }
    }

    /// When there may be a packet, where there is none now; `None` where there will be none unless one is lost.
    pub(super) fn next_at(&self) -> Option<Instant<SenderClock>> {
        let at = match &self.supply {
            Supply::Unlimited => Some(Span::ZERO),
            Supply::Content(content) => content.ready_at(self.outstanding()),
            Supply::Encoder(encoder) => encoder.next_frame(),
        };
        at.map(|at| self.start + at)
    }

    /// A packet was sent.
    pub(super) fn on_sent(&mut self) {
        self.sent += 1;
        self.coded = self.coded.saturating_sub(self.media.as_bytes());
    }

    /// So many more packets are known to be lost.
    pub(super) fn on_lost(&mut self, packets: u64) {
        self.lost = self.lost.saturating_add(packets).min(self.sent);
    }

    /// Packets sent and not known to be lost.
    fn outstanding(&self) -> u64 {
        self.sent - self.lost
    }
}
