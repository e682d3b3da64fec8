//! Tests of sessions that send live media: frames of encoders, audio, pauses, and invalid settings.

use std::sync::atomic::AtomicBool;

use equipoise_lab::live::{self, Setup, Stage};
use equipoise_lab::result::{FlowResult, FramesResult, Report};
use equipoise_lab::scenario::{Override, Scenario, Value};
use equipoise_lab::sim;

/// A call at a constant rate over a link whose capacity is twice this rate. The propagation delay is 20 ms, and packets
/// have at most 1000 bytes.
const CALL: &str = r#"
name = "call"
duration = "60 s"
warm_up = "2 s"

[[link]]
name = "only"
rate = "2 Mbit/s"
delay = "20 ms"

[[flow]]
name = "call"
path = ["only"]
packet_size = "1000 B"
report_interval = "100 ms"
controller = { name = "cbr", rate = "1 Mbit/s" }
source = [
    { kind = "encoder", frame_rate = 25, interval_spread = 0, size_spread = 0, burst = "0 B" },
    { kind = "audio" },
]
"#;

fn call(overrides: &[Override]) -> Scenario {
    Scenario::parse_with(CALL, overrides).unwrap_or_else(|error| panic!("{error}"))
}

fn run(scenario: &Scenario) -> FlowResult {
    let mut run = sim::simulate(scenario, 1, &mut |_| {}).unwrap_or_else(|error| panic!("{error}"));
    run.flows.remove(0)
}

fn video(flow: &FlowResult) -> FramesResult {
    flow.video.expect("it sends video")
}

/// Returns a TOML list of tables with these keys and values.
fn list(tables: &[&[(&str, &str)]]) -> Value {
    let table = |keys: &&[(&str, &str)]| {
        Value::Table(keys.iter().map(|(key, value)| ((*key).to_owned(), Value::String((*value).to_owned()))).collect())
    };
    Value::Array(tables.iter().map(table).collect())
}

fn refused(overrides: &[Override]) -> String {
    Scenario::parse_with(CALL, overrides).expect_err("it is wrong").to_string()
}

/// Of the rate of 1 Mbit/s, audio takes 42.4 kbit/s. The rest is 4788 bytes for each of 25 video frames per second.
/// Half a header (28 bytes) is subtracted, because the last packet of a frame is half full on average. A full packet
/// has 944 bytes of payload in 1000 bytes, so 4493 of the remaining 4760 bytes are payload. This is five packets.
///
/// The first packet is sent immediately. Each further packet is sent 5.33 ms after the previous one, which is the time
/// of 1000 bytes at the pacing rate of 1.5 Mbit/s. The transmission of the last packet takes less than 4 ms at 2
/// Mbit/s, and its propagation takes 20 ms.
#[test]
fn a_frame_takes_its_packets_own_time_and_the_way() {
    let flow = run(&call(&[]));
    let frames = video(&flow);
    assert_eq!((frames.captured, frames.skipped, frames.lost, frames.late, frames.freezes), (1451, 0, 0, 0, 0));
    let (median, most) = (frames.delay.p50_s.expect("frames"), frames.delay.max_s.expect("frames"));
    assert!((0.0425..0.050).contains(&median), "{median}");
    assert!(most < 0.052, "{most}");
    let audio = flow.audio.expect("it sends audio");
    assert_eq!((audio.captured, audio.lost, audio.late), (2901, 0, 0));
    // The delay of an audio packet has four parts: 20 ms of propagation, at most 0.6 ms for its own 106 bytes, at most
    // 5.4 ms behind one video packet at the sender, and at most 4 ms behind one video packet in the queue.
    assert!(audio.delay.max_s.expect("frames") < 0.020 + 0.0006 + 0.0054 + 0.004, "{:?}", audio.delay);
    let rate = flow.mean_rate_bps.expect("a rate") / 1e6;
    assert!((0.97..1.005).contains(&rate), "{rate} Mbit/s of IP packets");
}

/// If this test fails, the noise of the encoder model changes the mean of the sizes, or the sent rate differs from the
/// requested rate.
#[test]
fn a_noisy_encoder_with_transients_keeps_to_the_rate() {
    let defaults = |key: &str| Override::remove(format!("flow.call.source.0.{key}"));
    let rfc = call(&["interval_spread", "size_spread", "burst", "frame_rate"].map(defaults));
    let flow = run(&rfc);
    let rate = flow.mean_rate_bps.expect("a rate") / 1e6;
    assert!((0.95..1.02).contains(&rate), "{rate}");
    let p99 = video(&flow).delay.p99_s.expect("frames");
    assert!((0.05..0.2).contains(&p99), "{p99}");
}

#[test]
fn a_dead_link_is_a_freeze_and_a_pause_is_none() {
    let steps = list(&[&[("at", "20 s"), ("rate", "0 bit/s")], &[("at", "21 s"), ("rate", "2 Mbit/s")]]);
    let dead = video(&run(&call(&[Override::set("link.only.steps", steps)])));
    assert_eq!(dead.freezes, 1, "{dead:?}");
    assert!((1.0..1.1).contains(&dead.longest_freeze_s), "{dead:?}");
    assert!(dead.late > 10 && dead.lost == 0, "what waited comes late: {dead:?}");
    let pause = list(&[&[("at", "20 s"), ("until", "30 s")], &[("at", "50 s")]]);
    let paused = run(&call(&[Override::set("flow.call.pause", pause)]));
    let frames = video(&paused);
    assert_eq!((frames.captured, frames.freezes, frames.lost), (950, 0, 0), "38 s are left: {frames:?}");
    let silent = paused.intervals.iter().filter(|it| it.start_s >= 20.1 && it.end_s <= 30.0);
    assert!(silent.clone().count() > 90 && silent.clone().all(|it| it.packets == 0));
}

/// If this test fails, the sender does not skip frames although the encoder produces twice the allowed rate, or the
/// frames that the sender sends are late.
#[test]
fn frames_are_skipped_in_place_of_late() {
    let set = |key: &str, value: &str| Override::set(key, value);
    let least = [set("flow.call.controller.rate", "400 kbit/s"), set("flow.call.source.0.min_rate", "800 kbit/s")];
    let without = video(&run(&call(&least)));
    assert!(without.late > 900 && without.skipped == 0, "{without:?}");
    let with = video(&run(&call(&[&least[..], &[set("flow.call.skip_after", "100 ms")]].concat())));
    assert!(with.skipped > 200 && with.late == 0 && with.lost == 0, "{with:?}");
    assert!(with.delay.p95_s.expect("frames") < 0.3, "{with:?}");
}

/// If this test fails, the number, the delay or the loss of frames differs between live and simulated runs by more than
/// the timing errors of the machine explain.
#[test]
#[ignore = "real time: 8 s"]
fn a_call_does_the_same_live_as_simulated() {
    let scenario = call(&[Override::set("duration", "8 s")]);
    let simulated = run(&scenario);
    let setup = Setup::new(1, Stage::Loopback);
    let live = live::run(&scenario, &setup, &AtomicBool::new(false), &mut |_| {}).expect("sockets on loopback");
    let stalled = live.stalls.iter().map(|stall| stall.end_s - stall.start_s).sum::<f64>();
    let live = live.flows.first().expect("the call");
    let told = format!("simulated {simulated:?}, live {live:?}, {stalled} s of stalls");
    let media = [(simulated.video, live.video, 0.010), (simulated.audio, live.audio, 0.005)];
    for (simulated, live, tolerance) in media {
        let (simulated, live) = (simulated.expect("frames"), live.expect("frames"));
        assert!(simulated.captured.abs_diff(live.captured) <= 2, "{told}");
        let median = |frames: &FramesResult| frames.delay.p50_s.expect("frames");
        assert!((median(&live) - median(&simulated)).abs() < tolerance + stalled, "{told}");
        assert!(live.lost as f64 <= 0.02 * live.captured as f64 + 50.0 * stalled, "{told}");
    }
}

#[test]
fn live_media_are_the_same_on_any_number_of_threads() {
    let defaults = |key: &str| Override::remove(format!("flow.call.source.0.{key}"));
    let scenario = call(&["interval_spread", "size_spread", "burst"].map(defaults));
    let many = |threads| {
        let runs = sim::simulate_many(&scenario, (1, 4), Some(threads), |run| run, &|_| {}).expect("it runs");
        Report::new(&scenario, 1, runs).to_json()
    };
    assert_eq!(many(1), many(3));
}

#[test]
fn what_no_call_can_be_is_refused_by_line_and_reason() {
    let set = |key: &str, value: Value| [Override::set(key, value)];
    let text = |text: &str| Value::String(text.to_owned());
    let cases = [
        ("flow.call.source.1.kind", text("encoder"), "one video"),
        ("flow.call.source.0.frame_rate", Value::Float(0.0), "frame rate of 0"),
        ("flow.call.source.0.min_rate", text("2 Mbit/s"), "rates from 2 Mbit/s to 1.5 Mbit/s"),
        ("flow.call.source.0.size_spread", Value::Float(1.5), "a spread of 1.5"),
        ("flow.call.source.0.burst_frames", Value::Float(1.5), "whole number from 2"),
        ("flow.call.source.0.rate", text("1 Mbit/s"), "an encoder has `frame_rate`"),
        ("flow.call.source.0.traces", text("/nowhere.csv"), "cannot be read"),
        ("flow.call.source.1.interval", text("2 s"), "1 ms to 1 s"),
        ("flow.call.source.1.rate", text("0 bit/s"), "above zero"),
        ("flow.call.pacing", Value::Float(0.5), "1 to 100"),
        ("flow.call.skip_after", text("0 s"), "above zero"),
        ("flow.call.deadline", text("-1 s"), "above zero"),
    ];
    for (key, value, reason) in cases {
        let error = refused(&set(key, value));
        assert!(error.contains(reason), "{key}: {error}");
    }
    let without = |what: &str| CALL.replace(what, "");
    let refused = |text: &str| Scenario::parse(text).expect_err("it is wrong").to_string();
    let media = "source = [\n    { kind = \"encoder\", frame_rate = 25, interval_spread = 0, size_spread = 0, burst = \"0 B\" },\n    { kind = \"audio\" },\n]";
    let none = without(media) + "pacing = 1.5\n";
    assert!(refused(&none).contains("only for live media"), "{}", refused(&none));
    let early = CALL.to_owned() + "start = \"10 s\"\npause = [{ at = \"5 s\" }]\n";
    let error = refused(&early);
    assert!(error.contains("line 2") && error.contains("it must pause after that"), "{error}");
}
