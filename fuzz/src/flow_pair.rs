use std::collections::VecDeque;

use equipoise::measure::ClockMap;
use equipoise::units::{Instant, Size, Span};
use equipoise_pair::tpba::{ProbeInterval, Tolerance, TpbaConfig};
use equipoise_pair::wire::{AduHeader, AduPart, PairHello};
use equipoise_pair::{
    Adu, Input, Output, PushError, Receiver, ReceiverConfig, Sender, SenderConfig, TcpRequest, TcpState,
};
use equipoise_session::rtp::{self, StreamConfig};

const START_NS: u64 = 1_795_000_000_000_000_000;
/// Maximum number of outputs of an endpoint after one call. Far fewer are expected: two packets, and some reports and
/// events.
const MOST_OUTPUTS: usize = 64;

/// Calls the sender and the receiver of a flow pair in any order, with any bytes, datagrams and times.
///
/// The input is first parsed in each wire format of flow pairs. Then it is used as a list of operations: a timer call;
/// bytes to send; TCP's state; bytes of the TCP stream, unchanged or arbitrary; an arbitrary datagram; the peer's last
/// datagram, unchanged, damaged or repeated; the end of the TCP stream; a stop.
///
/// # Panics
/// If a parsed value is not encoded to the same bytes, if an application data unit (ADU) is delivered out of order, if
/// a missing ADU is not counted, if an endpoint has too many outputs, or if the next wake-up after a timer call or a
/// datagram is not in the future.
pub fn flow_pair(operations: &[u8]) {
    formats(operations);
    let mut ends = Ends::new();
    let mut rest = operations;
    while let Some((&operation, after)) = rest.split_first() {
        rest = ends.step(operation, after);
    }
}

/// Checks that a value that was parsed from the bytes is encoded to the same bytes.
fn formats(bytes: &[u8]) {
    if let Some(first) = bytes.first_chunk() {
        if let Ok(hello) = PairHello::parse(*first) {
            assert_eq!(hello.to_bytes(), *first);
        }
        if let Ok(header) = AduHeader::parse(*first) {
            assert!(header.length <= AduHeader::LONGEST && header.to_bytes() == *first);
        }
    }
    if let Ok((part, data)) = AduPart::parse(bytes) {
        let mut again = Vec::new();
        part.encode(&mut again);
        again.extend_from_slice(data);
        assert_eq!(again, bytes);
    }
}

struct Ends {
    sender: Sender,
    receiver: Receiver,
    now_ns: u64,
    /// The last datagram of the sender, and the last datagram of the receiver.
    sent: [Vec<u8>; 2],
    /// Bytes that the sender wrote to TCP, and that the receiver has not read yet.
    stream: VecDeque<u8>,
    written: u64,
    /// The lowest number that the next delivered ADU can have.
    next: u64,
}

impl Ends {
    fn new() -> Self {
        let stream = StreamConfig::new(1, 96, Size::from_bytes(200), "s");
        let start = Instant::from_nanos(START_NS);
        let rtp = rtp::SenderConfig::new(stream, Span::from_millis(100), start, 1);
        let tpba = TpbaConfig {
            interval: ProbeInterval::Fixed(Span::from_millis(10)),
            tolerance: Tolerance::Share(1.0),
            running: Span::from_millis(50),
            early_return: None,
        };
        let far = rtp::ReceiverConfig::new(2, "r", 1, ClockMap::SYNCHRONISED, 1);
        Self {
            sender: Sender::new(SenderConfig { tpba, ..SenderConfig::new(rtp) }).expect("valid"),
            receiver: Receiver::new(ReceiverConfig::new(far)).expect("valid"),
            now_ns: START_NS,
            sent: [Vec::new(), Vec::new()],
            stream: VecDeque::new(),
            written: 0,
            next: 0,
        }
    }

    fn now<C>(&self) -> Instant<C> {
        Instant::from_nanos(self.now_ns)
    }

    /// Executes one operation, and removes its arguments from the front of the input.
    fn step<'a>(&mut self, operation: u8, rest: &'a [u8]) -> &'a [u8] {
        let (argument, after) = rest.split_first().map_or((0, rest), |(first, after)| (*first, after));
        let to_sender = operation & 0x80 != 0;
        match operation & 0x7F {
            0..=15 => {
                self.now_ns = self.now_ns.saturating_add(u64::from(argument) << (operation & 0x0F) << 8);
                self.handle(to_sender, Input::Timer);
            }
            16..=31 => {
                let sender = self.sender.wake().map(|wake| wake.at.as_nanos());
                let receiver = self.receiver.wake().map(|wake| wake.at.as_nanos());
                let wake = if to_sender { sender } else { receiver };
                self.now_ns = wake.unwrap_or(self.now_ns).max(self.now_ns);
                self.tell_tcp(0);
                self.handle(false, Input::Timer);
                return rest;
            }
            32..=47 => {
                let (noise, left) = after.split_at(usize::from(argument).min(after.len()));
                self.handle(to_sender, Input::Datagram(noise));
                return left;
            }
            48..=63 => {
                let datagram = self.sent[usize::from(to_sender)].clone();
                self.handle(to_sender, Input::Datagram(&datagram));
                return rest;
            }
            64..=79 => {
                let mut datagram = self.sent[usize::from(to_sender)].clone();
                let length = datagram.len().max(1);
                if let Some(byte) = datagram.get_mut(usize::from(argument) % length) {
                    *byte ^= operation | 1;
                }
                self.handle(to_sender, Input::Datagram(&datagram));
            }
            80..=95 => {
                let data = vec![argument; usize::from(argument) * usize::from(operation & 0x0F)];
                let room = self.sender.room();
                let taken = self.sender.push(self.now(), &data, to_sender);
                let is_full = matches!(taken, Err(PushError::Full { .. }));
                assert!(!is_full || room == 0 || data.len() > room, "{taken:?} with room for {room}");
                self.drain_sender();
            }
            96..=103 => self.write(usize::from(argument) * 8 + 1),
            104..=111 => self.read(usize::from(argument) * 8 + 1),
            112..=115 => {
                let (noise, left) = after.split_at(usize::from(argument).min(after.len()));
                self.stream.extend(noise);
                return left;
            }
            116..=119 => self.tell_tcp(argument),
            120 => self.handle(false, Input::TcpEnded),
            _ if argument == 0xFF => self.handle(to_sender, Input::Stop),
            _ => {}
        }
        after
    }

    /// Reports to the sender that TCP has sent all except `unsent` bytes, and that the bytes sent were acknowledged.
    fn tell_tcp(&mut self, unsent: u8) {
        let state = TcpState {
            acknowledged: self.written.saturating_sub(unsent.into()),
            unsent: unsent.into(),
            window: Size::from_bytes(14_480),
            segment: Size::from_bytes(1448),
            header: Size::from_bytes(52),
            reductions: 0,
        };
        self.sender.handle(self.now(), Input::Tcp(state));
        self.handle(true, Input::Timer);
    }

    /// Lets TCP accept at most `most` bytes from the sender.
    fn write(&mut self, most: usize) {
        let pending = self.sender.tcp_pending();
        let taken = pending.len().min(most);
        self.stream.extend(&pending[..taken]);
        self.written += taken as u64;
        self.sender.tcp_written(self.now(), taken);
        self.handle(true, Input::Timer);
    }

    /// Passes at most `most` bytes of the TCP stream to the receiver, which may accept fewer.
    fn read(&mut self, most: usize) {
        let bytes: Vec<_> = self.stream.iter().copied().take(most).collect();
        let taken = self.receiver.tcp_received(self.now(), &bytes);
        assert!(taken <= bytes.len());
        self.stream.drain(..taken);
        self.drain_receiver();
    }

    fn handle(&mut self, to_sender: bool, input: Input<'_>) {
        let wake = if to_sender {
            self.sender.handle(self.now(), input);
            self.drain_sender();
            self.sender.wake().map(|wake| wake.at.as_nanos())
        } else {
            self.receiver.handle(self.now(), input);
            self.drain_receiver();
            self.receiver.wake().map(|wake| wake.at.as_nanos())
        };
        // If the clock shows the last instant that it can represent, no later wake-up exists.
        let is_ahead = wake.is_none_or(|wake| wake > self.now_ns || self.now_ns == u64::MAX);
        assert!(
            is_ahead || !matches!(input, Input::Timer | Input::Datagram(_)),
            "a wake-up at {wake:?}, at {}",
            self.now_ns
        );
    }

    fn drain_sender(&mut self) {
        let mut outputs = 0;
        while let Some(output) = self.sender.poll() {
            outputs += 1;
            assert!(outputs <= MOST_OUTPUTS, "a sender that does not stop talking");
            match output {
                Output::Transmit(transmit) => keep(&mut self.sent[0], transmit.head),
                Output::Tcp(TcpRequest::Window(window)) => assert!(window > Size::ZERO),
                Output::Tcp(_) | Output::Event(_) => {}
            }
        }
    }

    fn drain_receiver(&mut self) {
        let mut outputs = 0;
        while let Some(output) = self.receiver.poll() {
            outputs += 1;
            // If a missing packet arrives, all packets that waited for it are processed in one call. Each may cause an
            // event.
            assert!(outputs <= MOST_OUTPUTS * 256, "a receiver that does not stop talking");
            if let Output::Transmit(transmit) = output {
                keep(&mut self.sent[1], transmit.head);
            }
        }
        while let Some(Adu { number, missing, data, .. }) = self.receiver.take_adu() {
            assert_eq!(number, self.next + missing, "in order, and what is missing is counted");
            assert!(data.len() <= AduHeader::LONGEST as usize);
            self.next = number + 1;
        }
    }
}

fn keep(last: &mut Vec<u8>, datagram: &[u8]) {
    last.clear();
    last.extend_from_slice(datagram);
}
