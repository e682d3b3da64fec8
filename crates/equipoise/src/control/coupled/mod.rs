//! Coupled congestion control: flows of one sender that share a bottleneck share one rate, by priorities.
//!
//! Each flow keeps a congestion controller of its own. The rates that they find are summed up in a [`FlowGroup`], the flow state
//! exchange of RFC 8699, which gives each flow its share of the sum; [`Coupled`] puts a controller into a group. A group is a
//! plain state machine. Where several controllers hold one, the world says how it is locked: [`SharedGroup`].
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
