//! TCP Symbiosis as a congestion control of the Linux kernel.
//!
//! The program is BPF `struct_ops`, so it needs neither a kernel module nor a reboot. Its arithmetic is the integer
//! form in `equipoise` (`equipoise::control::window::symbiosis::fixed`), written in C. Its measurement is simpler than
//! in the simulator. The compiled program is part of this library; it adapts to the running kernel through the kernel's
//! BTF.
//!
//! [`load()`] registers the congestion control `symbiosis`. It stays registered while the [`Loaded`] lives or, if it
//! was [pinned](Loaded::pin), until [`unload`]. [`sockets`] returns the state of each connection; [`Parameters`] can be
//! read and set while connections run. Connections that use it when it is unloaded continue to use it until they close.
//!
//! [`PresetWindow`] offers variants of this kernel's Reno and CUBIC whose window can be set, for flow pairs.

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

/// The name for `setsockopt(TCP_CONGESTION)`, `iperf3 -C`, `sysctl net.ipv4.tcp_congestion_control`.
pub const NAME: &str = "symbiosis";
