//! Tests of the command as users and scripts see it: exit codes, messages, files, and packets on the network.

mod both_ways;
mod camera;
mod capture;
mod clock_steps;
mod clocks;
mod compare;
mod data_out;
mod encoder;
mod faults;
mod files;
mod hosts;
mod interrupt;
#[cfg(feature = "kernel")]
mod kernel;
mod link;
mod live_pair;
mod live_tcp;
mod machine;
mod middle;
mod multipath;
mod page;
mod paper;
mod places;
mod rtt;
mod suite;
mod support;
mod sweep;
mod tun;
mod tutorial;
mod views;
mod words;
