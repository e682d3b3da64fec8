//! Tests in which a sender opens a session to a receiver. Time is virtual, and the test controls the network.

use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::net::SocketAddr;

use equipoise::units::Span;
use equipoise_session::PathId;
use equipoise_session::rtp::Payload;
use rand_core::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use ring::hmac;

use super::Role;
use super::door::{Door, Known, Visit};
use super::message::{LENGTH, Message, Open, Refusal, is_message};
use super::opening::{Asked, Opening, Told};
use super::protection::Protection;
use super::{Fingerprint, Key, Keys, Nonce};
use crate::Time;

const START: Time = Time::from_nanos(1_700_000_000_000_000_000);
const WAY: Span = Span::from_millis(10);
const SSRC: u32 = 7;

fn key() -> Key {
    Key::new(b"0123456789abcdef").expect("long enough")
}

fn asked(key: Option<Key>, several: bool) -> Asked {
    Asked { key, ssrc: SSRC, payload: Payload::Stream, reporting: None, several, wanted: None }
}

fn at(path: PathId) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, 1], 5000 + path.0))
}

/// The server's data about an open session.
struct Live {
    number: Nonce,
    owner: Fingerprint,
    join: Option<hmac::Key>,
    several: bool,
}

impl Live {
    fn known(&self) -> Known<'_> {
        let Self { number, owner, several, .. } = *self;
        Known { number, owner, several, is_sent_to: false, join: self.join.as_ref() }
    }
}

/// A datagram in flight: its arrival time, its number, whether it is for the receiver, its path, its bytes.
type UnderWay = (Time, u64, bool, u16, Vec<u8>);

/// Sender, receiver and a network. For each datagram, `network` returns the copies that arrive, each with a delay in
/// addition to `WAY`.
struct Ends<F> {
    now: Time,
    opening: Opening,
    door: Door,
    live: Option<Live>,
    network: F,
    under_way: BinaryHeap<Reverse<UnderWay>>,
    count: u64,
    /// For the sender and the receiver: when the session opened, and its keys.
    sender: Option<(Time, Option<Keys>)>,
    receiver: Option<(Time, Option<Keys>)>,
    joined: Vec<u16>,
    refused: Option<Refusal>,
    /// Number of messages sent by the sender, and number of messages sent by the receiver.
    said: [u32; 2],
}

impl<F: FnMut(bool, &[u8]) -> Vec<(Span, Vec<u8>)>> Ends<F> {
    fn new(asked: Asked, door: Option<Key>, paths: u16, network: F) -> Self {
        let mut opening = Opening::new(asked);
        opening.ask_for_session(START, (0..paths).map(PathId));
        Self {
            now: START,
            opening,
            door: Door::new(door),
            live: None,
            network,
            under_way: BinaryHeap::new(),
            count: 0,
            sender: None,
            receiver: None,
            joined: Vec::new(),
            refused: None,
            said: [0; 2],
        }
    }

    fn send(&mut self, is_up: bool, path: u16, bytes: &[u8]) {
        self.said[usize::from(!is_up)] += 1;
        for (late, bytes) in (self.network)(is_up, bytes) {
            self.count += 1;
            self.under_way.push(Reverse((self.now + WAY + late, self.count, is_up, path, bytes)));
        }
    }

    fn flush(&mut self) {
        while let Some((path, message)) = self.opening.poll() {
            self.send(true, path.0, &message);
        }
        while let Some((to, message)) = self.door.poll() {
            self.send(false, to.port() - 5000, &message);
        }
    }

    fn on_arrival(&mut self, is_up: bool, path: u16, bytes: &[u8]) {
        let now = self.now;
        if !is_up {
            match self.opening.handle(now, PathId(path), true, bytes) {
                Told::Nothing => {}
                Told::Opened { keys, ssrc, .. } => {
                    assert_eq!(ssrc, 9);
                    self.sender = Some((now, keys));
                }
                Told::Joined(path) => self.joined.push(path.0),
                Told::Refused(reason) => self.refused = Some(reason),
            }
            return;
        }
        let Self { door, live, .. } = self;
        match door.handle(now, at(PathId(path)), bytes, |_| live.as_ref().map(Live::known), 100) {
            Visit::Nobody | Visit::Malformed => {}
            Visit::Plain(open) => {
                self.live =
                    Some(Live { number: open.number, owner: Fingerprint::NONE, join: None, several: open.several });
                self.receiver.get_or_insert((now, None));
                self.door.accept(at(PathId(path)), open.number, 9, None);
            }
            Visit::Joins(_) => {
                let live = self.live.as_ref().expect("there is one");
                self.door.accept(at(PathId(path)), live.number, 9, live.join.as_ref());
            }
            Visit::Opened { open, keys, .. } => {
                let Open { number, fingerprint: owner, several, .. } = open;
                self.live = Some(Live { number, owner, join: Some(keys.join()), several });
                self.door.accept(at(PathId(path)), number, 9, Some(&keys.join()));
                self.receiver = Some((now, Some(keys)));
            }
        }
    }

    fn run(&mut self, span: Span) {
        let end = self.now + span;
        loop {
            self.opening.on_timer(self.now);
            self.door.on_timer(self.now);
            self.flush();
            let datagram = self.under_way.peek().map(|Reverse((at, ..))| *at);
            let timers = [self.opening.wake(), self.door.wake()]
                .into_iter()
                .flatten()
                .map(|at| at.max(self.now + Span::from_micros(1)));
            let Some(next) = timers.chain(datagram).min().filter(|next| *next <= end) else { break };
            self.now = self.now.max(next);
            if datagram.is_some_and(|at| at <= self.now)
                && let Some(Reverse((_, _, is_up, path, bytes))) = self.under_way.pop()
            {
                self.on_arrival(is_up, path, &bytes);
            }
        }
        self.now = end;
    }

    /// If sender and receiver have the same keys, returns the time until both had them.
    fn opened(&self) -> Option<Span> {
        let (Some((one, Some(sender))), Some((other, Some(receiver)))) = (&self.sender, &self.receiver) else {
            return None;
        };
        let (mut up, mut down) = (Protection::new(sender, Role::Client), Protection::new(receiver, Role::Server));
        let mut packet = vec![0x80, 96, 0, 1, 0, 0, 0, 1];
        packet.extend_from_slice(&SSRC.to_be_bytes());
        let (mut wire, mut plain) = (Vec::new(), Vec::new());
        let agree = up.protect(&packet, &mut wire) && down.unprotect(&wire, SSRC, &mut plain) && plain == packet;
        agree.then(|| (*one).max(*other) - START)
    }
}

fn straight(_: bool, bytes: &[u8]) -> Vec<(Span, Vec<u8>)> {
    vec![(Span::ZERO, bytes.to_vec())]
}

/// A network that records the messages of the sender and delivers all messages.
fn recording(recorded: &RefCell<Vec<Vec<u8>>>) -> impl FnMut(bool, &[u8]) -> Vec<(Span, Vec<u8>)> {
    |is_up, bytes| {
        if is_up {
            recorded.borrow_mut().push(bytes.to_vec());
        }
        straight(is_up, bytes)
    }
}

#[test]
fn both_ends_have_the_same_keys_and_know_it_three_round_trips_after_the_first_word() {
    let mut ends = Ends::new(asked(Some(key()), false), Some(key()), 1, straight);
    ends.run(Span::from_secs(2));
    let took = ends.opened().expect("it opens");
    assert!(took <= WAY * 6 + Span::from_millis(1), "{took}");
    // If the following assertion fails, the beginning of a stream is sent before the receiver can decrypt it.
    let [sender, receiver] = [&ends.sender, &ends.receiver].map(|end| end.as_ref().map(|(at, _)| *at));
    assert!(receiver < sender, "media leaves when the receiver has the keys, and not before");
    assert!(ends.refused.is_none());
    // A second session with the same shared key must have other keys. If the shared key alone determined the keys, an
    // attacker who learns the shared key later could decrypt recorded packets.
    let mut later = Ends::new(asked(Some(key()), false), Some(key()), 1, straight);
    later.run(Span::from_secs(2));
    let (Some((_, Some(first))), Some((_, Some(second)))) = (&ends.sender, &later.sender) else { panic!("both open") };
    assert_ne!(first.of_role(Role::Client), second.of_role(Role::Client));
    assert_ne!(first.of_role(Role::Client), first.of_role(Role::Server));
    assert_eq!(first.of_role(Role::Client).0.len(), 32, "AES-256");
}

#[test]
fn a_session_without_keys_opens_and_a_path_joins() {
    for key in [None, Some(key())] {
        let mut ends = Ends::new(asked(key.clone(), true), key.clone(), 3, straight);
        ends.run(Span::from_secs(3));
        assert!(ends.sender.is_some() && ends.receiver.is_some());
        assert_eq!(ends.joined.len(), 2, "{:?} beside the first", ends.joined);
        let (late, said) = (ends.now, ends.said);
        ends.opening.ask_on(late, PathId(7));
        ends.run(Span::from_secs(2));
        assert!(ends.joined.contains(&7));
        assert!(ends.said[0] - said[0] <= 3, "and then there is nothing to say");
    }
}

/// A path that loses 10 to 30 % of all datagrams, duplicates 10 %, and delays each datagram by up to 60 ms.
pub(crate) fn bad_path(seed: u64) -> impl FnMut(&[u8]) -> Vec<(Span, Vec<u8>)> {
    let mut random = Pcg64Mcg::seed_from_u64(seed);
    let loss = 10 + random.next_u32() % 21;
    move |bytes| {
        let copies = match random.next_u32() % 100 {
            fate if fate < loss => 0,
            fate if fate >= 90 => 2,
            _ => 1,
        };
        let mut late = || Span::from_micros(i64::from(random.next_u32() % 60_000));
        (0..copies).map(|_| (late(), bytes.to_vec())).collect()
    }
}

#[test]
fn a_bad_path_delays_an_opening_and_does_not_prevent_it() {
    let mut late = 0;
    for seed in 0..100 {
        let mut path = bad_path(seed);
        let mut ends = Ends::new(asked(Some(key()), false), Some(key()), 1, |_, bytes: &[u8]| path(bytes));
        ends.run(Span::from_secs(10));
        late += u32::from(ends.opened().is_none_or(|took| took > Span::from_secs(5)));
    }
    assert!(late <= 1, "{late} of 100 took more than 5 s");
}

/// If this test fails, an attacker without the key can prevent the opening of a session. In this test, three datagrams
/// arrive before each datagram D: an altered copy of D, an exact copy of a random datagram sent so far, and a truncated
/// copy of D.
#[test]
fn altered_replayed_and_reflected_copies_prevent_no_opening() {
    for seed in 0..500 {
        let mut random = Pcg64Mcg::seed_from_u64(seed);
        let mut recorded: Vec<Vec<u8>> = Vec::new();
        let network = |_: bool, bytes: &[u8]| {
            let mut altered = bytes.to_vec();
            let place = random.next_u32() as usize % altered.len();
            altered[place] ^= 1 << (random.next_u32() % 8);
            recorded.push(bytes.to_vec());
            // The earlier datagram may be from either direction, so it may arrive at the host that sent it.
            let earlier = recorded[random.next_u32() as usize % recorded.len()].clone();
            let mut cut = bytes.to_vec();
            cut.truncate(random.next_u32() as usize % bytes.len());
            [altered, earlier, cut, bytes.to_vec()].map(|bytes| (Span::ZERO, bytes)).to_vec()
        };
        let mut ends = Ends::new(asked(Some(key()), false), Some(key()), 1, network);
        ends.run(Span::from_secs(5));
        assert!(ends.opened().is_some_and(|took| took < Span::from_secs(1)), "seed {seed}: {:?}", ends.opened());
        assert!(ends.refused.is_none());
    }
}

#[test]
fn who_has_another_key_or_none_is_told_by_a_word_that_is_not_believed_at_once() {
    let other = Key::new(b"another secret!!").expect("long enough");
    for (ours, theirs, reason) in [
        (Some(key()), Some(other), Refusal::OtherKey),
        (Some(key()), None, Refusal::HasNoKey),
        (None, Some(key()), Refusal::NeedsKey),
    ] {
        let is_plain = ours.is_none();
        let mut ends = Ends::new(asked(ours, false), theirs, 1, straight);
        ends.run(Span::from_secs(3));
        assert!(ends.sender.is_none() && ends.receiver.is_none());
        // Without a key, refusals cannot be authenticated.
        assert_eq!(ends.refused, is_plain.then_some(reason));
        assert_eq!(ends.opening.hints().refusal, (!is_plain).then_some(reason));
        assert_eq!(ends.door.half_open(), 0);
    }
}

/// If this test fails, everybody with the shared key can take over the session of another sender.
#[test]
fn a_session_belongs_to_the_certificate_that_opened_it() {
    let mut ends = Ends::new(asked(Some(key()), false), Some(key()), 1, straight);
    ends.run(Span::from_secs(2));
    let first = ends.live.as_ref().map(|live| live.number).expect("it is open");
    // The same sender opens its session again, as it does after receiving nothing for some time.
    let now = ends.now;
    ends.opening.ask_for_session(now, std::iter::once(PathId(0)));
    ends.run(Span::from_secs(2));
    let second = ends.live.as_ref().map(|live| live.number).expect("it is open");
    assert_ne!(first, second);
    // Another sender with the same key requests a session with the same SSRC.
    let mut thief = Opening::new(asked(Some(key()), false));
    thief.ask_for_session(ends.now, std::iter::once(PathId(3)));
    std::mem::swap(&mut ends.opening, &mut thief);
    ends.run(Span::from_secs(5));
    assert_eq!(ends.refused, Some(Refusal::SourceInUse), "signed, as it has the key");
    assert_eq!(ends.live.as_ref().map(|live| live.number), Some(second), "the session is whose it was");
}

/// If this test fails, an attacker who copies a later message of a handshake can make the receiver send the handshake's
/// answers to any address.
#[test]
fn an_address_that_has_not_sent_back_its_cookie_is_never_answered_at_length() {
    let recorded = RefCell::new(Vec::new());
    let mut ends = Ends::new(asked(Some(key()), false), Some(key()), 1, recording(&recorded));
    ends.run(WAY * 4 + Span::from_millis(5));
    let victim = SocketAddr::from(([203, 0, 113, 9], 53));
    for datagram in recorded.borrow().iter() {
        let _ = ends.door.handle(ends.now, victim, datagram, |_| None, 100);
    }
    ends.door.on_timer(ends.now + Span::from_secs(5));
    let answers: Vec<_> = std::iter::from_fn(|| ends.door.poll()).filter(|(to, _)| *to == victim).collect();
    assert!(recorded.borrow().iter().any(|bytes| bytes.len() > 500), "there was more than a cookie to copy");
    assert!(answers.iter().all(|(_, answer)| answer.len() == LENGTH), "cookies alone");
}

/// If this test fails, an attacker who replays the messages of earlier handshakes can replace the keys of an open
/// session.
#[test]
fn what_was_recorded_opens_nothing() {
    let recorded = RefCell::new(Vec::new());
    let mut ends = Ends::new(asked(Some(key()), false), Some(key()), 1, recording(&recorded));
    for _ in 0..2 {
        ends.run(Span::from_secs(1));
        let now = ends.now;
        ends.opening.ask_for_session(now, std::iter::once(PathId(0)));
    }
    ends.run(Span::from_secs(1));
    let number = ends.live.as_ref().map(|live| live.number).expect("it is open");
    ends.door.on_proved(&number);
    let datagrams = recorded.borrow().clone();
    ends.receiver = None;
    for _ in 0..20 {
        for datagram in &datagrams {
            ends.now = ends.now + Span::from_millis(1);
            ends.on_arrival(true, 0, datagram);
            while ends.door.poll().is_some() {}
        }
    }
    assert!(ends.receiver.is_none(), "no handshake ends");
    assert_eq!(ends.live.as_ref().map(|live| live.number), Some(number));
    assert!(ends.door.half_open() <= 8, "{}", ends.door.half_open());
    ends.door.on_timer(ends.now + Span::from_secs(11));
    assert_eq!(ends.door.half_open(), 0, "and it forgets them");
}

#[test]
fn a_flood_of_first_words_leaves_nothing_and_no_answer_is_longer_than_its_question() {
    let mut door = Door::new(Some(key()));
    let mut random = Pcg64Mcg::seed_from_u64(5);
    for count in 0..100_000u32 {
        let mut number = [0; 16];
        random.fill_bytes(&mut number);
        let open = Open {
            number,
            cookie: [0; 16],
            ssrc: count,
            payload: Payload::Rtp,
            reporting: None,
            secure: true,
            several: false,
            joins: count % 7 == 0,
            wanted: None,
            fingerprint: Fingerprint([1; 32]),
        };
        // Every third request contains records, and every second request is authenticated with the key.
        let records = [0; 1000];
        let question = Message::Open(open, if count % 3 == 0 { &records } else { &[] });
        let question = question.encode((count % 2 == 0).then(key).as_ref().map(Key::handshake));
        let from = SocketAddr::from(([10, (count >> 16) as u8, (count >> 8) as u8, count as u8], 9));
        door.handle(START, from, &question, |_| None, 100);
        let mut answered = 0;
        while let Some((to, answer)) = door.poll() {
            assert_eq!(to, from);
            answered += answer.len();
        }
        assert!(answered <= question.len(), "{answered} for {}", question.len());
    }
    assert_eq!((door.half_open(), door.wake()), (0, None));
}

/// If this test fails, two hosts that answer every message immediately exchange messages without end.
#[test]
fn nothing_is_said_again_without_a_pause() {
    // The path changes the sender's address with every datagram, so no cookie is ever valid.
    let mut port = 0;
    let mut door = Door::new(Some(key()));
    let mut opening = Opening::new(asked(Some(key()), false));
    opening.ask_for_session(START, std::iter::once(PathId(0)));
    let (mut now, mut said) = (START, 0);
    while now < START + Span::from_secs(10) {
        opening.on_timer(now);
        while let Some((path, message)) = opening.poll() {
            (said, port) = (said + 1, port + 1);
            let _ = door.handle(now, SocketAddr::from(([192, 0, 2, 9], port)), &message, |_| None, 100);
            while let Some((_, answer)) = door.poll() {
                let _ = opening.handle(now, path, true, &answer);
            }
        }
        now = now + Span::from_millis(1);
    }
    assert!(said < 60, "{said} messages in 10 s");
    // Of the receiver's messages, only those of `LENGTH` bytes arrive. They contain no records, so no handshake can be
    // completed.
    let mut ends = Ends::new(asked(Some(key()), false), Some(key()), 1, |is_up: bool, bytes: &[u8]| {
        if is_up || bytes.len() == LENGTH { straight(is_up, bytes) } else { Vec::new() }
    });
    ends.run(Span::from_secs(30));
    assert!(ends.sender.is_none() && ends.said.iter().all(|said| *said < 200), "{:?}", ends.said);
}

#[test]
fn whoever_speaks_another_version_is_told_so() {
    let mut ends = Ends::new(asked(Some(key()), false), Some(key()), 1, |is_up: bool, bytes: &[u8]| {
        let mut bytes = bytes.to_vec();
        // The version numbers of the messages are changed, as if sender and receiver were of other releases.
        bytes[2] = if is_up { 9 } else { 5 };
        straight(is_up, &bytes)
    });
    ends.run(Span::from_secs(2));
    assert_eq!(ends.opening.hints().version, Some(5));
    assert!(ends.said[1] > 0 && ends.sender.is_none());
    assert!(is_message(b"eq\x09"));
}
