//! Defines RAP as its authors do: the receiver acknowledges every packet, and each acknowledgement changes the rate.
//!
//! The library's `rap` is updated once per report interval. Here a TCP host provides the acknowledgements, and each
//! acknowledgement counts as one interval. So the control law is that of `rap`, and only the feedback differs. The TCP
//! host detects losses from later acknowledgements, and retransmits. RAP itself does not retransmit; here, a
//! retransmission is sent in place of a new packet.

use equipoise::control::window::{Acknowledged, BoxedWindowController, WindowContext, WindowController};
use equipoise::control::{Controller, Entry, Feedback, IntervalSummary, Rap, RateLimits};
use equipoise::units::{Instant, Rate, SenderClock};
use equipoise_lab::scenario::{Catalogue, Override, Scenario};

use super::setting::RIVALS;

/// The minimum and the maximum rate of RAP in the scenario. The minimum is the initial rate in Tobe 1999, Sec. 6.2, and
/// the maximum is the rate of the bottleneck.
const LIMITS: [Rate; 2] = [Rate::from_bps(10_000), Rate::from_bps(1_200_000)];

static ENTRY: Entry<BoxedWindowController, WindowContext> = Entry {
    name: "rap-acknowledged",
    summary: "RAP, told of every acknowledgement",
    source: "Rejaie 1999, Sec. III",
    parameters: &[],
    make: |_, context| {
        let limits = RateLimits::new(LIMITS[0], LIMITS[1])?;
        Ok(Box::new(PerPacket(Rap::new(limits, context.packet))))
    },
};

/// Returns the scenario of Tobe 1999, Sec. 6.2, in which flow 3 uses RAP with acknowledgements.
pub(super) fn scenario() -> Scenario {
    let of_media = |key: &str| format!("flow.\"flow 3\".{key}");
    let changes = [
        Override::remove(of_media("controller")),
        Override::remove(of_media("report_interval")),
        Override::remove(of_media("rtcp")),
        Override::set(of_media("window.name"), ENTRY.name),
        Override::set(of_media("tcp.delayed_acks"), "off"),
    ];
    let mut catalogue = Catalogue::default();
    // These calls cannot fail: no built-in window law has the name of `ENTRY`, and the scenario's text is part of the
    // program.
    let added = catalogue.window_laws.add(&ENTRY).map_err(|taken| taken.to_string());
    let parsed =
        added.and_then(|()| Scenario::parse_in(&catalogue, RIVALS, &changes).map_err(|error| error.to_string()));
    match parsed {
        Ok(scenario) => scenario,
        Err(error) => unreachable!("a scenario of the program itself is wrong: {error}"),
    }
}

/// Uses a rate controller as a window controller. The window is not limited, and the packets are paced at the
/// controller's rate.
#[derive(Debug)]
struct PerPacket(Rap);

impl PerPacket {
    fn tell(&mut self, now: Instant<SenderClock>, fraction_lost: f64, ack: &Acknowledged) {
        let mut summary = IntervalSummary::unmeasured();
        summary.fraction_lost = Some(fraction_lost);
        summary.round_trip = ack.round_trip;
        summary.packets = Some(ack.segments.max(1));
        self.0.on_feedback(now, &Feedback::Interval(summary));
    }
}

impl WindowController for PerPacket {
    fn on_ack(&mut self, now: Instant<SenderClock>, ack: &Acknowledged) {
        self.tell(now, 0.0, ack);
    }

    fn on_loss(&mut self, now: Instant<SenderClock>, _in_flight: u64) {
        self.tell(now, 1.0, &Acknowledged::default());
    }

    fn on_timeout(&mut self, now: Instant<SenderClock>, _in_flight: u64) {
        self.0.on_feedback(now, &Feedback::Silent { reports: 3 });
    }

    fn on_restart(&mut self, _now: Instant<SenderClock>, _window: f64) {}

    fn window(&self) -> f64 {
        f64::INFINITY
    }

    fn slow_start_threshold(&self) -> Option<f64> {
        None
    }

    fn reset_to(&mut self, _window: f64) {}

    fn pacing_rate(&self) -> Option<Rate> {
        self.0.allowance().rate
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use equipoise::units::{Size, Span};

    /// RAP adds one packet of 8000 bits per round-trip time of 100 ms, so the rate rises by 80 kbit/s per round-trip
    /// time. With an acknowledgement every 10 ms, each acknowledgement after the first one raises the rate by 8 kbit/s.
    /// A loss halves the rate. Further losses within 100 ms count as the same event.
    #[test]
    fn every_acknowledgement_is_a_part_of_a_step_and_a_loss_is_answered_at_once() {
        let limits = RateLimits::new(Rate::from_bps(10_000), Rate::from_bps(1_200_000)).expect("in order");
        let mut law = PerPacket(Rap::new(limits, Size::from_bytes(1000)));
        let at = |millis| Instant::ZERO + Span::from_millis(millis);
        let ack = Acknowledged { segments: 1, round_trip: Some(Span::from_millis(100)), ..Acknowledged::default() };
        let rate = |law: &PerPacket| law.pacing_rate().expect("a rate").as_bps();
        law.on_ack(at(0), &ack);
        assert_eq!(rate(&law), 90_000, "the first counts for a round trip");
        (1..=10).for_each(|number| law.on_ack(at(10 * number), &ack));
        assert_eq!(rate(&law), 170_000);
        law.on_loss(at(105), 9);
        law.on_loss(at(150), 9);
        assert_eq!(rate(&law), 85_000);
        law.on_timeout(at(1000), 9);
        assert_eq!(rate(&law), 42_500);
        assert!(law.window().is_infinite());
    }

    #[test]
    fn the_scenario_has_it_as_flow_3_with_each_packet_acknowledged() {
        let scenario = scenario();
        let tcp = scenario.flows[2].connection().expect("over TCP's acknowledgements");
        assert_eq!((tcp.name(), tcp.receive_window, tcp.delayed_acks), (ENTRY.name, None, None));
    }
}
