//! Tests of the asynchronous senders and receivers, on the loopback interface.

use std::future::poll_fn;
use std::net::SocketAddr;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use equipoise::control::{BoxedController, Cbr};
use equipoise::units::{Rate, Span};
use equipoise_net::media::{Incoming, MediaReceiver, MediaSender};
use equipoise_net::{Closed, End, Key, NetError, PayloadSender, Refusal, SendConfig, ServerConfig};
use equipoise_session::wire::key_frames::KeyFrameRequest;
use tokio::time::{sleep, timeout};

use crate::any_port;
use crate::sessions::machine::Machine;

/// Time limit of a test step; longer than any stall of the machine.
const PATIENCE: Duration = Duration::from_secs(20);
const SECRET: &str = "a secret of this test";

fn key(secret: &str) -> Key {
    Key::new(secret.as_bytes()).expect("long enough")
}

async fn receiver() -> MediaReceiver {
    MediaReceiver::bind(any_port(), ServerConfig::new(Some(key(SECRET)))).await.expect("a free port")
}

fn config(peer: SocketAddr, secret: &str) -> SendConfig {
    let (report_interval, patience) = (Span::from_millis(50), Span::from_secs(5));
    SendConfig { report_interval, patience, ..SendConfig::stream(peer, Some(key(secret))) }
}

fn cbr(kbps: u64) -> BoxedController {
    Box::new(Cbr::new(Rate::from_bps(kbps * 1000)))
}

async fn open(receiver: &mut MediaReceiver, kbps: u64) -> (MediaSender, Incoming) {
    let config = config(receiver.local_address(), SECRET);
    let sender = MediaSender::open(config, cbr(kbps)).await.expect("an open session");
    (sender, soon(receiver.accept()).await.expect("the receiver lives"))
}

async fn soon<T>(future: impl Future<Output = T>) -> T {
    timeout(PATIENCE, future).await.expect("it does not last so long")
}

/// Receives all payload until the session ends. Returns the payload, and the number of missing packets.
async fn drain(incoming: &mut Incoming) -> (Vec<u8>, u64) {
    let (mut all, mut missing) = (Vec::new(), 0);
    while let Some(received) = soon(incoming.recv()).await {
        missing += received.missing;
        all.extend_from_slice(&received.payload);
    }
    (all, missing)
}

fn numbers(from: u32, count: u32) -> Vec<u8> {
    (from..from + count).flat_map(u32::to_be_bytes).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_sessions_at_once_each_arrive_whole_and_are_measured() {
    let mut receiver = receiver().await;
    let (mut senders, mut readers) = (Vec::new(), Vec::new());
    for from in [0, 1_000_000] {
        let (sender, mut incoming) = open(&mut receiver, 4000).await;
        senders.push(tokio::spawn(async move {
            for part in numbers(from, 75_000).chunks(10_000) {
                sender.send(part).await.expect("open");
            }
            let (rate, mut measurements) = (sender.target_rate(), sender.measurements());
            assert_eq!(*rate.borrow(), Rate::from_bps(4_000_000));
            soon(measurements.changed()).await.expect("a report comes before the end");
            soon(sender.close()).await.expect("no failure")
        }));
        readers.push(tokio::spawn(async move {
            let (payload, missing) = drain(&mut incoming).await;
            assert!(payload == numbers(from, 75_000), "{} bytes came", payload.len());
            assert_eq!((missing, incoming.dropped(), incoming.end()), (0, 0, Some(End::Goodbye)));
            let reception = *incoming.measurements().borrow();
            (incoming.session().number, reception)
        }));
    }
    for (number, (sender, reader)) in (0u64..).zip(senders.into_iter().zip(readers)) {
        let summary = sender.await.expect("no panic");
        let measured = summary.measurement;
        assert!(!summary.ended_by_peer && measured.reports > 0, "{measured:?}");
        assert_eq!((measured.lost, measured.fraction_lost), (Some(0), Some(0.0)));
        assert!(measured.round_trip.is_some_and(|trip| trip >= Span::ZERO && trip < Span::from_secs(5)));
        // Sender and receiver have separate clocks, but run on one host, so the clocks show about the same time.
        let offset = measured.offset.expect("round trips were measured");
        assert!(offset.uncertainty > Span::ZERO);
        let (session, reception) = reader.await.expect("no panic");
        assert_eq!(session, number);
        assert!(reception.packets > 0 && reception.packets <= summary.packets, "{reception:?}");
        assert_eq!(reception.missing, 0);
    }
    assert_eq!(receiver.unaccepted(), 0);
    soon(receiver.close()).await.expect("no failure");
}

/// If this test fails, payload that an application has passed is lost while the runtime is busy.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sender_that_is_not_looked_after_for_a_while_loses_nothing() {
    a_busy_runtime_loses_nothing(8000, 200_000, Duration::from_millis(300)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "real time: 9 s"]
async fn a_sender_of_megabytes_that_is_not_looked_after_for_a_while_loses_nothing() {
    let _machine = Machine::shared();
    a_busy_runtime_loses_nothing(4000, 1_000_000, Duration::from_millis(700)).await;
}

/// Sends `count` four-byte numbers over a session with a rate of `kbps` kbit/s. For the time `away`, the sending task
/// does not run. `away` is long enough for the session to send all data of a full channel.
async fn a_busy_runtime_loses_nothing(kbps: u64, count: u32, away: Duration) {
    let mut receiver = receiver().await;
    let (sender, mut incoming) = open(&mut receiver, kbps).await;
    let reader = tokio::spawn(async move { drain(&mut incoming).await });
    let payload = numbers(7, count);
    {
        let mut sending = pin!(sender.send(&payload));
        // The payload fills the channel and then the session's own queue.
        for _ in 0..10 {
            let looked = poll_fn(|context| Poll::Ready(sending.as_mut().poll(context))).await;
            assert!(looked.is_pending(), "there is no room for all of it");
            sleep(Duration::from_millis(10)).await;
        }
        assert_eq!(sender.try_send(&vec![0; PayloadSender::MOST]), Ok(false));
        // At 1 MB/s or less, most of the accepted payload is still waiting.
        let waiting = sender.waiting();
        assert!(waiting > 100_000 && waiting < payload.len(), "{waiting} bytes wait");
        sleep(away).await;
        soon(sending).await.expect("open");
    }
    soon(sender.close()).await.expect("no failure");
    let (received, missing) = reader.await.expect("no panic");
    assert!(received == payload && missing == 0, "{} of {} bytes, {missing} missing", received.len(), payload.len());
}

/// If this test fails, an application that reads slowly delays all other sessions, or uses up all memory.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_not_taken_in_time_is_dropped_and_counted() {
    let mut receiver = receiver().await;
    let (sender, mut slow) = open(&mut receiver, 20_000).await;
    let (other, mut quick) = open(&mut receiver, 4000).await;
    let payload = numbers(0, 400_000);
    soon(sender.send(&payload)).await.expect("open");
    soon(other.send(&payload[..100_000])).await.expect("open");
    soon(other.close()).await.expect("no failure");
    assert!(drain(&mut quick).await.0 == payload[..100_000]);
    // The loop ends when all payload has been sent, packets have been dropped, and no further packet has been dropped
    // for 200 ms. By then, all payload has arrived.
    let mut dropped = 0;
    while sender.waiting() > 0 || slow.dropped() == 0 || slow.dropped() > dropped {
        dropped = slow.dropped();
        soon(sleep(Duration::from_millis(200))).await;
    }
    let first = soon(slow.recv()).await.expect("it was kept");
    assert_eq!((first.missing, payload.starts_with(&first.payload)), (0, true));
    let (mut packets, mut bytes, mut missing) = (1, first.payload.len(), 0);
    while let Ok(Some(received)) = timeout(Duration::from_millis(200), slow.recv()).await {
        (packets, bytes, missing) = (packets + 1, bytes + received.payload.len(), missing + received.missing);
    }
    assert!(bytes <= Incoming::MOST, "{bytes} bytes were kept");
    soon(sender.send(b"the end")).await.expect("open");
    let summary = soon(sender.close()).await.expect("no failure");
    let last = soon(slow.recv()).await.expect("it was sent");
    assert_eq!((missing + last.missing, last.payload.as_slice()), (dropped, b"the end".as_slice()));
    assert_eq!(summary.packets, packets + dropped + 1);
    assert_eq!(soon(slow.recv()).await, None);
}

#[tokio::test]
async fn a_sender_that_is_dropped_says_goodbye() {
    let mut receiver = receiver().await;
    let (sender, mut incoming) = open(&mut receiver, 100).await;
    let mut rate = sender.target_rate();
    sender.send(&vec![1; 100_000]).await.expect("open");
    drop(sender);
    let (payload, _) = drain(&mut incoming).await;
    assert!(payload.len() < 100_000, "what waits is not sent");
    assert_eq!(incoming.end(), Some(End::Goodbye));
    while soon(rate.changed()).await.is_ok() {}
}

/// If this test fails, a session never ends if the application stops waiting for the session to close.
#[tokio::test]
async fn closing_that_is_given_up_ends_the_session() {
    let mut receiver = receiver().await;
    let (sender, mut incoming) = open(&mut receiver, 100).await;
    sender.send(&vec![1; 400_000]).await.expect("open");
    assert!(timeout(Duration::from_millis(100), sender.close()).await.is_err(), "it lasts half a minute");
    drain(&mut incoming).await;
    assert_eq!(incoming.end(), Some(End::Goodbye));
}

#[tokio::test]
async fn a_receiver_that_ends_tells_both_sides() {
    for close in [true, false] {
        let mut receiver = receiver().await;
        let (sender, mut incoming) = open(&mut receiver, 1000).await;
        sender.send(b"hello").await.expect("open");
        soon(async {
            while sender.waiting() > 0 {
                sleep(Duration::from_millis(1)).await;
            }
        })
        .await;
        assert_eq!(soon(incoming.recv()).await.map(|received| received.payload), Some(b"hello".to_vec()));
        // The sender accepts a BYE only from a peer that has sent a report.
        soon(sender.measurements().changed()).await.expect("a report");
        if close {
            soon(receiver.close()).await.expect("no failure");
        } else {
            drop(receiver);
        }
        assert_eq!(soon(incoming.recv()).await, None);
        assert_eq!(incoming.end(), Some(End::Stopped));
        let mut measurements = sender.measurements();
        while soon(measurements.changed()).await.is_ok() {}
        let closed = soon(async { while sender.send(b"?").await.is_ok() {} }).await;
        assert_eq!((closed, sender.try_send(b"?")), ((), Err(Closed)));
        assert!(soon(sender.close()).await.expect("no failure").ended_by_peer);
    }
}

#[tokio::test]
async fn what_cannot_be_is_said_by_type() {
    let receiver = receiver().await;
    let address = receiver.local_address();
    let refused = MediaSender::open(config(address, "another secret of 16"), cbr(1000)).await;
    assert!(matches!(refused, Err(NetError::Refused { reason: Refusal::OtherKey, .. })), "{refused:?}");
    let keyless = MediaSender::open(SendConfig::stream(address, None), cbr(1000)).await;
    assert!(matches!(keyless, Err(NetError::Refused { reason: Refusal::NeedsKey, .. })), "{keyless:?}");
    let generated = MediaSender::open(SendConfig::new(address, Some(key(SECRET))), cbr(1000)).await;
    assert!(matches!(generated, Err(NetError::NothingToCarry)), "{generated:?}");
    let taken = MediaReceiver::bind(address, ServerConfig::new(None)).await;
    assert!(matches!(taken, Err(NetError::PortInUse { .. })), "{taken:?}");
}

/// If this test fails, a handshake that gets no answer blocks all tasks of a runtime.
#[tokio::test(flavor = "current_thread")]
async fn tasks_go_on_while_an_answer_is_waited_for() {
    let nobody = std::net::UdpSocket::bind(any_port()).expect("a free port");
    let config = SendConfig { patience: Span::from_millis(600), ..config(nobody.local_addr().expect("bound"), SECRET) };
    let opening = tokio::spawn(MediaSender::open(config, cbr(1000)));
    let mut turns = 0;
    while !opening.is_finished() {
        sleep(Duration::from_millis(10)).await;
        turns += 1;
    }
    let opened = opening.await.expect("no panic");
    assert!(matches!(opened, Err(NetError::NoAnswer { .. })), "{opened:?}");
    assert!(turns >= 5, "{turns} turns");
}

/// If this test fails, an application's picture stays damaged until the encoder sends its next regular key frame.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_receiver_that_wants_a_key_frame_is_heard_by_the_sender() {
    let mut receiver = receiver().await;
    let (sender, incoming) = open(&mut receiver, 1000).await;
    let mut wanted = sender.key_frames_wanted();
    receiver.key_frames().request(incoming.session().ssrc ^ 1, KeyFrameRequest::PictureLoss);
    receiver.key_frames().request(incoming.session().ssrc, KeyFrameRequest::PictureLoss);
    soon(wanted.changed()).await.expect("the session is open");
    assert_eq!(*wanted.borrow(), 1);
    soon(sender.close()).await.expect("no failure");
    soon(receiver.close()).await.expect("no failure");
}
