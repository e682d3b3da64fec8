use equipoise::control::find;
use equipoise::measure::ClockMap;
use equipoise::units::{Instant, Rate, Size, Span};
use equipoise_session::rtp::{
    Clocks, Delays, Payload, Receiver, ReceiverConfig, Repeating, Sender, SenderConfig, StreamConfig,
};
use equipoise_session::wire::key_frames::KeyFrameRequest;
use equipoise_session::{Ecn, Endpoint, Event, Input, Output, PathChange, PathId, Transmit};

const START_NS: u64 = 1_795_000_000_000_000_000;
const MIN: Rate = Rate::from_bps(100_000);
const MAX: Rate = Rate::from_bps(15_000_000);
/// Maximum number of outputs of an endpoint after one call. At most 8 outputs are expected: a request, a compound
/// packet, two packets, and an event for each of these. The maximum is twice as high.
const MOST_OUTPUTS: usize = 16;

/// Calls the sender and the receiver of a session in any order, with any datagrams and times.
///
/// The first byte of the input selects the kind of payload, the clocks, the ECN field of packets, and whether there is
/// a second source. The rest is a list of operations: a timer call; payload to send; arbitrary bytes; the peer's last
/// datagram, unchanged, damaged or repeated; a jump of the clock forwards or backwards; a change of a path; a request
/// for a key frame; a stop.
///
/// # Panics
/// If the rate is outside its limits, if the next wake-up is not in the future, if a packet header exceeds its maximum
/// size, or if an endpoint has too many outputs.
pub fn session(operations: &[u8]) {
    let Some((&variant, mut rest)) = operations.split_first() else { return };
    let mut ends = Ends::new(variant);
    while let Some((&operation, after)) = rest.split_first() {
        rest = ends.step(operation, after);
    }
}

struct Ends {
    sender: Sender,
    receiver: Receiver,
    now_ns: u64,
    /// The last datagram of the sender, and the last datagram of the receiver.
    sent: [Vec<u8>; 2],
}

impl Ends {
    fn new(variant: u8) -> Self {
        let payload = [Payload::Generated, Payload::Stream, Payload::Rtp][usize::from(variant) % 3];
        let delays = [Delays::Agreed, Delays::Queueing, Delays::Estimated, Delays::Synchronised];
        let delays = delays[usize::from(variant / 3) % 4];
        let ap = find("ap").expect("in the catalogue");
        let parameters = ap.parse(&[("target", "8.2 ms")]).expect("defaults suffice");
        let packet_size = Size::from_bytes(200);
        let stream = StreamConfig::new(1, 96, packet_size, "s");
        let start = Instant::from_nanos(START_NS);
        let base = SenderConfig::new(stream, Span::from_millis(100), start, 1);
        let config = SenderConfig {
            payload,
            delays,
            ecn: Ecn::from_bits(variant / 12),
            repeating: Some(Repeating::default()),
            has_further_source: variant & 0x80 != 0,
            ..base
        };
        let controller = ap.build(&parameters, packet_size).expect("its own parameters");
        let mut far =
            ReceiverConfig { payload, repairs: true, ..ReceiverConfig::new(2, "r", 1, ClockMap::SYNCHRONISED, 1) };
        if delays != Delays::Agreed {
            far.clocks = Clocks::Apart;
        }
        Self {
            sender: Sender::new(config, controller).expect("valid"),
            receiver: Receiver::new(far).expect("valid"),
            now_ns: START_NS,
            sent: [Vec::new(), Vec::new()],
        }
    }

    /// Executes one operation, and removes its arguments from the front of the input.
    fn step<'a>(&mut self, operation: u8, rest: &'a [u8]) -> &'a [u8] {
        let (argument, after) = rest.split_first().map_or((0, rest), |(first, after)| (*first, after));
        let to_sender = operation & 0x80 != 0;
        match operation & 0x7F {
            0..=15 => {
                self.now_ns = self.now_ns.saturating_add(u64::from(argument) << (operation & 0x0F));
                self.handle(to_sender, Input::Timer);
            }
            16..=31 => {
                // Advance the time to the endpoint's next wake-up. Without this operation, few fuzz inputs would
                // advance the time far enough for a report.
                let wake = if to_sender {
                    self.sender.wake().map(|wake| wake.at.as_nanos())
                } else {
                    self.receiver.wake().map(|wake| wake.at.as_nanos())
                };
                self.now_ns = wake.unwrap_or(self.now_ns).max(self.now_ns);
                self.handle(to_sender, Input::Timer);
                return rest;
            }
            32..=47 => {
                let (noise, left) = after.split_at(usize::from(argument).min(after.len()));
                self.handle(to_sender, Input::datagram(noise));
                return left;
            }
            48..=79 => {
                let datagram = self.sent[usize::from(to_sender)].clone();
                let (path, ecn) = (PathId(0), Ecn::from_bits(operation));
                self.handle(to_sender, Input::Datagram { path, datagram: &datagram, ecn });
                return rest;
            }
            80..=111 => {
                let mut datagram = self.sent[usize::from(to_sender)].clone();
                let length = datagram.len().max(1);
                if let Some(byte) = datagram.get_mut(usize::from(argument) % length) {
                    *byte ^= operation | 1;
                }
                self.handle(to_sender, Input::datagram(&datagram));
            }
            112..=119 => self.now_ns = self.now_ns.wrapping_sub(u64::from(argument) << (8 * (operation & 7))),
            120..=123 => {
                let change = [PathChange::Up, PathChange::Down, PathChange::Removed][usize::from(argument % 3)];
                self.handle(to_sender, Input::Path { path: PathId(u16::from(argument)), change });
            }
            124..=125 => {
                let (payload, left) = after.split_at(usize::from(argument).min(after.len()));
                self.handle(to_sender, Input::payload(payload));
                return left;
            }
            126 => {
                let request = [KeyFrameRequest::PictureLoss, KeyFrameRequest::FullIntra][usize::from(argument % 2)];
                self.handle(to_sender, Input::KeyFrame(request));
            }
            _ if argument == 0xFF => self.handle(to_sender, Input::Stop),
            _ => {}
        }
        after
    }

    fn handle(&mut self, to_sender: bool, input: Input<'_>) {
        let now = self.now_ns;
        if to_sender {
            self.sender.handle(Instant::from_nanos(now), input);
            drain(&mut self.sender, &mut self.sent[0], now);
        } else {
            self.receiver.handle(Instant::from_nanos(now), input);
            drain(&mut self.receiver, &mut self.sent[1], now);
        }
    }
}

/// Polls an endpoint until it has no more output. Stores its last datagram in `last`.
fn drain<E: Endpoint>(end: &mut E, last: &mut Vec<u8>, now: u64) {
    let mut outputs = 0;
    while let Some(output) = end.poll() {
        // Payload is not counted: if a missing packet arrives, all payload that waited for it is delivered in one call.
        outputs += usize::from(!matches!(output, Output::Payload { .. }));
        assert!(outputs <= MOST_OUTPUTS, "an end that does not stop talking");
        match output {
            Output::Transmit { transmit, .. } => {
                let bound = if transmit.media > 0 { Transmit::MAX_HEAD } else { Transmit::MAX_HEAD + 255 };
                assert!(transmit.head.len() <= bound && !transmit.is_empty());
                last.clear();
                last.extend_from_slice(transmit.head);
                last.resize(transmit.len(), 0);
            }
            Output::Event { event: Event::RateDecided { rate, .. }, .. } => {
                assert!((MIN..=MAX).contains(&rate), "{rate} is out of its limits");
            }
            Output::Event { .. } | Output::Payload { .. } => {}
        }
    }
    if let Some(wake) = end.wake() {
        // The wake-up must be later than `now`, unless `now` is the last instant that the clock can represent.
        assert!(wake.at.as_nanos() > now || now == u64::MAX, "a wake-up at {:?}, handled at {now}", wake.at);
    }
}
