//! Tests of metrics, compared with values computed by hand from a short trace.

use equipoise::units::{Instant, SenderClock, Size, Span};
use equipoise_lab::record::Recorder;
use equipoise_lab::result::Stall;
use equipoise_lab::scenario::Scenario;
use equipoise_lab::sim;
use equipoise_session::{DropReason, Ecn, Event};

const SCENARIO: &str = r#"
name = "by-hand"
duration = "8 s"
warm_up = "1 s"

[[link]]
name = "only"
rate = "15 Mbit/s"
delay = "1 ms"
queue = "10 packets"

[[flow]]
name = "media"
path = ["only"]
packet_size = "1000 B"
report_interval = "1 s"
controller = { name = "ap", target = "10 ms" }
"#;

const ORIGIN: u64 = 1_000_000_000_000;

fn sent_at(millis: i64) -> Instant<SenderClock> {
    Instant::from_nanos(ORIGIN) + Span::from_millis(millis)
}

/// Records that a packet is sent at `millis`. It arrives after `delay_ms`, or is lost if `delay_ms` is `None`.
fn packet(recorder: &mut Recorder, millis: i64, delay_ms: Option<i64>) {
    let size = Size::from_bytes(1000);
    recorder.on_event(
        Span::from_millis(millis),
        0,
        &Event::MediaSent { sequence: 0, size, waited: Span::ZERO, fragment: None },
    );
    if let Some(delay) = delay_ms {
        let (sent, delay) = (sent_at(millis), Span::from_millis(delay));
        let received = Event::MediaReceived { sequence: 0, sent, delay, size, ecn: Ecn::NotCapable };
        recorder.on_event(Span::from_millis(millis) + delay, 0, &received);
    }
}

fn close(found: Option<f64>, expected: f64) {
    let found = found.expect("measured");
    assert!((found / expected - 1.0).abs() < 1e-9, "{found} is not {expected}");
}

#[test]
fn intervals_and_criteria_are_those_of_the_hand() {
    let scenario = Scenario::parse(SCENARIO).expect("a right scenario");
    let mut recorder = Recorder::new(&scenario, Instant::from_nanos(ORIGIN));
    // This packet is sent during the warm-up, so it counts only for the totals.
    packet(&mut recorder, 500, Some(100));
    // The intervals that start at 1, 2 and 3 s have mean delays of 8, 12 and 11 ms. The packet that is sent at 2995 ms
    // arrives after 3 s, but counts for the interval in which it is sent. The last packet is lost.
    for (millis, delay) in [(1100, Some(6)), (1200, Some(10)), (2100, Some(10)), (2995, Some(14))] {
        packet(&mut recorder, millis, delay);
    }
    for (millis, delay) in [(3100, Some(11)), (3200, None)] {
        packet(&mut recorder, millis, delay);
    }
    recorder.on_event(Span::from_secs(3), 0, &Event::Ignored(DropReason::Foreign));
    recorder.on_event(Span::from_secs(3), 0, &Event::PacingReset { late: Span::from_millis(50) });
    let stalls = [Stall { start_s: 2.2, end_s: 2.4 }];
    let flows = recorder.finish(Span::from_secs(8), &stalls);
    let flow = &flows[0];
    assert_eq!((flow.packets_sent, flow.packets_received, flow.packets_lost), (7, 6, 1));
    let means: Vec<_> =
        flow.intervals.iter().map(|interval| interval.delay_mean_s.map(|m| (m * 1e3).round())).collect();
    assert_eq!(means, [Some(100.0), Some(8.0), Some(12.0), Some(11.0)]);
    assert_eq!(flow.intervals.iter().map(|i| i.stalled).collect::<Vec<_>>(), [false, false, true, false]);
    assert_eq!(flow.intervals.iter().map(|i| i.packets_lost).collect::<Vec<_>>(), [0, 0, 0, 1]);
    close(Some(flow.intervals[1].rate_bps), 16_000.0);
    // The two delays are 6 and 10 ms, so the variance is 8 ms² with divisor n - 1.
    close(flow.intervals[1].delay_variance_s2, 8e-6);
    // The mean squared error from the target is (4 + 4 + 1) / 3 ms².
    close(flow.mse_s2, 3e-6);
    // The mean of the intervals' delays is 31/3 ms, and the squared distances from the mean are 49/9, 25/9 and 4/9 ms².
    close(flow.cv, (78.0f64 / 27.0).sqrt() / (31.0 / 3.0));
    close(flow.jitter_s, 2e-3);
    close(flow.settled_delay_s, 11e-3);
    // Six packets of 8000 bits were sent in the seven seconds after the warm-up.
    close(flow.mean_rate_bps, 48_000.0 / 7.0);
    assert_eq!((flow.ignored.get("foreign"), flow.pacing_resets), (Some(&1), 1));
    assert_eq!(flow.distribution.len(), 5, "a point for each of the five packets after the warm-up");
}

#[test]
fn rows_are_given_out_once_and_after_their_packets_have_arrived() {
    let scenario = Scenario::parse(SCENARIO).expect("a right scenario");
    let mut recorder = Recorder::new(&scenario, Instant::from_nanos(ORIGIN));
    packet(&mut recorder, 100, Some(9));
    packet(&mut recorder, 1100, Some(9));
    assert!(recorder.take_rows(Span::from_millis(1500)).is_empty(), "its last packets may be in flight");
    let rows = recorder.take_rows(Span::from_secs(2));
    assert_eq!(rows.len(), 1);
    assert!((rows[0].delay_mean_s.expect("one packet") - 9e-3).abs() < 1e-12);
    assert!(recorder.take_rows(Span::from_secs(2)).is_empty());
}

#[test]
fn a_run_without_a_packet_has_no_figures_and_no_nan() {
    let scenario = Scenario::parse(SCENARIO).expect("a right scenario");
    let flows = Recorder::new(&scenario, Instant::from_nanos(ORIGIN)).finish(Span::from_secs(8), &[]);
    assert_eq!((flows[0].delay.mean_s, flows[0].mse_s2, flows[0].settled_delay_s), (None, None, None));
    assert!(flows[0].intervals.is_empty() && flows[0].distribution.is_empty());
}

/// If this test fails, the goodput includes the time after the transfer: 10 MB that take 18 s are divided by the 60 s
/// from the start of the flow to the planned end of the run, which gives 1.3 Mbit/s.
#[test]
fn the_goodput_of_a_finite_transfer_is_that_of_the_time_it_took() {
    let text = r#"
name = "transfer"
duration = "90 s"
warm_up = "5 s"
[[link]]
name = "only"
rate = "5 Mbit/s"
delay = "10 ms"
queue = "100 ms"
[[flow]]
name = "upload"
path = ["only"]
packet_size = "1500 B"
start = "30 s"
window = { name = "reno" }
tcp = { transfer = "10 MB" }
"#;
    let tcp = |text: &str| {
        let scenario = Scenario::parse(text).expect("a right scenario");
        let run = sim::simulate(&scenario, 1, &mut |_| {}).expect("it can be simulated");
        run.flows.into_iter().next().and_then(|flow| flow.tcp).expect("a connection")
    };
    let upload = tcp(text);
    let took_s = upload.finished_s.expect("it has the time") - 30.0;
    close(upload.goodput_bps, upload.delivered_bytes as f64 * 8.0 / took_s);
    assert!(upload.goodput_bps.is_some_and(|goodput| (4e6..5e6).contains(&goodput)), "{:?}", upload.goodput_bps);
    // A transfer that was complete before the end of the warm-up has no data after the warm-up to measure.
    assert_eq!(tcp(&text.replace("\"5 s\"", "\"80 s\"")).goodput_bps, None);
}
