use crate::wire::Receipt;
use crate::wire::rtcp::ReportBlock;
use equipoise::units::{Instant, Rate, SenderClock, Size, Span};

/// How many packets were sent in an interval, and how many arrived according to reports.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Proof {
    /// Number of packets that were sent.
    pub(crate) sent: u64,
    /// Number of packets that arrived. It can exceed `sent`, because packets of an earlier interval can arrive late.
    pub(crate) arrived: u64,
    /// Total size of the packets that were sent, and of those that arrived.
    pub(crate) sent_size: Size,
    pub(crate) arrived_size: Size,
    /// Time over which the packets were sent, and time over which they arrived.
    pub(crate) sending: Span,
    pub(crate) arriving: Span,
}

impl Proof {
    /// Returns the sum of two proofs of successive intervals.
    #[must_use]
    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            sent: self.sent + other.sent,
            arrived: self.arrived + other.arrived,
            sent_size: self.sent_size + other.sent_size,
            arrived_size: self.arrived_size + other.arrived_size,
            sending: self.sending + other.sending,
            arriving: self.arriving + other.arriving,
        }
    }

    /// Returns the sum of what two paths sent and delivered over the same time. Durations are not added: the result has
    /// the longer `sending` and the longer `arriving` of the two paths.
    #[must_use]
    pub(crate) fn beside(self, other: Self) -> Self {
        Self {
            sending: self.sending.max(other.sending),
            arriving: self.arriving.max(other.arriving),
            ..self.and(other)
        }
    }

    /// Returns the number of packets that did not arrive.
    pub(crate) const fn lost(&self) -> u64 {
        self.sent.saturating_sub(self.arrived)
    }

    /// Returns the share of the packets that were lost, 0 to 1.
    pub(crate) fn fraction_lost(&self) -> f64 {
        if self.sent == 0 { 0.0 } else { self.lost() as f64 / self.sent as f64 }
    }

    /// Returns the mean time between sending two packets; zero if none was sent.
    pub(crate) fn gap(&self) -> Span {
        let packets = i64::try_from(self.sent).unwrap_or(i64::MAX);
        Span::from_nanos(self.sending.as_nanos().checked_div(packets).unwrap_or(0))
    }

    /// Returns the delivery rate; `None` if no packet was sent or `arriving` is zero.
    pub(crate) fn delivered(&self) -> Option<Rate> {
        if self.sent == 0 { None } else { self.arrived_size.over(self.arriving) }
    }
}

/// Number and total size of media packets.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sent {
    pub(crate) packets: u64,
    pub(crate) size: Size,
}

/// How much media was sent before a given time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Departed {
    pub(crate) at: Instant<SenderClock>,
    pub(crate) media: Sent,
    /// Number of the next media packet.
    pub(crate) next_sequence: u64,
}

/// How many of the packets sent have arrived, according to all reports so far.
#[derive(Debug)]
pub(crate) struct Arrivals {
    /// The media sent before the last answered request, and the round-trip time of that request.
    departed: Departed,
    round_trip: Option<Span>,
    /// The receiver's counter of arrivals, which wraps; `None` until a report states it.
    count: Option<u32>,
    /// Number of packets that were sent before the last answered request and have not arrived.
    lost: u64,
    /// The largest value of `lost` so far. Losses are added to `news` only if `lost` exceeds this value, because `lost`
    /// decreases when a packet arrives late.
    most: u64,
    /// The receiver's counter of discarded packets.
    discarded: u32,
    /// Number of lost or discarded packets that `take_news` has not returned yet.
    news: u64,
}

impl Arrivals {
    /// Creates the state, without arrivals, for a session that starts at `start`.
    pub(crate) fn new(start: Instant<SenderClock>) -> Self {
        Self {
            departed: Departed { at: start, media: Sent::default(), next_sequence: 0 },
            round_trip: None,
            count: None,
            lost: 0,
            most: 0,
            discarded: 0,
            news: 0,
        }
    }

    /// Returns the round-trip time of the last answered request.
    pub(crate) const fn round_trip(&self) -> Option<Span> {
        self.round_trip
    }

    /// Returns the number of packets that were sent before the last answered request and have not arrived.
    pub(crate) const fn lost(&self) -> u64 {
        self.lost
    }

    /// Returns the number of packets whose loss has become known since the last call. The packets were lost in the
    /// network or discarded by the playout buffer.
    pub(crate) const fn take_news(&mut self) -> u64 {
        core::mem::replace(&mut self.news, 0)
    }

    /// Counts the packets sent between the last answered request and the request at `departed`, and how many of them
    /// arrived. `block` and `receipt` are from the answer to the request at `departed`, whose round-trip time is
    /// `round_trip`.
    pub(crate) fn prove(
        &mut self,
        departed: Departed,
        block: &ReportBlock,
        receipt: Option<&Receipt>,
        round_trip: Span,
    ) -> Proof {
        let before = self.departed;
        let sent = departed.media.packets - before.media.packets;
        let sent_size = departed.media.size - before.media.size;
        let count = count(block, receipt);
        let arrived = match (self.count, count, receipt) {
            (_, None, _) => 0,
            (Some(before), Some(now), _) => now.wrapping_sub(before),
            (None, Some(_), Some(receipt)) => receipt.arrived,
            (None, Some(_), None) => (sent as u32).saturating_sub(missing(departed, block)),
        };
        // Only packets that were sent in the interval, or that counted as lost before, can have arrived. A counter that
        // decreases, as after a restart of the receiver, is ignored.
        let arrived = u64::from(if arrived.cast_signed() < 0 { 0 } else { arrived }).min(sent + self.lost);
        let sending = departed.at - before.at;
        let stretched = self.round_trip.map_or(Span::ZERO, |before| round_trip - before);
        self.departed = departed;
        self.round_trip = Some(round_trip);
        self.count = count.or(self.count);
        self.lost = self.lost + sent - arrived;
        self.news = self.news.saturating_add(self.lost.saturating_sub(self.most));
        self.most = self.most.max(self.lost);
        let share = if sent == 0 { 0.0 } else { arrived as f64 / sent as f64 };
        Proof {
            sent,
            arrived,
            sent_size,
            arrived_size: Size::from_bytes((sent_size.as_bytes() as f64 * share) as u64),
            sending,
            // If the round-trip time has increased, the increase is attributed to the path to the receiver: the time
            // over which the packets arrived is longer than the time over which they were sent.
            arriving: (sending + stretched).max(Span::from_nanos(sending.as_nanos() / 4)),
        }
    }

    /// Applies the playout buffer's counter of discarded packets.
    pub(crate) const fn on_discarded(&mut self, counter: u32) {
        let before = core::mem::replace(&mut self.discarded, counter);
        self.news = self.news.saturating_add(counter.wrapping_sub(before) as u64);
    }
}

/// Returns a counter that increases by one with each packet that arrives; `None` if there is no receipt and no packet
/// has arrived.
///
/// Our reading: without a receipt, the counter is the highest sequence number minus the number of lost packets (RFC
/// 3550, App. A.3). Duplicates increase this counter, too. Its initial value depends on the first sequence number, so
/// only differences of the counter have a meaning.
fn count(block: &ReportBlock, receipt: Option<&Receipt>) -> Option<u32> {
    let by_numbers = block.extended_highest.wrapping_sub(block.cumulative_lost.cast_unsigned());
    // Before the first packet arrives, the receiver has no sequence number to report.
    receipt.map(|receipt| receipt.arrived).or((block.extended_highest > 0).then_some(by_numbers))
}

/// Returns how many of the packets sent before a request have not arrived: the packets after the highest sequence
/// number in `block`, plus the lost packets that `block` states. `block` is the first report block that shows an
/// arrival.
fn missing(departed: Departed, block: &ReportBlock) -> u32 {
    let behind = (departed.next_sequence as u32).wrapping_sub(block.extended_highest).wrapping_sub(1);
    // The difference is negative if a packet that was sent after the request overtook the request.
    let behind = if behind.cast_signed() > 0 { behind } else { 0 };
    behind.saturating_add(block.cumulative_lost.max(0).cast_unsigned())
}
