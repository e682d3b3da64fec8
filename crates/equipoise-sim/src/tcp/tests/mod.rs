//! Tests with fixed sequences of segments in virtual time, and property tests on random paths.

mod any_path;
mod any_state;
mod controller;
mod flow;
mod newreno;
mod path;
mod receiver;
mod sack;
mod timeout;

use std::sync::{Arc, Mutex};

use equipoise::control::window::{Acknowledged, Reno, WindowController};
use equipoise::units::{Instant, Rate, SenderClock, Size, Span};

use super::{Ack, Law, LossRecovery, SackBlocks, Segment, Sender, SenderConfig, SenderStats};
use crate::Time;

/// Size of the IP packet of a full segment; `FULL` is the number of its data bytes.
const PACKET: Size = Size::from_bytes(1500);
const FULL: u64 = 1460;

fn ms(millis: i64) -> Span {
    Span::from_millis(millis)
}

/// A sender with unlimited data from time zero on, without a handshake.
fn bulk(recovery: LossRecovery) -> SenderConfig {
    SenderConfig { recovery, handshake: false, ..SenderConfig::new(PACKET) }
}

/// A recorded call of a function of a window law.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Told {
    Ack(Acknowledged),
    Loss { in_flight: u64 },
    Timeout { in_flight: u64 },
    Restart { window: f64 },
}

/// A window law with a constant window, except after a loss, timeout or restart. It records the calls of its functions.
#[derive(Clone, Debug)]
struct Fixed {
    window: f64,
    after_loss: f64,
    pacing: Option<Rate>,
    told: Arc<Mutex<Vec<Told>>>,
}

impl Fixed {
    fn new(window: f64, after_loss: f64) -> Self {
        Self { window, after_loss, pacing: None, told: Arc::default() }
    }

    fn tell(&self, told: Told) {
        self.told.lock().unwrap().push(told);
    }

    /// The recorded calls of the window law, except for acknowledgements.
    fn news(&self) -> Vec<Told> {
        self.told.lock().unwrap().iter().copied().filter(|told| !matches!(told, Told::Ack(_))).collect()
    }

    fn acks(&self) -> Vec<Acknowledged> {
        let told = self.told.lock().unwrap();
        told.iter().filter_map(|told| if let Told::Ack(ack) = told { Some(*ack) } else { None }).collect()
    }
}

impl WindowController for Fixed {
    fn on_ack(&mut self, _: Instant<SenderClock>, ack: &Acknowledged) {
        self.tell(Told::Ack(*ack));
    }
    fn on_loss(&mut self, _: Instant<SenderClock>, in_flight: u64) {
        self.window = self.after_loss;
        self.tell(Told::Loss { in_flight });
    }
    fn on_timeout(&mut self, _: Instant<SenderClock>, in_flight: u64) {
        self.window = 1.0;
        self.tell(Told::Timeout { in_flight });
    }
    fn on_restart(&mut self, _: Instant<SenderClock>, window: f64) {
        self.window = self.window.min(window);
        self.tell(Told::Restart { window });
    }
    fn window(&self) -> f64 {
        self.window
    }
    fn slow_start_threshold(&self) -> Option<f64> {
        None
    }
    fn reset_to(&mut self, window: f64) {
        self.window = window;
    }
    fn pacing_rate(&self) -> Option<Rate> {
        self.pacing
    }
}

/// A TCP sender whose peer is the test.
struct Talk {
    sender: Sender,
    now: Time,
    out: Vec<Segment>,
}

impl Talk {
    fn new(config: SenderConfig, law: impl WindowController + 'static) -> Self {
        let sender = Sender::new(config, Law::Window(Box::new(law))).unwrap();
        Self::of(sender)
    }

    fn of(sender: Sender) -> Self {
        let mut talk = Self { sender, now: Time::ZERO, out: Vec::new() };
        talk.after(0);
        talk
    }

    fn reno(recovery: LossRecovery, window: f64) -> Self {
        Self::new(bulk(recovery), Reno::new(window))
    }

    fn drain(&mut self) {
        while let Some(segment) = self.sender.poll(self.now) {
            self.out.push(segment);
            assert!(self.out.len() < 10_000, "a sender that does not stop");
        }
    }

    /// Advances the time by `millis`, and serves all timers that expire meanwhile.
    fn after(&mut self, millis: i64) -> &mut Self {
        let until = self.now + ms(millis);
        for wakes in 0.. {
            self.drain();
            let Some(wake) = self.sender.wake().filter(|wake| *wake <= until) else { break };
            assert!(wakes < 10_000, "a timer that does not go on");
            self.now = self.now.max(wake);
            self.sender.on_timer(self.now);
        }
        self.now = until;
        self
    }

    /// Passes a segment from the peer to the sender.
    fn hears(&mut self, segment: Segment) -> &mut Self {
        self.sender.on_segment(self.now, segment);
        self.drain();
        self
    }

    fn ack(&mut self, next: u64) -> &mut Self {
        self.sack(next, &[])
    }

    fn sack(&mut self, next: u64, blocks: &[(u64, u64)]) -> &mut Self {
        let sacked = SackBlocks::new(blocks.iter().copied());
        self.hears(Segment::Ack(Ack { next, window: 1 << 30, sacked }))
    }

    /// Asserts that exactly these segments were sent since the last check, in this order.
    #[track_caller]
    fn sends(&mut self, numbers: impl IntoIterator<Item = u64>) -> &mut Self {
        let sent = self.out.drain(..).map(|segment| match segment {
            Segment::Data { number, .. } => number,
            other => panic!("{other:?} among data"),
        });
        assert_eq!(sent.collect::<Vec<_>>(), numbers.into_iter().collect::<Vec<_>>());
        self
    }

    /// Asserts that nothing was sent since the last check.
    #[track_caller]
    fn is_quiet(&mut self) -> &mut Self {
        assert_eq!(self.out, []);
        self
    }

    fn stats(&self) -> SenderStats {
        self.sender.stats()
    }
}
