//! Checks that reports come from the receiver of the media: each request asks for the sending time of one random
//! packet. Only a peer that received this packet knows its sending time.
//!
//! A random number that the peer copies from the request into its report would only prove that the peer receives the
//! requests. Such a peer could receive no media and still claim that all media arrives. To skip sequence numbers is no
//! alternative, because receivers count skipped RTP sequence numbers as losses.

use alloc::boxed::Box;

use chacha20::ChaCha12Rng;
use rand_core::{Rng, SeedableRng};

use crate::wire::{NtpTime, Receipt, ReceiptRequest};

/// Sending times of the latest packets by sequence number. The sender and the receiver remember the same number of
/// packets.
#[derive(Clone, Debug)]
pub(crate) struct Stamps {
    ring: Box<[Option<(u16, u32)>; Stamps::KEPT as usize]>,
}

impl Stamps {
    /// Number of packets remembered.
    const KEPT: u16 = 512;

    pub(crate) fn new() -> Self {
        Self { ring: Box::new([None; Self::KEPT as usize]) }
    }

    /// Records that packet `sequence` was sent at `sent`.
    pub(crate) fn keep(&mut self, sequence: u16, sent: NtpTime) {
        if let Some(place) = self.ring.get_mut(usize::from(sequence % Self::KEPT)) {
            *place = Some((sequence, sent.as_bits() as u32));
        }
    }

    /// Returns the lower 32 bits of the sending time of packet `sequence`, if this packet is remembered.
    pub(crate) fn find(&self, sequence: u16) -> Option<u32> {
        let (kept, stamp) = (*self.ring.get(usize::from(sequence % Self::KEPT))?)?;
        (kept == sequence).then_some(stamp)
    }
}

/// The state of a sender that requests and checks receipts.
#[derive(Debug)]
pub(crate) struct Receipts {
    random: ChaCha12Rng,
    stamps: Stamps,
    /// How far the queried packets contradict the reported losses. Each receipt adds 1 if the queried packet is
    /// missing, and subtracts the reported loss share and [`BENEFIT`](Self::BENEFIT). The value is never below zero.
    doubt: f64,
    /// Share of lost packets in the last report.
    lost: f64,
}

/// A receipt request that was sent, and the correct answer to it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked {
    pub(crate) request: ReceiptRequest,
    /// The sending time of the queried packet; `None` if there was no packet to query.
    stamp: Option<u32>,
}

/// The error that a report does not come from the receiver of the media.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Contradiction;

impl Receipts {
    /// Each receipt subtracts this value from `doubt`, so that random deviations do not accumulate. However, a report
    /// whose loss share is too low by less than this value is not detected as false.
    const BENEFIT: f64 = 0.2;
    /// The reports count as false if `doubt` exceeds this limit. If half of the packets are lost and the reports state
    /// this loss, `doubt` exceeds the limit by chance less than once in 10⁷ receipts.
    const LIMIT: f64 = 10.0;

    /// Creates the state. Its nonces are random numbers that depend on `seed`.
    pub(crate) fn new(seed: u64) -> Self {
        Self { random: ChaCha12Rng::seed_from_u64(seed), stamps: Stamps::new(), doubt: 0.0, lost: 0.0 }
    }

    /// Records that packet `sequence` is sent at `sent`.
    pub(crate) fn on_media(&mut self, sequence: u16, sent: NtpTime) {
        self.stamps.keep(sequence, sent);
    }

    /// Returns a receipt request. `next` is the number of the next packet to be sent. `before` contains the values that
    /// `next` had at the last two requests, the older first.
    ///
    /// The queried packet is chosen from the packets sent between these two requests. Such a packet is no longer in
    /// flight. If it was lost, the last report includes the loss.
    ///
    /// If more than half of the remembered packets were sent since the last request, the queried packet is chosen from
    /// the older half of the remembered packets instead.
    pub(crate) fn ask(&mut self, before: (u32, u32), next: u32) -> Asked {
        let half = u32::from(Stamps::KEPT / 2);
        let oldest = next.wrapping_sub(u32::from(Stamps::KEPT) - 1);
        let since = next.wrapping_sub(before.1);
        let (from, to) = if since > half {
            (oldest, next.wrapping_sub(half))
        } else {
            let from = if next.wrapping_sub(before.0) < u32::from(Stamps::KEPT) { before.0 } else { oldest };
            (from, before.1)
        };
        let choices = to.wrapping_sub(from);
        let drawn = ((u64::from(self.random.next_u32()) * u64::from(choices)) >> 32) as u32;
        let request = ReceiptRequest { nonce: self.random.next_u32(), number: from.wrapping_add(drawn) };
        let stamp = self.stamps.find(request.number as u16).filter(|_| choices > 0);
        Asked { request, stamp }
    }

    /// Checks the receipt in a report. `lost` is the share of lost packets that the report states, from 0 to 1.
    ///
    /// # Errors
    /// [`Contradiction`] if the receipt states a wrong sending time, or if more of the queried packets are missing than
    /// the reported losses explain.
    pub(crate) fn read(&mut self, asked: &Asked, receipt: &Receipt, lost: f64) -> Result<(), Contradiction> {
        let admitted = core::mem::replace(&mut self.lost, lost).max(lost);
        match (asked.stamp, receipt.stamp) {
            (None, _) => return Ok(()),
            (Some(left), Some(said)) if left != said => return Err(Contradiction),
            (Some(_), Some(_)) => self.doubt -= admitted + Self::BENEFIT,
            (Some(_), None) => self.doubt += 1.0 - admitted - Self::BENEFIT,
        }
        self.doubt = self.doubt.max(0.0);
        if self.doubt > Self::LIMIT { Err(Contradiction) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Creates the state after packets 0 to 999 were sent.
    fn receipts(seed: u64) -> Receipts {
        let mut receipts = Receipts::new(seed);
        (0..1000).for_each(|number| receipts.on_media(number, stamp(number)));
        receipts
    }

    fn stamp(number: u16) -> NtpTime {
        NtpTime::from_bits(u64::from(number) * 0x1234_5678)
    }

    fn answer(asked: &Asked, arrived: bool) -> Receipt {
        let stamp = stamp(asked.request.number as u16).as_bits() as u32;
        Receipt { nonce: asked.request.nonce, arrived: 0, stamp: arrived.then_some(stamp) }
    }

    /// Returns how many of 1000 requests are answered before an answer is rejected. `arriving` of 100 packets arrive,
    /// and the receiver reports the share `admitted` of all packets as lost.
    fn believed(arriving: u32, admitted: f64) -> usize {
        let mut receipts = receipts(7);
        (0..1000)
            .take_while(|_| {
                let asked = receipts.ask((700, 900), 1000);
                assert!((700..900).contains(&asked.request.number), "{asked:?}");
                let arrived = asked.request.number * 37 % 100 < arriving;
                receipts.read(&asked, &answer(&asked, arrived), admitted).is_ok()
            })
            .count()
    }

    #[test]
    fn who_admits_its_losses_is_believed_and_who_hides_them_is_not() {
        assert_eq!([(100, 0.0), (99, 0.0), (90, 0.1), (70, 0.3), (50, 0.5)].map(|(a, l)| believed(a, l)), [1000; 5]);
        assert!(believed(14, 0.0) < 30 && believed(14, 0.05) < 30, "a policer's 86 %");
        assert!(believed(50, 0.02) < 100);
    }

    #[test]
    fn a_packet_that_never_left_or_another_sending_time_is_a_lie() {
        let mut receipts = receipts(1);
        let asked = receipts.ask((700, 900), 1000);
        let wrong = Receipt { stamp: Some(1), ..answer(&asked, true) };
        assert_eq!(receipts.read(&asked, &wrong, 0.0), Err(Contradiction));
    }

    /// If this test fails, requests query old packets while no media is sent. If those packets were lost, stopped media
    /// never restarts.
    #[test]
    fn where_nothing_has_left_since_nothing_is_doubted() {
        let mut receipts = receipts(1);
        for _ in 0..1000 {
            let asked = receipts.ask((1000, 1000), 1000);
            assert_eq!(receipts.read(&asked, &answer(&asked, false), 0.0), Ok(()));
        }
    }

    #[test]
    fn where_much_has_left_since_the_last_request_what_both_ends_remember_is_asked_about() {
        let mut receipts = receipts(3);
        for _ in 0..100 {
            let asked = receipts.ask((5, 10), 1000);
            assert!(asked.stamp.is_some(), "{asked:?}");
        }
    }
}
