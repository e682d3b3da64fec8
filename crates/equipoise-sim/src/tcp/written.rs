use std::collections::VecDeque;

use equipoise::units::Size;

/// The byte stream that an application has written, divided into segments.
///
/// A partial segment is not sent until more data completes it or all data in flight is acknowledged (RFC 9293, Sec.
/// 3.7.4, Nagle's algorithm), unless `no_delay` is set.
#[derive(Clone, Debug)]
pub(super) struct Written {
    payload: Size,
    /// Number of segments into which the stream was divided so far.
    cut: u64,
    /// Number of bytes that are not divided into segments yet.
    rest: u64,
    /// Numbers and sizes of the partial segments that are not acknowledged; a retransmission needs the size.
    short: VecDeque<(u64, Size)>,
    /// Total number of bytes by which acknowledged partial segments were smaller than full segments.
    lacking: u64,
    no_delay: bool,
}

impl Written {
    pub(super) const fn new(payload: Size) -> Self {
        Self { payload, cut: 0, rest: 0, short: VecDeque::new(), lacking: 0, no_delay: false }
    }

    pub(super) const fn set_no_delay(&mut self, on: bool) {
        self.no_delay = on;
    }

    pub(super) fn write(&mut self, bytes: u64) {
        let full = self.payload.as_bytes();
        self.rest = self.rest.saturating_add(bytes);
        self.cut += self.rest / full;
        self.rest %= full;
    }

    /// Makes a partial segment of the remaining bytes, if Nagle's algorithm allows this.
    pub(super) fn flush(&mut self, nothing_under_way: bool) {
        if self.rest > 0 && (self.no_delay || nothing_under_way) {
            self.short.push_back((self.cut, Size::from_bytes(self.rest)));
            (self.cut, self.rest) = (self.cut + 1, 0);
        }
    }

    /// Number of segments into which the stream was divided so far.
    pub(super) const fn segments(&self) -> u64 {
        self.cut
    }

    /// Size of the data in segment `number`.
    pub(super) fn payload(&self, number: u64) -> Size {
        let place = self.short.partition_point(|(short, _)| *short < number);
        self.short.get(place).filter(|(short, _)| *short == number).map_or(self.payload, |(_, size)| *size)
    }

    /// Records that all segments before `number` are acknowledged, so their sizes are no longer needed.
    pub(super) fn acknowledge(&mut self, number: u64) {
        while let Some((_, size)) = self.short.front().filter(|(short, _)| *short < number) {
            self.lacking += (self.payload - *size).as_bytes();
            self.short.pop_front();
        }
    }

    /// Number of bytes of the stream before segment `number`. This segment must not be acknowledged yet.
    pub(super) fn bytes_before(&self, number: u64) -> u64 {
        let short = self.short.iter().take_while(|(short, _)| *short < number);
        let lacking: u64 = short.map(|(_, size)| (self.payload - *size).as_bytes()).sum();
        number.saturating_mul(self.payload.as_bytes()).saturating_sub(self.lacking + lacking)
    }

    /// Number of bytes of the stream from segment `number` on.
    pub(super) fn bytes_from(&self, number: u64) -> u64 {
        self.bytes_before(self.cut).saturating_sub(self.bytes_before(number)) + self.rest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_cut_into_full_segments_and_the_rest_waits() {
        let mut written = Written::new(Size::from_bytes(1000));
        written.write(2500);
        written.flush(false);
        assert_eq!((written.segments(), written.bytes_from(0), written.bytes_from(1)), (2, 2500, 1500));
        written.flush(true);
        assert_eq!((written.segments(), written.payload(2)), (3, Size::from_bytes(500)));
        written.write(1000);
        written.set_no_delay(true);
        written.write(1);
        written.flush(false);
        assert_eq!([2, 3, 4].map(|number| written.payload(number).as_bytes()), [500, 1000, 1]);
        assert_eq!([2, 3, 4, 5].map(|number| written.bytes_before(number)), [2000, 2500, 3500, 3501]);
        written.acknowledge(3);
        assert_eq!([3, 4, 5].map(|number| written.bytes_before(number)), [2500, 3500, 3501]);
        assert_eq!((written.payload(4).as_bytes(), written.bytes_from(5)), (1, 0));
    }
}
