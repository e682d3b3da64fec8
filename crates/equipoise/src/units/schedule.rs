use alloc::vec::Vec;

use super::Span;

/// A value that changes in steps during a run, such as a link's rate or a source's load.
///
/// Times are spans since the run's start; a step applies from its time on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule<T> {
    initial: T,
    steps: Vec<(Span, T)>,
}

/// Creates a schedule of a value that never changes.
impl<T: Copy> From<T> for Schedule<T> {
    fn from(value: T) -> Self {
        Self::constant(value)
    }
}

impl<T: Copy> Schedule<T> {
    /// Creates a schedule of a value that never changes.
    pub const fn constant(value: T) -> Self {
        Self { initial: value, steps: Vec::new() }
    }

    /// Creates a schedule. The value is `initial` before the first step. Each step's value applies from its time on.
    ///
    /// Steps are sorted by time. Of two steps at the same time, the later in the list applies.
    pub fn new(initial: T, mut steps: Vec<(Span, T)>) -> Self {
        steps.sort_by_key(|&(at, _)| at);
        Self { initial, steps }
    }

    /// Returns the part of the schedule from `offset` on, with times counted from `offset`.
    #[must_use]
    pub fn from_offset(&self, offset: Span) -> Self {
        let later = self.steps.iter().filter(|(at, _)| *at > offset);
        Self { initial: self.at(offset), steps: later.map(|&(at, value)| (at - offset, value)).collect() }
    }

    /// Returns the value at `elapsed` after the run's start.
    pub fn at(&self, elapsed: Span) -> T {
        let passed = self.steps.partition_point(|&(at, _)| at <= elapsed);
        passed.checked_sub(1).and_then(|last| self.steps.get(last)).map_or(self.initial, |&(_, value)| value)
    }

    /// Returns the time of the first step strictly after `elapsed`, if there is such a step.
    pub fn next_step(&self, elapsed: Span) -> Option<Span> {
        self.steps.get(self.steps.partition_point(|&(at, _)| at <= elapsed)).map(|&(at, _)| at)
    }

    /// Returns the value before any step.
    pub const fn initial(&self) -> T {
        self.initial
    }

    /// Returns the steps in the order of their times.
    pub fn steps(&self) -> &[(Span, T)] {
        &self.steps
    }

    /// Returns every value that the schedule takes: the initial value, then the values of the steps.
    pub fn values(&self) -> impl Iterator<Item = T> {
        core::iter::once(self.initial).chain(self.steps.iter().map(|&(_, value)| value))
    }
}
