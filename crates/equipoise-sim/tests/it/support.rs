//! Support for tests: small simulations, and observations of their events.

use equipoise::control::{BoxedController, Cbr};
use equipoise::measure::{ClockMap, Moments};
use equipoise::units::{Instant, Rate, Schedule, Size, Span};
use equipoise_path::link::{LinkConfig, QueueLimit};
use equipoise_path::source::{Source, Traffic};
use equipoise_session::Event;
use equipoise_session::rtp::{Receiver, ReceiverConfig, Sender, SenderConfig, StreamConfig};
use equipoise_sim::{Flow, FlowId, LinkId, Observer, Side, Stream, Time, World};

pub(crate) const PACKET: Size = Size::from_bytes(1000);
pub(crate) const PROPAGATION: Span = Span::from_millis(5);

pub(crate) fn mbps(mbps: f64) -> Rate {
    Rate::from_bps_f64(mbps * 1e6).expect("not negative")
}

pub(crate) fn at(secs: f64) -> Time {
    Time::ZERO + Span::from_secs_f64(secs).expect("a number")
}

pub(crate) fn link(rate: Schedule<Rate>, queue: u32) -> LinkConfig {
    LinkConfig { rate, propagation_delay: PROPAGATION, queue: QueueLimit::Packets(queue) }
}

pub(crate) fn stream(traffic: Traffic, rate: Schedule<Rate>, seed: u64, forward: Vec<LinkId>) -> Stream {
    let number = forward.len() as u64 + 1;
    Stream { source: Source::new(traffic, rate, PACKET, Instant::ZERO, (seed, number)), forward }
}

pub(crate) fn constant(rate: Rate, forward: Vec<LinkId>, backward: Vec<LinkId>) -> Flow {
    session(Box::new(Cbr::new(rate)), forward, backward)
}

pub(crate) fn session(controller: BoxedController, forward: Vec<LinkId>, backward: Vec<LinkId>) -> Flow {
    let stream = StreamConfig::new(7, 96, PACKET, "near@test");
    let config = SenderConfig::new(stream, Span::from_secs(1), Instant::ZERO, 1);
    let clocks = ClockMap::SYNCHRONISED;
    let far = ReceiverConfig::new(8, "far@test", 7, clocks, 1);
    let near = Sender::new(config, controller).expect("a valid configuration");
    let far = Receiver::new(far).expect("a valid configuration");
    Flow::new(near, far, forward, backward)
}

/// Numbers of packets sent and received, and their delays minus the propagation delay.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) sent: u64,
    pub(crate) received: u64,
    pub(crate) time_in_system_s: Moments,
    /// All events as text, if recorded.
    pub(crate) log: Option<String>,
}

impl Observer for Seen {
    fn on_event(&mut self, now: Time, flow: FlowId, side: Side, event: &Event) {
        match event {
            Event::MediaSent { .. } => self.sent += 1,
            Event::MediaReceived { delay, .. } => {
                self.received += 1;
                self.time_in_system_s.push((*delay - PROPAGATION).as_secs_f64());
            }
            _ => {}
        }
        if let Some(log) = &mut self.log {
            log.push_str(&format!("{now:?} {flow:?} {side:?} {event:?}\n"));
        }
    }
}

/// Runs a simulation with one link and one stream over this link for `secs` seconds.
pub(crate) fn single(traffic: Traffic, rate: Schedule<Rate>, link: LinkConfig, seed: u64, secs: f64) -> (Seen, World) {
    let mut world = World::new();
    let only = world.add_link(link).expect("a valid link");
    world.add_stream(stream(traffic, rate, seed, vec![only])).expect("a link of this world");
    let mut seen = Seen::default();
    world.run(at(secs), &mut seen);
    (seen, world)
}
