//! A relay between a program with plain RTP and a peer with DTLS-SRTP, such as WebRTC or GStreamer.
//!
//! `cargo run -p equipoise-net --example dtls_srtp -- PORT CERTIFICATE PEER PLAIN TO`
//!
//! The relay uses DTLS-SRTP at PORT. Its identity is in the file CERTIFICATE (a certificate and its key, in PEM), and
//! its peer is described in the file PEER (SDP). The relay forwards packets between this peer and a program that sends
//! to the address PLAIN and receives at the address TO.
#![allow(clippy::print_stderr, reason = "it talks to a person")]

use std::error::Error;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;
use std::{fs, io};

use equipoise_net::Clock;
use equipoise_net::dtls_srtp::{Arrival, DtlsSrtp, Identity, PeerConfig, Standing};
use tokio::net::UdpSocket;
use tokio::time::sleep;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let [port, certificate, peer, plain, to] = arguments.as_slice() else {
        return Err("usage: dtls_srtp PORT CERTIFICATE PEER PLAIN TO".into());
    };
    let identity = Identity::from_pem(&fs::read_to_string(certificate)?)?;
    eprintln!("a=fingerprint:{}", identity.fingerprint());
    let clock = Clock::new();
    let mut session = DtlsSrtp::new(PeerConfig::from_sdp(&fs::read_to_string(peer)?)?, identity, clock.now())?;
    let outer = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, port.parse()?)).await?;
    let inner = UdpSocket::bind(plain.parse::<SocketAddr>()?).await?;
    relay(&mut session, &clock, (&outer, &inner), to.parse()?).await?;
    match session.trouble() {
        Some(_) if session.standing() == Standing::Failed => Err("the peer was not to be had".into()),
        _ => Ok(()),
    }
}

/// Relays packets in both directions until the association is closed or has failed.
///
/// # Errors
/// The system's error if the last datagrams cannot be sent to the peer.
pub(crate) async fn relay(
    session: &mut DtlsSrtp,
    clock: &Clock,
    (outer, inner): (&UdpSocket, &UdpSocket),
    to: SocketAddr,
) -> io::Result<()> {
    let (mut secured, mut plain, mut out) = ([0; 2048], [0; 2048], Vec::new());
    let mut before = session.standing();
    while !matches!(session.standing(), Standing::Closed | Standing::Failed) {
        while let Some((peer, datagram)) = session.poll() {
            // If the system refuses a datagram, the datagram counts as lost in the network.
            outer.send_to(&datagram, peer).await.ok();
        }
        let pause = session.wake().map_or(1_000_000_000, |at| (at - clock.now()).as_nanos().max(0));
        tokio::select! {
            received = outer.recv_from(&mut secured) => {
                // An error on receipt may mean that the peer is not running yet, so it is ignored.
                let Ok((length, from)) = received else { continue };
                let arrival = session.handle(clock.now(), from, &secured[..length], &mut out);
                if matches!(arrival, Arrival::Rtp | Arrival::Rtcp) {
                    inner.send_to(&out, to).await.ok();
                }
            }
            received = inner.recv_from(&mut plain) => {
                let Ok((length, _)) = received else { continue };
                if let (Ok(()), Some(peer)) = (session.protect(&plain[..length], &mut out), session.peer()) {
                    outer.send_to(&out, peer).await.ok();
                }
            }
            () = sleep(Duration::from_nanos(pause.unsigned_abs())) => session.on_timer(clock.now()),
        }
        if session.standing() != before {
            before = session.standing();
            eprintln!("{before:?}");
        }
    }
    while let Some((peer, datagram)) = session.poll() {
        outer.send_to(&datagram, peer).await?;
    }
    Ok(())
}
