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

/// The paths of a session, as its sending end sees them, in the order of their numbers.
#[derive(Debug, Default)]
pub(super) struct Paths(Vec<Path>);

/// The content of the reports of all paths together on a period.
#[derive(Clone, Copy, Debug)]
pub(super) struct AllTold {
    pub(super) proof: Proof,
    /// The longest round trip.
    pub(super) round_trip: Option<Span>,
    /// Share of the packets that were marked among those that may be; `None` where none may.
    pub(super) fraction_marked: Option<f64>,
    /// The shortest round trip of those that carried a tenth at least; zero if none is known.
    pub(super) shortest: Span,
}

impl Paths {
    /// How many there are.
    pub(super) const fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn get_mut(&mut self, at: usize) -> Option<&mut Path> {
        self.0.get_mut(at)
    }

    /// Those that the world lets be used.
    pub(super) fn up(&self) -> impl Iterator<Item = &Path> {
        self.0.iter().filter(|path| path.is_up)
    }

    /// The same, to be changed.
    pub(super) fn up_mut(&mut self) -> impl Iterator<Item = &mut Path> {
        self.0.iter_mut().filter(|path| path.is_up)
    }

    /// Those of them that answer.
    pub(super) fn alive(&self) -> impl Iterator<Item = &Path> {
        self.up().filter(|path| path.is_alive())
    }

    /// The path of a number, where it may be used.
    pub(super) fn find_mut(&mut self, id: PathId) -> Option<&mut Path> {
        self.up_mut().find(|path| path.id() == id)
    }

    /// The world says what became of a path of a `session`. One that is new numbers its packets from what `random` gives.
    ///
    /// # Errors
    /// [`DropReason::Full`] and, for a path that is not known or cannot have a law, [`DropReason::Stray`].
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
                // The upper half of the numbers stays free at first, as in the common ones.
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

    /// What they carry in all.
    pub(super) fn rate(&self) -> Rate {
        sum(self.up().map(Path::share))
    }

    /// Whether the allowance of one of their laws has changed since the total was divided.
    pub(super) fn has_other_rate(&self) -> bool {
        self.up().any(Path::has_other_rate)
    }

    /// Whether none of them answers.
    pub(super) fn are_silent(&self) -> bool {
        self.up().all(Path::is_silent)
    }

    /// What the scheduler gets to see; with the delays, a period ends. If no path is alive, all are treated as alive, since none is better
    /// than another: one that a breaker has stopped carries something, perhaps, and one that is silent nothing.
    pub(super) fn views(&mut self, ends: bool) -> Vec<PathView> {
        let mut views: Vec<PathView> = self.up_mut().map(|path| path.view(ends)).collect();
        if views.iter().all(|view| !view.alive) {
            for view in &mut views {
                view.alive = true;
            }
        }
        views
    }

    /// Updates in `views` what each path's law lets it carry.
    pub(super) fn refresh(&self, views: &mut [PathView]) {
        for (view, path) in views.iter_mut().zip(self.up()) {
            view.most = path.law().map(Law::rate);
        }
    }

    /// Takes the content of their reports on the period that ends.
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

    /// The one that carries most.
    pub(super) fn best(&self) -> Option<PathId> {
        self.alive().max_by_key(|path| path.share()).map(Path::id)
    }

    /// The same of those beside number `at`; the first of several.
    pub(super) fn best_beside(&mut self, at: usize) -> Option<&mut Path> {
        let others = self.0.iter_mut().enumerate();
        let others = others.filter(|(other, path)| *other != at && path.is_up && path.is_alive());
        others.max_by_key(|(at, path)| (path.share(), core::cmp::Reverse(*at))).map(|(_, path)| path)
    }

    /// Of those that may send at `now` the one that has sent least of its share: the copies that wait for it, or, with
    /// `has_payload`, whatever is next.
    pub(super) fn next_ready(&self, now: Instant<SenderClock>, has_payload: bool) -> Option<usize> {
        let ready = self.0.iter().enumerate();
        let ready = ready.filter(|(_, path)| path.is_ready(now) && (has_payload || path.has_copies()));
        ready.min_by_key(|(_, path)| path.served()).map(|(at, _)| at)
    }

    /// When the first of them may send, not before `soonest`; `has_payload` as in [`Self::next_ready`].
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
