//! TCP Symbiosis as a congestion control of the Linux kernel.
//!
//! The program is BPF `struct_ops`: no module, no reboot. Its arithmetic is the core's integer form
//! (`equipoise::control::window::symbiosis::fixed`), in C. Its measurement is simpler than that of the simulator. The
//! compiled program is part of this library and adapts to the running kernel by that kernel's BTF.
//!
//! [`load()`] registers the congestion control `symbiosis`. It stays for as long as the [`Loaded`] lives or, if it was
//! [pinned](Loaded::pin), until [`unload`]. [`sockets`] returns its state of each connection; [`Parameters`] are read
//! and set while it runs. Connections that use it when it is unloaded keep it until they close.
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
