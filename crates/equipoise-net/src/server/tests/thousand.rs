//! Test of a thousand simultaneous senders to one server.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::fs;
use std::io::ErrorKind;
use std::net::{Ipv4Addr, UdpSocket};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::*;
use crate::Clock;
use crate::secure::opening::Told;

const SESSIONS: u32 = 1000;
const SECONDS: i64 = 4;
/// The rate of each sender: ten packets of 1000 bytes per second.
const RATE: Rate = Rate::from_bps(80_000);

#[derive(Clone, Default)]
struct Counts(Arc<Mutex<BTreeMap<u64, u64>>>);

impl SessionObserver for Counts {
    fn on_event(&mut self, _now: Time, session: &Session, event: &Event) {
        if matches!(event, Event::MediaReceived { .. }) {
            *self.0.lock().expect("nobody panics").entry(session.number).or_default() += 1;
        }
    }
}

/// A sender without its own thread.
struct Peer {
    sender: Sender,
    protection: Protection,
    reports: u64,
    sent: u64,
}

/// All senders. They share one socket.
struct Crowd {
    socket: UdpSocket,
    clock: Clock,
    key: Key,
    peers: Vec<Peer>,
    /// The index of each sender in `peers`. The key is the SSRC of the server's reports to this sender.
    by_receiver: HashMap<u32, usize>,
    wakes: BinaryHeap<Reverse<(Time, usize)>>,
    plain: Vec<u8>,
    wire: Vec<u8>,
    /// Packets that are collected, to be sent in one burst later; `None` if packets are sent at once.
    held: Option<Vec<Vec<u8>>>,
}

impl Crowd {
    /// Opens a session. Returns the sender's SSRC, the SSRC of the server's packets, and the encryption. If the server
    /// refuses, returns the reason.
    fn open(&mut self, ssrc: u32) -> Result<(u32, u32, Protection), Refusal> {
        let asked = Asked {
            key: Some(self.key.clone()),
            ssrc,
            payload: Payload::Generated,
            reporting: None,
            several: false,
            wanted: None,
        };
        let (mut opening, mut buffer) = (Opening::new(asked), [0; 2048]);
        opening.ask_for_session(self.clock.now(), std::iter::once(PathId(0)));
        loop {
            opening.on_timer(self.clock.now());
            while let Some((_, message)) = opening.poll() {
                self.socket.send(&message).expect("sent");
            }
            let length = self.socket.recv(&mut buffer).expect("an answer");
            let told = opening.handle(self.clock.now(), PathId(0), true, &buffer[..length]);
            match told {
                Told::Opened { ssrc: reports, keys, .. } => {
                    while let Some((_, message)) = opening.poll() {
                        self.socket.send(&message).expect("sent");
                    }
                    let mut protection = Protection::new(&keys.expect("it has a key"), Role::Client);
                    // Send a packet now. The server ends a session if its first packet does not arrive within 5 s, and
                    // opening all sessions may take longer.
                    let packet = [&[0x80, 96, 0, 0, 0, 0, 0, 0][..], &ssrc.to_be_bytes()].concat();
                    assert!(protection.protect(&packet, &mut self.wire));
                    self.socket.send(&self.wire).expect("sent");
                    return Ok((ssrc, reports, protection));
                }
                Told::Refused(reason) => return Err(reason),
                Told::Nothing | Told::Joined(_) => {}
            }
        }
    }

    /// Starts sending in an open session.
    fn begin(&mut self, (ssrc, reports, protection): (u32, u32, Protection)) {
        // The senders start at different times, spread over one packet interval (100 ms).
        let start = self.clock.now() + Span::from_micros(i64::from(ssrc) * 100);
        let stream = StreamConfig {
            overhead: Size::from_bytes(Protection::OVERHEAD),
            ..StreamConfig::new(ssrc, 96, Size::from_bytes(1000), "s")
        };
        let config = SenderConfig {
            delays: Delays::Queueing,
            ..SenderConfig::new(stream, Span::from_secs(1), start.assume_clock(), u64::from(ssrc))
        };
        let sender = Sender::new(config, Box::new(Cbr::new(RATE))).expect("a valid configuration");
        self.by_receiver.insert(reports, self.peers.len());
        self.wakes.push(Reverse((start, self.peers.len())));
        self.peers.push(Peer { sender, protection, reports: 0, sent: 0 });
    }

    fn run_until(&mut self, end: Time) {
        while self.clock.now() < end {
            let now = self.clock.now();
            // At most 50 timers are served in a row, so that even a slow machine handles the server's answers.
            for _ in 0..50 {
                let Some(Reverse((_, index))) = self.wakes.peek().copied().filter(|Reverse((at, _))| *at <= now) else {
                    break;
                };
                self.wakes.pop();
                self.step(index, now, Input::Timer);
                let wake = self.peers[index].sender.wake().expect("it goes on");
                self.wakes.push(Reverse((wake.at.assume_clock(), index)));
            }
            if !self.hear(now) {
                std::thread::sleep(Duration::from_micros(200));
            }
        }
    }

    /// Handles all waiting answers of the server. Returns whether there were any.
    fn hear(&mut self, now: Time) -> bool {
        let (mut buffer, mut heard) = ([0; 2048], false);
        loop {
            let length = match self.socket.recv(&mut buffer) {
                Ok(length) => length,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return heard,
                Err(error) => panic!("{error}"),
            };
            heard = true;
            let source = source_of(&buffer[..length]);
            let Some(&index) = source.and_then(|source| self.by_receiver.get(&source)) else { continue };
            let mut plain = std::mem::take(&mut self.plain);
            if self.peers[index].protection.unprotect(&buffer[..length], source.unwrap_or(0), &mut plain) {
                self.step(index, now, Input::datagram(&plain));
            }
            self.plain = plain;
        }
    }

    fn step(&mut self, index: usize, now: Time, input: Input<'_>) {
        let peer = &mut self.peers[index];
        peer.sender.handle(now.assume_clock(), input);
        while let Some(output) = peer.sender.poll() {
            match output {
                Output::Transmit { transmit, .. } => {
                    let mut whole = transmit.head.to_vec();
                    whole.resize(transmit.len(), 0);
                    assert!(peer.protection.protect(&whole, &mut self.wire));
                    match &mut self.held {
                        Some(held) => held.push(self.wire.clone()),
                        None => self.socket.send(&self.wire).map(|_| ()).expect("sent"),
                    }
                }
                Output::Event { event: Event::ReportApplied { .. }, .. } => peer.reports += 1,
                Output::Event { event: Event::MediaSent { .. }, .. } => peer.sent += 1,
                _ => {}
            }
        }
    }
}

/// The processor time of this process's threads with this name, in seconds.
fn processor_time(name: &str) -> f64 {
    let tasks = fs::read_dir("/proc/self/task").expect("Linux has it").flatten();
    let ticks = tasks.filter_map(|task| {
        let stat = fs::read_to_string(task.path().join("stat")).ok()?;
        let (head, rest) = stat.rsplit_once(')')?;
        let fields: Vec<&str> = rest.split_whitespace().collect();
        head.ends_with(name)
            .then(|| fields[11].parse::<f64>().unwrap_or(0.0) + fields[12].parse::<f64>().unwrap_or(0.0))
    });
    ticks.sum::<f64>() / 100.0
}

fn memory_mb() -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("Linux has it");
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).expect("Linux says so");
    line.split_whitespace().nth(1).and_then(|kilobytes| kilobytes.parse::<u64>().ok()).expect("a number") / 1024
}

#[test]
fn a_thousand_encrypted_sessions_are_served_and_the_next_is_refused() {
    let clock = Clock::new();
    let key = Key::new(b"0123456789abcdef").expect("long enough");
    let counts = Counts::default();
    let socket = Socket::bind((Ipv4Addr::LOCALHOST, 0).into(), &clock).expect("a socket");
    let config = ServerConfig { most_sessions: SESSIONS as usize, ..ServerConfig::new(Some(key.clone())) };
    let server = Server::start(socket, config, counts.clone()).expect("a server");
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a socket");
    socket.connect(server.address()).expect("an address");
    socket.set_read_timeout(Some(Duration::from_secs(5))).expect("a timeout");
    let mut crowd = Crowd {
        socket,
        clock: clock.clone(),
        key,
        peers: Vec::new(),
        by_receiver: HashMap::new(),
        wakes: BinaryHeap::new(),
        plain: Vec::new(),
        wire: Vec::new(),
        held: None,
    };
    let before = memory_mb();
    let (began, busy_opening) = (clock.now(), processor_time("server"));
    let opened: Vec<_> = (1..=SESSIONS).map(|ssrc| crowd.open(ssrc).expect("a session")).collect();
    println!(
        "opened in {} by one after another, of which the server's thread took {:.2} s",
        clock.now() - began,
        processor_time("server") - busy_opening
    );
    assert_eq!(crowd.open(SESSIONS + 1).err(), Some(Refusal::Full));
    for session in opened {
        crowd.begin(session);
    }
    crowd.socket.set_nonblocking(true).expect("a socket can");
    let (start, busy) = (clock.now(), processor_time("server"));
    crowd.run_until(start + Span::from_secs(SECONDS));
    std::thread::sleep(Duration::from_millis(200));
    let busy = processor_time("server") - busy;
    let (sent, received): (u64, u64) =
        (crowd.peers.iter().map(|peer| peer.sent).sum(), counts.0.lock().expect("no panic").values().sum());
    println!(
        "{SESSIONS} sessions, {sent} packets sent in {SECONDS} s, {received} received; the server's thread took {busy:.2} s, memory \
         grew by {} MB",
        memory_mb().saturating_sub(before)
    );
    // The packets of 2 s are collected and then sent in one burst. This measures the processor time per packet of a
    // busy server.
    crowd.held = Some(Vec::new());
    let now = clock.now();
    crowd.run_until(now + Span::from_secs(2));
    let taken = || counts.0.lock().expect("no panic").values().sum::<u64>();
    let (before_flood, busy) = (taken(), processor_time("server"));
    for datagram in crowd.held.take().unwrap_or_default() {
        while crowd.socket.send(&datagram).is_err() {}
    }
    std::thread::sleep(Duration::from_millis(500));
    let (busy, taken) = (processor_time("server") - busy, taken() - before_flood);
    println!("{taken} packets at once: the server's thread took {:.1} µs a packet", busy * 1e6 / taken as f64);
    let served = counts.0.lock().expect("no panic").values().filter(|count| **count > 0).count();
    assert_eq!(served, SESSIONS as usize);
    // If the machine stalls, a socket may overflow. Such losses are not an error of the server.
    assert!(received as f64 > 0.9 * sent as f64, "{received} of {sent}");
    assert!(crowd.peers.iter().all(|peer| peer.reports >= 2), "every sender receives reports on its packets");
    assert!(memory_mb().saturating_sub(before) < 600, "{} MB", memory_mb().saturating_sub(before));
}
