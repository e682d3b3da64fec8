use equipoise::units::{Instant, SenderClock};

/// A 64-bit NTP timestamp: seconds since 1900 in the upper 32 bits, fraction of a second in the lower 32 bits.
///
/// Source: RFC 5905, Sec. 6. The seconds wrap every 136 years, next in 2036. So the time is only known relative to a
/// reference time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct NtpTime(u64);

/// Seconds from 1900, the NTP epoch, to 1970 (RFC 5905, Fig. 4).
const UNIX_EPOCH_S: u64 = 2_208_988_800;
const NANOS_PER_S: u64 = 1_000_000_000;

impl NtpTime {
    /// Creates the timestamp with these bits.
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// Returns the bits: seconds in the upper half, fraction in the lower half.
    pub const fn as_bits(self) -> u64 {
        self.0
    }

    /// Returns the timestamp of the time `at`. Its fraction is rounded to the nearest 2⁻³² s.
    pub fn from_instant(at: Instant<SenderClock>) -> Self {
        // Seconds and nanoseconds are converted separately, so that all values fit into 64 bits. 128-bit arithmetic
        // would be slower, and this code runs for every packet.
        let (seconds, nanos) = (at.as_nanos() / NANOS_PER_S, at.as_nanos() % NANOS_PER_S);
        let fraction = (nanos << 32).wrapping_add(NANOS_PER_S / 2) / NANOS_PER_S;
        Self((seconds.wrapping_add(UNIX_EPOCH_S) << 32).wrapping_add(fraction))
    }

    /// Returns the time nearest to `reference` that has this timestamp. The time is rounded to nanoseconds.
    ///
    /// A timestamp made from an instant is converted back to exactly that instant if `reference` is within 68 years of
    /// the instant. Times before the clock's zero become zero, and times after its maximum become the maximum.
    pub fn to_instant_near(self, reference: Instant<SenderClock>) -> Instant<SenderClock> {
        let ahead = self.0.wrapping_sub(Self::from_instant(reference).0).cast_signed();
        let nanos = (i128::from(ahead).wrapping_mul(i128::from(NANOS_PER_S)).wrapping_add(1 << 31) >> 32) as i64;
        Instant::from_nanos(reference.as_nanos().saturating_add_signed(nanos))
    }

    /// Returns the timestamp nearest to `reference` whose middle 32 bits are `middle`. Its lower 16 bits are zero.
    pub const fn from_middle_near(middle: u32, reference: Self) -> Self {
        let ahead = middle.wrapping_sub(reference.middle()).cast_signed() as i64;
        Self(((reference.0 >> 16 << 16) as i64).wrapping_add(ahead << 16).cast_unsigned())
    }

    /// Returns the middle 32 bits: seconds modulo 65 536, and their fraction in 1/65 536 s (RFC 3550, Sec. 4).
    pub const fn middle(self) -> u32 {
        (self.0 >> 16) as u32
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn known_moments() {
        assert_eq!(NtpTime::from_instant(Instant::ZERO).as_bits(), 0x83AA_7E80_0000_0000);
        // Half a second after 1970 began: the timestamp and its middle 32 bits.
        let half = NtpTime::from_instant(Instant::from_nanos(500_000_000));
        assert_eq!((half.as_bits(), half.middle()), (0x83AA_7E80_8000_0000, 0x7E80_8000));
    }

    #[test]
    fn the_wrap_of_2036_is_seen_through() {
        // 7 February 2036, 06:28:16 UTC is the first second of NTP era 1.
        let wrap = Instant::from_nanos(((1u64 << 32) - UNIX_EPOCH_S) * NANOS_PER_S);
        assert_eq!(NtpTime::from_instant(wrap).as_bits(), 0);
        assert_eq!(NtpTime::from_bits(0).to_instant_near(wrap), wrap);
    }

    proptest! {
        #[test]
        fn a_middle_comes_back_to_its_own_resolution(nanos in 0u64..(1 << 62), apart_s in -30_000i64..30_000) {
            let time = NtpTime::from_instant(Instant::from_nanos(nanos));
            let reference = NtpTime::from_instant(Instant::from_nanos(nanos.saturating_add_signed(apart_s * 1_000_000_000)));
            let found = NtpTime::from_middle_near(time.middle(), reference);
            prop_assert_eq!(found.as_bits(), time.as_bits() >> 16 << 16);
        }

        #[test]
        fn an_instant_comes_back_to_the_nanosecond(nanos in 0u64..(1 << 63), years in -60i64..60) {
            let at = Instant::from_nanos(nanos);
            let reference = Instant::from_nanos(nanos.saturating_add_signed(years * 31_557_600 * 1_000_000_000));
            prop_assert_eq!(NtpTime::from_instant(at).to_instant_near(reference), at);
        }
    }
}
