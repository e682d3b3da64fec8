//! Integration tests of the simulator.

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
