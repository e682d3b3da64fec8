//! Sends the standard input over several network interfaces at once. The receiver is `equipoise receive` or the example
//! `receive`.
//!
//! `EQUIPOISE_KEY=… cargo run -p equipoise-net --example paths -- HOST:PORT eth0 wwan0 < FILE`
#![allow(clippy::print_stderr, reason = "it talks to a person")]

use std::error::Error;
use std::io::{Read as _, stdin};
use std::net::ToSocketAddrs as _;

use equipoise::control;
use equipoise::control::scheduler;
use equipoise_net::{Clock, Key, Multipath, MultipathSession, Observer, SendConfig, Time, Via, send_multipath};
use equipoise_session::multipath::{PathLaws, Total};
use equipoise_session::{Event, PathChange, PathId};

/// Prints changes of the paths' rates and states.
struct Teller;

impl Observer for Teller {
    fn on_event(&mut self, _now: Time, _event: &Event) {}

    fn on_path_event(&mut self, _now: Time, path: PathId, event: &Event) {
        if let Event::RateDecided { rate, .. } = event {
            eprintln!("path {path} carries up to {rate}");
        }
    }

    fn on_path(&mut self, _now: Time, path: PathId, change: PathChange) {
        eprintln!("path {path}: {change:?}");
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let host = arguments.next().ok_or("usage: paths HOST:PORT INTERFACE...")?;
    let peer = host.to_socket_addrs()?.next().ok_or("the host has no address")?;
    let paths = arguments.map(|name| name.parse()).collect::<Result<Vec<Via>, _>>()?;
    let key = Key::from_base64(&std::env::var("EQUIPOISE_KEY").map_err(|_| "set EQUIPOISE_KEY")?)?;
    let config = SendConfig::stream(peer, Some(key));
    // This session has one controller for each path. `Total::Pooled` would use one controller, such as `ap`, for all
    // paths.
    let law = control::find("equipoise").ok_or("no such controller")?;
    let (parameters, packet) = (law.parse(&[("max_rate", "50 Mbit/s")])?, config.packet_size);
    let highest = parameters.highest_rate();
    let laws = PathLaws::new(move || law.build(&parameters, packet).ok(), highest);
    let law = scheduler::find("ap").ok_or("no such scheduler")?;
    let scheduler = law.build(&law.parse(&[])?, config.packet_size)?;
    let session =
        send_multipath(&Clock::new(), &config, Multipath::new(paths, scheduler), Total::PerPath(laws), Teller)?;
    let MultipathSession { running, payloads, .. } = session;
    let payloads = payloads.ok_or("a stream has one")?;
    let mut buffer = vec![0; 64 << 10];
    loop {
        match stdin().read(&mut buffer)? {
            0 => break,
            length => payloads.push(&buffer[..length])?,
        }
    }
    // When `payloads` is dropped, the session sends the waiting payload and then ends.
    drop(payloads);
    running.join()?;
    Ok(())
}
