//! Runs the controller of one path, driven by the events on packets that a QUIC stack reports.

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

/// A controller that decides on a rate, or one that decides on a window.
#[derive(Debug)]
pub(crate) enum Core {
    /// A rate controller, whose rate is limited by the rate at which data is acknowledged.
    Rate(Box<Guest>),
    /// A window controller, such as a TCP congestion control. It needs no further limit, because data leaves only when
    /// earlier data is acknowledged.
    Window(BoxedController),
}

/// What limits the rate in a stack.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Limit {
    /// The stack paces by the controller's rate. The window only stops a sender that gets no acknowledgements.
    #[cfg(feature = "noq")]
    Pace,
    /// Only the window.
    #[cfg(feature = "quinn")]
    Window,
}

/// The controller of one path with its state: the common part of the adapters to noq and quinn.
#[derive(Debug)]
pub(crate) struct Driver {
    config: Config,
    limit: Limit,
    core: Core,
    epoch: HostInstant,
    sent: SentPackets,
    /// Reports of packets acknowledged or lost since the last feedback to the controller.
    batch: Vec<PacketReport>,
    /// Whether a reported ECN congestion mark has not yet been passed to the controller.
    is_marked: bool,
    mtu: u16,
    /// Number of bytes in flight. The stack reports this number at each acknowledgement; between acknowledgements, it
    /// is computed here.
    in_flight: u64,
    /// Time of the last acknowledgement.
    acknowledged: Option<Instant<SenderClock>>,
    least: Span,
    smoothed: Span,
    status: Arc<Mutex<PathStatus>>,
    has_sent: bool,
    /// The path's entry in the scheduler, if several paths of the connection share one total rate.
    #[cfg(feature = "noq")]
    place: Option<Place>,
}

/// Bytes of the IPv4 and UDP headers of a QUIC packet.
const OVERHEAD: u64 = 28;
/// The assumed round-trip time before the first measurement (RFC 9002, Sec. 6.2.2).
const INITIAL_ROUND_TRIP: Span = Span::from_millis(333);
/// If a rate controller sets no window, the window is the amount of data that the controller's rate allows in
/// `ROUND_TRIPS` round-trip times plus `SLACK`. Normally less data is in flight, so the rate is the limit. Without
/// acknowledgements, the window fills up, and the sender stops.
#[cfg(feature = "noq")]
const ROUND_TRIPS: i64 = 2;
#[cfg(feature = "noq")]
const SLACK: Span = Span::from_millis(50);
/// The minimum window, in packets (RFC 9002, Sec. 7.2).
const LEAST_PACKETS: u64 = 2;
/// Sent packets are forgotten after this time plus eight round-trip times. Later acknowledgements of them are ignored.
const FORGOTTEN: Span = Span::from_secs(2);
/// If the connection has other paths, a path without acknowledgements for this time counts as dead.
#[cfg(feature = "noq")]
const DEAD: Span = Span::from_secs(2);

impl Driver {
    pub(crate) fn new(config: Config, limit: Limit, now: HostInstant, mtu: u16) -> Self {
        let packet = Size::from_bytes(u64::from(mtu) + OVERHEAD);
        let core = config.core(packet, Instant::ZERO).expect("the configuration was tried when it was made");
        Self {
            config,
            limit,
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

    /// Creates a controller with the same configuration and the same smoothed round-trip time, for another path.
    pub(crate) fn anew(&self) -> Self {
        let mut anew = Self::new(self.config.clone(), self.limit, self.epoch, self.mtu);
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

    /// Records that packets of `bytes` in total were sent. If the stack passes packet numbers, each call is for one
    /// packet.
    pub(crate) fn on_sent(&mut self, now: HostInstant, bytes: u64, number_of_stack: Option<u64>) {
        if !self.has_sent {
            self.has_sent = true;
            self.config.register(self);
            #[cfg(feature = "noq")]
            self.join();
        }
        let now = self.time(now);
        // The controller's timer runs before the packet is recorded. Otherwise, after an idle time, the controller
        // would take the idle time for a time without feedback on this packet.
        self.pass_time(now);
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
    }

    /// Records the acknowledgement of a packet that was sent at `sent`. `trips` contains the smoothed and the minimum
    /// round-trip time.
    pub(crate) fn on_ack(&mut self, sent: HostInstant, bytes: u64, number: Option<u64>, trips: (Duration, Duration)) {
        let (smoothed, least) = (span(trips.0), span(trips.1));
        (self.smoothed, self.least) = (smoothed, least);
        let fate = Fate::Arrived { at: None, ecn: Ecn::NotEct };
        let report = self.sent.take(Some(self.time(sent)), number, ip_size(bytes), fate);
        self.batch.extend(report);
    }

    /// Records the loss of the packet with the packet number `number`.
    #[cfg(feature = "noq")]
    pub(crate) fn on_packet_lost(&mut self, bytes: u64, number: u64) {
        self.batch.extend(self.sent.take(None, Some(number), ip_size(bytes), Fate::Lost));
    }

    /// Records that packets with `bytes` in total were lost. The last of these packets was sent at `sent`. quinn does
    /// not report which packets were lost, so the oldest packets in flight count as lost.
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

    /// Records an ECN congestion mark.
    pub(crate) const fn on_mark(&mut self) {
        self.is_marked = true;
    }

    /// Passes the collected reports to the controller. `in_flight` is the number of bytes in flight; `None` if the
    /// stack does not report it with this event.
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

    /// Handles persistent congestion: a window controller has to reduce its window to the minimum (RFC 9002, Sec. 7.6).
    pub(crate) fn on_persistent_congestion(&mut self, now: HostInstant) {
        let (now, in_flight) = (self.time(now), Size::from_bytes(self.in_flight));
        if let Core::Window(controller) = &mut self.core {
            controller.on_feedback(now, &Feedback::TimedOut { in_flight });
        }
    }

    pub(crate) const fn set_mtu(&mut self, mtu: u16) {
        self.mtu = mtu;
    }

    /// Registers the path at the scheduler, if the configuration has one.
    #[cfg(feature = "noq")]
    fn join(&mut self) {
        if let (Some(split), Some(most)) = (&self.config.split, self.law_rate()) {
            self.place = Some(split.join(most));
        }
    }

    /// If the configuration has a scheduler, passes three values to it: the rate of the path's control law, whether the
    /// path is alive, and the delays of the acknowledged packets.
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

    /// Returns the congestion window in bytes.
    pub(crate) fn window(&self) -> u64 {
        let guest = match &self.core {
            Core::Rate(guest) => guest,
            Core::Window(controller) => {
                let window = controller.allowance().window.map_or(0.0, |window| window.as_bytes() as f64);
                return self.at_least(self.of_quic(window));
            }
        };
        let of_time = |time: Span| self.of_quic(guest.rate().as_bps_f64() / 8.0 * time.as_secs_f64());
        self.at_least(match self.limit {
            #[cfg(feature = "noq")]
            Limit::Pace => match guest.window() {
                Some(window) => self.of_quic(window.as_bytes() as f64),
                None => of_time(self.smoothed * ROUND_TRIPS + SLACK),
            },
            // The stack sends whole packets, so on average half a packet of the window stays unused. Add this half.
            #[cfg(feature = "quinn")]
            Limit::Window => of_time(self.smoothed) + u64::from(self.mtu / 2),
        })
    }

    /// Raises a window, in bytes, to the minimum window.
    fn at_least(&self, bytes: u64) -> u64 {
        bytes.max(LEAST_PACKETS * u64::from(self.mtu))
    }

    /// Returns the pacing rate of QUIC packets, in bytes/s; `None` if only the window limits the rate.
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

    /// Returns the path's rate, counting whole IP packets: the controller's rate or, if a scheduler divides a total
    /// rate among the paths, at most the path's share of the total.
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

    /// Converts a number of bytes in IP packets to the number of bytes in QUIC packets, without IP and UDP headers.
    fn of_quic(&self, bytes: f64) -> u64 {
        (bytes * f64::from(self.mtu) / (f64::from(self.mtu) + OVERHEAD as f64)) as u64
    }

    /// Calls the controller's timer if it is due. The stacks have no timer for a controller, so this is called when
    /// packets are sent or acknowledged.
    fn pass_time(&mut self, now: Instant<SenderClock>) {
        if let Core::Rate(guest) = &mut self.core
            && guest.next_timer().is_some_and(|at| at <= now)
        {
            guest.on_timer(now);
        }
    }

    /// Assigns arrival times to packets that were acknowledged together. The times are spread evenly, by bytes, over
    /// the time since the last acknowledgement, but no packet arrives earlier than the minimum round-trip time allows.
    /// With equal arrival times, a controller would measure an infinite delivery rate.
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

    /// Adds a pending congestion mark to the reports: for a rate controller as a mark on the newest packet that
    /// arrived, for a window controller as a loss (RFC 9002, Sec. 7.1).
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
        status.window = Size::from_bytes(self.window());
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
