//! Drives a controller by hand, without a clock or a socket: one loop measures, controls and paces.
#![expect(clippy::print_stdout, reason = "a program that is read by a person")]

use equipoise::control::{Feedback, IntervalSummary, find};
use equipoise::measure::DelayMeter;
use equipoise::pace::{Pacer, Readiness};
use equipoise::units::{Instant, Rate, SenderClock, Size, Span};

/// Returns the delay of packet `number`, sent at `rate`, over a path of 5 ms whose queue grows steeply above 4 Mbit/s.
fn delay(rate: Rate, number: u64) -> Span {
    let queue = (rate.as_mbps_f64() / 4.0).powi(4);
    let jitter = (number * 7919 % 100) as f64 / 50.0;
    Span::from_secs_f64(5e-3 + 1e-3 * queue * jitter).unwrap_or(Span::ZERO)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let packet = Size::from_bytes(1200);
    let ap = find("ap").ok_or("no such controller")?;
    let mut controller = ap.build(&ap.parse(&[("target", "8 ms"), ("max_rate", "20 Mbit/s")])?, packet)?;
    let mut now = Instant::<SenderClock>::ZERO;
    for second in 1..=20 {
        let rate = controller.allowance().rate.ok_or("a controller of windows")?;
        let (began, ends) = (now, now + Span::from_secs(1));
        let (mut pacer, mut meter, mut packets) = (Pacer::new(rate), DelayMeter::new(), 0);
        while let Readiness::At(due) = { departures(&mut pacer, now, packet, &mut packets, &mut meter, rate) } {
            if due >= ends {
                break;
            }
            now = due;
        }
        now = ends;
        let mut summary = IntervalSummary::unmeasured();
        summary.delay = meter.summary_after(began);
        summary.packets = Some(packets);
        summary.fraction_lost = Some(0.0);
        summary.round_trip = Some(Span::from_millis(20));
        controller.on_feedback(now, &Feedback::Interval(summary));
        let mean = summary.delay.map_or(f64::NAN, |delay| delay.mean_s * 1e3);
        println!("{second:2} s: {:5.2} Mbit/s, {mean:5.2} ms", rate.as_mbps_f64());
    }
    Ok(())
}

/// Sends all packets that may leave at `now`, measures their delays, and returns when the next packet may leave.
fn departures(
    pacer: &mut Pacer<SenderClock>,
    now: Instant<SenderClock>,
    packet: Size,
    packets: &mut u64,
    meter: &mut DelayMeter,
    rate: Rate,
) -> Readiness<SenderClock> {
    while pacer.poll(now) == Readiness::Now {
        pacer.on_departure(now, packet);
        *packets += 1;
        meter.push(now, delay(rate, *packets));
    }
    pacer.poll(now)
}
