use alloc::boxed::Box;
use alloc::collections::{BTreeSet, BinaryHeap, VecDeque};
use alloc::vec;
use alloc::vec::Vec;
use core::cmp::Reverse;

use proptest::prelude::*;
use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;

use super::*;
use crate::tpba::{EarlyReturn, ProbeInterval, Tolerance, TpbaConfig};
use crate::wire::{AduHeader, AduPart};
use equipoise::control::{Allowance, BoxedController, Controller, Feedback};
use equipoise::measure::ClockMap;
use equipoise::units::{Instant, SenderClock, Span};
use equipoise_session::rtp::{self, ReorderConfig, StreamConfig};
use equipoise_session::wire::is_rtcp;
use equipoise_session::wire::rtp::RtpPacket;

const MILLI: u64 = 1_000_000;
const SSRC: u32 = 0x0102_0304;

fn tpba(interval_ms: i64, running_ms: i64) -> TpbaConfig {
    TpbaConfig {
        interval: ProbeInterval::Fixed(Span::from_millis(interval_ms)),
        // Any three rates count as steady, because these tests are about the switch of the transport.
        tolerance: Tolerance::Absolute(Rate::from_bps(1 << 40)),
        running: Span::from_millis(running_ms),
        early_return: None,
    }
}

fn sender(tpba: TpbaConfig) -> Sender {
    let stream = StreamConfig::new(SSRC, 96, Size::from_bytes(576), "sender@test");
    let rtp = rtp::SenderConfig::new(stream, Span::from_millis(100), Instant::from_nanos(0), 1);
    Sender::new(SenderConfig { tpba, ..SenderConfig::new(rtp) }).expect("valid")
}

fn receiver(hold_ms: i64) -> Receiver {
    let rtp = rtp::ReceiverConfig::new(9, "receiver@test", SSRC, ClockMap::SYNCHRONISED, 2);
    let reorder = ReorderConfig { hold: Span::from_millis(hold_ms), ..ReorderConfig::default() };
    Receiver::new(ReceiverConfig::new(rtp::ReceiverConfig { reorder, ..rtp })).expect("valid")
}

/// Returns the bytes of ADU `number`. The bytes differ between successive numbers, and repeat after 256 numbers.
fn content(number: u64, length: usize) -> Vec<u8> {
    (0..length).map(|at| (number.wrapping_mul(31) as usize + at * 7 % 251) as u8).collect()
}

/// The outputs of a sender.
#[derive(Debug, Default)]
struct Said {
    requests: Vec<TcpRequest>,
    packets: Vec<Vec<u8>>,
    began: Vec<(Period, u64)>,
    ended: bool,
}

fn listen(sender: &mut Sender) -> Said {
    let mut said = Said::default();
    while let Some(output) = sender.poll() {
        match output {
            Output::Transmit(transmit) if is_rtcp(transmit.head) => {}
            Output::Transmit(transmit) => said.packets.push(transmit.head.to_vec()),
            Output::Tcp(request) => said.requests.push(request),
            Output::Event(Event::Began { period, adu, .. }) => said.began.push((period, adu)),
            Output::Event(Event::Ended) => said.ended = true,
            Output::Event(_) => {}
        }
    }
    said
}

/// Returns the state of a TCP connection with these numbers of acknowledged and unsent bytes, and a window of 10
/// segments.
fn state(acknowledged: u64, unsent: u64) -> TcpState {
    TcpState {
        acknowledged,
        unsent,
        window: Size::from_bytes(14_600),
        segment: Size::from_bytes(1460),
        header: Size::from_bytes(40),
        reductions: 0,
    }
}

/// Takes all pending bytes from the sender, like a TCP connection that sends them at once.
fn write(sender: &mut Sender, millis: u64, stream: &mut Vec<u8>) {
    let now = Instant::from_nanos(millis * MILLI);
    loop {
        let pending = sender.tcp_pending().to_vec();
        if pending.is_empty() {
            break;
        }
        stream.extend_from_slice(&pending);
        sender.tcp_written(now, pending.len());
        sender.handle(now, Input::Tcp(state(stream.len() as u64, 0)));
    }
}

/// The test makes two switches of the transport. The switch to RTP waits for the end of the ADU and for TCP's unsent
/// bytes; the switch back to TCP waits for RTP's queued packets.
#[test]
fn the_transport_changes_at_the_end_of_an_adu_once_all_is_sent() {
    let at = |millis: u64| Instant::from_nanos(millis * MILLI);
    let (mut sender, mut stream) = (sender(tpba(10, 50)), Vec::new());
    sender.handle(at(0), Input::Tcp(state(0, 0)));
    for number in 0..4 {
        sender.push(at(0), &content(number, 5120), true).expect("room");
    }
    write(&mut sender, 0, &mut stream);
    assert_eq!(stream.len(), 4 * (12 + 5120));
    assert_eq!(stream[..12], AduHeader { number: 0, length: 5120 }.to_bytes());
    assert_eq!(listen(&mut sender).packets.len(), 1, "the packet that opens the way");
    // The probing period has three intervals of 10 ms. Bytes are acknowledged only in the last interval, at 30 ms.
    for millis in [10, 20] {
        sender.handle(at(millis), Input::Tcp(state(0, 0)));
    }
    sender.push(at(25), &content(4, 5120), true).expect("room");
    // TCP accepts 1000 bytes of ADU 4, and 500 of them are unsent.
    assert!(sender.tcp_pending().len() >= 1000);
    sender.tcp_written(at(25), 1000);
    sender.handle(at(30), Input::Tcp(state(20_528, 500)));
    assert_eq!(listen(&mut sender).requests, [TcpRequest::NoDelay(true)]);
    sender.push(at(31), &content(5, 1000), true).expect("room");
    sender.handle(at(32), Input::Tcp(state(20_528, 0)));
    assert_eq!(listen(&mut sender).began, [], "the fifth is not written");
    let rest = sender.tcp_pending().len();
    assert!(rest > 0 && rest <= 4132);
    while !sender.tcp_pending().is_empty() {
        let rest = sender.tcp_pending().len();
        sender.tcp_written(at(33), rest);
        assert_eq!(listen(&mut sender).began, [], "TCP has not sent it");
        sender.handle(at(33), Input::Tcp(state(20_528, 0)));
    }
    let said = listen(&mut sender);
    assert_eq!(said.began, [(Period::Running, 5)]);
    assert_eq!(said.packets.len(), 1, "the first part of the sixth");
    let packet = RtpPacket::parse(&said.packets[0]).expect("RTP");
    let (part, data) = AduPart::parse(packet.payload).expect("a part");
    assert_eq!(part, AduPart { adu: AduHeader { number: 5, length: 1000 }, offset: 0, since_switch: 0 });
    // 500 bytes are the packet's 576 bytes minus 28 of IP and UDP headers, 28 of the RTP header and 20 of the part's
    // header.
    assert_eq!((data.len(), data), (500, &content(5, 1000)[..500]));
    assert!(!packet.header.marker && sender.period() == Period::Running);
    // No new period may begin before the second part of the ADU is sent.
    sender.handle(at(34), Input::Timer);
    let mut later = Vec::new();
    let mut millis = 34;
    while later.is_empty() && millis < 500 {
        millis += 1;
        sender.handle(at(millis), Input::Timer);
        let said = listen(&mut sender);
        assert!(said.began.is_empty() || !said.packets.is_empty());
        later = said.packets;
    }
    assert!(RtpPacket::parse(&later[0]).expect("RTP").header.marker, "the end of the ADU");
    sender.handle(at(millis.max(90)), Input::Timer);
    let said = listen(&mut sender);
    let back = [TcpRequest::NoDelay(false), TcpRequest::Window(Size::from_bytes(14_600))];
    assert_eq!((said.requests.as_slice(), said.began.as_slice()), (&back[..], &[(Period::Probing, 6)][..]));
}

#[test]
fn a_stopped_flow_sends_what_it_has_and_shuts_tcp_down() {
    let at = |millis: u64| Instant::from_nanos(millis * MILLI);
    let (mut sender, mut stream) = (sender(tpba(10, 50)), Vec::new());
    sender.handle(at(0), Input::Tcp(state(0, 0)));
    sender.push(at(0), b"first", true).expect("room");
    sender.push(at(0), b"sec", false).expect("room");
    sender.handle(at(1), Input::Stop);
    assert_eq!(sender.push(at(1), b"ond", true), Err(PushError::Stopped));
    assert!(!listen(&mut sender).ended);
    write(&mut sender, 2, &mut stream);
    let said = listen(&mut sender);
    assert!(said.ended && said.requests == [TcpRequest::Finish], "{said:?}");
    assert_eq!(
        stream,
        [&[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5][..], b"first", &[0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 3], b"sec"].concat()
    );
    assert_eq!(sender.wake(), None);
}

/// If this test fails, the sender is woken every nanosecond from the end of the running period until RTP has sent its
/// queued packets.
#[test]
fn a_flow_that_is_stopped_while_it_runs_waits_for_rtp_alone() {
    let at = |millis: u64| Instant::from_nanos(millis * MILLI);
    let (mut sender, mut stream) = (sender(tpba(10, 50)), Vec::new());
    for millis in [0, 10, 20, 30] {
        sender.handle(at(millis), Input::Tcp(state(stream.len() as u64, 0)));
        sender.push(at(millis), &content(millis / 10, 5120), true).expect("room");
        write(&mut sender, millis, &mut stream);
    }
    sender.push(at(31), &content(4, 1 << 16), true).expect("room");
    listen(&mut sender);
    assert_eq!(sender.period(), Period::Running);
    sender.handle(at(79), Input::Stop);
    for millis in [81, 82] {
        sender.handle(at(millis), Input::Timer);
        assert!(!listen(&mut sender).ended, "RTP takes longer");
        let wake = sender.wake().expect("RTP has packets to send").at;
        assert!(wake - at(millis) > Span::from_micros(10), "{wake:?}");
    }
}

/// If this test fails, a flow that is stopped never ends if the path no longer delivers UDP.
#[test]
fn a_stopped_flow_whose_rtp_is_stopped_too_sends_the_rest_over_tcp() {
    let at = |millis: u64| Instant::from_nanos(millis * MILLI);
    let (mut sender, mut stream) = (sender(tpba(10, 50)), Vec::new());
    for millis in [0, 10, 20, 30] {
        sender.handle(at(millis), Input::Tcp(state(stream.len() as u64, 0)));
        sender.push(at(millis), &content(millis / 10, 5120), true).expect("room");
        write(&mut sender, millis, &mut stream);
    }
    assert_eq!(sender.period(), Period::Running);
    let before = stream.len();
    let mut pushed = 0;
    while sender.room() > 1 << 16 {
        sender.push(at(31), &content(4, 1 << 16), true).expect("room");
        pushed += 1 << 16;
    }
    sender.handle(at(32), Input::Stop);
    let ends = (33..60_000).find(|millis| {
        sender.handle(at(*millis), Input::Tcp(state(stream.len() as u64, 0)));
        sender.handle(at(*millis), Input::Timer);
        write(&mut sender, *millis, &mut stream);
        listen(&mut sender).ended
    });
    let over_tcp = stream.len() - before;
    assert!(ends.is_some() && over_tcp > pushed / 2, "{ends:?}: {over_tcp} of {pushed} bytes over TCP");
}

/// A controller whose decisions have no explanation, and that halves its rate if reports are missing.
#[derive(Debug)]
struct Terse(Rate);

impl Controller for Terse {
    fn on_feedback(&mut self, _now: Instant<SenderClock>, feedback: &Feedback<'_>) {
        if matches!(feedback, Feedback::Silent { .. }) {
            self.0 = self.0.halved();
        }
    }

    fn allowance(&self) -> Allowance {
        Allowance::rate(self.0)
    }
}

/// If this test fails, the early end of a running period depends on whether the controller explains its decisions, or
/// on whether the caller polls the outputs.
#[test]
fn two_halvings_end_a_running_period_whatever_the_law_says_of_itself() {
    let at = |millis: u64| Instant::from_nanos(millis * MILLI);
    let tpba = TpbaConfig { early_return: Some(EarlyReturn::STANDARD), ..tpba(10, 10_000) };
    let stream = StreamConfig::new(SSRC, 96, Size::from_bytes(576), "sender@test");
    let rtp = rtp::SenderConfig::new(stream, Span::from_millis(100), Instant::from_nanos(0), 1);
    let running = Box::new(|found| Box::new(Terse(found)) as BoxedController);
    let mut sender = Sender::new(SenderConfig { rtp, tpba, running }).expect("valid");
    let mut stream = Vec::new();
    for millis in [0, 10, 20, 30] {
        sender.handle(at(millis), Input::Tcp(state(stream.len() as u64, 0)));
        sender.push(at(millis), &content(millis / 10, 5120), true).expect("room");
        write(&mut sender, millis, &mut stream);
    }
    assert_eq!(sender.period(), Period::Running);
    // No report request is answered. At 400 ms three reports are missing, so the session notifies the controller, which
    // halves its rate. At 500 ms the session itself halves the rate.
    let returns = (31..10_000).find(|millis| {
        sender.handle(at(*millis), Input::Timer);
        sender.period() == Period::Probing
    });
    assert_eq!(returns, Some(500));
}

#[test]
fn what_is_too_long_or_too_much_is_refused_whole() {
    let mut sender = sender(tpba(10, 50));
    let longest = AduHeader::LONGEST as usize;
    let big = vec![0; longest];
    assert_eq!(
        sender.push(Instant::ZERO, &[&big[..], &[0]].concat(), true),
        Err(PushError::TooLong { found: longest + 1, most: longest })
    );
    assert_eq!(sender.waiting(), 0);
    // TCP takes the first ADU, and two ADUs wait in the queue.
    for _ in 0..3 {
        sender.push(Instant::ZERO, &big, true).expect("room");
    }
    assert_eq!(sender.push(Instant::ZERO, &[0], true), Err(PushError::Full { found: 1, room: 0 }));
}

/// A receiver with helper functions: ADUs over TCP arrive as bytes of the stream, ADUs over RTP as packets.
struct Ear {
    receiver: Receiver,
    sequence: u16,
    now: u64,
}

impl Ear {
    fn new() -> Self {
        let mut ear = Self { receiver: receiver(100), sequence: 0, now: 0 };
        ear.packet(&[]);
        ear.wait(100);
        ear
    }

    fn now(&self) -> Instant<equipoise::units::ReceiverClock> {
        Instant::from_nanos(self.now * MILLI)
    }

    fn wait(&mut self, millis: u64) {
        self.now += millis;
        self.receiver.handle(self.now(), Input::Timer);
    }

    fn packet(&mut self, payload: &[u8]) {
        let mut bytes = Vec::new();
        let send_time = Some(equipoise_session::wire::NtpTime::from_instant(self.now().assume_clock()));
        let header = equipoise_session::wire::rtp::RtpHeader {
            payload_type: 96,
            ssrc: SSRC,
            sequence: self.sequence,
            send_time,
            ..Default::default()
        };
        self.sequence += 1;
        header.encode(&mut bytes);
        bytes.extend_from_slice(payload);
        self.receiver.handle(self.now(), Input::Datagram(&bytes));
    }

    fn rtp(&mut self, number: u64, since_switch: u32) {
        let data = content(number, 10);
        let mut payload = Vec::new();
        AduPart { adu: AduHeader { number, length: 10 }, offset: 0, since_switch }.encode(&mut payload);
        payload.extend_from_slice(&data);
        self.packet(&payload);
    }

    fn tcp(&mut self, number: u64) -> usize {
        let bytes = [&AduHeader { number, length: 10 }.to_bytes()[..], &content(number, 10)].concat();
        self.receiver.tcp_received(self.now(), &bytes)
    }

    /// For each delivered ADU, returns its number and the number of ADUs that are missing before it.
    fn hears(&mut self) -> Vec<(u64, u64)> {
        let mut found = Vec::new();
        while self.receiver.poll().is_some() {}
        while let Some(Adu { number, missing, data, .. }) = self.receiver.take_adu() {
            assert_eq!(data, content(number, 10));
            found.push((number, missing));
        }
        found
    }
}

#[test]
fn rtp_that_overtakes_tcp_waits_for_it_without_limit() {
    let mut ear = Ear::new();
    ear.tcp(0);
    assert_eq!(ear.hears(), [(0, 0)]);
    ear.rtp(2, 0);
    ear.rtp(3, 1);
    ear.wait(10_000);
    assert_eq!(ear.hears(), [], "TCP owes 1");
    ear.tcp(1);
    assert_eq!(ear.hears(), [(1, 0), (2, 0), (3, 0)]);
}

#[test]
fn what_rtp_lost_is_missing_as_soon_as_what_follows_says_so() {
    let mut ear = Ear::new();
    ear.tcp(0);
    ear.rtp(1, 0);
    ear.rtp(4, 3);
    assert_eq!(ear.hears(), [(0, 0), (1, 0), (4, 2)]);
}

#[test]
fn tcp_that_overtakes_rtp_waits_for_as_long_as_rtp_may_be_reordered() {
    let mut ear = Ear::new();
    ear.rtp(0, 0);
    assert_eq!(ear.tcp(2), 22);
    assert_eq!((ear.hears(), ear.receiver.wants_tcp()), (vec![(0, 0)], false));
    assert_eq!(ear.tcp(3), 0, "held up");
    ear.wait(199);
    assert_eq!(ear.hears(), []);
    ear.rtp(1, 1);
    assert_eq!(ear.hears(), [(1, 0), (2, 0)]);
    assert_eq!(ear.tcp(5), 22);
    ear.wait(200);
    assert_eq!(ear.hears(), [(5, 2)], "3 and 4 were RTP's, and lost");
    ear.rtp(3, 0);
    assert_eq!(ear.hears(), [], "too late");
}

#[test]
fn a_whole_run_that_was_lost_is_missing() {
    let mut ear = Ear::new();
    ear.tcp(0);
    // ADUs 1 to 4 were sent over RTP and are lost. ADUs 5 and 6 were sent over TCP. ADU 7, which was sent over RTP,
    // arrives before ADUs 5 and 6.
    ear.rtp(7, 0);
    ear.tcp(5);
    assert_eq!(ear.hears(), [(0, 0), (5, 4)], "RTP has gone on, so nothing is waited for");
    ear.tcp(6);
    assert_eq!(ear.hears(), [(6, 0), (7, 0)]);
}

#[test]
fn the_end_of_tcp_ends_the_flow_once_rtp_had_its_time() {
    let mut ear = Ear::new();
    ear.rtp(1, 0);
    ear.receiver.handle(ear.now(), Input::TcpEnded);
    ear.rtp(2, 1);
    assert_eq!(ear.hears(), []);
    ear.wait(200);
    assert_eq!(ear.hears(), [(1, 1), (2, 0)]);
    assert_eq!(ear.receiver.wake(), None);
}

#[test]
fn a_stream_that_is_none_of_ours_is_left_alone() {
    for bytes in [
        AduHeader { number: 0, length: AduHeader::LONGEST + 1 }.to_bytes().to_vec(),
        [&AduHeader { number: 0, length: 0 }.to_bytes()[..], &AduHeader { number: 0, length: 0 }.to_bytes()].concat(),
    ] {
        let mut ear = Ear::new();
        assert_eq!(ear.receiver.tcp_received(ear.now(), &bytes), bytes.len());
        ear.wait(100);
        let mut broken = 0;
        while let Some(output) = ear.receiver.poll() {
            broken += u32::from(output == Output::Event(Event::TcpBroken));
        }
        assert_eq!((broken, ear.receiver.wants_tcp()), (1, false));
    }
}

/// A sender, a receiver, a reliable TCP connection, and a network that loses, delays and reorders datagrams.
struct World {
    random: Pcg64Mcg,
    now: u64,
    sender: Sender,
    receiver: Receiver,
    loss_percent: u32,
    /// `unsent` contains TCP's unsent bytes, `flying` TCP's bytes in flight with their arrival times, and `readable`
    /// the bytes that the receiver can read.
    unsent: VecDeque<u8>,
    flying: VecDeque<(u64, Vec<u8>)>,
    readable: VecDeque<u8>,
    acknowledged: u64,
    order: u64,
    datagrams: BinaryHeap<Reverse<(u64, u64, Vec<u8>)>>,
    reports: BinaryHeap<Reverse<(u64, u64, Vec<u8>)>>,
    reads_again: u64,
    pushed: u64,
    lengths: Vec<usize>,
    /// Numbers of the ADUs that the network lost, completely or in part.
    lost: BTreeSet<u64>,
    given: u64,
    missing: u64,
    /// Number of ADUs that were received over RTP.
    over_rtp: u64,
    switches: u64,
}

impl World {
    const HOLD_MS: u64 = 20;
    /// A datagram takes 1 ms to 8 ms, so datagrams can arrive in any order.
    const LONGEST_WAY_MS: u64 = 8;

    fn new(seed: u64, loss_percent: u32) -> Self {
        Self {
            random: Pcg64Mcg::seed_from_u64(seed),
            now: 0,
            sender: sender(tpba(1, 2)),
            receiver: receiver(Self::HOLD_MS as i64),
            loss_percent,
            unsent: VecDeque::new(),
            flying: VecDeque::new(),
            readable: VecDeque::new(),
            acknowledged: 0,
            order: 0,
            datagrams: BinaryHeap::new(),
            reports: BinaryHeap::new(),
            reads_again: 0,
            pushed: 0,
            lengths: Vec::new(),
            lost: BTreeSet::new(),
            given: 0,
            missing: 0,
            over_rtp: 0,
            switches: 0,
        }
    }

    fn below(&mut self, limit: u32) -> u64 {
        u64::from(self.random.next_u32() % limit)
    }

    fn one_in(&mut self, many: u32) -> bool {
        self.below(many) == 0
    }

    /// Advances the time by 10 µs to 410 µs and handles all events in this time.
    fn step(&mut self) {
        self.now += 10_000 + self.below(400_000);
        self.network();
        self.send();
        if self.one_in(300) {
            // The application reads nothing for up to 60 ms, three times `HOLD_MS`.
            self.reads_again = self.now + self.below(60) * MILLI;
        }
        if self.now >= self.reads_again {
            self.read();
        }
    }

    fn network(&mut self) {
        let sent = self.below(8000).min(self.unsent.len() as u64) as usize;
        if sent > 0 {
            let way = (1 + self.below(5)) * MILLI;
            let arrives = self.flying.back().map_or(0, |(at, _)| *at).max(self.now + way);
            let bytes = self.unsent.drain(..sent).collect();
            self.flying.push_back((arrives, bytes));
        }
        while self.flying.front().is_some_and(|(at, _)| *at <= self.now) {
            if let Some((_, bytes)) = self.flying.pop_front() {
                self.acknowledged += bytes.len() as u64;
                self.readable.extend(bytes);
            }
        }
    }

    fn now<C>(&self) -> Instant<C> {
        Instant::from_nanos(self.now)
    }

    fn tell_tcp(&mut self) {
        let state = state(self.acknowledged, self.unsent.len() as u64);
        self.sender.handle(self.now(), Input::Tcp(state));
    }

    fn send(&mut self) {
        while let Some(Reverse((_, _, report))) =
            self.reports.peek().is_some_and(|Reverse((at, ..))| *at <= self.now).then(|| self.reports.pop()).flatten()
        {
            self.sender.handle(self.now(), Input::Datagram(&report));
        }
        while self.sender.waiting() < 4000 {
            let length = if self.one_in(500) { 60_000 } else { self.below(3000) as usize };
            let bytes = content(self.pushed, length);
            let cut = self.below(length as u32 + 1) as usize;
            self.sender.push(self.now(), &bytes[..cut], false).expect("room");
            self.sender.push(self.now(), &bytes[cut..], true).expect("room");
            self.lengths.push(length);
            self.pushed += 1;
        }
        self.sender.handle(self.now(), Input::Timer);
        self.tell_tcp();
        let taken = (self.below(6000) as usize).min(self.sender.tcp_pending().len());
        self.unsent.extend(&self.sender.tcp_pending()[..taken]);
        self.sender.tcp_written(self.now(), taken);
        self.tell_tcp();
        let mut packets = Vec::new();
        while let Some(output) = self.sender.poll() {
            match output {
                Output::Transmit(transmit) => packets.push(transmit.head.to_vec()),
                Output::Event(Event::Began { .. }) => self.switches += 1,
                _ => {}
            }
        }
        assert!(self.sender.wake().is_some_and(|wake| wake.at > self.now()));
        for packet in packets {
            self.carry(&packet);
        }
    }

    fn carry(&mut self, packet: &[u8]) {
        let is_lost = self.below(100) < u64::from(self.loss_percent);
        if is_lost && !is_rtcp(packet) {
            let part = AduPart::parse(RtpPacket::parse(packet).expect("RTP").payload);
            self.lost.extend(part.ok().map(|(part, _)| part.adu.number));
            return;
        }
        let copies = if self.one_in(100) { 2 } else { 1 };
        for _ in 0..copies {
            let way = MILLI + self.below((Self::LONGEST_WAY_MS * MILLI) as u32 - MILLI as u32);
            self.order += 1;
            self.datagrams.push(Reverse((self.now + way, self.order, packet.to_vec())));
        }
    }

    /// Passes arrived data to the receiver: first the datagrams, with their arrival times, then TCP's stream, which has
    /// no arrival times.
    fn read(&mut self) {
        while let Some(Reverse((at, _, datagram))) = self
            .datagrams
            .peek()
            .is_some_and(|Reverse((at, ..))| *at <= self.now)
            .then(|| self.datagrams.pop())
            .flatten()
        {
            self.receiver.handle(Instant::from_nanos(at), Input::Datagram(&datagram));
        }
        let length = self.below(20_000) as usize;
        let bytes: Vec<_> = self.readable.iter().copied().take(length).collect();
        let taken = self.receiver.tcp_received(self.now(), &bytes);
        self.readable.drain(..taken);
        self.receiver.handle(self.now(), Input::Timer);

        while let Some(output) = self.receiver.poll() {
            if let Output::Transmit(transmit) = output {
                self.order += 1;
                let report = transmit.head.to_vec();
                self.reports.push(Reverse((self.now + 3 * MILLI, self.order, report)));
            }
        }
        // The application may take fewer ADUs than are ready.
        let mut patience = if self.one_in(10) { self.below(3) } else { u64::MAX };
        while patience > 0
            && let Some(Adu { number, missing, over, data }) = self.receiver.take_adu()
        {
            patience -= 1;
            assert_eq!(number, self.given + missing, "in order, and each once");
            assert!((self.given..number).all(|lost| self.lost.contains(&lost)), "only the network loses");
            assert!(over == Period::Running || !self.lost.contains(&number));
            self.over_rtp += u64::from(over == Period::Running);
            assert_eq!(data, content(number, self.lengths[number as usize]), "whole");
            (self.given, self.missing) = (number + 1, self.missing + missing);
        }
    }

    /// Runs until this number of switches of the transport has occurred, then stops the sender and runs until all
    /// packets have arrived.
    fn run(&mut self, switches: u64) {
        while self.switches < switches {
            self.step();
            assert!(self.now < 3_000_000 * MILLI, "{} switches only", self.switches);
        }
        self.sender.handle(self.now(), Input::Stop);
        for _ in 0..3000 {
            self.now += 100_000;
            self.network();
            self.sender.handle(self.now(), Input::Timer);
            self.tell_tcp();
            let pending = self.sender.tcp_pending().to_vec();
            self.unsent.extend(&pending);
            self.sender.tcp_written(self.now(), pending.len());
            let mut packets = Vec::new();
            while let Some(output) = self.sender.poll() {
                if let Output::Transmit(transmit) = output {
                    packets.push(transmit.head.to_vec());
                }
            }
            for packet in packets {
                self.carry(&packet);
            }
            self.read();
        }
        assert!(self.sender.wake().is_none(), "it has ended");
        self.receiver.handle(self.now(), Input::TcpEnded);
        self.now += 1000 * MILLI;
        self.read();
        while self.given < self.pushed && !self.lost.contains(&self.given) {
            self.read();
        }
    }
}

fn switches_lose_double_and_reorder_nothing(switches: u64) {
    let mut world = World::new(1, 0);
    world.run(switches);
    assert_eq!((world.given, world.missing), (world.pushed, 0));
    let over_tcp = world.given - world.over_rtp;
    let least = switches / 2;
    assert!(world.over_rtp > least && over_tcp > least, "{} over RTP, {over_tcp} over TCP", world.over_rtp);
}

fn switches_with_loss_lose_only_what_the_network_lost(switches: u64) {
    let mut world = World::new(2, 5);
    world.run(switches);
    let lost = world.lost.len() as u64;
    assert!(world.missing > switches / 100 && world.missing <= lost, "{} of {lost}", world.missing);
    assert!((world.given..world.pushed).all(|number| world.lost.contains(&number)), "except for the last ones");
}

#[test]
fn a_thousand_switches_lose_double_and_reorder_nothing_and_with_loss_only_what_the_network_lost() {
    switches_lose_double_and_reorder_nothing(1000);
    switches_with_loss_lose_only_what_the_network_lost(1000);
}

#[test]
#[ignore = "long: 10 000 switches"]
fn ten_thousand_switches_lose_double_and_reorder_nothing() {
    switches_lose_double_and_reorder_nothing(10_000);
}

#[test]
#[ignore = "long: 10 000 switches"]
fn ten_thousand_switches_with_loss_lose_only_what_the_network_lost() {
    switches_with_loss_lose_only_what_the_network_lost(10_000);
}

proptest! {
    /// If this test fails, arbitrary bytes or packets make the receiver panic, or deliver ADUs out of order.
    #[test]
    fn a_receiver_outlasts_anything(ops in proptest::collection::vec((0u64..200, 0u8..6, proptest::collection::vec(any::<u8>(), 0..80), any::<u64>(), any::<u32>()), 1..60)) {
        let mut ear = Ear::new();
        for (millis, kind, bytes, number, more) in ops {
            match kind {
                0 => ear.receiver.handle(ear.now(), Input::Datagram(&bytes)),
                1 => _ = ear.receiver.tcp_received(ear.now(), &bytes),
                2 => ear.packet(&bytes),
                3 => ear.rtp(number % 50, more % 50),
                4 => _ = ear.tcp(number % 50),
                _ => {
                    let mut payload = Vec::new();
                    AduPart { adu: AduHeader { number, length: more % 2000 }, offset: more % 7 * 100, since_switch: more % 3 }.encode(&mut payload);
                    payload.extend_from_slice(&bytes);
                    ear.packet(&payload);
                }
            }
            ear.wait(millis);
            let mut last = None;
            while ear.receiver.poll().is_some() {}
            while let Some(Adu { number, .. }) = ear.receiver.take_adu() {
                prop_assert!(last < Some(number));
                last = Some(number);
            }
        }
    }

    /// If this test fails, some state of TCP or some packet of the peer makes the sender panic, or request a wake-up
    /// that is not in the future.
    #[test]
    fn a_sender_outlasts_anything(ops in proptest::collection::vec((0u64..20, 0u8..5, proptest::collection::vec(any::<u8>(), 0..80), any::<[u64; 4]>()), 1..80)) {
        let mut sender = sender(tpba(1, 5));
        let mut now = 0;
        for (millis, kind, bytes, [acknowledged, unsent, window, segment]) in ops {
            now += millis * MILLI;
            let at = Instant::from_nanos(now);
            match kind {
                0 => sender.handle(at, Input::Datagram(&bytes)),
                1 => _ = sender.push(at, &bytes, segment % 2 == 0),
                2 => {
                    let (window, segment) = (Size::from_bytes(window), Size::from_bytes(segment));
                    sender.handle(at, Input::Tcp(TcpState { acknowledged, unsent: unsent % 3, window, segment, header: segment, reductions: 0 }));
                }
                3 => sender.tcp_written(at, acknowledged as usize),
                _ => sender.handle(at, Input::Timer),
            }
            sender.handle(at, Input::Timer);
            listen(&mut sender);
            prop_assert!(sender.wake().is_none_or(|wake| wake.at > at));
        }
    }
}
