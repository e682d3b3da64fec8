use alloc::collections::VecDeque;
use alloc::vec::Vec;

use rand_core::Rng as _;
use thiserror::Error;

use super::model::exponential;
use equipoise::random::{Generator, generator};
use equipoise::units::{Instant, Size, Span};

/// Web traffic as modelled in RFC 8868, Sec. 5.1: a flow is ON while it fetches data, and OFF otherwise.
///
/// When a flow turns ON, a burst begins: the flow opens [`connections`](Self::connections) connections at once, and
/// each connection is used for a single fetch. When the last fetch of the burst is complete, the flow is OFF for an
/// exponentially distributed time.
///
/// Our interpretation: RFC 8868 says that 30 connections start together, but RFC 8867, Sec. 5.7 has ten short flows.
/// Therefore the number of connections per burst is configurable. Ten flows offer at most 0.32 Mbit/s with one
/// connection per burst, and at most 9.6 Mbit/s with 30. The RFCs do not say when a flow that is OFF at the start turns
/// ON for the first time. Here, this happens after an exponentially distributed time, as if the flow had already been
/// OFF before the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WebConfig {
    /// Number of web flows.
    pub flows: u32,
    /// Number of flows that are ON at the start.
    pub on: u32,
    /// Number of connections that a flow opens per burst.
    pub connections: u32,
    /// Size of the smallest fetch. Sizes are uniformly distributed between `smallest` and `largest`, inclusive.
    pub smallest: Size,
    /// Size of the largest fetch.
    pub largest: Size,
    /// Mean OFF time of a flow between two of its bursts.
    pub idle: Span,
}

/// Why a web traffic configuration is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum WebError {
    /// The configuration has no flow.
    #[error("must be 1 or more")]
    NoFlow,
    /// More flows are ON at the start than there are flows.
    #[error("at most all {flows} flows can begin ON")]
    MoreOnThanFlows {
        /// The number of flows.
        flows: u32,
    },
    /// A burst opens no connections.
    #[error("must be 1 or more: a burst opens this number of connections")]
    NoConnection,
    /// The flows would open too many simultaneous connections.
    #[error(
        "{flows} flows of {connections} connections a burst are more than {} connections",
        WebConfig::MOST_CONNECTIONS
    )]
    TooManyConnections {
        /// The number of flows.
        flows: u32,
        /// The number of connections per burst.
        connections: u32,
    },
    /// The size of a fetch is zero or too large.
    #[error("a fetch has 1 B to {}", WebConfig::LARGEST_FETCH)]
    Size,
    /// The smallest size is larger than the largest size.
    #[error("the smallest fetch, {smallest}, must not be above the largest, {largest}: the smaller size stands first")]
    SizeOrder {
        /// The configured smallest size.
        smallest: Size,
        /// The configured largest size.
        largest: Size,
    },
    /// The idle time between bursts is zero.
    #[error("must be above zero")]
    NoIdleTime,
}

impl WebError {
    /// The name of the configuration field with the error; `size` for `smallest` and `largest`.
    pub const fn field(&self) -> &'static str {
        match self {
            Self::NoFlow => "flows",
            Self::MoreOnThanFlows { .. } => "on",
            Self::NoConnection | Self::TooManyConnections { .. } => "connections",
            Self::Size | Self::SizeOrder { .. } => "size",
            Self::NoIdleTime => "idle",
        }
    }
}

impl WebConfig {
    /// The values of RFC 8867, Sec. 5.7 and RFC 8868, Sec. 5.1: number of flows, file sizes and times. Each burst has
    /// one connection.
    pub const STANDARD: Self = Self {
        flows: 10,
        on: 2,
        connections: 1,
        smallest: Size::from_bytes(30_000),
        largest: Size::from_bytes(50_000),
        idle: Span::from_secs(10),
    };
    /// Maximum number of simultaneous connections of all flows. Our choice: more than three times the 300 connections
    /// of ten flows with 30 connections each.
    pub const MOST_CONNECTIONS: u32 = 1000;
    /// Maximum size of a fetch. Our choice: larger data is not a web page.
    pub const LARGEST_FETCH: Size = Size::from_bytes(1_000_000_000);

    /// Checks the configuration.
    ///
    /// # Errors
    /// [`WebError`] for the field with the error.
    pub fn check(&self) -> Result<(), WebError> {
        let Self { flows, on, connections, smallest, largest, idle } = *self;
        let sizes = Size::from_bytes(1)..=Self::LARGEST_FETCH;
        match flows.checked_mul(connections) {
            _ if flows == 0 => Err(WebError::NoFlow),
            _ if on > flows => Err(WebError::MoreOnThanFlows { flows }),
            _ if connections == 0 => Err(WebError::NoConnection),
            None => Err(WebError::TooManyConnections { flows, connections }),
            Some(all) if all > Self::MOST_CONNECTIONS => Err(WebError::TooManyConnections { flows, connections }),
            _ if !sizes.contains(&smallest) || !sizes.contains(&largest) => Err(WebError::Size),
            _ if smallest > largest => Err(WebError::SizeOrder { smallest, largest }),
            _ if idle <= Span::ZERO => Err(WebError::NoIdleTime),
            Some(_) => Ok(()),
        }
    }

    /// The offered rate in bit/s if fetches took no time. On any path, the mean rate is lower than this.
    pub fn most_bps(&self) -> f64 {
        let bits = self.smallest.as_bits() as f64 / 2.0 + self.largest.as_bits() as f64 / 2.0;
        f64::from(self.flows) * f64::from(self.connections) * bits / self.idle.as_secs_f64()
    }
}

/// A fetch that starts now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fetch {
    /// The number of the connection, from 0 to [`Web::connections`] - 1. The number is reused after the fetch is
    /// complete.
    pub connection: usize,
    /// The number of the burst within its flow, from 0.
    pub burst: u64,
    /// The size of the fetched data.
    pub size: Size,
}

/// The start times and sizes of web fetches, drawn from seeded random numbers. Each flow has its own stream of random
/// numbers. Therefore neither the duration of fetches nor other flows change the sizes and idle times of a flow.
#[derive(Debug)]
pub struct Web<C> {
    config: WebConfig,
    flows: Vec<Flow<C>>,
    /// Fetches of started bursts that [`Web::begin`] has not yet returned.
    beginning: VecDeque<Fetch>,
    /// When the next flow turns ON; `None` if all flows are ON, or after `stop`.
    next: Option<Instant<C>>,
    stopped: bool,
}

#[derive(Debug)]
struct Flow<C> {
    random: Generator,
    bursts: u64,
    state: State<C>,
    /// Total ON time of the flow's completed bursts.
    on: Span,
}

#[derive(Clone, Copy, Debug)]
enum State<C> {
    Off { until: Instant<C> },
    On { since: Instant<C>, open: u32 },
}

impl<C> Web<C> {
    /// Web traffic that starts at `start`.
    ///
    /// # Errors
    /// [`WebError`] if the configuration is invalid.
    pub fn new(config: WebConfig, start: Instant<C>, seed: u64) -> Result<Self, WebError> {
        config.check()?;
        let flow = |number: u32| {
            let mut random = generator(seed, number.into());
            let until = if number < config.on { start } else { start + idle(&config, &mut random) };
            Flow { random, bursts: 0, state: State::Off { until }, on: Span::ZERO }
        };
        let flows = (0..config.flows).map(flow).collect();
        let mut web = Self { config, flows, beginning: VecDeque::new(), next: None, stopped: false };
        web.look_ahead();
        Ok(web)
    }

    /// Maximum number of simultaneous connections.
    pub const fn connections(&self) -> usize {
        self.config.flows as usize * self.config.connections as usize
    }

    /// When to call [`begin`](Self::begin); `None` if all flows are ON, or after [`stop`](Self::stop).
    pub const fn next_burst(&self) -> Option<Instant<C>> {
        self.next
    }

    /// Returns a fetch that starts at `now`. Call this until it returns `None`, because several fetches may start at
    /// `now`.
    pub fn begin(&mut self, now: Instant<C>) -> Option<Fetch> {
        if self.next.is_some_and(|next| next <= now) {
            self.turn_on(now);
        }
        self.beginning.pop_front()
    }

    /// Starts the bursts of all flows whose idle time has ended by `now`.
    fn turn_on(&mut self, now: Instant<C>) {
        let WebConfig { connections, .. } = self.config;
        for (number, flow) in self.flows.iter_mut().enumerate() {
            if matches!(flow.state, State::Off { until } if until <= now) {
                flow.state = State::On { since: now, open: connections };
                for connection in 0..connections as usize {
                    let size = size(&self.config, &mut flow.random);
                    let connection = number * connections as usize + connection;
                    self.beginning.push_back(Fetch { connection, burst: flow.bursts, size });
                }
                flow.bursts += 1;
            }
        }
        self.look_ahead();
    }

    /// Records that the fetch of a connection is complete. The call has no effect if the connection's flow is OFF or
    /// does not exist.
    pub fn complete(&mut self, now: Instant<C>, connection: usize) {
        let Some(flow) = self.flows.get_mut(connection / self.config.connections.max(1) as usize) else { return };
        let State::On { since, open } = &mut flow.state else { return };
        *open = open.saturating_sub(1);
        if *open == 0 {
            flow.on = flow.on + (now - *since);
            flow.state = State::Off { until: now + idle(&self.config, &mut flow.random) };
            self.look_ahead();
        }
    }

    /// Stops the traffic: no further burst starts.
    pub fn stop(&mut self) {
        self.stopped = true;
        self.look_ahead();
    }

    /// Total time until `now` that flows were ON, as the sum over all flows.
    pub fn time_on(&self, now: Instant<C>) -> Span {
        self.flows.iter().fold(Span::ZERO, |sum, flow| {
            let present = match flow.state {
                State::On { since, .. } => now - since,
                State::Off { .. } => Span::ZERO,
            };
            sum + flow.on + present
        })
    }

    fn look_ahead(&mut self) {
        let due = self.flows.iter().filter_map(|flow| match flow.state {
            State::Off { until } => Some(until),
            State::On { .. } => None,
        });
        self.next = if self.stopped { None } else { due.min() };
    }
}

fn idle(config: &WebConfig, random: &mut Generator) -> Span {
    Span::from_nanos(exponential(config.idle.as_nanos() as f64, random) as i64)
}

/// Draws a uniformly distributed fetch size. The probabilities of two sizes differ by at most one part in 2^34.
fn size(config: &WebConfig, random: &mut Generator) -> Size {
    let sizes = config.largest.as_bytes() - config.smallest.as_bytes() + 1;
    let above = (u128::from(random.next_u64()) * u128::from(sizes)) >> 64;
    Size::from_bytes(config.smallest.as_bytes() + above as u64)
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use proptest::prelude::*;

    use super::*;
    use equipoise::measure::Moments;
    use equipoise::units::SenderClock;

    type Time = Instant<SenderClock>;

    /// All fetches until `until`, each with its start time. Each fetch takes the time `took`.
    fn fetches(config: WebConfig, took: Span, until: Span, seed: u64) -> (Vec<(Time, Fetch)>, Web<SenderClock>) {
        let mut web = Web::new(config, Instant::ZERO, seed).expect("right");
        let (mut all, mut open) = (Vec::new(), VecDeque::new());
        let end = Instant::ZERO + until;
        loop {
            let done = open.front().map(|&(at, _)| at);
            let Some(now) = web.next_burst().into_iter().chain(done).min().filter(|now| *now < end) else { break };
            while let Some(&(_, connection)) = open.front().filter(|(at, _)| *at <= now) {
                web.complete(now, connection);
                open.pop_front();
            }
            while let Some(fetch) = web.begin(now) {
                all.push((now, fetch));
                open.push_back((now + took, fetch.connection));
            }
        }
        (all, web)
    }

    /// Means of about 10^5 draws. Uniform sizes: the mean is 40 kB, the standard deviation 20 001 / sqrt(12) bytes.
    /// Exponential idle times: both the mean and the standard deviation are 10 s.
    #[test]
    fn sizes_are_uniform_between_both_bounds_and_idle_times_exponential() {
        let config = WebConfig { flows: 100, on: 100, ..WebConfig::STANDARD };
        let (all, _) = fetches(config, Span::ZERO, Span::from_secs(10_000), 1);
        assert!((98_000..102_000).contains(&all.len()), "{}", all.len());
        let sizes: Moments = all.iter().map(|(_, fetch)| fetch.size.as_bytes() as f64).collect();
        assert!((sizes.mean().expect("many") - 40e3).abs() < 100.0, "{sizes:?}");
        assert!((sizes.standard_deviation().expect("many") - 5773.8).abs() < 50.0, "{sizes:?}");
        let bounds = |(least, most): (u64, u64), (_, fetch): &(Time, Fetch)| {
            (least.min(fetch.size.as_bytes()), most.max(fetch.size.as_bytes()))
        };
        assert_eq!(all.iter().fold((u64::MAX, 0), bounds), (30_000, 50_000), "of 10^5 draws of 20 001 sizes");
        let mut last = [Instant::ZERO; 100];
        let idle: Moments = all
            .iter()
            .filter(|(at, _)| *at > Instant::ZERO)
            .map(|(at, fetch)| (*at - core::mem::replace(&mut last[fetch.connection], *at)).as_secs_f64())
            .collect();
        assert!((idle.mean().expect("many") - 10.0).abs() < 0.1, "{idle:?}");
        assert!((idle.standard_deviation().expect("many") - 10.0).abs() < 0.2, "{idle:?}");
    }

    /// A burst lasts for `took`, and the idle time after it has the mean `idle`. Therefore the share of ON time is
    /// `took / (took + idle)`, and a burst starts every `took + idle` on average (a renewal process).
    #[test]
    fn the_share_of_time_on_is_that_of_a_renewal_process() {
        let (took, until) = (Span::from_millis(2500), Span::from_secs(20_000));
        let (all, web) = fetches(WebConfig::STANDARD, took, until, 7);
        let share = web.time_on(Instant::ZERO + until).as_secs_f64() / (10.0 * 20_000.0);
        assert!((share - 0.2).abs() < 0.005, "{share}");
        assert!((all.len() as f64 / (10.0 * 20_000.0 / 12.5) - 1.0).abs() < 0.025, "{}", all.len());
    }

    #[test]
    fn a_burst_opens_all_its_connections_together_and_the_next_waits_for_the_last_of_them() {
        let config = WebConfig { flows: 2, on: 1, connections: 3, ..WebConfig::STANDARD };
        let mut web = Web::new(config, Instant::<SenderClock>::ZERO, 1).expect("right");
        let begun: Vec<_> = core::iter::from_fn(|| web.begin(Instant::ZERO)).collect();
        assert_eq!(
            begun.iter().map(|fetch| (fetch.connection, fetch.burst)).collect::<Vec<_>>(),
            [(0, 0), (1, 0), (2, 0)]
        );
        let other = web.next_burst().expect("the other flow is OFF");
        assert!(other > Instant::ZERO);
        let at = |ms| Instant::ZERO + Span::from_millis(ms);
        web.complete(at(1), 0);
        web.complete(at(2), 2);
        assert_eq!((web.next_burst(), web.time_on(at(4))), (Some(other), Span::from_millis(4)));
        web.complete(at(5), 1);
        assert_eq!(web.time_on(at(9)), Span::from_millis(5));
        // Connection 1 is already complete, and connection 99 does not exist, so these calls must change nothing.
        web.complete(at(9), 1);
        web.complete(at(9), 99);
        assert_eq!(web.time_on(at(9)), Span::from_millis(5));
        web.stop();
        assert_eq!((web.next_burst(), web.begin(at(1_000_000))), (None, None));
    }

    /// If this test fails, a seed yields other web traffic than in published results.
    #[test]
    fn a_seed_gives_the_same_traffic_for_ever_and_how_long_fetches_take_changes_no_size() {
        let sizes = |took, seed| -> Vec<u64> {
            let config = WebConfig { flows: 1, on: 1, ..WebConfig::STANDARD };
            let (all, _) = fetches(config, Span::from_millis(took), Span::from_secs(100), seed);
            all.iter().take(4).map(|(_, fetch)| fetch.size.as_bytes()).collect()
        };
        assert_eq!(sizes(1, 1), sizes(900, 1));
        assert_ne!(sizes(1, 1), sizes(1, 2));
        assert_eq!(sizes(1, 1), GOLDEN_SIZES);
    }

    const GOLDEN_SIZES: [u64; 4] = [34_997, 42_091, 47_163, 47_663];

    #[test]
    fn what_cannot_be_is_refused_by_its_field() {
        let right = WebConfig::STANDARD;
        let size = Size::from_bytes;
        for (wrong, field, words) in [
            (WebConfig { flows: 0, on: 0, ..right }, "flows", "1 or more"),
            (WebConfig { on: 11, ..right }, "on", "all 10 flows"),
            (WebConfig { connections: 0, ..right }, "connections", "1 or more"),
            (WebConfig { connections: 101, ..right }, "connections", "more than 1000 connections"),
            (WebConfig { flows: 1 << 20, connections: 1 << 20, ..right }, "connections", "more than 1000 connections"),
            (WebConfig { smallest: size(0), ..right }, "size", "1 B to"),
            (WebConfig { largest: size(u64::MAX), ..right }, "size", "1 B to"),
            (WebConfig { smallest: size(50_001), ..right }, "size", "smaller size stands first"),
            (WebConfig { idle: Span::ZERO, ..right }, "idle", "above zero"),
            (WebConfig { idle: Span::from_secs(-1), ..right }, "idle", "above zero"),
        ] {
            let error = wrong.check().expect_err("wrong on purpose");
            assert!(error.field() == field && alloc::format!("{error}").contains(words), "{error}");
            assert_eq!(Web::new(wrong, Instant::<SenderClock>::ZERO, 1).expect_err("wrong"), error);
        }
        assert_eq!(right.check(), Ok(()));
    }

    proptest! {
        /// If this test fails, two fetches have the same connection number at the same time, or a flow starts a burst
        /// before its previous burst is complete.
        #[test]
        fn no_connection_begins_a_fetch_before_its_last_one_is_complete(
            flows in 1..6u32, on in 0..6u32, connections in 1..5u32, took in 0..20_000i64, seed: u64,
        ) {
            let config = WebConfig { flows, on: on.min(flows), connections, ..WebConfig::STANDARD };
            let took = Span::from_millis(took);
            let (all, web) = fetches(config, took, Span::from_secs(200), seed);
            let mut free = alloc::vec![(Instant::ZERO, 0); web.connections()];
            for (at, Fetch { connection, burst, size }) in all {
                prop_assert!(at >= free[connection].0 && burst == free[connection].1);
                prop_assert!((config.smallest..=config.largest).contains(&size));
                free[connection] = (at + took, burst + 1);
            }
        }
    }
}
