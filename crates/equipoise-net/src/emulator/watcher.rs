use std::fmt;
use std::sync::Arc;

use equipoise::units::{Size, Span};

use crate::Time;

/// A packet that has passed all links of its route and is about to leave the emulator.
#[derive(Clone, Copy, Debug)]
pub struct Passed<'a> {
    /// Its ideal departure time, computed by the links.
    pub at: Time,
    /// Index of its route in the list of routes.
    pub route: usize,
    /// Whether it goes from the route's receiver to its sender.
    pub is_back: bool,
    /// Size of the IP packet.
    pub size: Size,
    /// Total waiting time in the queues of its route, without propagation delay, jitter, and the packet's own
    /// transmission times.
    pub waited: Span,
    /// The payload of a UDP datagram; `None` for other packets.
    pub datagram: Option<&'a [u8]>,
}

/// Called for each packet that leaves an emulator, on the emulator's thread and before the packet is sent; a slow
/// watcher delays packets.
#[derive(Clone)]
pub struct Watcher(Arc<dyn Fn(&Passed<'_>) + Send + Sync>);

impl Watcher {
    /// A watcher that calls this closure.
    pub fn new(tell: impl Fn(&Passed<'_>) + Send + Sync + 'static) -> Self {
        Self(Arc::new(tell))
    }

    pub(super) fn tell(&self, passed: &Passed<'_>) {
        (self.0)(passed);
    }
}

impl fmt::Debug for Watcher {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Watcher")
    }
}
