use alloc::sync::Arc;
use core::sync::atomic::{AtomicU64, Ordering};

/// A shared cell with the load offered to a flow's bottleneck, as a share of the bottleneck's capacity (Waki 2013,
/// Sec. 6.1.2).
///
/// Only a simulator or a link emulator knows this load, and writes it; a real sender cannot know it. The only
/// controller that reads the load is [`Printed`](super::ap::Printed), to show what a sender could gain from this
/// knowledge. The load is not part of a session's feedback to its controller.
#[derive(Clone, Debug)]
pub struct PathLoad(Arc<AtomicU64>);

/// The content of a cell that was not written. These are the bits of a NaN, which is no valid load.
const UNKNOWN: u64 = u64::MAX;

impl Default for PathLoad {
    fn default() -> Self {
        Self(Arc::new(AtomicU64::new(UNKNOWN)))
    }
}

impl PathLoad {
    /// Sets the load. A negative, infinite or NaN value is ignored.
    pub fn set(&self, load: f64) {
        if load.is_finite() && load >= 0.0 {
            self.0.store(load.to_bits(), Ordering::Relaxed);
        }
    }

    /// Returns the load; `None` until it has been written.
    pub fn get(&self) -> Option<f64> {
        let load = f64::from_bits(self.0.load(Ordering::Relaxed));
        (!load.is_nan()).then_some(load)
    }

    /// Whether the cell has another owner in addition to `self`, such as a controller that reads it.
    pub fn is_shared(&self) -> bool {
        Arc::strong_count(&self.0) > 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_load_is_unknown_until_it_is_written_and_nonsense_changes_nothing() {
        let cell = PathLoad::default();
        assert_eq!((cell.get(), cell.is_shared()), (None, false));
        let reader = cell.clone();
        for load in [0.75, -1.0, f64::NAN, f64::INFINITY] {
            cell.set(load);
        }
        assert_eq!((reader.get(), cell.is_shared()), (Some(0.75), true));
    }
}
