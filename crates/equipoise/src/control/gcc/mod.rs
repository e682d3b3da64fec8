//! Google congestion control (GCC): below the rate at which the queueing delay begins to rise.
//!
//! A queue that grows shows in the delays of packets long before it overflows, whatever their absolute value and whichever clocks they
//! are read from. So the sender looks at the slope of the delay only: while it is flat the rate rises, and once it rises the rate falls
//! below what arrives. Losses that no slope foretells lower it, too, and short bursts above the rate find out what else there is.
//!
//! Source: draft-ietf-rmcat-gcc-02 and Carlucci 2016 for the idea; libwebrtc's `goog_cc`, as it was in 2025 and 2026, for the form.
//! There are two forms ([`GccForm`]): what libwebrtc does now, and what the draft of 2016 prints.
//!
//! ```text
//!   reports ──▶ groups ──▶ slope of the delay ──▶ over, normal, under ──▶ ┐
//!      │           d              m                      γ                ├─▶ AIMD: A_delay ─┐
//!      ├──────▶ rate that arrives R ──────────────────────────────────────┘                  ├─▶ min ─▶ A
//!      ├──────▶ losses ──────────────────────────────────────────────────────▶ A_loss ───────┘
//!      └──────▶ packets of probes ──▶ result ──▶ A_delay
//! ```
//!
//! ```text
//! d = (t_i - t_{i-1}) - (T_i - T_{i-1})              of groups of 5 ms
//! m = 4 min(n, 60) slope(Σ d over t)                 libwebrtc: least squares over 20 groups
//! m = m + k (d - m), times min(n, 60)                draft: scalar Kalman filter
//! γ = γ + k_{u,d} Δt (|m| - γ)                       overuse: m > γ for 10 ms and not falling
//! A = β R                                            after overuse, β = 0.85; libwebrtc 5 kbit/s less
//! A = A 1.08^Δt, or half a packet a response time    before
//! ```
//!
//! | symbol | name | unit | where |
//! | --- | --- | --- | --- |
//! | `T`, `t` | departure, arrival of a group's last packet | s, of two clocks | `grouping` |
//! | `d` | delay variation between groups | ms | `grouping` |
//! | `m`, `n` | trend of the delay, groups so far | ms, 1 | `trendline`, `kalman` |
//! | `γ`, `k_u`, `k_d` | threshold, its gains | ms, 1/ms | `detector` |
//! | `R` | rate that arrives | bit/s | `throughput` |
//! | `C` | capacity, from R at overuse | bit/s | `capacity` |
//! | `A` | rate that the delay allows, that losses allow, and the lower | bit/s | `aimd`, `loss`, `loss_rule` |
//! | `β` | share of R behind overuse, `decrease` | 1 | `aimd` |
//! | `B`, `q` | bandwidth and inherent loss of the path | bit/s, 1 | `loss` |
//!
//! Every number stands as a constant with its source in the file of its part. What the two forms differ in:
//!
//! | part | `libwebrtc` | `draft` |
//! | --- | --- | --- |
//! | trend | line through 20 smoothed delays | Kalman filter |
//! | threshold's gains up, down | 0.0087, 0.039 | 0.01, 0.000 18 |
//! | rate that arrives | least of sent and received over 1 s, without the longest gap | received in 0.5 s |
//! | behind overuse | 0.85 R - 5 kbit/s | 0.85 R |
//! | increase near the capacity | half a packet a response time, 4 kbit/s a second at least | the same, in steps of 1 kbit/s at least |
//! | increase up to | 1.5 R + 10 kbit/s | 1.5 R |
//! | losses | model of the path, fitted to 15 observations | 2 % and 10 % |
//! | probes | yes | no |
//!
//! # Readings
//! - Times are exact where libwebrtc rounds to milliseconds. Reports come in the order of numbers; they are taken in that of arrivals.
//! - libwebrtc pads its stream and divides it among streams. The seam tells none of these; see [`Probing`](GccProbing) and the
//!   readings of `loss` and `probing`. It paces at 1.1 times the rate, as here, in bursts of up to 40 ms, which `pacing` stands for here, and at
//!   2.5 times before the first feedback, which is left out. The draft's form leaves the pace to the session.
//! - libwebrtc has its round-trip time from reports of its own; here it is that of the feedback.
//! - A receiver's own estimate (REMB) and separate handling of audio are left out, as is libwebrtc's congestion window, which is off.
//! - The session's word that the application limits the rate is not used: the increase is bound by what arrives, and `alr` finds out by
//!   itself.
//! - Of silence libwebrtc knows by its round-trip back-off alone. Where the session tells of it
//!   ([`Feedback::Silent`](crate::control::Feedback::Silent), [`TimedOut`](crate::control::Feedback::TimedOut)) the rate falls by the
//!   same factor, and has to be earned again.
//! - ECN marks are not used, as neither form does.
//!
//! # Degenerate cases
//! - Feedback without packets changes nothing; feedback without arrival times only counts losses, and never raises the rate.
//! - Fewer than 20 groups have no slope (`trendline`), fewer than 10 packets no rate that arrives (`throughput`); overuse before that
//!   halves the rate, at most every 200 ms (`aimd`).
//! - A receiver's clock that was set, or three groups in a row that were overtaken, begin anew (`grouping`); so does silence of 2 s
//!   (`delay`).
//! - Round trips that are not positive do not count. No part keeps a value that is not finite.
//!
//! # Limitations
//! An overload of less than 2.5 % is not seen: 240 times the slope stays below the threshold's lower limit of 6 ms, so a queue may grow
//! slowly until it overflows or drifts back. A flow that starts beside others needs 9 s to double its rate without probes. Against flows
//! that fill the queue the threshold gives way, up to 600 ms; it does not under libwebrtc's gains, where it falls within a tenth of a second.

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
