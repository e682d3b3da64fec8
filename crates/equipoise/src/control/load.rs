use alloc::sync::Arc;
use core::sync::atomic::{AtomicU64, Ordering};

/// Offered load of a flow's bottleneck as a share of its capacity, which only a world that sees its own links knows (Waki 2013,
/// Sec. 6.1.2): a cell that the world writes and one controller reads.
///
/// No real sender can know it. It serves a comparator that shows what could be gained by it, and is no part of what a
/// session tells its controller.
#[derive(Clone, Debug)]
pub struct PathLoad(Arc<AtomicU64>);

/// What no load has: the bits of a NaN.
const UNKNOWN: u64 = u64::MAX;

impl Default for PathLoad {
    fn default() -> Self {
        Self(Arc::new(AtomicU64::new(UNKNOWN)))
    }
}

impl PathLoad {
    /// The load is `load` now; a number that is negative or not finite changes nothing.
    pub fn set(&self, load: f64) {
        if load.is_finite() && load >= 0.0 {
            self.0.store(load.to_bits(), Ordering::Relaxed);
        }
    }

    /// The load, once the world has written it.
    pub fn get(&self) -> Option<f64> {
        let load = f64::from_bits(self.0.load(Ordering::Relaxed));
        (!load.is_nan()).then_some(load)
    }

    /// Whether anybody else holds the cell, such as a controller that reads it.
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
