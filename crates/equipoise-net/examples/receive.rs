//! Receives one session into a file. The sender is the example `send` or `equipoise send`.
//!
//! `EQUIPOISE_KEY=… cargo run -p equipoise-net --example receive -- PORT FILE`
#![allow(clippy::print_stderr, reason = "it talks to a person")]

use std::error::Error;
use std::net::Ipv6Addr;

use equipoise_net::media::MediaReceiver;
use equipoise_net::{End, Key, ServerConfig};
use tokio::fs::File;
use tokio::io::AsyncWriteExt as _;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(port), Some(path)) = (arguments.next(), arguments.next()) else {
        return Err("usage: receive PORT FILE".into());
    };
    let key = Key::from_base64(&std::env::var("EQUIPOISE_KEY").map_err(|_| "set EQUIPOISE_KEY")?)?;
    // The unspecified IPv6 address also receives IPv4.
    let address = (Ipv6Addr::UNSPECIFIED, port.parse()?).into();
    let mut receiver = MediaReceiver::bind(address, ServerConfig::new(Some(key))).await?;
    eprintln!("receiving at {}", receiver.local_address());
    if let Some(mut incoming) = receiver.accept().await {
        eprintln!("a session from {}", incoming.session().peer);
        let mut file = File::create(path).await?;
        let (mut bytes, mut missing) = (0, 0);
        while let Some(received) = incoming.recv().await {
            missing += received.missing;
            bytes += received.payload.len();
            file.write_all(&received.payload).await?;
        }
        file.flush().await?;
        eprintln!("{bytes} bytes, {missing} packets missing, {} not written in time", incoming.dropped());
        if missing > 0 || incoming.dropped() > 0 || incoming.end() != Some(End::Goodbye) {
            return Err("it did not arrive whole".into());
        }
    }
    // If the receiver ended because of an error, `close` returns this error.
    receiver.close().await?;
    Ok(())
}
