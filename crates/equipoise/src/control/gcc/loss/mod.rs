//! The rate that losses allow (`loss_based_bwe_v2` of libwebrtc): how much of the loss is the path's own, and how much is ours.
//!
//! Losses that do not depend on the rate are no reason to lower it, and losses beyond a capacity are. So a path is a pair of both, an
//! inherent loss `q` and a bandwidth `B`, and the pair under which the observed losses are most likely is looked for near the last:
//!
//! ```text
//! p(r)   = q + (1 - q) max(0, 1 - B/r)                          loss of what was sent at rate r
//! score  = Σ w [ lost ln p + arrived ln(1 - p) + bias sent ]    kB, over observations, w = 0.9^age
//! bias   = a(0.0002) B + a(0.02) ln(1 + B)                      B in kbit/s
//! a(c)   = c (0.2 - loss) / (0.002 + |0.2 - loss|)              for the higher B, while less than 20 % is lost
//! q      = q - 0.75 score'/score''                              one step of Newton's method for each candidate B
//! q     ∈ [0.001, 0.05 + 100 kbit/s / B]
//! B     ≤ 100 kbit/s / (loss - 0.05)                            if more than 5 % is lost
//! ```
//!
//! Candidates for B are 1.02, 1 and 0.95 times the last, the rate that arrives, and the rate that the delay allows. `loss` is the mean
//! over the observations without the best and the worst.
//!
//! | symbol | name | unit |
//! | --- | --- | --- |
//! | `B` | [`Channel::bps`] | bit/s |
//! | `q` | [`Channel::inherent`] | share |
//! | `r` | [`Observation::bps`] | bit/s |
//! | `lost`, `sent` | [`Observation::lost_kb`], [`Observation::sent_kb`] | kB |
//! | `loss` | `average` | share |
//!
//! Readings: libwebrtc pads its stream for 2 s when it raises a rate that losses hold down. Nothing here can ask for padding, so that
//! state is left out, which is libwebrtc's form with a padding duration of zero.
//!
//! Degenerate: fewer than three observations leave the rate to the delay; a packet whose loss is repaired within its observation counts
//! as arrived; losses of more packets than [`MOST_LOST`] in one observation stay losses. Observations need departures that move on.

mod estimator;
mod observation;
#[cfg(test)]
mod tests;

pub(super) use estimator::{LossBased, LossState};
