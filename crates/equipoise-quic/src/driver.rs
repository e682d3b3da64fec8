//! A path's controller, fed with what a QUIC stack tells of its packets.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant as HostInstant};

use equipoise::control::{BoxedController, Ecn, Fate, Feedback, PacketFeedback, PacketReport, SentPacket};
use equipoise::units::{Instant, Rate, SenderClock, Size, Span};
use equipoise_session::guest::Guest;

use crate::config::Config;
use crate::monitor::PathStatus;
use crate::sent::SentPackets;
#[cfg(feature = "noq")]
use crate::split::{Place, Told};

/// A law of either kind.
#[derive(Debug)]
pub(crate) enum Core {
    /// One that says a rate, held to what was proved to arrive.
    Rate(Box<Guest>),
    /// One that says a window. Its acknowledgements are its proof.
    Window(BoxedController),
}

/// What both stacks' adapters drive.
#[derive(Debug)]
pub(crate) struct Driver {
    config: Config,
    core: Core,
    epoch: HostInstant,
    sent: SentPackets,
    /// Reports of the acknowledgement that is being read, and of losses since the last.
    batch: Vec<PacketReport>,
    /// A mark of congestion came, of which no law has been told.
    is_marked: bool,
    mtu: u16,
    /// Bytes under way, as the stack says at each acknowledgement.
    in_flight: u64,
    /// When the last acknowledgement came.
    acknowledged: Option<Instant<SenderClock>>,
    least: Span,
    smoothed: Span,
    status: Arc<Mutex<PathStatus>>,
    has_sent: bool,
    /// Its place among the paths of its connection, if these share what is sent.
    #[cfg(feature = "noq")]
    place: Option<Place>,
}

/// What a QUIC packet has around it: IPv4 and UDP.
const OVERHEAD: u64 = 28;
/// The round trip that is assumed before one was measured (RFC 9002, Sec. 6.2.2).
const INITIAL_ROUND_TRIP: Span = Span::from_millis(333);
/// A rate controller that leaves the window open may have so many round trips' worth of its rate under way, and so much more: its rate
/// is to rule, and a path that acknowledges nothing is to stop it.
const ROUND_TRIPS: i64 = 2;
const SLACK: Span = Span::from_millis(50);
/// The least window, in packets (RFC 9002, Sec. 7.2).
const LEAST_PACKETS: u64 = 2;
/// What left so long before, and so many round trips, is told of no more.
const FORGOTTEN: Span = Span::from_secs(2);
/// A path that acknowledges nothing for so long carries nothing, as far as other paths can.
#[cfg(feature = "noq")]
const DEAD: Span = Span::from_secs(2);

impl Driver {
    pub(crate) fn new(config: Config, now: HostInstant, mtu: u16) -> Self {
        let packet = Size::from_bytes(u64::from(mtu) + OVERHEAD);
        let core = config.core(packet, Instant::ZERO).expect("the configuration was tried when it was made");
        Self {
            config,
            core,
            epoch: now,
            sent: SentPackets::default(),
            batch: Vec::new(),
            is_marked: false,
            mtu,
            in_flight: 0,
            acknowledged: None,
            least: Span::ZERO,
            smoothed: INITIAL_ROUND_TRIP,
            status: Arc::default(),
            has_sent: false,
            #[cfg(feature = "noq")]
            place: None,
        }
    }

    /// Another one for another path, which knows nothing yet.
    pub(crate) fn anew(&self) -> Self {
        let mut anew = Self::new(self.config.clone(), self.epoch, self.mtu);
        anew.smoothed = self.smoothed;
        anew
    }

    pub(crate) const fn status(&self) -> &Arc<Mutex<PathStatus>> {
        &self.status
    }

    pub(crate) fn time(&self, now: HostInstant) -> Instant<SenderClock> {
        let since = now.saturating_duration_since(self.epoch).as_nanos();
        Instant::from_nanos(u64::try_from(since).unwrap_or(u64::MAX))
    }

    /// Packets of `bytes` in all left; a single one if the stack says its number.
    pub(crate) fn on_sent(&mut self, now: HostInstant, bytes: u64, number_of_stack: Option<u64>) {
        if !self.has_sent {
            self.has_sent = true;
            self.config.register(self);
            #[cfg(feature = "noq")]
            self.join();
        }
        let now = self.time(now);
        let count = if number_of_stack.is_some() { 1 } else { bytes.div_ceil(u64::from(self.mtu.max(1))).max(1) };
        let first = self.sent.push(now, count, number_of_stack);
        for number in first..first + count {
            let bytes = bytes / count;
            self.in_flight = self.in_flight.saturating_add(bytes);
            let packet = SentPacket::new(number, ip_size(bytes), Size::from_bytes(self.in_flight));
            match &mut self.core {
                Core::Rate(guest) => guest.on_sent(now, packet),
                Core::Window(controller) => controller.on_sent(now, &packet),
            }
        }
        self.pass_time(now);
    }

    /// A packet is acknowledged that left at `sent`.
    pub(crate) fn on_ack(&mut self, sent: HostInstant, bytes: u64, number: Option<u64>, trips: (Duration, Duration)) {
        let (smoothed, least) = (span(trips.0), span(trips.1));
        (self.smoothed, self.least) = (smoothed, least);
        let fate = Fate::Arrived { at: None, ecn: Ecn::NotEct };
        let report = self.sent.take(Some(self.time(sent)), number, ip_size(bytes), fate);
        self.batch.extend(report);
    }

    /// A packet with the stack's `number` is taken to be lost.
    #[cfg(feature = "noq")]
    pub(crate) fn on_packet_lost(&mut self, bytes: u64, number: u64) {
        self.batch.extend(self.sent.take(None, Some(number), ip_size(bytes), Fate::Lost));
    }

    /// Packets of `bytes` in all are taken to be lost, the last of which left at `sent`. What left first is lost first.
    #[cfg(feature = "quinn")]
    pub(crate) fn on_bytes_lost(&mut self, sent: HostInstant, bytes: u64) {
        let sent = self.time(sent);
        let mtu = u64::from(self.mtu.max(1));
        for _ in 0..bytes.div_ceil(mtu) {
            let size = ip_size(bytes.min(mtu));
            let Some(report) = self.sent.take_oldest_until(sent, size, Fate::Lost) else { return };
            self.batch.push(report);
        }
    }

    /// A mark of congestion was reported.
    pub(crate) const fn on_mark(&mut self) {
        self.is_marked = true;
    }

    /// The news that have come are complete. `in_flight` is what is still under way; `None` if the stack does not say.
    pub(crate) fn tell(&mut self, now: HostInstant, in_flight: Option<u64>, app_limited: bool) {
        let now = self.time(now);
        if self.batch.is_empty() {
            self.pass_time(now);
            return;
        }
        self.batch.sort_by_key(|report| report.number);
        self.spread(now);
        self.mark();
        let told = self.batch.iter().fold(Size::ZERO, |sum, report| sum + report.size);
        self.in_flight = in_flight.unwrap_or(self.in_flight.saturating_sub(told.as_bytes()));
        let mut feedback = PacketFeedback::new(&self.batch, Size::from_bytes(self.in_flight) + told);
        let newest = self.batch.iter().rfind(|report| report.fate != Fate::Lost);
        feedback.round_trip = newest.map(|report| now - report.departed);
        feedback.app_limited = app_limited;
        match &mut self.core {
            Core::Rate(guest) => guest.on_feedback(now, &feedback, self.config.pacing.max(1.0)),
            Core::Window(controller) => controller.on_feedback(now, &Feedback::Packets(&feedback)),
        }
        if newest.is_some() {
            self.acknowledged = Some(now);
        }
        let round_trip = feedback.round_trip;
        #[cfg(feature = "noq")]
        self.tell_split(now);
        self.batch.clear();
        self.sent.forget_before(now - FORGOTTEN - self.smoothed * 8);
        self.pass_time(now);
        self.publish(round_trip);
    }

    /// Nothing has come through for so long that the window has to start anew (RFC 9002, Sec. 7.6).
    pub(crate) fn on_persistent_congestion(&mut self, now: HostInstant) {
        let (now, in_flight) = (self.time(now), Size::from_bytes(self.in_flight));
        if let Core::Window(controller) = &mut self.core {
            controller.on_feedback(now, &Feedback::TimedOut { in_flight });
        }
    }

    pub(crate) const fn set_mtu(&mut self, mtu: u16) {
        self.mtu = mtu;
    }

    /// Takes a place among the paths of the connection, if these share.
    #[cfg(feature = "noq")]
    fn join(&mut self) {
        if let (Some(split), Some(most)) = (&self.config.split, self.law_rate()) {
            self.place = Some(split.join(most));
        }
    }

    /// The paths' common scheduler hears of the acknowledgements.
    #[cfg(feature = "noq")]
    fn tell_split(&self, now: Instant<SenderClock>) {
        let (Some(place), Some(most)) = (&self.place, self.law_rate()) else { return };
        let arrived = self.batch.iter().filter(|report| report.fate != Fate::Lost);
        let alive = arrived.clone().next().is_some() || self.acknowledged.is_some_and(|at| now - at < DEAD);
        let host = self.epoch + Duration::from_nanos(now.as_nanos());
        let delay_s = |report: &PacketReport| match report.fate {
            Fate::Arrived { at: Some(at), .. } => (at.assume_clock::<SenderClock>() - report.departed).as_secs_f64(),
            _ => (now - report.departed).as_secs_f64(),
        };
        place.tell(host, Told { most, alive }, arrived.map(delay_s));
    }

    /// What may be under way, in bytes, if the law's own rate rules otherwise.
    pub(crate) fn open_window(&self) -> u64 {
        let bytes = match &self.core {
            Core::Rate(guest) => match guest.window() {
                Some(window) => self.of_quic(window.as_bytes() as f64),
                None => {
                    self.of_quic(guest.rate().as_bps_f64() / 8.0 * (self.smoothed * ROUND_TRIPS + SLACK).as_secs_f64())
                }
            },
            Core::Window(controller) => {
                self.of_quic(controller.allowance().window.map_or(0.0, |window| window.as_bytes() as f64))
            }
        };
        bytes.max(LEAST_PACKETS * u64::from(self.mtu))
    }

    /// What may be under way, in bytes, where the window alone keeps the rate.
    #[cfg(feature = "quinn")]
    pub(crate) fn ruling_window(&self) -> u64 {
        match &self.core {
            Core::Rate(guest) => {
                let bytes = self.of_quic(guest.rate().as_bps_f64() / 8.0 * self.smoothed.as_secs_f64());
                // A window lets whole packets go: half of one is left over in the mean.
                (bytes + u64::from(self.mtu / 2)).max(LEAST_PACKETS * u64::from(self.mtu))
            }
            Core::Window(_) => self.open_window(),
        }
    }

    /// The rate at which QUIC packets are to follow each other, in bytes/s; `None` if the window is to say.
    #[cfg(feature = "noq")]
    pub(crate) fn pacing_bytes_per_s(&self) -> Option<u64> {
        let rate = match &self.core {
            Core::Rate(guest) if self.config.pacing > 1.0 => guest.pace(self.config.pacing),
            Core::Rate(guest) => guest.probe().map_or(guest.rate(), |probe| probe.rate.max(guest.rate())),
            Core::Window(controller) => controller.allowance().rate?,
        };
        let rate = self.place.as_ref().map_or(rate, |place| rate.min(place.share()));
        Some(self.of_quic(rate.as_bps_f64() / 8.0).max(1))
    }

    /// The rate that the path may have, of IP packets: what its law allows, and its share where paths share.
    pub(crate) fn rate(&self) -> Option<Rate> {
        #[cfg(feature = "noq")]
        if let Some(place) = &self.place {
            return self.law_rate().map(|rate| rate.min(place.share()));
        }
        self.law_rate()
    }

    fn law_rate(&self) -> Option<Rate> {
        match &self.core {
            Core::Rate(guest) => Some(guest.rate()),
            Core::Window(controller) => controller.allowance().rate,
        }
    }

    /// What of bytes of IP packets is QUIC's.
    fn of_quic(&self, bytes: f64) -> u64 {
        (bytes * f64::from(self.mtu) / (f64::from(self.mtu) + OVERHEAD as f64)) as u64
    }

    /// The stacks have no timer for a controller: time passes when packets leave or are acknowledged.
    fn pass_time(&mut self, now: Instant<SenderClock>) {
        if let Core::Rate(guest) = &mut self.core
            && guest.next_timer().is_some_and(|at| at <= now)
        {
            guest.on_timer(now);
        }
    }

    /// Says when the packets arrived that were acknowledged together: evenly by their bytes since the last acknowledgement, but none
    /// sooner than the least round trip allows. If all had come at once, a law would take the path for endlessly fast.
    fn spread(&mut self, now: Instant<SenderClock>) {
        let arrived = |report: &PacketReport| report.fate != Fate::Lost;
        let all = self.batch.iter().filter(|it| arrived(it)).fold(0, |sum, it| sum + it.size.as_bytes());
        let since = self.acknowledged.map_or(Span::ZERO, |before| now - before);
        let mut behind = 0;
        for report in self.batch.iter_mut().rev().filter(|it| arrived(it)) {
            let share = behind as f64 / all.max(1) as f64;
            let before = Span::from_secs_f64(since.as_secs_f64() * share).unwrap_or(Span::ZERO);
            let at = (now - before).max((report.departed + self.least).min(now));
            report.fate = Fate::Arrived { at: Some(at.assume_clock()), ecn: Ecn::NotEct };
            behind += report.size.as_bytes();
        }
    }

    /// Hands a mark on: to a rate controller with the newest packet that arrived, to a window law as a loss (RFC 9002, Sec. 7.1).
    fn mark(&mut self) {
        let newest = self.batch.iter_mut().rfind(|report| report.fate != Fate::Lost);
        let Some(newest) = newest.filter(|_| self.is_marked) else { return };
        self.is_marked = false;
        match &self.core {
            Core::Rate(_) => {
                if let Fate::Arrived { ecn, .. } = &mut newest.fate {
                    *ecn = Ecn::Ce;
                }
            }
            Core::Window(_) => {
                let (number, departed) = (newest.number, newest.departed);
                self.batch.push(PacketReport::new(number, Size::ZERO, departed, Fate::Lost));
            }
        }
    }

    fn publish(&self, round_trip: Option<Span>) {
        let mut status = self.status.lock().unwrap_or_else(PoisonError::into_inner);
        status.rate = self.rate();
        status.window = Size::from_bytes(self.open_window());
        status.round_trip = round_trip.or(status.round_trip);
        if let Core::Rate(guest) = &self.core {
            (status.snapshot, status.beliefs) = (guest.snapshot(), guest.beliefs());
        }
    }
}

const fn ip_size(bytes: u64) -> Size {
    Size::from_bytes(bytes + OVERHEAD)
}

fn span(duration: Duration) -> Span {
    Span::from_nanos(i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX))
}
