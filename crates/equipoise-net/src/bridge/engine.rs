use std::sync::atomic::{AtomicBool, Ordering};

use equipoise::units::Span;

use super::direction::{Direction, Packet};
use crate::thread::STOP_CHECK;
use crate::{Clock, NetError, Time};

/// With `spin`, how long before a packet is due the thread stays awake. Ours: above what nearly every wake-up takes.
const SPIN: Span = Span::from_micros(200);

/// Shorter than the shortest delay by this is a sleep that nothing can be due in. Ours: above what nearly every wake-up takes.
const MARGIN: Span = Span::from_micros(200);

/// And no sleep is longer than this: receive buffers are finite. Ours: 125 kB at 1 Gbit/s.
const LONGEST_SLEEP: Span = Span::from_millis(1);

/// The sockets or devices of a bridge.
pub(super) trait Ports {
    /// Reads what arrived until `horizon` into the direction that it takes.
    fn take_in(&mut self, horizon: Time, directions: &mut [Direction; 2]) -> Result<(), NetError>;
    /// Sends a packet that comes out of a direction, or loses and counts it.
    fn send(&mut self, direction: usize, packet: &mut Packet);
    /// Whether packets come with the time of their arrival, so that they may wait to be read.
    fn stamped(&self) -> bool;
    /// Waits until there is something to read or the time is `until`; may return early.
    fn wait(&mut self, clock: &Clock, until: Time) -> Result<(), NetError>;
}

/// The thread between the sockets and the paths, forward and back.
#[derive(Debug)]
pub(super) struct Engine<P> {
    pub(super) clock: Clock,
    pub(super) ports: P,
    pub(super) directions: [Direction; 2],
    pub(super) spin: bool,
}

impl<P: Ports> Engine<P> {
    /// Carries packets until `stop` is set.
    pub(super) fn run(mut self, stop: &AtomicBool) -> Result<Self, NetError> {
        let sleep = self.sleep();
        while !stop.load(Ordering::Relaxed) {
            // What came in until now, and nothing that comes in later, has a place in the order of arrivals.
            let horizon = self.clock.now();
            self.ports.take_in(horizon, &mut self.directions)?;
            for number in 0..self.directions.len() {
                self.carry(number, horizon);
            }
            self.rest(horizon, sleep)?;
        }
        Ok(self)
    }

    /// How long nothing that has not been read can be due: what arrives in that time can wait in the sockets, and nobody
    /// is woken for each packet. `None` where there is no such time, or where waiting would change when they arrived.
    fn sleep(&self) -> Option<Span> {
        let least = self.directions.iter().map(|direction| direction.pipe().config().least_delay()).min()?;
        let sleep = (least - MARGIN).min(LONGEST_SLEEP);
        (self.ports.stamped() && sleep > Span::ZERO).then_some(sleep)
    }

    /// Waits until there is something to do, where all that came until `horizon` has been read.
    fn rest(&mut self, horizon: Time, sleep: Option<Span>) -> Result<(), NetError> {
        let now = self.clock.now();
        let next = self.directions.iter().filter_map(Direction::next).min();
        let awake = if self.spin { SPIN } else { Span::ZERO };
        let until = next.map_or(Time::MAX, |next| next - awake).min(now + STOP_CHECK);
        match (next, sleep) {
            _ if until <= now => Ok(()),
            (Some(_), Some(sleep)) => {
                self.clock.sleep_until(until.min(horizon + sleep));
                Ok(())
            }
            _ => self.ports.wait(&self.clock, until),
        }
    }

    /// What has arrived enters the path, and what is due leaves it.
    fn carry(&mut self, number: usize, horizon: Time) {
        let Some(direction) = self.directions.get_mut(number) else { return };
        direction.enter(horizon);
        while let Some((due, mut packet)) = direction.leave(horizon) {
            direction.punctuality.record(self.clock.now(), due);
            self.ports.send(number, &mut packet);
            direction.recycle(packet);
        }
    }
}
