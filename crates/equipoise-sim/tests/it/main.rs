//! Integration tests that compare the simulator with theory: conservation of packets, M/D/1 queues, determinism, the
//! control loop of RTP sessions, TCP.

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
