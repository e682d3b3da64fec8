//! Sends a file, or the standard input, at the rate that the path allows. The receiver can be `equipoise receive`.
//!
//! `EQUIPOISE_KEY=… cargo run -p equipoise-net --example send -- HOST:PORT [FILE]`
#![allow(clippy::print_stderr, reason = "it talks to a person")]

use std::error::Error;
use std::net::ToSocketAddrs as _;
use std::pin::Pin;
use std::time::Duration;

use equipoise::control;
use equipoise::units::Span;
use equipoise_net::media::MediaSender;
use equipoise_net::{Key, SendConfig};
use tokio::fs::File;
use tokio::io::{AsyncRead, AsyncReadExt as _, stdin};
use tokio::time::interval;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let host = arguments.next().ok_or("usage: send HOST:PORT [FILE]")?;
    let peer = host.to_socket_addrs()?.next().ok_or("the host has no address")?;
    let mut input: Pin<Box<dyn AsyncRead>> = match arguments.next() {
        Some(path) => Box::pin(File::open(path).await?),
        None => Box::pin(stdin()),
    };
    let key = Key::from_base64(&std::env::var("EQUIPOISE_KEY").map_err(|_| "set EQUIPOISE_KEY")?)?;
    let config = SendConfig { report_interval: Span::from_millis(200), ..SendConfig::stream(peer, Some(key)) };
    let law = control::find("ap").ok_or("no such controller")?;
    let controller = law.build(&law.parse(&[("target", "20 ms"), ("max_rate", "50 Mbit/s")])?, config.packet_size)?;
    let sender = MediaSender::open(config, controller).await?;
    let (rate, measurements, mut second) =
        (sender.target_rate(), sender.measurements(), interval(Duration::from_secs(1)));
    let watch = tokio::spawn(async move {
        loop {
            second.tick().await;
            let (rate, now) = (*rate.borrow(), *measurements.borrow());
            let text = |span: Option<Span>| span.map_or("unknown".to_owned(), |span| span.to_string());
            eprintln!("{rate}; delay {}, round trip {}", text(now.delay_mean), text(now.round_trip));
        }
    });
    let mut buffer = vec![0; 64 << 10];
    loop {
        match input.read(&mut buffer).await? {
            0 => break,
            length => sender.send(&buffer[..length]).await?,
        }
    }
    let summary = sender.close().await?;
    watch.abort();
    eprintln!("{} packets, {} lost", summary.packets, summary.measurement.lost.unwrap_or(0));
    Ok(())
}
