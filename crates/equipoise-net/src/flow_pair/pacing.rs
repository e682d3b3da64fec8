//! The socket option `SO_MAX_PACING_RATE`, which the standard library, nix and socket2 do not offer.

use nix::{libc, setsockopt_impl, sockopt_impl};

sockopt_impl!(
    /// The maximum rate at which the kernel sends from a socket, in bytes per second; `u32::MAX` for no limit.
    MaxPacingRate,
    SetOnly,
    libc::SOL_SOCKET,
    libc::SO_MAX_PACING_RATE,
    u32
);

/// The value of the socket option `SO_MAX_PACING_RATE` for no limit.
pub(super) const UNLIMITED: u32 = u32::MAX;
