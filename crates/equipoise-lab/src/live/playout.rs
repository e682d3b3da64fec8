use equipoise::units::Span;
use equipoise_net::Time;

use crate::playout::SharedPlayout;
use crate::record::LinkRecord;
use crate::result::LinkResult;

/// Samples the playout buffers that replace links. The emulator does not run these links, so it cannot sample them.
pub(super) struct PlayoutWatch {
    /// For each link, the playout buffer that replaces the link, if any, and the buffer's samples.
    buffers: Vec<Option<(SharedPlayout, LinkRecord)>>,
    every: Span,
    next: Span,
    origin: Time,
}

impl PlayoutWatch {
    pub(super) fn new(buffers: &[Option<SharedPlayout>], every: Span, origin: Time) -> Self {
        let recorded = |buffer: &Option<SharedPlayout>| Some((buffer.clone()?, LinkRecord::default()));
        Self { buffers: buffers.iter().map(recorded).collect(), every, next: every, origin }
    }

    /// Takes the samples that are due. A buffer gets as many samples as an emulated link, but slightly later.
    pub(super) fn look(&mut self, at: Span) {
        while self.next <= at {
            self.next = self.next + self.every;
            for (buffer, record) in self.buffers.iter_mut().flatten() {
                record.push(at, buffer.stats((self.origin + at).assume_clock()));
            }
        }
    }

    /// Returns the result of a link that is replaced by a playout buffer, with the buffer's samples; `None` for any
    /// other link.
    pub(super) fn result(&mut self, number: usize, name: &str, lasted: Span) -> Option<LinkResult> {
        let (buffer, record) = self.buffers.get_mut(number)?.take()?;
        let stats = buffer.stats((self.origin + lasted).assume_clock());
        Some(LinkResult { samples: record.finish(), ..LinkResult::new(name, &stats) })
    }
}
