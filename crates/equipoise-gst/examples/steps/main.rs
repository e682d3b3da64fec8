//! Runs a call between a sender's and a receiver's pipeline over a bottleneck whose capacity changes in steps. Prints a
//! table of the results:
//!
//! ```console
//! $ cargo run --release -p equipoise-gst --example steps
//! $ cargo run --release -p equipoise-gst --example steps -- rtpequipoisebwe controller=gcc
//! $ GST_PLUGIN_PATH=/where/libgstrsrtp.so/is cargo run --release -p equipoise-gst --example steps -- rtpgccbwe
//! ```
#![allow(clippy::print_stdout, reason = "an example")]

mod call;
mod path;

use std::error::Error;

use equipoise::units::Span;

fn main() -> Result<(), Box<dyn Error>> {
    let bwe: Vec<_> = std::env::args().skip(1).collect();
    let bwe = if bwe.is_empty() { "rtpequipoisebwe".to_owned() } else { bwe.join(" ") };
    gst::init()?;
    gstequipoise::register()?;
    let report = call::run(&bwe, Span::from_secs(20))?;
    println!("{bwe}, from {} s of each phase on", call::SETTLING.as_secs_f64());
    println!("capacity  asked at 5 s  asked mean  of 0.9 capacity   made  delivered  queueing p95");
    for phase in &report.phases {
        let kbps = |bps: f64| bps / 1e3;
        println!(
            "{:>8.0} {:>13.0} {:>11.0} {:>10.0} % {:>10.0} {:>8.0} {:>10.0} ms",
            kbps(phase.capacity_bps),
            kbps(phase.asked_then_bps),
            kbps(phase.asked_bps),
            100.0 * phase.asked_bps / (0.9 * phase.capacity_bps),
            kbps(phase.made_bps),
            kbps(phase.delivered_bps),
            1e3 * phase.queueing_p95_s,
        );
    }
    let ms = |seconds: f64| seconds * 1e3;
    println!("queueing mean {:.0} ms, p95 {:.0} ms", ms(report.queueing_mean_s), ms(report.queueing_p95_s));
    println!("within the element p95 {:.0} ms", ms(report.pacing_p95_s));
    println!("dropped {} packets; decoded {} of {} frames", report.dropped, report.decoded, report.encoded);
    Ok(())
}
