//! Computes the rate that losses allow (`loss_based_bwe_v2` of libwebrtc). The algorithm separates the path's inherent
//! loss from the loss that the flow's own rate causes.
//!
//! Losses that do not depend on the rate are no reason to lower the rate. Losses caused by a rate above the capacity
//! are a reason to lower the rate. Therefore a path is modelled by an inherent loss `q` and a bandwidth `B`. The
//! estimator searches near the last `q` and `B` for the values with which the observed losses are most likely:
//!
//! ```text
//! p(r)   = q + (1 - q) max(0, 1 - B/r)                          loss of what was sent at rate r
//! score  = Σ w [ lost ln p + arrived ln(1 - p) + bias sent ]    sum over observations, w = 0.9^age
//! bias   = a(0.0002) B + a(0.02) ln(1 + B)                      B in kbit/s
//! a(c)   = c (0.2 - loss) / (0.002 + |0.2 - loss|)              prefers a higher B if less than 20 % is lost
//! q      = q - 0.75 score'/score''                              Newton step for each B; ': derivative by p
//! q     ∈ [0.001, 0.05 + 100 kbit/s / B]
//! B     ≤ 100 kbit/s / (loss - 0.05)                            if more than 5 % is lost
//! ```
//!
//! Candidates for B are 1.02, 1 and 0.95 times the last B. The delivery rate is a candidate unless the flow is
//! app-limited. The rate that the delay allows is a candidate if this rate is above the last B. `loss` is the weighted
//! mean over the observations without the best and the worst observation.
//!
//! | symbol | name | unit |
//! | --- | --- | --- |
//! | `B` | [`Channel::bps`] | bit/s |
//! | `q` | [`Channel::inherent`] | share |
//! | `r` | [`Observation::bps`] | bit/s |
//! | `lost`, `sent` | [`Observation::lost_kb`], [`Observation::sent_kb`] | kB |
//! | `arrived` | `sent - lost` | kB |
//! | `age` | number of newer observations | 1 |
//! | `loss` | `average` | share |
//!
//! When libwebrtc raises a loss-limited rate, it pads its stream for 2 s. The controller interface has no padding, so
//! this code computes the same rates as libwebrtc with a padding duration of zero.
//!
//! Special cases: with fewer than three observations, only the delay limits the rate. A packet that is first reported
//! lost and then arrives within the same observation counts as arrived. If more than [`MOST_LOST`] packets of one
//! observation are reported lost, only the last [`MOST_LOST`] of these packets can still count as arrived. While
//! departure times do not advance, no observation is completed.

mod estimator;
mod observation;
#[cfg(test)]
mod tests;

pub(super) use estimator::{LossBased, LossState};
