//! The simulated world against theory: conservation, M/D/1, determinism, the RTP loop.

mod md1;
mod session;
mod support;
mod traffic;
