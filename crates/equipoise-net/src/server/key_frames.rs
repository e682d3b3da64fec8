use std::collections::BTreeMap;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use equipoise_session::wire::key_frames::KeyFrameRequest;
use nix::sys::eventfd::{EfdFlags, EventFd};

use crate::NetError;

/// Asks the senders of a server's sessions for key frames, from any thread. It can be cloned, and does nothing when the server is gone.
#[derive(Clone, Debug)]
pub struct KeyFrames {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    /// What is wanted of each source.
    wanted: Mutex<BTreeMap<u32, KeyFrameRequest>>,
    /// Rung when something is.
    wakeup: EventFd,
}

/// Sources that may be asked at a time. Ours: more sessions than a server has by default.
const MOST: usize = 4096;

impl KeyFrames {
    pub(super) fn new() -> Result<Self, NetError> {
        let wakeup = EventFd::from_value_and_flags(0, EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC);
        let wakeup = wakeup.map_err(|errno| NetError::Wait { sockets: 1, source: errno.into() })?;
        Ok(Self { shared: Arc::new(Shared { wanted: Mutex::default(), wakeup }) })
    }

    /// Asks the sender of the session whose packets have the source `ssrc` ([`Session::ssrc`](crate::Session::ssrc)) for a key frame: at
    /// once, or 0.3 s after the request before. A source that no session has is passed over.
    pub fn request(&self, ssrc: u32, request: KeyFrameRequest) {
        let mut wanted = self.wanted();
        if wanted.len() < MOST || wanted.contains_key(&ssrc) {
            let most = wanted.entry(ssrc).or_insert(request);
            *most = request.max(*most);
        }
        drop(wanted);
        // It fails only when its counter overflows, and then it is ringing anyway.
        let _ = self.shared.wakeup.write(1);
    }

    /// What was wanted since this was asked last.
    pub(super) fn take(&self) -> BTreeMap<u32, KeyFrameRequest> {
        let _ = self.shared.wakeup.read();
        std::mem::take(&mut self.wanted())
    }

    /// Readable when something is wanted.
    pub(super) fn wakeup(&self) -> BorrowedFd<'_> {
        self.shared.wakeup.as_fd()
    }

    fn wanted(&self) -> MutexGuard<'_, BTreeMap<u32, KeyFrameRequest>> {
        // Nothing that holds the lock can panic.
        self.shared.wanted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// If it fails, a program on this host that asks without end takes all memory.
    #[test]
    fn what_is_wanted_is_bounded_and_of_one_source_one_thing() {
        let key_frames = KeyFrames::new().expect("an event descriptor");
        for ssrc in 0..2 * MOST as u32 {
            key_frames.request(ssrc, KeyFrameRequest::PictureLoss);
        }
        key_frames.request(7, KeyFrameRequest::FullIntra);
        key_frames.request(7, KeyFrameRequest::PictureLoss);
        let taken = key_frames.take();
        assert_eq!((taken.len(), taken.get(&7)), (MOST, Some(&KeyFrameRequest::FullIntra)));
        assert!(key_frames.take().is_empty());
    }
}
