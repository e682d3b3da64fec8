//! Coupled congestion control: flows of one sender through one bottleneck share one rate, by priority.
//!
//! Each flow keeps its own congestion controller. A [`FlowGroup`], the flow state exchange of RFC 8699, sums the rates
//! that the controllers calculate, and assigns each flow its share of the sum. [`Coupled`] adds a controller to a
//! group. A group is a plain state machine without a lock. If several controllers share a group, the caller implements
//! [`SharedGroup`] with a lock.
//!
//! ```text
//!   controller 1 ── CC_R(1) ─▶            ┌─ FSE_R(1) ─▶ controller 1
//!   controller 2 ── CC_R(2) ─▶ FlowGroup ─┼─ FSE_R(2) ─▶ controller 2
//!   controller 3 ── CC_R(3) ─▶            └─ FSE_R(3) ─▶ controller 3
//! ```

mod controller;
mod demand;
mod group;
#[cfg(test)]
mod tests;

pub use controller::{Coupled, SharedGroup};
pub use group::{Coupling, FlowGroup, FlowNumber, GroupError, Update};
