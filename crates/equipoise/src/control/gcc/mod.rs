//! Google congestion control (GCC): keeps the rate just below the point at which the queueing delay begins to rise.
//!
//! A growing queue shows in the packets' delays long before the queue overflows. The sender uses only the slope of the
//! delay, so the absolute delay and the offset of the clocks do not matter. While the delay is flat, the rate rises.
//! When the delay rises, the rate falls below the delivery rate. Losses also lower the rate, even without a rising
//! delay. Probes, which are short bursts above the rate, test whether the path has more capacity.
//!
//! Source: draft-ietf-rmcat-gcc-02 and Carlucci 2016 for the idea; libwebrtc's `goog_cc`, as it was in 2025 and 2026,
//! for the details. There are two forms ([`GccForm`]): today's libwebrtc, and the draft of 2016.
//!
//! ```text
//!   reports ──▶ groups ──▶ slope of the delay ──▶ over, normal, under ──▶ ┐
//!      │           d              m                      γ                ├─▶ AIMD: A_delay ─┐
//!      ├──────▶ delivery rate R ──────────────────────────────────────────┘                  ├─▶ min ─▶ A
//!      ├──────▶ losses ──────────────────────────────────────────────────────▶ A_loss ───────┘
//!      └──────▶ packets of probes ──▶ result ──▶ A_delay
//! ```
//!
//! ```text
//! d = (t_i - t_{i-1}) - (T_i - T_{i-1})              between groups of 5 ms
//! m = 4 min(n, 60) slope(Σ d over t)                 libwebrtc: least squares over 20 groups
//! m = min(n, 60) m',  m' = m' + k (d - m')           draft: scalar Kalman filter
//! γ = γ + k_{u,d} Δt (|m| - γ)                       overuse: m > γ for 10 ms and not falling
//! A_delay = β R                                      after overuse, β = 0.85; libwebrtc: 5 kbit/s less
//! A_delay = A_delay 1.08^Δt                          without overuse, C unknown
//! A_delay = A_delay + packet Δt / (2 (rtt + 100 ms)) without overuse, C known
//! ```
//!
//! | symbol | name | unit | where |
//! | --- | --- | --- | --- |
//! | `T` | departure of a group's last packet | s, by the sender's clock | `grouping` |
//! | `t` | arrival of a group's last packet | s, by the receiver's clock | `grouping` |
//! | `d` | delay variation between groups | ms | `grouping` |
//! | `m`, `m'` | trend of the delay, with and without the factor `min(n, 60)` | ms | `trendline`, `kalman` |
//! | `n` | number of groups so far | 1 | `trendline`, `kalman` |
//! | `k` | gain of the Kalman filter | 1 | `kalman` |
//! | `γ` | threshold | ms | `detector` |
//! | `k_u`, `k_d` | gains of the threshold, upwards and downwards | 1/ms | `detector` |
//! | `Δt` | time since the last update | ms for γ, s for `A_delay` | `detector`, `aimd` |
//! | `R` | delivery rate | bit/s | `throughput` |
//! | `C` | capacity, from R at overuse | bit/s | `capacity` |
//! | `A_delay` | rate that the delay allows | bit/s | `aimd` |
//! | `A_loss` | rate that losses allow | bit/s | `loss`, `loss_rule` |
//! | `A` | the allowed rate: the lower of `A_delay` and `A_loss` | bit/s | `controller` |
//! | `β` | share of R after overuse, `decrease` | 1 | `aimd` |
//!
//! Each constant is defined, with its source, in the file of the part that uses it. The two forms differ in:
//!
//! | part | `libwebrtc` | `draft` |
//! | --- | --- | --- |
//! | trend | line through 20 smoothed delays | Kalman filter |
//! | threshold's gains up, down | 0.0087, 0.039 | 0.01, 0.000 18 |
//! | delivery rate | lower of sending and receiving rate over 1 s | receiving rate over 0.5 s |
//! | after overuse | 0.85 R - 5 kbit/s | 0.85 R |
//! | increase near the capacity, per `rtt + 100 ms` | half a packet | half a packet |
//! | minimum of this increase | 4 kbit/s per second | 1 kbit/s per step |
//! | increase up to | 1.5 R + 10 kbit/s | 1.5 R |
//! | losses | model of the path, fitted to 15 observations | thresholds of 2 % and 10 % |
//! | probes | yes | no |
//!
//! # Interpretation and differences
//! - Times are exact, whereas libwebrtc rounds them to milliseconds. Reports list packets by number, but packets are
//!   processed in arrival order.
//! - libwebrtc sends padding, and divides the rate among several streams. The controller interface supports neither;
//!   see the comments of `loss` and `probing`. libwebrtc paces at 1.1 times the rate in bursts of up to 40 ms; here
//!   `GccConfig::pacing` sets the factor, without bursts. libwebrtc's factor of 2.5 before the first feedback is left
//!   out. The draft's form leaves pacing to the session.
//! - libwebrtc measures the round-trip time by separate reports; here the feedback measures it.
//! - A receiver's own estimate (REMB) and separate handling of audio are left out, as is libwebrtc's congestion window,
//!   which is off by default.
//! - The session's `app_limited` is not used: the increase is limited by the delivery rate, and `alr` detects
//!   app-limited phases itself.
//! - libwebrtc reacts to silence only by its round-trip back-off. Here, the rate is also multiplied by the factor of
//!   this back-off if the session signals silence ([`Feedback::Silent`](crate::control::Feedback::Silent),
//!   [`TimedOut`](crate::control::Feedback::TimedOut)). Afterwards, the rate rises as usual.
//! - ECN marks are ignored, as in both sources.
//!
//! # Degenerate cases
//! - Feedback without packets changes nothing; feedback without arrival times is used only for losses and for the
//!   round-trip time, and never raises the rate.
//! - Before 20 groups have arrived, the slope counts as zero (`trendline`). Before 10 packets have arrived, there is no
//!   delivery rate (`throughput`). Overuse before the first delivery rate halves the rate, at most once per round-trip
//!   time (`aimd`). For this purpose, the round-trip time is limited to 10 to 200 ms.
//! - The groups are discarded after a step of the receiver's clock. They are also discarded when three packets follow a
//!   group that arrived before the previous group (`grouping`). After 2 s without feedback, the state of filter and
//!   detector is discarded as well (`delay`).
//! - Round-trip times that are not positive are ignored. No part stores an input that is not finite.
//!
//! # Limitations
//! libwebrtc's form does not detect an overload of less than 2.5 %: 240 times the slope stays below the threshold's
//! lower limit of 6 ms, so a queue may grow slowly until it overflows or shrinks again. Without probes, a new flow
//! needs 9 s to double its rate. If other flows fill the queue, the threshold rises, up to 600 ms. With libwebrtc's
//! gains the threshold falls again within a tenth of a second.

mod aimd;
mod alr;
mod backoff;
mod capacity;
mod cluster;
mod controller;
mod delay;
mod detector;
mod grouping;
mod kalman;
mod loss;
mod loss_rule;
mod probing;
#[cfg(test)]
mod tests;
mod throughput;
mod trendline;

pub use controller::{Gcc, GccConfig, GccForm, GccProbing};
