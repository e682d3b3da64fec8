use std::fmt;
use std::sync::Arc;

use equipoise::units::{Size, Span};

use crate::Time;

/// A packet that has passed all links of its way and is about to leave the emulator.
#[derive(Clone, Copy, Debug)]
pub struct Passed<'a> {
    /// When it is due to leave, by the links and not by the machine.
    pub at: Time,
    /// Its route, by its position in the list of routes.
    pub route: usize,
    /// It goes from the route's receiver to its sender.
    pub is_back: bool,
    /// Of the IP packet.
    pub size: Size,
    /// How long it waited in the queues of its way, all of them together: no propagation, no jitter, and not its own transmissions.
    pub waited: Span,
    /// What a datagram carries; `None` for packets that are not UDP.
    pub datagram: Option<&'a [u8]>,
}

/// Is told of each packet that leaves an emulator, on the emulator's thread and before the packet is sent; a slow one makes late packets.
#[derive(Clone)]
pub struct Watcher(Arc<dyn Fn(&Passed<'_>) + Send + Sync>);

impl Watcher {
    /// A watcher that is told by this closure.
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
