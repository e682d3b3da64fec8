use super::cluster::Clusters;
use super::throughput::Arrival;
use crate::control::{Probe, RateLimits, SentPacket};
use crate::units::{Instant, Rate, SenderClock, Size, Span};

/// Decides when to probe, and at which rate.
///
/// The first two probes have 3 and 6 times the start rate. Each time the allowed rate exceeds 70 % of the rate of the
/// last probe, a further probe follows at twice the allowed rate. If the allowed rate of an app-limited flow drops by
/// more than 34 %, there is a probe at 85 % of the rate before the drop, as soon as the queue is normal again. If
/// configured, there is a probe at twice the allowed rate every 5 s while the flow is app-limited. While delay or
/// losses keep the allowed rate down, there are no probes. While the allowed rate rises in spite of losses, a probe has
/// at most 1.5 times the allowed rate.
///
/// Source: libwebrtc, `probe_controller`.
///
/// Our interpretation: the first packet sent corresponds to libwebrtc's event of an available network. The controller
/// interface has no allocation of the rate to streams. Therefore a change of the allocation causes no probe, and probes
/// are not limited to twice the allocation. Probes that were not wholly sent within a second are withdrawn.
#[derive(Clone, Debug)]
pub(super) struct Probing {
    is_periodic: bool,
    max_bps: f64,
    bps: f64,
    state: State,
    /// If the allowed rate, in bit/s, exceeds this value after a probe, a further probe follows.
    further_bps: f64,
    limit: ProbeLimit,
    began: Option<Instant<SenderClock>>,
    started: Option<Instant<SenderClock>>,
    handled: Instant<SenderClock>,
    drop: Option<LargeDrop>,
    drop_probed: Option<Instant<SenderClock>>,
    limited_since: Option<Instant<SenderClock>>,
    limit_ended: Option<Instant<SenderClock>>,
    queue: [Option<Probe>; QUEUE],
    clusters: Clusters,
    count: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Beginning,
    Waiting,
    Complete,
}

#[derive(Clone, Copy, Debug)]
struct LargeDrop {
    at: Instant<SenderClock>,
    from_bps: f64,
}

/// What limits the rate, and therefore the probes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ProbeLimit {
    /// Neither delay, losses nor the round-trip time keeps the rate down: probes are allowed.
    Open,
    /// Losses limit the rate, but the rate rises: probes are allowed up to 1.5 times the rate.
    Losses,
    /// Delay, losses or the round-trip time keep the rate down: no probe is allowed.
    Closed,
}

// All constants below, except the last two, are from libwebrtc, `probe_controller`.
/// Rates of the first two probes, as multiples of the start rate.
const FIRST: [f64; 2] = [3.0, 6.0];
/// Rate of a further probe, as a multiple of the allowed rate.
const FURTHER: f64 = 2.0;
/// A further probe follows only if the allowed rate exceeds this share of the rate of the last probe.
const WORTHWHILE: f64 = 0.7;
/// Minimum number of packets in a probe.
const PACKETS: u32 = 5;
/// Minimum duration of a probe, in s.
const LENGTH_S: f64 = 0.015;
/// How long to wait for the result of a probe.
const PATIENCE: Span = Span::from_secs(1);
/// A drop of the rate is large if the new rate is below this share of the old rate.
const LARGE_DROP: f64 = 0.66;
/// How long a large drop of the rate is remembered.
const DROP_REMEMBERED: Span = Span::from_secs(5);
/// Rate of a probe after a drop, as a share of the rate before the drop.
const AFTER_DROP: f64 = 0.85;
/// A probe after a drop of the rate is useful only if the probe's rate, reduced by this share, exceeds the current
/// rate.
const UNCERTAINTY: f64 = 0.05;
/// Minimum time between two probes after drops of the rate.
const DROP_PROBES: Span = Span::from_secs(5);
/// A probe after a drop of the rate may start only if the flow is app-limited, or if the flow's last app-limited phase
/// ended less than this time ago.
const LIMIT_REMEMBERED: Span = Span::from_secs(3);
/// Time between two periodic probes.
const PERIOD: Span = Span::from_secs(5);
/// Rate of a periodic probe, as a multiple of the allowed rate.
const PERIODIC: f64 = 2.0;
/// The highest rate of a probe while the allowed rate rises in spite of losses, as a multiple of the allowed rate.
const UNDER_LOSSES: f64 = 1.5;
/// Time after which a probe that was not possible is tried again. Source: the process interval of libwebrtc,
/// `goog_cc_factory`.
const RETRY: Span = Span::from_millis(25);
/// Size of the queue of probes. Our choice: twice the largest number of probes that are requested at once.
const QUEUE: usize = 4;

impl Probing {
    pub(super) fn new(limits: RateLimits, is_periodic: bool) -> Self {
        Self {
            is_periodic,
            max_bps: limits.max().as_bps_f64(),
            bps: limits.start().as_bps_f64(),
            state: State::Beginning,
            further_bps: f64::INFINITY,
            limit: ProbeLimit::Open,
            began: None,
            started: None,
            handled: Instant::ZERO,
            drop: None,
            drop_probed: None,
            limited_since: None,
            limit_ended: None,
            queue: [None; QUEUE],
            clusters: Clusters::default(),
            count: 0,
        }
    }

    /// Returns the next probe to send.
    pub(super) const fn wanted(&self) -> Option<Probe> {
        self.queue[0]
    }

    /// Records a packet that was sent.
    pub(super) fn on_sent(&mut self, now: Instant<SenderClock>, packet: &SentPacket) {
        self.began.get_or_insert(now);
        if self.state == State::Beginning {
            let start = self.bps;
            self.start(now, &FIRST.map(|multiple| multiple * start), true);
        }
        let Some(number) = packet.probe else { return };
        let Some(place) = self.queue.iter().position(|probe| probe.is_some_and(|probe| probe.number == number)) else {
            self.clusters.on_sent(None, number, packet);
            return;
        };
        if self.clusters.on_sent(self.queue[place], number, packet) {
            self.queue[place..].rotate_left(1);
            self.queue[QUEUE - 1] = None;
        }
    }

    /// Records a packet that arrived. Returns the rate in bit/s that the packet's probe has proved, if any.
    pub(super) fn on_arrival(&mut self, packet: &Arrival) -> Option<f64> {
        self.clusters.on_arrival(packet)
    }

    /// Sets the time since which the flow is app-limited; `None` if the flow is not app-limited.
    pub(super) fn set_app_limit(&mut self, now: Instant<SenderClock>, since: Option<Instant<SenderClock>>) {
        if self.limited_since.is_some() && since.is_none() {
            self.limit_ended = Some(now);
        }
        self.limited_since = since;
    }

    /// Records the allowed rate `bps`, in bit/s, and what limits this rate.
    pub(super) fn on_estimate(&mut self, now: Instant<SenderClock>, bps: f64, limit: ProbeLimit) {
        self.limit = limit;
        if bps < LARGE_DROP * self.bps {
            self.drop = Some(LargeDrop { at: now, from_bps: self.bps });
        }
        self.bps = bps;
        if self.state == State::Waiting && bps > self.further_bps {
            self.start(now, &[FURTHER * bps], true);
        }
    }

    /// Must be called when the detector's state changes from underuse to normal. May request a probe if a large drop of
    /// the rate occurred within the last `DROP_REMEMBERED`.
    pub(super) fn on_recovered(&mut self, now: Instant<SenderClock>) {
        let was_limited = self.limit_ended.is_some_and(|ended| now - ended < LIMIT_REMEMBERED);
        let (Some(drop), true) = (self.drop, self.limited_since.is_some() || was_limited) else { return };
        let wanted = AFTER_DROP * drop.from_bps;
        let is_rare = self.drop_probed.or(self.began).is_none_or(|last| now - last > DROP_PROBES);
        let is_useful = (1.0 - UNCERTAINTY) * wanted > self.bps && now - drop.at < DROP_REMEMBERED;
        if self.state == State::Complete && is_rare && is_useful {
            self.drop_probed = Some(now);
            self.start(now, &[wanted], false);
        }
    }

    /// Called at the time that [`next_timer`](Self::next_timer) returned.
    pub(super) fn on_timer(&mut self, now: Instant<SenderClock>) {
        self.handled = now;
        if self.started.is_some_and(|started| now - started >= PATIENCE) {
            self.queue = [None; QUEUE];
            if self.state == State::Waiting {
                self.complete();
            }
        }
        if self.state == State::Complete && self.periodic().is_some_and(|due| now >= due) {
            self.start(now, &[PERIODIC * self.bps], true);
        }
    }

    /// Returns the time at which [`on_timer`](Self::on_timer) must be called. This time is at least [`RETRY`] after the
    /// last call of `on_timer`.
    pub(super) fn next_timer(&self) -> Option<Instant<SenderClock>> {
        let is_open = self.state == State::Waiting || self.wanted().is_some();
        let given_up = self.started.filter(|_| is_open).map(|started| started + PATIENCE);
        let periodic = self.periodic().filter(|_| self.state == State::Complete);
        let next = [given_up, periodic].into_iter().flatten().min()?;
        Some(next.max(self.handled + RETRY))
    }

    fn periodic(&self) -> Option<Instant<SenderClock>> {
        let since = self.limited_since.filter(|_| self.is_periodic)?;
        Some(self.started.map_or(since, |started| started.max(since)) + PERIOD)
    }

    const fn complete(&mut self) {
        self.state = State::Complete;
        self.further_bps = f64::INFINITY;
    }

    /// Requests probes at these rates, in bit/s. The limit on probes may lower these rates, or forbid the probes. If
    /// `is_further`, a further probe may follow the last of these probes.
    fn start(&mut self, now: Instant<SenderClock>, rates: &[f64], mut is_further: bool) {
        let most = match self.limit {
            ProbeLimit::Open => self.max_bps,
            ProbeLimit::Losses => self.max_bps.min(UNDER_LOSSES * self.bps),
            ProbeLimit::Closed => return,
        };
        let mut last = 0.0;
        for bps in rates {
            is_further &= *bps < most;
            last = bps.min(most);
            self.enqueue(last);
        }
        self.started = Some(now);
        self.complete();
        if is_further {
            self.state = State::Waiting;
            self.further_bps = WORTHWHILE * last;
        }
    }

    fn enqueue(&mut self, bps: f64) {
        let Some(rate) = Rate::from_bps_f64(bps) else { return };
        self.count += 1;
        let size = Size::from_bytes((bps * LENGTH_S / 8.0) as u64);
        let probe = Some(Probe::new(self.count, rate, PACKETS, size));
        match self.queue.iter_mut().find(|place| place.is_none()) {
            Some(place) => *place = probe,
            None => self.queue[QUEUE - 1] = probe,
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    fn at(millis: u64) -> Instant<SenderClock> {
        Instant::from_nanos(millis * 1_000_000)
    }

    fn probing(max_kbps: u64, is_periodic: bool) -> Probing {
        let limits = RateLimits::within(Rate::from_bps(5000), Rate::from_bps(1000 * max_kbps));
        let mut probing = Probing::new(limits.starting_at(Rate::from_bps(300_000)), is_periodic);
        probing.on_sent(at(0), &SentPacket::new(0, Size::from_bytes(1000), Size::ZERO));
        probing
    }

    /// Sends all wanted probes, and returns their rates in kbit/s, in order.
    fn wanted(probing: &mut Probing) -> Vec<u64> {
        core::iter::from_fn(|| {
            let probe = probing.wanted()?;
            (0..PACKETS).for_each(|_| {
                let packet = SentPacket::new(1, Size::from_bytes(100_000), Size::ZERO).of_probe(probe.number);
                probing.on_sent(at(1), &packet);
            });
            Some(probe.rate.as_bps() / 1000)
        })
        .collect()
    }

    #[test]
    fn the_first_probes_are_three_and_six_times_the_first_rate_and_then_twice_the_result() {
        let mut probing = probing(50_000, false);
        assert_eq!(wanted(&mut probing), [900, 1800]);
        probing.on_estimate(at(100), 1.25e6, ProbeLimit::Open);
        assert_eq!(wanted(&mut probing), [] as [u64; 0], "less than 70 % of 1800");
        probing.on_estimate(at(200), 1.7e6, ProbeLimit::Open);
        assert_eq!(wanted(&mut probing), [3400]);
        probing.on_timer(at(1300));
        probing.on_estimate(at(1400), 3.4e6, ProbeLimit::Open);
        assert_eq!(wanted(&mut probing), [] as [u64; 0], "given up");
    }

    #[test]
    fn no_probe_is_above_the_highest_rate_and_such_a_one_is_the_last() {
        let mut probing = probing(1000, false);
        assert_eq!(wanted(&mut probing), [900, 1000]);
        probing.on_estimate(at(100), 1e6, ProbeLimit::Open);
        assert_eq!(wanted(&mut probing), [] as [u64; 0]);
    }

    #[test]
    fn a_probe_has_five_packets_and_fifteen_milliseconds_at_least() {
        let mut probing = probing(50_000, false);
        let probe = probing.wanted().expect("the first");
        // 900 kbit/s for 15 ms are 1687 bytes.
        assert_eq!((probe.packets, probe.size), (5, Size::from_bytes(1687)));
        for number in 1..5 {
            probing.on_sent(at(0), &SentPacket::new(number, Size::from_bytes(1000), Size::ZERO).of_probe(probe.number));
            assert_eq!(probing.wanted(), Some(probe));
        }
        probing.on_sent(at(0), &SentPacket::new(5, Size::from_bytes(1000), Size::ZERO).of_probe(probe.number));
        assert_eq!(probing.wanted().map(|probe| probe.number), Some(2));
    }

    #[test]
    fn what_nobody_sends_is_given_up_after_a_second() {
        let mut probing = probing(50_000, false);
        assert_eq!(probing.next_timer(), Some(at(1000)));
        probing.on_timer(at(1000));
        assert_eq!((probing.wanted(), probing.next_timer()), (None, None));
    }

    #[test]
    fn an_application_that_limits_the_rate_is_probed_each_five_seconds_if_asked_for() {
        for (is_periodic, found) in [(false, None), (true, Some(at(7000)))] {
            let mut probing = probing(50_000, is_periodic);
            probing.on_timer(at(1000));
            probing.set_app_limit(at(2000), Some(at(2000)));
            assert_eq!(probing.next_timer(), found);
        }
        let mut probing = probing(50_000, true);
        probing.on_timer(at(1000));
        probing.set_app_limit(at(2000), Some(at(2000)));
        probing.on_estimate(at(2000), 300e3, ProbeLimit::Closed);
        probing.on_timer(at(7000));
        assert_eq!((probing.wanted(), probing.next_timer()), (None, Some(at(7025))), "not while it is held down");
        probing.on_estimate(at(7010), 300e3, ProbeLimit::Losses);
        probing.on_timer(at(7025));
        assert_eq!(wanted(&mut probing), [450]);
    }

    #[test]
    fn after_a_large_drop_most_of_the_old_rate_is_probed_once() {
        let mut probing = probing(50_000, false);
        probing.on_timer(at(1000));
        probing.set_app_limit(at(2000), Some(at(2000)));
        for (at_ms, bps) in [(6000, 3e6), (7000, 1e6)] {
            probing.on_estimate(at(at_ms), bps, ProbeLimit::Open);
        }
        probing.on_recovered(at(8000));
        assert_eq!(wanted(&mut probing), [2550]);
        probing.on_recovered(at(9000));
        assert_eq!(wanted(&mut probing), [] as [u64; 0], "too soon");
    }
}
