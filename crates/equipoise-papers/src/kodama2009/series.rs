//! Computes values from the samples of a run, such as means over a part of the run and numbers of dropped packets.

use equipoise_lab::result::{LinkSample, Run, TcpResult, TcpSample};
use equipoise_lab::statistics::jain;
use equipoise_sim::tcp::HEADER;

/// Size of an IP packet that carries a full TCP segment, in bytes.
pub(super) const PACKET: u64 = 1500;
/// Number of data bytes in a full TCP segment of the simulator, without IP and TCP headers.
pub(super) const PAYLOAD: u64 = PACKET - HEADER.as_bytes();

/// A part of a run: its start (excluded) and its end (included), in seconds.
pub(super) type Stretch = (f64, f64);

/// Returns the samples of a TCP connection; no samples if the flow is not a TCP connection.
pub(super) fn samples(run: &Run, flow: usize) -> &[TcpSample] {
    tcp(run, flow).map(|tcp| tcp.samples.as_slice()).unwrap_or_default()
}

/// Returns the results of a TCP connection; `None` if the flow is not a TCP connection.
pub(super) fn tcp(run: &Run, flow: usize) -> Option<&TcpResult> {
    run.flows.get(flow)?.tcp.as_ref()
}

/// Returns the mean of a value over a connection's samples in a part of the run; `NaN` if there are no samples.
pub(super) fn mean_of(run: &Run, flow: usize, stretch: Stretch, of: impl Fn(&TcpSample) -> Option<f64>) -> f64 {
    mean(samples(run, flow).iter().filter(|sample| within(sample.at_s, stretch)).filter_map(of))
}

/// Returns the mean rate, in Mbit/s, at which a connection's receiver gets new data in a part of the run.
pub(super) fn goodput_mbps(run: &Run, flow: usize, stretch: Stretch) -> f64 {
    mean_of(run, flow, stretch, |sample| sample.goodput_bps) / 1e6
}

/// Returns the mean congestion window of a connection in a part of the run, in segments.
pub(super) fn mean_window(run: &Run, flow: usize, stretch: Stretch) -> f64 {
    mean_of(run, flow, stretch, |sample| Some(sample.window_segments))
}

/// Returns Jain's index of the connections' mean windows in a part of the run. The claims use this index of means. The
/// thesis calls a result unfair if some connections have a very low throughput (Kodama 2009, Sec. 3.1), and throughput
/// is a mean over time.
pub(super) fn jain_of_means(run: &Run, flows: impl Iterator<Item = usize>, stretch: Stretch) -> f64 {
    jain(&flows.map(|flow| mean_window(run, flow, stretch)).collect::<Vec<_>>())
}

/// Computes Jain's index of the windows at each sampling time in a part of the run, and returns the mean of these
/// values. The mean is shown in addition to [`jain_of_means`].
pub(super) fn jain_of_moments(run: &Run, flows: impl Iterator<Item = usize>, stretch: Stretch) -> f64 {
    let windows: Vec<Vec<f64>> = flows.map(|flow| windows_within(run, flow, stretch)).collect();
    let moments = windows.iter().map(Vec::len).min().unwrap_or(0);
    mean((0..moments).map(|moment| jain(&windows.iter().map(|of| of[moment]).collect::<Vec<_>>())))
}

/// Returns the standard deviation of a connection's window, divided by the mean window.
pub(super) fn variation(run: &Run, flow: usize, stretch: Stretch) -> f64 {
    let windows = windows_within(run, flow, stretch);
    let center = mean(windows.iter().copied());
    mean(windows.iter().map(|window| (window - center).powi(2))).sqrt() / center
}

fn windows_within(run: &Run, flow: usize, stretch: Stretch) -> Vec<f64> {
    let of = samples(run, flow).iter().filter(|sample| within(sample.at_s, stretch));
    of.map(|sample| sample.window_segments).collect()
}

/// Returns the mean of a value over the samples of the link named `name` in a part of the run; `NaN` if there are no
/// samples.
pub(super) fn mean_of_link(run: &Run, name: &str, stretch: Stretch, of: impl Fn(&LinkSample) -> Option<f64>) -> f64 {
    let link = run.links.iter().find(|link| link.name == name);
    let samples = link.map(|link| link.samples.as_slice()).unwrap_or_default();
    mean(samples.iter().filter(|sample| within(sample.at_s, stretch)).filter_map(of))
}

/// Returns the number of retransmission timeouts of a connection in a part of the run.
pub(super) fn timeouts_within(run: &Run, flow: usize, stretch: Stretch) -> u64 {
    grown(samples(run, flow).iter().map(|sample| (sample.at_s, sample.timeouts.unwrap_or(0))), stretch)
}

/// Returns the number of segments that a connection retransmitted in a part of the run.
pub(super) fn resent_within(run: &Run, flow: usize, stretch: Stretch) -> u64 {
    grown(samples(run, flow).iter().map(|sample| (sample.at_s, sample.retransmissions)), stretch)
}

/// Returns the number of packets that the queue of the link named `name` dropped in a part of the run.
pub(super) fn dropped_within(run: &Run, name: &str, stretch: Stretch) -> u64 {
    let link = run.links.iter().find(|link| link.name == name);
    let samples = link.map(|link| link.samples.as_slice()).unwrap_or_default();
    grown(samples.iter().map(|sample| (sample.at_s, sample.packets_dropped)), stretch)
}

/// Returns the increase of a monotonic counter in a part of the run. The counter is a list of times and counts.
fn grown(counter: impl Iterator<Item = (f64, u64)>, stretch: Stretch) -> u64 {
    let (before, at_end) = counter
        .filter(|(at_s, _)| *at_s <= stretch.1 + 1e-6)
        .fold((0, 0), |(before, _), (at_s, count)| (if within(at_s, stretch) { before } else { count }, count));
    at_end - before
}

/// Returns the number of packets that the queues of all links dropped in the whole run.
pub(super) fn dropped(run: &Run) -> u64 {
    run.links.iter().map(|link| link.packets_dropped).sum()
}

fn within(at_s: f64, (from_s, to_s): Stretch) -> bool {
    // A sampling time is a decimal fraction of a second, which floating-point numbers represent only approximately, so
    // a tolerance is needed.
    at_s > from_s + 1e-6 && at_s <= to_s + 1e-6
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (count, sum) = values.fold((0u32, 0.0), |(count, sum), value| (count + 1, sum + value));
    sum / f64::from(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_has_grown_by_what_came_behind_the_beginning_and_up_to_the_end() {
        let counter = [(1.0, 2), (2.0, 2), (3.0, 5), (4.0, 9)];
        let within = |stretch| grown(counter.into_iter(), stretch);
        assert_eq!([within((0.0, 4.0)), within((2.0, 3.0)), within((3.0, 9.0)), within((4.0, 9.0))], [9, 3, 4, 0]);
    }
}
