//! TCP Symbiosis as a congestion control of the Linux kernel.
//!
//! The program is BPF `struct_ops`: no module, no reboot. Its arithmetic is the core's integer form
//! (`equipoise::control::window::symbiosis::fixed`), in C; its measurement is a simpler form of what the simulator runs. The
//! compiled program is part of this library, and finds its way about the kernel it meets by that kernel's BTF.
//!
//! [`load()`] registers the congestion control `symbiosis`; it stays for as long as the [`Loaded`] lives, or until [`unload`]
//! where it was [pinned](Loaded::pin). [`sockets`] tells what it knows of each connection, [`Parameters`] are read and set while it runs.
//! Connections that use it when it goes keep it to their end.
//!
//! Beside it there are this kernel's Reno and CUBIC with a window that can be set, for flow pairs: [`PresetWindow`].

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

/// The name by which programs ask for it: `setsockopt(TCP_CONGESTION)`, `iperf3 -C`, `sysctl net.ipv4.tcp_congestion_control`.
pub const NAME: &str = "symbiosis";
