//! TCP Symbiosis as a congestion control of the Linux kernel.
//!
//! The congestion control is a BPF program of type `struct_ops`, so it needs neither a kernel module nor a reboot. Its
//! arithmetic is that of `equipoise::control::window::symbiosis::fixed`, in integers, written in C. Its measurement is
//! simpler than the simulator's measurement. The compiled program is part of this library; when it is loaded, libbpf
//! adapts it to the running kernel by means of the kernel's type information (BTF).
//!
//! [`load()`] registers the congestion control `symbiosis`. The registration ends when the returned [`Loaded`] is
//! dropped. A [pinned](Loaded::pin) registration ends with [`unload`] or the next boot. [`sockets`] returns the state
//! of each connection. [`Parameters`] can be read and set while connections run. Connections that use the congestion
//! control when it is unloaded continue to use it until they close.
//!
//! [`PresetWindow`] registers a variant of the running kernel's Reno or CUBIC. With this variant, an application can
//! set the congestion window of a connection, as a flow pair requires (Tobe 1999).

#![forbid(unsafe_code)]

mod error;
mod flow;
mod load;
mod parameters;
mod preset;
mod support;

pub use error::KernelError;
pub use flow::{Flow, sockets};
pub use load::{Loaded, is_loaded, load, unload};
pub use parameters::{Parameters, parameters, set_parameters};
pub use preset::PresetWindow;

/// The congestion control's name, for `setsockopt(TCP_CONGESTION)`, `iperf3 -C` and `sysctl
/// net.ipv4.tcp_congestion_control`.
pub const NAME: &str = "symbiosis";
