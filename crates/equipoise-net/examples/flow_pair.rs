//! Sends a file as a flow of application data units, or receives such a flow into a file. The peer can also be the C
//! example of equipoise-c.
//!
//! `cargo run -p equipoise-net --example flow_pair -- send HOST PORT FILE`, and `… receive PORT FILE` on the other host.
#![allow(clippy::print_stderr, reason = "it talks to a person")]

use std::error::Error;
use std::fs::{self, File};
use std::io::Write as _;
use std::net::{Ipv6Addr, ToSocketAddrs as _};
use std::thread::sleep;
use std::time::Duration;

use equipoise_net::flow_pair::{PairConfig, PairEnd, PairListener, PairSender};
use equipoise_pair::tpba::Period;

/// The sender sends a unit of 4 kB every 20 ms, which is 1.6 Mbit/s.
const UNIT: usize = 4096;
const PAUSE: Duration = Duration::from_millis(20);

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["send", host, port, file] => send(host, port.parse()?, file),
        ["receive", port, file] => receive(port.parse()?, file),
        _ => Err("usage: flow_pair send HOST PORT FILE | flow_pair receive PORT FILE".into()),
    }
}

fn send(host: &str, port: u16, file: &str) -> Result<(), Box<dyn Error>> {
    let peer = (host, port).to_socket_addrs()?.next().ok_or("the host has no address")?;
    let mut sender = PairSender::connect(peer, &PairConfig::default())?;
    let state = sender.state();
    eprintln!("TCP's window is {}, and {}", state.idle_window.name(), state.window_preset.name());
    for unit in fs::read(file)?.chunks(UNIT) {
        sender.send(unit)?;
        sleep(PAUSE);
    }
    let state = sender.close()?;
    eprintln!("{} running periods", state.running_periods);
    if state.ended_by_peer { Err("the receiver went away".into()) } else { Ok(()) }
}

fn receive(port: u16, file: &str) -> Result<(), Box<dyn Error>> {
    // The unspecified IPv6 address also receives IPv4.
    let mut listener = PairListener::bind((Ipv6Addr::UNSPECIFIED, port).into())?;
    eprintln!("listening at {}", listener.local_address());
    let mut receiver = listener.accept().ok_or("it listens no more")?;
    let (mut file, mut missing, mut over_rtp) = (File::create(file)?, 0, 0);
    while let Some(adu) = receiver.recv() {
        missing += adu.missing;
        over_rtp += u64::from(adu.over == Period::Running);
        file.write_all(&adu.data)?;
    }
    eprintln!("{missing} units missing, {over_rtp} came over RTP");
    match receiver.end() {
        Some(PairEnd::Finished) if missing == 0 => Ok(()),
        end => Err(format!("it did not arrive whole: {end:?}").into()),
    }
}
