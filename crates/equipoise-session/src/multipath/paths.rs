use alloc::vec::Vec;

use rand_core::Rng;

use super::MAX_PATHS;
use super::law::Law;
use super::path::{Path, Session};
use super::total::sum;
use crate::rtp::proof::Proof;
use crate::{DropReason, PathChange, PathId};
use equipoise::control::scheduler::PathView;
use equipoise::pace::Readiness;
use equipoise::units::{Instant, Rate, SenderClock, Span};

/// All paths of a session at the sender, in the order of their numbers.
#[derive(Debug, Default)]
pub(super) struct Paths(Vec<Path>);

/// Statistics of one period, from the reports about all paths.
#[derive(Clone, Copy, Debug)]
pub(super) struct AllTold {
    pub(super) proof: Proof,
    /// The longest of the paths' round-trip times.
    pub(super) round_trip: Option<Span>,
    /// Share of marked packets among the ECN-capable packets that arrived; `None` if no ECN-capable packet arrived.
    pub(super) fraction_marked: Option<f64>,
    /// The shortest round-trip time of the paths that carried at least a tenth of the packets; zero if no such time is
    /// known.
    pub(super) shortest: Span,
}

impl Paths {
    /// Number of paths.
    pub(super) const fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn get_mut(&mut self, at: usize) -> Option<&mut Path> {
        self.0.get_mut(at)
    }

    /// Returns the usable paths.
    pub(super) fn up(&self) -> impl Iterator<Item = &Path> {
        self.0.iter().filter(|path| path.is_up)
    }

    /// Returns the usable paths, mutably.
    pub(super) fn up_mut(&mut self) -> impl Iterator<Item = &mut Path> {
        self.0.iter_mut().filter(|path| path.is_up)
    }

    /// Returns the usable paths about which reports arrive and whose media no circuit breaker has stopped.
    pub(super) fn alive(&self) -> impl Iterator<Item = &Path> {
        self.up().filter(|path| path.is_alive())
    }

    /// Returns the path with this number, if it is usable.
    pub(super) fn find_mut(&mut self, id: PathId) -> Option<&mut Path> {
        self.up_mut().find(|path| path.id() == id)
    }

    /// Applies a change of a path's state. The first packet number of a new path is drawn from `random`.
    ///
    /// # Errors
    /// [`DropReason::Full`] if there are too many paths; [`DropReason::Stray`] if the path is not known or its law
    /// cannot be created.
    pub(super) fn change(
        &mut self,
        now: Instant<SenderClock>,
        (id, change): (PathId, PathChange),
        session: Session<'_>,
        random: &mut impl Rng,
    ) -> Result<(), DropReason> {
        match (change, self.0.binary_search_by_key(&id, Path::id)) {
            (PathChange::Up, Ok(at)) => {
                if let Some(path) = self.0.get_mut(at).filter(|path| !path.is_up) {
                    path.comes_up(now, session.laws);
                }
            }
            (PathChange::Up, Err(_)) if self.0.len() >= MAX_PATHS => return Err(DropReason::Full),
            (PathChange::Up, Err(at)) => {
                // The path's first packet number is in the lower half of the 16-bit range, so that a trace shows no
                // wrap in its first seconds.
                let first = (random.next_u32() & 0x7FFF) as u16;
                let mut path = Path::new(id, session, now, first).map_err(|_| DropReason::Stray)?;
                if self.0.iter().any(|other| other.exchange.receiver_ssrc().is_some()) {
                    path.begin_low();
                }
                self.0.insert(at, path);
            }
            (PathChange::Down, Ok(at)) => {
                if let Some(path) = self.0.get_mut(at) {
                    path.goes_down();
                }
            }
            (PathChange::Removed, Ok(at)) => {
                self.0.remove(at);
            }
            (PathChange::Down | PathChange::Removed, Err(_)) => return Err(DropReason::Stray),
        }
        Ok(())
    }

    /// Returns the total rate of all usable paths.
    pub(super) fn rate(&self) -> Rate {
        sum(self.up().map(Path::share))
    }

    /// Whether, on any path, the rate that the path's law allows has changed since the total rate was last divided.
    pub(super) fn has_other_rate(&self) -> bool {
        self.up().any(Path::has_other_rate)
    }

    /// Whether all usable paths are silent. A path is silent if no report about the path has arrived for three report
    /// intervals.
    pub(super) fn are_silent(&self) -> bool {
        self.up().all(Path::is_silent)
    }

    /// Returns the states of the paths for the scheduler. If a period `ends`, the states include the paths' delays. If
    /// no path is alive, all paths are treated as alive, because none is known to be better than another.
    pub(super) fn views(&mut self, ends: bool) -> Vec<PathView> {
        let mut views: Vec<PathView> = self.up_mut().map(|path| path.view(ends)).collect();
        if views.iter().all(|view| !view.alive) {
            for view in &mut views {
                view.alive = true;
            }
        }
        views
    }

    /// Writes the present rates of the paths' laws to `views`.
    pub(super) fn refresh(&self, views: &mut [PathView]) {
        for (view, path) in views.iter_mut().zip(self.up()) {
            view.most = path.law().map(Law::rate);
        }
    }

    /// Returns the statistics of the period that ends, from the reports about all paths. Resets these statistics.
    pub(super) fn take_told(&mut self) -> AllTold {
        let all: Vec<_> = self.up_mut().map(Path::take_told).collect();
        let proof = all.iter().fold(Proof::default(), |proof, told| proof.beside(told.proof));
        let (capable, marked) =
            all.iter().fold((0.0, 0.0), |(capable, marked), told| (capable + told.capable, marked + told.marked));
        let carrying = all.iter().filter(|told| told.proof.sent > 0 && told.proof.sent * 10 >= proof.sent);
        AllTold {
            proof,
            round_trip: all.iter().filter_map(|told| told.round_trip).max(),
            fraction_marked: (capable > 0.0).then(|| marked / capable),
            shortest: carrying.filter_map(|told| told.round_trip).min().unwrap_or(Span::ZERO),
        }
    }

    /// Returns the live path with the largest share of the rate.
    pub(super) fn best(&self) -> Option<PathId> {
        self.alive().max_by_key(|path| path.share()).map(Path::id)
    }

    /// Returns the live path with the largest share of the rate, except the path at index `at`. If several paths have
    /// the same share, returns the first of them.
    pub(super) fn best_beside(&mut self, at: usize) -> Option<&mut Path> {
        let others = self.0.iter_mut().enumerate();
        let others = others.filter(|(other, path)| *other != at && path.is_up && path.is_alive());
        others.max_by_key(|(at, path)| (path.share(), core::cmp::Reverse(*at))).map(|(_, path)| path)
    }

    /// Returns the index of the path that sends next: of the paths that may send at `now`, the one that has sent the
    /// smallest part of its share in this period. If `has_payload` is false, only paths with queued copies may send.
    pub(super) fn next_ready(&self, now: Instant<SenderClock>, has_payload: bool) -> Option<usize> {
        let ready = self.0.iter().enumerate();
        let ready = ready.filter(|(_, path)| path.is_ready(now) && (has_payload || path.has_copies()));
        ready.min_by_key(|(_, path)| path.served()).map(|(at, _)| at)
    }

    /// Returns the earliest time at which any path may send; `soonest` if a path may already send at `now`.
    /// `has_payload` is as in [`Self::next_ready`].
    pub(super) fn next_departure(
        &self,
        now: Instant<SenderClock>,
        soonest: Instant<SenderClock>,
        has_payload: bool,
    ) -> Option<Instant<SenderClock>> {
        let dues = self.up().filter(|path| has_payload || path.has_copies()).map(|path| path.readiness(now));
        let dues = dues.filter_map(|readiness| match readiness {
            Readiness::Now => Some(soonest),
            Readiness::At(due) => Some(due),
            Readiness::Never => None,
        });
        dues.min()
    }
}
