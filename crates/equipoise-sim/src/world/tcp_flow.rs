use equipoise::measure::{BandwidthEstimate, Measured};
use equipoise::units::{Rate, Size, Span};

use super::noise::WhiteNoise;
use super::{Ends, Flow, FlowError, FlowId, LinkId, Observer, Side, Thing, Time, World};
use crate::network::{Network, Packet};
use crate::packets::Packets;
use crate::tcp::{Receiver, Segment, Sender};

/// A TCP connection: two hosts and the links between them.
pub struct Connection {
    /// Sends data.
    pub near: Sender,
    /// Receives them.
    pub far: Receiver,
    /// The links that data pass, in order; one at least.
    pub forward: Vec<LinkId>,
    /// The links that acknowledgements pass, in order; one at least.
    pub backward: Vec<LinkId>,
    /// Tells the window law the path's bandwidth as the world knows it; `None` for what the hosts measure themselves.
    pub known: Option<KnownBandwidth>,
}

/// The path's bandwidth as the world knows it.
///
/// Capacity is that of the forward link with least to spare over the last interval; available bandwidth is what all others'
/// packets left of it there.
#[derive(Clone, Debug)]
pub struct KnownBandwidth {
    /// When measuring begins; the first result comes an interval later.
    pub start: Time,
    /// Time between two measurements, which is also what each looks back on; above zero.
    pub interval: Span,
    /// The error that each is given.
    pub noise: WhiteNoise,
}

/// A TCP connection in its place.
pub(super) struct TcpState {
    pub(super) near: Sender,
    pub(super) far: Receiver,
    pub(super) ends: Ends,
    known: Option<Measuring>,
}

/// What happens to a host.
#[derive(Clone, Copy)]
pub(super) enum TcpInput {
    /// Its timer runs out.
    Timer,
    /// A segment has come.
    Segment(Segment),
}

struct Measuring {
    config: KnownBandwidth,
    /// Its number in the agenda.
    thing: usize,
    /// The last measurement, or the beginning of measuring.
    since: Option<Time>,
    next: Time,
    /// What each forward link was offered by all and by this flow until `since`.
    offered: Vec<(Size, Size)>,
}

impl TcpState {
    /// When the links' counters are going to be looked at.
    pub(super) fn next_measurement(&self) -> Option<Time> {
        self.known.as_ref().map(|known| known.next)
    }
}

impl World {
    /// Adds a TCP connection.
    ///
    /// # Errors
    /// As [`World::add_session`], [`FlowError::NoLink`] and [`FlowError::MeasuringInterval`].
    pub fn add_tcp(&mut self, connection: Connection) -> Result<FlowId, FlowError> {
        let Connection { near, far, forward, backward, known } = connection;
        if forward.is_empty() || backward.is_empty() {
            return Err(FlowError::NoLink);
        }
        if let Some(interval) = known.as_ref().map(|known| known.interval).filter(|interval| *interval <= Span::ZERO) {
            return Err(FlowError::MeasuringInterval { interval });
        }
        let ends = self.ends(&[(&forward, &backward)])?;
        let flow = self.flows.len();
        let known = known.map(|config| {
            let (thing, next) = (self.thing(Thing::Measurement { flow }), config.start);
            self.network.count_own(ends.only_way(Side::Near));
            self.agenda.set(thing, Some(next));
            Measuring { config, thing, since: None, next, offered: vec![(Size::ZERO, Size::ZERO); forward.len()] }
        });
        self.flows.push(Flow::Tcp(TcpState { near, far, ends, known }));
        self.arrange()?;
        Ok(FlowId(flow))
    }

    /// A connection's two hosts; `None` for a flow of another kind.
    pub fn tcp(&self, flow: FlowId) -> Option<(&Sender, &Receiver)> {
        match self.flows.get(flow.0) {
            Some(Flow::Tcp(state)) => Some((&state.near, &state.far)),
            _ => None,
        }
    }

    /// One turn of a connection's host: takes `input`, if there is one, sends all that may then be sent, and sets its timer.
    pub(super) fn turn_tcp(&mut self, flow: usize, side: Side, input: Option<TcpInput>) {
        let now = self.now;
        let Self { flows, packets, network, .. } = self;
        let Flow::Tcp(TcpState { near, far, ends, .. }) = &mut flows[flow] else { return };
        let way = ends.only_way(side);
        let wake = match side {
            Side::Near => {
                match input {
                    Some(TcpInput::Timer) => near.on_timer(now),
                    Some(TcpInput::Segment(segment)) => near.on_segment(now, segment),
                    None => {}
                }
                while let Some(segment) = near.poll(now) {
                    send(packets, network, way, now, segment);
                }
                near.wake()
            }
            Side::Far => {
                let answer = match input {
                    Some(TcpInput::Timer) => far.on_timer(now),
                    Some(TcpInput::Segment(segment)) => far.on_segment(now, segment),
                    None => None,
                };
                if let Some(segment) = answer {
                    send(packets, network, way, now, segment);
                }
                far.wake()
            }
        };
        self.set_timer(flow, side, wake);
    }

    /// Tells a connection's law the bandwidth of its path.
    pub(super) fn measure(&mut self, flow: usize, observer: &mut impl Observer) {
        let now = self.now;
        self.advance_to(now, observer);
        let Self { flows, network, agenda, .. } = self;
        let Flow::Tcp(TcpState { near, ends, known: Some(known), .. }) = &mut flows[flow] else { return };
        let mut found: Option<(f64, f64)> = None;
        for ((link, all, own), seen) in network.offered_by(ends.only_way(Side::Near)).zip(&mut known.offered) {
            let others = (all - seen.0) - (own - seen.1);
            *seen = (all, own);
            let Some(since) = known.since else { continue };
            let elapsed = (now - since).as_secs_f64();
            let capacity = network.capacity_bits(link, since, now) / elapsed;
            let available = capacity - others.as_bits() as f64 / elapsed;
            if found.is_none_or(|(_, least)| available < least) {
                found = Some((capacity, available));
            }
        }
        known.since = Some(now);
        known.next = now + known.config.interval;
        agenda.set(known.thing, Some(known.next));
        if let Some((capacity, available)) = found {
            let measured = |bps: f64| Measured::exact(Rate::from_bps_f64(bps.max(0.0)).unwrap_or(Rate::ZERO));
            let truth = BandwidthEstimate { capacity: measured(capacity), available: measured(available) };
            near.on_bandwidth(now, &known.config.noise.blur(now - Time::ZERO, truth));
        }
        self.set_horizon(observer);
        self.turn_tcp(flow, Side::Near, None);
    }
}

/// A segment leaves; its way has a link.
pub(super) fn send(packets: &mut Packets, network: &mut Network, way: usize, now: Time, segment: Segment) {
    let size = segment.size();
    let number = u64::from(packets.insert_segment(segment));
    network.send(Packet { at: now, sent: now, number, size, way: way as u32, hop: 0 });
}
