use alloc::collections::VecDeque;

use super::proof::Proof;
use equipoise::units::{Instant, SenderClock, Size, Span};

/// Why a circuit breaker tripped (RFC 8083, Sec. 4).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Breaker {
    /// No report arrives (RFC 8083, Sec. 4.1).
    Reports,
    /// Reports arrive, but state that no media arrives (RFC 8083, Sec. 4.2).
    Media,
    /// The rate is more than ten times TCP's throughput at the same loss (RFC 8083, Sec. 4.3).
    Congestion,
    /// Our addition: reports come from a peer that did not receive the media, or reports answer requests that were
    /// never sent.
    Receipts,
}

impl Breaker {
    /// Returns the breaker's name: lower-case words joined by hyphens.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Reports => "no-reports",
            Self::Media => "no-media",
            Self::Congestion => "congestion",
            Self::Receipts => "receipts",
        }
    }
}

/// What a tripped breaker does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trip {
    /// The rate is reduced to a tenth.
    Tenth,
    /// Media is stopped.
    Stop(Breaker),
}

/// The circuit breakers of a session (RFC 8083, Sec. 4), which act independently of its controller.
///
/// Stopped media restarts after three answers to report requests. If media stopped for a reason other than missing
/// reports, a pause must also have passed. The pause doubles with each such stop.
#[derive(Debug)]
pub(crate) struct Breakers {
    /// Whether the circuit breakers are enabled.
    act: bool,
    /// Whether the congestion breaker first reduces the rate to a tenth, and stops media only if congestion persists.
    warn: bool,
    report_interval: Span,
    /// Time between two decisions of the controller, which must be able to react before a breaker trips.
    period: Span,
    packet: Size,
    /// The start of the wait for a report. This is the latest of three times: the start of the session, the arrival of
    /// the last report, and the last time that the sender skipped a request because it had sent no media.
    heard: Instant<SenderClock>,
    /// Number of consecutive reports that state that no media arrived.
    without_media: u32,
    /// For each of the last reports, how many packets were sent and how many arrived. The congestion breaker uses these
    /// numbers.
    window: VecDeque<Proof>,
    /// Whether the rate was reduced to a tenth and has not fully recovered since.
    was_cut: bool,
    /// How often media was stopped for a pause since the rate last fully recovered.
    stops: u32,
    stopped: Option<Stopped>,
}

#[derive(Clone, Copy, Debug)]
struct Stopped {
    /// The earliest time at which media may restart.
    until: Instant<SenderClock>,
    /// Number of reports that answered a request and arrived after the stop.
    answers: u32,
}

impl Breakers {
    /// Time in seconds without a report after which media stops: three regular RTCP intervals of 5 s each (RFC 8083,
    /// Sec. 4.1; RFC 3550, Sec. 6.2). If the report interval is longer than 5 s, the time is three report
    /// intervals.
    pub(crate) const SECONDS: i64 = 15;
    /// k of RFC 8083, Sec. 4.2: the breaker trips if, for this number of report intervals, all reports state that no
    /// media arrived. If the round-trip time or the mean time between two packets is longer than a report interval, the
    /// longer of these two times replaces the report interval.
    const WITHOUT_MEDIA: i64 = 5;
    /// Maximum rate as a multiple of TCP's throughput (RFC 8083, Sec. 4.3).
    const TIMES_TCP: f64 = 10.0;
    /// Number of answered requests after which stopped media restarts. Our choice.
    const ANSWERS: u32 = 3;
    /// The first pause after a stop. Our choice: shorter than the time that a person needs to call again.
    const PAUSE: Span = Span::from_secs(5);
    /// The longest pause after a stop.
    const LONGEST_PAUSE: Span = Span::from_secs(300);

    /// Creates the breakers of a session over one path. The session starts at `start`, and its packets have at most the
    /// size `packet`. The session's controller decides once per report interval.
    pub(crate) fn new(act: bool, (report_interval, packet): (Span, Size), start: Instant<SenderClock>) -> Self {
        Self {
            act,
            warn: true,
            report_interval,
            period: report_interval,
            packet,
            heard: start,
            without_media: 0,
            window: VecDeque::new(),
            was_cut: false,
            stops: 0,
            stopped: None,
        }
    }

    /// Adapts the breakers to one path of a session over several paths. The controller decides once per `period`.
    /// Congestion stops the path without first reducing the rate to a tenth, because the other paths continue.
    pub(crate) fn of_path(self, period: Span) -> Self {
        Self { warn: false, period, ..self }
    }

    /// Whether media is stopped.
    pub(crate) const fn has_stopped(&self) -> bool {
        self.stopped.is_some()
    }

    /// Trips the breaker [`Breaker::Reports`] if too much time has passed at `now` since the last report.
    pub(crate) fn check(&mut self, now: Instant<SenderClock>) -> Option<Trip> {
        let limit = Span::from_secs(Self::SECONDS).max(self.report_interval * 3);
        (self.act && !self.has_stopped() && now - self.heard > limit).then(|| self.stop(now, Breaker::Reports))
    }

    /// Records that a report from the receiver arrived at `now`, or that none is expected at `now`.
    pub(crate) const fn on_heard(&mut self, now: Instant<SenderClock>) {
        self.heard = now;
    }

    /// Records that reports contradict what was sent ([`Breaker::Receipts`]).
    pub(crate) fn on_contradiction(&mut self, now: Instant<SenderClock>) -> Option<Trip> {
        (self.act && !self.has_stopped()).then(|| self.stop(now, Breaker::Receipts))
    }

    /// Records a report that states how many packets arrived.
    pub(crate) fn on_report(&mut self, now: Instant<SenderClock>, proof: Proof, round_trip: Span) -> Option<Trip> {
        self.heard = now;
        if let Some(stopped) = &mut self.stopped {
            stopped.answers = stopped.answers.saturating_add(1);
            return None;
        }
        if !self.act {
            return None;
        }
        self.is_without_media(&proof, round_trip)
            .then_some(Breaker::Media)
            .or_else(|| self.is_congested(proof, round_trip).then_some(Breaker::Congestion))
            .map(|breaker| self.trip(now, breaker))
    }

    /// Whether stopped media restarts at `now`.
    pub(crate) fn begins_again(&mut self, now: Instant<SenderClock>) -> bool {
        let begins = self.stopped.is_some_and(|it| it.answers >= Self::ANSWERS && now >= it.until);
        if begins {
            self.stopped = None;
            // Media restarts at the lowest rate. Reports on media at earlier rates say nothing about the new media.
            self.window.clear();
            self.without_media = 0;
        }
        begins
    }

    /// Must be called when no breaker limits the controller's rate. If a full window of reports has arrived since the
    /// last trip, forgets all trips.
    pub(crate) fn on_whole(&mut self) {
        if self.window.len() >= self.reports(Span::ZERO, Span::ZERO) {
            (self.was_cut, self.stops) = (false, 0);
        }
    }

    fn trip(&mut self, now: Instant<SenderClock>, breaker: Breaker) -> Trip {
        self.window.clear();
        if self.warn && breaker == Breaker::Congestion && !core::mem::replace(&mut self.was_cut, true) {
            return Trip::Tenth;
        }
        self.stop(now, breaker)
    }

    fn stop(&mut self, now: Instant<SenderClock>, breaker: Breaker) -> Trip {
        let pause = match breaker {
            // Media may restart without a pause: if reports arrive again, the receiver was only unreachable.
            Breaker::Reports => Span::ZERO,
            Breaker::Media | Breaker::Congestion | Breaker::Receipts => {
                self.stops = self.stops.saturating_add(1);
                (Self::PAUSE * (1 << (self.stops - 1).min(10))).min(Self::LONGEST_PAUSE)
            }
        };
        self.stopped = Some(Stopped { until: now + pause, answers: 0 });
        self.window.clear();
        Trip::Stop(breaker)
    }

    /// Records a report. Returns true if the media must stop, because several reports in a row state that no media
    /// arrived (RFC 8083, Sec. 4.2). The RFC computes the number of these reports from the frame interval. The frame
    /// interval is not known here, so the time between two packets is used instead.
    fn is_without_media(&mut self, proof: &Proof, round_trip: Span) -> bool {
        if proof.arrived > 0 {
            self.without_media = 0;
        }
        if proof.sent == 0 || proof.arrived > 0 {
            return false;
        }
        self.without_media = self.without_media.saturating_add(1);
        let gap = proof.gap();
        let longest = gap.max(round_trip).max(self.report_interval);
        let limit = ceil_div(longest * Self::WITHOUT_MEDIA, self.report_interval);
        usize::try_from(self.without_media).unwrap_or(usize::MAX) >= limit
    }

    /// Whether the sending rate is above ten times TCP's throughput at the measured loss (RFC 8083, Sec. 4.3). The
    /// RFC's `CB_INTERVAL` depends on the duration of a group of frames. This duration is not known here, so the time
    /// between two packets is used instead.
    fn is_congested(&mut self, proof: Proof, round_trip: Span) -> bool {
        if proof.sent == 0 {
            return false;
        }
        let gap = proof.gap();
        let reports = self.reports(gap, round_trip);
        self.window.push_back(proof);
        while self.window.len() > reports {
            self.window.pop_front();
        }
        if self.window.len() < reports || gap > self.report_interval.max(round_trip) {
            return false;
        }
        // Our choice: the loss is computed from the totals of all packets in the window. The RFC weights the loss in
        // each report by time instead. In the totals, a packet that arrives after the report on its interval does not
        // count as lost, because a later report counts it as arrived.
        let whole = self.window.iter().fold(Proof::default(), |whole, it| whole.and(*it));
        let tcp = tcp_throughput_bps(self.packet, round_trip, whole.fraction_lost());
        whole.sent_size.over(whole.sending).is_some_and(|rate| rate.as_bps_f64() > Self::TIMES_TCP * tcp)
    }

    /// `CB_INTERVAL`: the number of reports in the congestion breaker's window, at least three (RFC 8083, Sec. 4.3).
    fn reports(&self, gap: Span, round_trip: Span) -> usize {
        let interval = self.report_interval;
        let least = self.period * 3;
        let longest = (gap * 10).max(round_trip * 10).max(least);
        ceil_div(longest.min(Span::from_secs(Self::SECONDS).max(least)), interval)
    }
}

/// TCP's throughput in bit/s at a loss fraction (RFC 8083, Sec. 4.3), with b = 1 packet per acknowledgement; infinite
/// without loss.
fn tcp_throughput_bps(packet: Size, round_trip: Span, lost: f64) -> f64 {
    packet.as_bits() as f64 / (round_trip.as_secs_f64() * libm::sqrt(2.0 * lost / 3.0))
}

/// How many times `part` fits into `whole`, rounded up.
fn ceil_div(whole: Span, part: Span) -> usize {
    let (whole, part) = (whole.as_nanos().max(0), part.as_nanos().max(1));
    usize::try_from((whole + part - 1) / part).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Span = Span::from_secs(1);
    const PACKET: Size = Size::from_bytes(1000);

    fn at(seconds: i64) -> Instant<SenderClock> {
        Instant::ZERO + SECOND * seconds
    }

    /// Returns what a report states on one second in which `sent` packets were sent and `arrived` packets arrived.
    fn proof(sent: u64, arrived: u64) -> Proof {
        let size = |packets: u64| Size::from_bytes(1000 * packets);
        let (sent_size, arrived_size) = (size(sent), size(arrived));
        Proof { sent, arrived, sent_size, arrived_size, sending: SECOND, arriving: SECOND }
    }

    fn breakers() -> Breakers {
        Breakers::new(true, (SECOND, PACKET), Instant::ZERO)
    }

    /// Returns the first trip and its time in seconds, if one report per second arrives and all reports are equal.
    fn first_trip(breakers: &mut Breakers, (sent, arrived): (u64, u64), millis: i64) -> Option<(i64, Trip)> {
        let round_trip = Span::from_millis(millis);
        (1..100).find_map(|second| Some((second, breakers.on_report(at(second), proof(sent, arrived), round_trip)?)))
    }

    #[test]
    fn three_regular_intervals_without_a_report_stop_and_three_answers_begin_again() {
        let mut breakers = breakers();
        assert_eq!(breakers.check(at(15)), None);
        assert_eq!(breakers.check(at(16)), Some(Trip::Stop(Breaker::Reports)));
        for (second, begins) in [(20, false), (21, false), (22, true)] {
            assert_eq!(breakers.on_report(at(second), proof(0, 0), Span::ZERO), None);
            assert_eq!(breakers.begins_again(at(second)), begins);
        }
        assert!(!breakers.has_stopped());
    }

    #[test]
    fn five_reports_that_no_media_came_stop_and_more_where_the_round_trip_is_long() {
        assert_eq!(first_trip(&mut breakers(), (100, 0), 20), Some((5, Trip::Stop(Breaker::Media))));
        assert_eq!(first_trip(&mut breakers(), (100, 0), 2000), Some((10, Trip::Stop(Breaker::Media))));
        assert_eq!(first_trip(&mut breakers(), (0, 0), 20), None, "what was not sent cannot come");
    }

    /// The limit is calculated by hand: for packets of 1000 bytes, a round-trip time of 20 ms and a loss of 6 %, TCP's
    /// throughput is 8000 / (0.02 · sqrt(0.04)) = 2 Mbit/s. The limit is ten times this throughput: 20 Mbit/s.
    #[test]
    fn ten_times_tcps_throughput_is_too_much() {
        assert!((tcp_throughput_bps(PACKET, Span::from_millis(20), 0.06) - 2e6).abs() < 1.0);
        assert_eq!(first_trip(&mut breakers(), (2490, 2341), 20), None);
        let mut tripped = breakers();
        assert_eq!(first_trip(&mut tripped, (2510, 2359), 20), Some((3, Trip::Tenth)));
        assert_eq!(first_trip(&mut tripped, (2510, 2359), 20), Some((3, Trip::Stop(Breaker::Congestion))));
        // 10 round trips of 2 s are longer than the maximum window of 15 s, so the window is 15 s long. There is one
        // report per second, so the window has 15 reports.
        assert_eq!(first_trip(&mut breakers(), (2510, 251), 2000).map(|(second, _)| second), Some(15));
    }

    #[test]
    fn the_pause_after_congestion_doubles_until_the_whole_rate_has_held() {
        let mut breakers = breakers();
        let mut now = 0;
        let mut pauses = [0; 8];
        for pause in &mut pauses {
            breakers.was_cut = true;
            breakers.window.clear();
            while !breakers.has_stopped() {
                now += 1;
                breakers.on_report(at(now), proof(2510, 251), Span::from_millis(20));
            }
            let stopped = now;
            while !breakers.begins_again(at(now)) {
                now += 1;
                breakers.on_report(at(now), proof(0, 0), Span::ZERO);
            }
            *pause = now - stopped;
        }
        assert_eq!(pauses, [5, 10, 20, 40, 80, 160, 300, 300]);
        (0..3).for_each(|_| assert_eq!(breakers.on_report(at(now), proof(100, 100), Span::ZERO), None));
        breakers.on_whole();
        assert!(!breakers.was_cut && breakers.stops == 0);
    }

    #[test]
    fn contradictions_stop() {
        let mut breakers = breakers();
        assert_eq!(breakers.on_contradiction(at(1)), Some(Trip::Stop(Breaker::Receipts)));
        assert_eq!(breakers.on_contradiction(at(1)), None, "it has stopped");
    }
}
