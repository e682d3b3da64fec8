//! The simulator of Equipoise: network links, hosts and a virtual clock that advances from event to event.
//!
//! The endpoints of sessions and flow pairs are the same state machines that run on real sockets. The links and the TCP
//! hosts are models. The simulator reads no clock and no file, and random numbers on links come from a seed. Therefore
//! the same [`World`] produces the same events, to the nanosecond, on every machine. Memory does not grow with
//! simulated time, unless the caller never takes the recorded [fetches](web::WebFar::take_fetched).
//!
//! ```
//! use equipoise::control::Cbr;
//! use equipoise_path::link::{LinkConfig, QueueLimit};
//! use equipoise::measure::ClockMap;
//! use equipoise_session::Event;
//! use equipoise_session::rtp::{Receiver, ReceiverConfig, Sender, SenderConfig, StreamConfig};
//! use equipoise::units::{Instant, Rate, Schedule, Size, Span};
//! use equipoise_sim::{Flow, FlowId, Side, Time, World};
//!
//! let mut world = World::new();
//! let link = LinkConfig {
//!     rate: Schedule::constant(Rate::from_bps(15_000_000)),
//!     propagation_delay: Span::from_millis(5),
//!     queue: QueueLimit::Packets(1000),
//! };
//! let (there, back) = (world.add_link(link.clone())?, world.add_link(link)?);
//! let stream =
//!     StreamConfig::new(1, 96, Size::from_bytes(1000), "sender");
//! let sender = SenderConfig::new(stream, Span::from_secs(1), Instant::ZERO, 1);
//! let receiver =
//!     ReceiverConfig::new(2, "receiver", 1, ClockMap::SYNCHRONISED, 1);
//! let near = Sender::new(sender, Box::new(Cbr::new(Rate::from_bps(3_000_000))))?;
//! let far = Receiver::new(receiver)?;
//! world.add_flow(Flow::new(near, far, vec![there], vec![back]))?;
//! let mut received = 0;
//! world.run(Time::from_nanos(1_000_000_000), &mut |_: Time, _: FlowId, _: Side, event: &Event| {
//!     received += u64::from(matches!(event, Event::MediaReceived { .. }));
//! });
//! assert_eq!(received, 373, "375 packets a second, less the two that are still in flight");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod carrier;
mod event_queue;
mod network;
mod observer;
mod packets;
pub mod pair;
pub mod tcp;
pub mod web;
mod world;

pub use network::{LinkId, Packet};
pub use observer::{Arrival, Datagram, FlowId, Observer, Side, SimClock, Time, Way};
pub use world::{BandwidthOracle, FarEnd, Flow, FlowError, NearEnd, PathLinks, Stream, WhiteNoise, World, turn};
