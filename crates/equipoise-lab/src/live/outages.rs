use equipoise::units::{Instant, SenderClock};
use equipoise_session::multipath::Sender;
use equipoise_session::{Endpoint, Input, Output, PathChange, PathId, Wake, WakeReason};

use crate::scenario::Path;

/// The sender of a session over several paths, with scheduled outages of paths. The sender is notified of an outage as
/// if the operating system had reported that an interface is down.
pub(super) struct Outages {
    sender: Sender,
    /// Changes that are still to come, the latest one first.
    changes: Vec<(Instant<SenderClock>, PathId, PathChange)>,
}

impl Outages {
    /// Schedules the changes of a flow's paths in a run that starts at `origin`. `paths` are in the order of their
    /// numbers.
    pub(super) fn new<'a>(sender: Sender, paths: impl Iterator<Item = &'a Path>, origin: Instant<SenderClock>) -> Self {
        let of = |(number, path): (u16, &'a Path)| {
            path.changes().into_iter().map(move |(at, change)| (origin + at, PathId(number), change))
        };
        let mut changes: Vec<_> = (0..).zip(paths).flat_map(of).collect();
        changes.sort_by_key(|&(at, ..)| std::cmp::Reverse(at));
        Self { sender, changes }
    }
}

impl Endpoint for Outages {
    type Clock = SenderClock;

    fn handle(&mut self, now: Instant<SenderClock>, input: Input<'_>) {
        while let Some((_, path, change)) = self.changes.pop_if(|(at, ..)| *at <= now) {
            self.sender.handle(now, Input::Path { path, change });
        }
        self.sender.handle(now, input);
    }

    fn poll(&mut self) -> Option<Output<'_>> {
        self.sender.poll()
    }

    fn wake(&self) -> Option<Wake<SenderClock>> {
        let change = self.changes.last().map(|&(at, ..)| Wake { at, reason: WakeReason::Report });
        [self.sender.wake(), change].into_iter().flatten().min_by_key(|wake| wake.at)
    }
}
