use equipoise::units::{Schedule, Span};
use equipoise_path::link::PipeConfig;

/// A named link with two directions.
#[derive(Clone, Debug)]
pub struct Link {
    /// Name of the link.
    pub name: String,
    /// Configuration of the direction [`Direction::Forward`].
    pub forward: PipeConfig,
    /// Configuration of the direction [`Direction::Back`].
    pub back: PipeConfig,
    /// Whether packets of both directions share the forward direction's queue and capacity, as on a radio channel.
    pub half_duplex: bool,
}

/// One of the two directions of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// The default direction of a flow's media.
    Forward,
    /// The direction opposite to `Forward`.
    Back,
}

impl Direction {
    /// Returns the opposite direction.
    #[must_use]
    pub const fn reversed(self) -> Self {
        match self {
            Self::Forward => Self::Back,
            Self::Back => Self::Forward,
        }
    }
}

impl Link {
    /// Applies the same change to both directions.
    pub fn change(&mut self, change: impl Fn(&mut PipeConfig)) {
        change(&mut self.forward);
        change(&mut self.back);
    }

    /// Returns the configuration of a direction. Both directions of a half-duplex link have the forward configuration.
    pub const fn direction(&self, direction: Direction) -> &PipeConfig {
        match direction {
            Direction::Back if !self.half_duplex => &self.back,
            Direction::Forward | Direction::Back => &self.forward,
        }
    }

    /// Returns the index of a direction of this link in the list of all link directions. The list contains the forward
    /// directions of all links of the scenario, followed by the reverse directions. `number` is the index of this link,
    /// and `links` is the number of links. Both directions of a half-duplex link have the index of the forward
    /// direction.
    pub const fn place(&self, number: usize, direction: Direction, links: usize) -> usize {
        match direction {
            Direction::Back if !self.half_duplex => links + number,
            Direction::Forward | Direction::Back => number,
        }
    }
}

/// Returns the times at which the rate, the delay or the loss of a link direction takes a step.
pub(super) fn steps(config: &PipeConfig) -> Vec<Span> {
    let rate = match &config.capacity {
        equipoise_path::link::Capacity::Rate(rate) => times(rate),
        _ => Vec::new(),
    };
    [rate, times(&config.delay), times(&config.loss)].concat()
}

fn times<T: Copy>(schedule: &Schedule<T>) -> Vec<Span> {
    schedule.steps().iter().map(|&(at, _)| at).collect()
}
