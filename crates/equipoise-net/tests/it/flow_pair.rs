//! Tests of flow pairs on the loopback interface, with this host's TCP and with short periods.

use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};
use std::{fs, thread};

use equipoise::units::Span;
use equipoise_net::NetError;
use equipoise_net::flow_pair::{
    Adu, PairConfig, PairEnd, PairListener, PairReceiver, PairSender, PairState, SendError, WindowControl, WindowPreset,
};
use equipoise_pair::tpba::{Period, ProbeInterval, Tolerance, TpbaConfig};
use equipoise_pair::wire::PairHello;

use crate::any_port;
use crate::sessions::machine::Machine;

/// Time limit of a test step; longer than any stall of the machine.
const PATIENCE: Duration = Duration::from_secs(20);

/// Periods of about 100 ms, with settings that soon accept any TCP rate as steady.
fn short_periods() -> PairConfig {
    let tpba = TpbaConfig {
        interval: ProbeInterval::Fixed(Span::from_millis(30)),
        tolerance: Tolerance::Share(1.0),
        running: Span::from_millis(100),
        early_return: None,
    };
    PairConfig { tpba, report_interval: Span::from_millis(50), ..PairConfig::default() }
}

/// A configuration in which the flow never changes from TCP to RTP.
fn only_tcp() -> PairConfig {
    let tpba = TpbaConfig { interval: ProbeInterval::Fixed(Span::from_secs(1000)), ..TpbaConfig::PAPER };
    PairConfig { tpba, ..PairConfig::default() }
}

fn pair(address: SocketAddr, config: &PairConfig) -> (PairSender, PairReceiver) {
    let mut listener = PairListener::bind(address).expect("a free port");
    let sender = PairSender::connect(listener.local_address(), config).expect("somebody listens");
    (sender, listener.accept().expect("it listens"))
}

/// The content of the ADU with this number: 0 to 5000 bytes, and sometimes 100 kB.
fn content(number: u64) -> Vec<u8> {
    let length = if number % 500 == 499 { 100_000 } else { number.wrapping_mul(7919) % 5001 };
    (0..length).map(|at| (number.wrapping_mul(31) + at % 251) as u8).collect()
}

/// Sends ADUs at up to 22 Mbit/s, each in one or two parts. Ends the flow after at least `least` ADUs and
/// `running_periods` running periods. Returns the number of ADUs sent, and the last state of the sender.
fn send_all(mut sender: PairSender, least: u64, running_periods: u64) -> (u64, PairState) {
    let (mut number, start) = (0, Instant::now());
    while number < least || sender.state().running_periods < running_periods {
        // A running period, in which RTP sends, begins only after TCP's rate was steady. If the machine stalls, TCP's
        // rate becomes steady late.
        assert!(start.elapsed() < 5 * PATIENCE, "{:?}", sender.state());
        let adu = content(number);
        let (first, rest) = adu.split_at(adu.len() / 3);
        if number % 3 == 0 {
            sender.send_part(first).expect("open");
            sender.send(rest).expect("open");
        } else {
            sender.send(&adu).expect("open");
        }
        number += 1;
        thread::sleep(Duration::from_millis(1));
    }
    (number, sender.close().expect("no failure"))
}

/// Receives all ADUs, and checks that they are complete and in order. Returns the number of all ADUs. Also returns how
/// many ADUs arrived over TCP, and how many over RTP.
fn take_all(mut receiver: PairReceiver) -> (u64, [u64; 2]) {
    let (mut next, mut over) = (0, [0; 2]);
    while let Some(Adu { number, missing, over: transport, data }) = receiver.recv() {
        assert_eq!((number, missing), (next, 0), "none is missing, doubled or out of order");
        assert!(data == content(number), "{} bytes of ADU {number}", data.len());
        over[usize::from(transport == Period::Running)] += 1;
        next += 1;
    }
    assert_eq!(receiver.end(), Some(PairEnd::Finished));
    (next, over)
}

fn run_through((sender, receiver): (PairSender, PairReceiver), least: u64, running_periods: u64) -> PairState {
    let taking = thread::spawn(move || take_all(receiver));
    let (sent, state) = send_all(sender, least, running_periods);
    let (taken, [over_tcp, over_rtp]) = taking.join().expect("no panic");
    assert_eq!(taken, sent);
    assert!(over_tcp > 0 && over_rtp > 0, "{over_tcp} over TCP, {over_rtp} over RTP");
    assert!(!state.ended_by_peer);
    state
}

#[test]
#[ignore = "real time: 5 s"]
fn thousands_of_adus_come_whole_and_in_order_over_many_switches() {
    let _machine = Machine::shared();
    let state = run_through(pair(any_port(), &short_periods()), 4000, 10);
    assert!(state.rate.is_some() && !state.congestion_control.is_empty(), "{state:?}");
}

/// If this test fails, TCP's window is not set on a host that permits this, or TCP is not paced on a host on which the
/// window cannot be set.
#[test]
fn windows_go_to_whom_can_set_them() {
    let Ok(host) = fs::read_to_string("/proc/sys/net/ipv4/tcp_congestion_control") else {
        println!("skipped: a congestion control in /proc/sys/net/ipv4/tcp_congestion_control");
        return;
    };
    let windows = Arc::new(Mutex::new(Vec::new()));
    let noted = windows.clone();
    let note = move |_: BorrowedFd<'_>, segments| {
        noted.lock().expect("no panic").push(segments);
        Ok(())
    };
    let control = WindowControl::new(host.trim(), note);
    let config = PairConfig { window_control: Some(control), ..short_periods() };
    let state = run_through(pair(any_port(), &config), 500, 3);
    assert_eq!(state.window_preset, WindowPreset::Set);
    let windows = windows.lock().expect("no panic");
    // The first call, with a window of 0, only tests whether a window can be set.
    assert!(windows.len() >= 3 && windows[0] == 0 && windows[1..].iter().all(|&segments| segments > 0), "{windows:?}");

    let control = WindowControl::new(host.trim(), |_, _| Err(io::Error::other("no right")));
    let config = PairConfig { window_control: Some(control), ..only_tcp() };
    let (sender, _receiver) = pair(any_port(), &config);
    assert_eq!(sender.state().window_preset, WindowPreset::Paced);
}

#[test]
fn a_flow_goes_over_ipv6() {
    match TcpListener::bind((Ipv6Addr::LOCALHOST, 0)) {
        Ok(_) => _ = run_through(pair((Ipv6Addr::LOCALHOST, 0).into(), &short_periods()), 500, 3),
        Err(error) => println!("{error}\nskipped: IPv6 on the loopback interface"),
    }
}

#[test]
fn an_ipv6_listener_takes_a_sender_over_ipv4() {
    let Ok(mut listener) = PairListener::bind((Ipv6Addr::UNSPECIFIED, 0).into()) else {
        println!("skipped: IPv6 on the loopback interface");
        return;
    };
    let to = (Ipv4Addr::LOCALHOST, listener.local_address().port()).into();
    let sender = PairSender::connect(to, &short_periods()).expect("somebody listens");
    let receiver = listener.accept().expect("it listens");
    run_through((sender, receiver), 500, 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tasks_send_and_receive_over_the_same_threads() {
    tasks_send_and_receive(300).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "real time: 5 s"]
async fn tasks_send_and_receive_thousands_of_adus() {
    let _machine = Machine::shared();
    tasks_send_and_receive(2000).await;
}

async fn tasks_send_and_receive(count: u64) {
    let mut listener = PairListener::bind(any_port()).expect("a free port");
    let to = listener.local_address();
    let mut sender = PairSender::connect_async(to, short_periods()).await.expect("somebody listens");
    let mut receiver = listener.accept_async().await.expect("it listens");
    let sending = tokio::spawn(async move {
        for number in 0..count {
            sender.send_async(&content(number)).await.expect("open");
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        sender.close_async().await.expect("no failure")
    });
    for next in 0..count {
        let adu = receiver.recv_async().await.expect("more to come");
        assert_eq!((adu.number, adu.missing, adu.data == content(next)), (next, 0, true));
    }
    assert_eq!(receiver.recv_async().await, None);
    assert!(!sending.await.expect("no panic").ended_by_peer);
}

/// If this test fails, data is lost when another branch of a `select!` is ready first: the future of `close_async` is
/// then dropped before it was polled.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flow_whose_close_is_never_awaited_still_sends_what_waits() {
    let mut listener = PairListener::bind(any_port()).expect("a free port");
    let to = listener.local_address();
    let mut sender = PairSender::connect_async(to, only_tcp()).await.expect("somebody listens");
    let mut receiver = listener.accept_async().await.expect("it listens");
    let adu = vec![7; 60_000];
    // The receiver does not read, so in the end data waits at the sender.
    let mut count = 0;
    while let Ok(sent) = tokio::time::timeout(Duration::from_millis(200), sender.send_async(&adu)).await {
        sent.expect("open");
        count += 1;
    }
    assert!(sender.waiting() > 0);
    drop(sender.close_async());
    for next in 0..count {
        let received = receiver.recv_async().await.expect("more to come");
        assert!(received.number == next && received.data == adu, "{next}");
    }
    assert_eq!(receiver.recv_async().await, None);
}

/// If this test fails, a sender never stops sending to a receiver that has disappeared.
#[test]
fn a_sender_hears_that_its_receiver_is_gone() {
    for config in [only_tcp(), short_periods()] {
        let (mut sender, receiver) = pair(any_port(), &config);
        sender.send(b"one").expect("open");
        drop(receiver);
        let start = Instant::now();
        let refused = loop {
            match sender.send(&[0; 1000]) {
                Err(refused) => break refused,
                Ok(()) => assert!(start.elapsed() < PATIENCE, "nobody said so"),
            }
            thread::sleep(Duration::from_millis(2));
        };
        assert!(matches!(refused, SendError::Closed(_)), "{refused:?}");
        assert!(sender.close().expect("no failure of its own").ended_by_peer);
    }
}

#[test]
fn a_receiver_hears_that_its_sender_is_gone() {
    let (mut sender, mut receiver) = pair(any_port(), &only_tcp());
    sender.send(b"one").expect("open");
    assert_eq!(receiver.recv().map(|adu| adu.data), Some(b"one".to_vec()));
    sender.send_part(b"half of one").expect("open");
    drop(sender);
    while receiver.recv().is_some() {}
    assert!(receiver.end().is_some());
}

/// If this test fails, an application that does not read causes the receiver to fill the memory, or to lose data that
/// TCP delivered.
#[test]
fn who_does_not_read_holds_up_tcp_and_loses_nothing() {
    const COUNT: usize = 800;
    let (mut sender, mut receiver) = pair(any_port(), &only_tcp());
    let sending = thread::spawn(move || {
        for number in 0..COUNT {
            sender.send(&vec![number as u8; 50_000]).expect("open");
        }
        sender.close().expect("no failure")
    });
    let start = Instant::now();
    while receiver.waiting() < PairReceiver::MOST {
        assert!(start.elapsed() < PATIENCE, "{} bytes", receiver.waiting());
        thread::sleep(Duration::from_millis(5));
    }
    // If TCP did not wait for the application, more data would arrive during this pause.
    thread::sleep(Duration::from_millis(100));
    let waiting = receiver.waiting();
    assert!((PairReceiver::MOST..=PairReceiver::MOST + 50_000).contains(&waiting), "{waiting} bytes");
    for number in 0..COUNT {
        let adu = receiver.recv().expect("more to come");
        assert!(adu.missing == 0 && adu.data == vec![number as u8; 50_000], "ADU {number}");
    }
    assert_eq!((receiver.recv(), receiver.end()), (None, Some(PairEnd::Finished)));
    sending.join().expect("no panic");
}

#[test]
fn an_adu_that_is_too_long_is_refused_and_can_be_ended() {
    let (mut sender, mut receiver) = pair(any_port(), &only_tcp());
    let most = 1 << 20;
    assert_eq!(sender.send(&vec![0; most + 1]), Err(SendError::TooLong { found: most + 1, most }));
    sender.send_part(&vec![7; most]).expect("it fits");
    assert_eq!(sender.send(b"x"), Err(SendError::TooLong { found: most + 1, most }));
    sender.send(b"").expect("it ends");
    sender.send(b"").expect("an empty one");
    sender.close().expect("no failure");
    assert!(receiver.recv().is_some_and(|adu| adu.data == vec![7; most]));
    assert!(receiver.recv().is_some_and(|adu| adu.data.is_empty()));
    assert_eq!(receiver.recv(), None);
}

fn refused(peer: SocketAddr) -> String {
    let config = PairConfig { patience: Span::from_millis(300), ..PairConfig::default() };
    match PairSender::connect(peer, &config) {
        Err(NetError::NoPair { peer: named, said }) if named == peer => said,
        other => panic!("{other:?}"),
    }
}

#[test]
fn who_answers_otherwise_or_not_at_all_is_no_receiver() {
    let server = TcpListener::bind(any_port()).expect("a free port");
    let peer = server.local_addr().expect("bound");
    let (refused_twice, ends) = mpsc::channel();
    let answering = thread::spawn(move || {
        let (mut stream, _) = server.accept().expect("somebody comes");
        stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").expect("it is there");
        // This read returns when the connection is closed.
        let _ = stream.read_to_end(&mut Vec::new());
        let (silent, _) = server.accept().expect("somebody comes");
        ends.recv().expect("the test goes on");
        drop((silent, server));
    });
    let said = refused(peer);
    assert!(said.contains("begins with 45 51 46 50"), "{said}");
    refused(peer);
    refused_twice.send(()).expect("it waits");
    answering.join().expect("no panic");
    refused(peer);
}

#[test]
fn strangers_are_turned_away_and_hold_up_nobody() {
    let mut listener = PairListener::bind(any_port()).expect("a free port");
    let to = listener.local_address();
    let silent = TcpStream::connect(to).expect("it listens");
    let mut stranger = TcpStream::connect(to).expect("it listens");
    stranger.write_all(b"GET / HTTP/1.1\r\n\r\n").expect("it is there");
    stranger.set_read_timeout(Some(PATIENCE)).expect("a time");
    // The listener closes the connection while there is unread data, which causes a reset.
    assert!(!matches!(stranger.read(&mut [0; 16]), Ok(1..)));
    let mut sender = PairSender::connect(to, &only_tcp()).expect("somebody listens");
    let mut receiver = listener.accept().expect("it listens");
    sender.send(b"through").expect("open");
    assert_eq!(receiver.recv().map(|adu| adu.data), Some(b"through".to_vec()));
    assert_eq!(listener.turned_away(), 1);
    drop(silent);
}

#[test]
fn a_stream_that_goes_wrong_ends_the_flow() {
    let mut listener = PairListener::bind(any_port()).expect("a free port");
    let mut stream = TcpStream::connect(listener.local_address()).expect("it listens");
    stream.write_all(&PairHello { port: 9, ssrc: 1 }.to_bytes()).expect("it is there");
    let mut receiver = listener.accept().expect("it listens");
    let mut answer = [0; PairHello::LEN];
    stream.read_exact(&mut answer).expect("an answer");
    assert!(PairHello::parse(answer).is_ok());
    stream.write_all(&[0xFF; 100]).expect("it is there");
    assert_eq!(receiver.recv(), None);
    assert_eq!(receiver.end(), Some(PairEnd::Garbled));
}
