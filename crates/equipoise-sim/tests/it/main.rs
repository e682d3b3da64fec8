//! Compares the simulator with theory: conservation, M/D/1, determinism, the RTP loop, TCP.

mod controller;
mod duplex;
mod md1;
mod multipath;
mod networks;
mod pair;
mod session;
mod support;
mod tcp;
mod traffic;
mod waits;
