//! Divides an application's total rate among the paths of one connection.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant as HostInstant};

use equipoise::control::scheduler::{self, BoxedScheduler, PathId, PathView};
use equipoise::measure::{DelaySummary, Moments};
use equipoise::units::{Rate, Size};

use crate::config::UnknownController;

/// A scheduler for the paths of one multipath connection of noq (Asvarujanon 2014). Pass the scheduler to
/// [`Config::with_split`](crate::Config::with_split). All clones of a `Split` are the same scheduler. Create a separate
/// `Split` for each connection.
///
/// Each path has its own controller, which limits the path's rate. Once a second, the scheduler divides the total rate
/// of the application ([`set_total`](Self::set_total)) among the paths. Each path is paced at its share. noq sends a
/// packet on any path whose pacing permits a packet. So if the application sends less than the total rate, the paths
/// may carry other shares than the scheduler decided.
#[derive(Clone, Debug)]
pub struct Split(Arc<Mutex<Shared>>);

#[derive(Debug)]
struct Shared {
    scheduler: BoxedScheduler,
    /// The total rate that the application sends; `None` if it sends as fast as the paths allow.
    total: Option<Rate>,
    members: Vec<Member>,
    next: u16,
    /// When the current period ends.
    ends: Option<HostInstant>,
}

/// The state of one path.
#[derive(Clone, Debug)]
struct Member {
    id: PathId,
    share: Rate,
    /// Maximum rate of the path, set by the path's own controller.
    most: Rate,
    delays: Moments,
    alive: bool,
}

/// The entry of a path in a scheduler. Dropping it removes the path from the scheduler.
#[derive(Debug)]
pub(crate) struct Place {
    split: Split,
    id: PathId,
}

/// The state of a path when an acknowledgement arrives.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Told {
    /// Maximum rate of the path, set by the path's own controller.
    pub(crate) most: Rate,
    /// Whether packets of the path are being acknowledged.
    pub(crate) alive: bool,
}

/// Time between two divisions of the total rate. In Asvarujanon 2014, Sec. 4.3, this time is 5 s.
const PERIOD: Duration = Duration::from_secs(1);
/// The packet size that is assumed for schedulers that count packets.
const PACKET: Size = Size::from_bytes(1228);

impl Split {
    /// Creates the scheduler with this name: `ap`, `equal`, `min-delay` or `single`, with values for some of its
    /// parameters.
    ///
    /// # Errors
    /// [`UnknownController`] if the name or a parameter is not known, or a value is invalid.
    pub fn named(name: &str, given: &[(&str, &str)]) -> Result<Self, UnknownController> {
        let entry = scheduler::find(name).ok_or_else(|| UnknownController::Name {
            name: name.to_owned(),
            known: scheduler::entries().iter().map(|entry| entry.name).collect::<Vec<_>>().join(", "),
        })?;
        let scheduler = entry.build(&entry.parse(given)?, PACKET)?;
        let shared = Shared { scheduler, total: None, members: Vec::new(), next: 0, ends: None };
        Ok(Self(Arc::new(Mutex::new(shared))))
    }

    /// Sets the rate that the application sends from now on, over all paths together, counting whole IP packets.
    pub fn set_total(&self, total: Rate) {
        self.lock().total = Some(total);
    }

    /// Returns the sum of the paths' maximum rates. Each path's controller sets the maximum rate of the path. The sum
    /// is the upper limit for an encoder.
    pub fn most(&self) -> Rate {
        self.lock().most()
    }

    /// Adds a new path with the maximum rate `most`.
    pub(crate) fn join(&self, most: Rate) -> Place {
        let mut shared = self.lock();
        let id = PathId(shared.next);
        shared.next = shared.next.wrapping_add(1);
        shared.members.push(Member { id, share: most, most, delays: Moments::default(), alive: true });
        Place { split: self.clone(), id }
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place {
    /// Handles acknowledgements with these delays in s. If a period has ended, divides the total rate again.
    pub(crate) fn tell(&self, now: HostInstant, told: Told, delays_s: impl Iterator<Item = f64>) {
        let mut shared = self.split.lock();
        let Some(member) = shared.members.iter_mut().find(|member| member.id == self.id) else { return };
        (member.most, member.alive) = (told.most, told.alive);
        delays_s.for_each(|delay_s| member.delays.push(delay_s));
        let ends = *shared.ends.get_or_insert(now + PERIOD);
        if now >= ends {
            shared.ends = Some(now + PERIOD);
            shared.divide();
        }
    }

    /// Returns the path's share of the total rate.
    pub(crate) fn share(&self) -> Rate {
        let shared = self.split.lock();
        shared.members.iter().find(|member| member.id == self.id).map_or(Rate::ZERO, |member| member.share)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.split.lock().members.retain(|member| member.id != self.id);
    }
}

impl Shared {
    fn most(&self) -> Rate {
        Rate::from_bps(self.members.iter().fold(0, |sum: u64, member| sum.saturating_add(member.most.as_bps())))
    }

    fn divide(&mut self) {
        let most = self.most();
        let total = self.total.map_or(most, |total| total.min(most));
        let view = |member: &mut Member| {
            let all = std::mem::take(&mut member.delays);
            let delay = all.mean().zip(all.variance());
            let delay = delay.map(|(mean_s, variance_s2)| DelaySummary { mean_s, variance_s2, samples: all.count() });
            // A path must not carry more than its own controller allows.
            let most = Some(member.most);
            PathView { path: member.id, alive: member.alive, rate: member.share, delay, most }
        };
        let views: Vec<_> = self.members.iter_mut().map(view).collect();
        let shares = self.scheduler.split(total, &views);

        for (member, share) in self.members.iter_mut().zip(shares) {
            member.share = share.rate;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MBPS: u64 = 1_000_000;

    /// Updates both paths for 60 s, with the given maximum rates and delays. Returns the paths' shares in Mbit/s.
    fn shares(split: &Split, most_mbps: [u64; 2], delays_ms: [u32; 2]) -> [f64; 2] {
        let places = most_mbps.map(|most| split.join(Rate::from_bps(most * MBPS)));
        let begin = HostInstant::now();
        for tenth in 0u32..600 {
            let now = begin + Duration::from_millis(100) * tenth;
            for ((place, most), delay) in places.iter().zip(most_mbps).zip(delays_ms) {
                let told = Told { most: Rate::from_bps(most * MBPS), alive: true };
                // The delays vary by up to 4 ms.
                place.tell(now, told, (0..5).map(|at| f64::from(delay + (tenth * 7 + at * 3) % 5) / 1e3));
            }
        }
        places.map(|place| place.share().as_mbps_f64())
    }

    #[test]
    fn equal_shares_sum_to_the_total_and_what_a_path_may_not_carry_goes_to_the_other() {
        let split = || {
            let split = Split::named("equal", &[]).expect("right");
            split.set_total(Rate::from_bps(4 * MBPS));
            split
        };
        let close = |found: [f64; 2], wanted: [f64; 2]| {
            assert!(found.iter().zip(wanted).all(|(found, wanted)| (found - wanted).abs() < 0.01), "{found:?}");
        };
        close(shares(&split(), [3, 3], [20, 20]), [2.0, 2.0]);
        close(shares(&split(), [1, 5], [20, 20]), [1.0, 3.0]);
        let last = split();
        close(shares(&last, [1, 2], [20, 20]), [1.0, 2.0]);
        assert_eq!(last.most(), Rate::ZERO, "both have left");
    }

    /// If this test fails, a connection over two networks does not send most of its data over the network with the
    /// shorter delay.
    #[test]
    fn the_path_with_the_shorter_delay_gets_most() {
        let split = Split::named("ap", &[]).expect("right");
        split.set_total(Rate::from_bps(2 * MBPS));
        let [short, long] = shares(&split, [5, 5], [20, 120]);
        assert!(short > 1.5 && long < 0.5 && (short + long - 2.0).abs() < 0.01, "{short} and {long}");
    }

    #[test]
    fn a_wrong_name_is_told_with_the_right_ones() {
        let error = Split::named("fair", &[]).expect_err("no such scheduler").to_string();
        assert!(error.contains("\"fair\"") && error.contains("min-delay"), "{error}");
    }
}
