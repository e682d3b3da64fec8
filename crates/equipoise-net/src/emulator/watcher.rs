use std::fmt;
use std::sync::Arc;

use equipoise::units::{Size, Span};

use crate::Time;

/// A packet that has passed all links of its route and is about to leave the emulator.
#[derive(Clone, Copy, Debug)]
pub struct Passed<'a> {
    /// When the packet leaves, as computed by the links; sending may be later.
    pub at: Time,
    /// Index of the packet's route in the list of routes.
    pub route: usize,
    /// Whether the packet travels from the route's receiver to the route's sender.
    pub is_back: bool,
    /// Size of the IP packet.
    pub size: Size,
    /// Total time that the packet waited in the queues of its route, without propagation delay, jitter and transmission
    /// times.
    pub waited: Span,
    /// The payload of a UDP datagram; `None` for other packets.
    pub datagram: Option<&'a [u8]>,
}

/// A function that an emulator calls for each packet that has passed all links of its route. It is called on the
/// emulator's thread before the packet is sent, so a slow watcher delays packets.
#[derive(Clone)]
pub struct Watcher(Arc<dyn Fn(&Passed<'_>) + Send + Sync>);

impl Watcher {
    /// A watcher that calls the closure `tell`.
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
