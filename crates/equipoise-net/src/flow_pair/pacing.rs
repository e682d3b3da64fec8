//! `SO_MAX_PACING_RATE`, which neither the standard library nor nix nor socket2 offers.

use nix::{libc, setsockopt_impl, sockopt_impl};

sockopt_impl!(
    /// The highest rate at which the kernel sends from a socket, in bytes per second; `u32::MAX` for no limit
    /// (`man 7 socket`).
    MaxPacingRate,
    SetOnly,
    libc::SOL_SOCKET,
    libc::SO_MAX_PACING_RATE,
    u32
);

/// No limit.
pub(super) const UNLIMITED: u32 = u32::MAX;
