use std::collections::BTreeMap;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use equipoise_session::wire::key_frames::KeyFrameRequest;
use nix::sys::eventfd::{EfdFlags, EventFd};

use crate::NetError;

/// A handle that requests key frames from the senders of a server's sessions. It can be cloned, and used on any thread.
/// After the server has ended, the handle does nothing.
#[derive(Clone, Debug)]
pub struct KeyFrames {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    /// For each SSRC, the waiting request.
    wanted: Mutex<BTreeMap<u32, KeyFrameRequest>>,
    /// A descriptor that is readable if there is a request.
    wakeup: EventFd,
}

/// Maximum number of SSRCs with a waiting request. Our choice: more than the default maximum of sessions of a server.
const MOST: usize = 4096;

impl KeyFrames {
    pub(super) fn new() -> Result<Self, NetError> {
        let wakeup = EventFd::from_value_and_flags(0, EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC);
        let wakeup = wakeup.map_err(|errno| NetError::Wait { sockets: 1, source: errno.into() })?;
        Ok(Self { shared: Arc::new(Shared { wanted: Mutex::default(), wakeup }) })
    }

    /// Requests a key frame from the sender of the session with this SSRC ([`Session::ssrc`](crate::Session::ssrc)).
    /// If a request was sent to the same sender less than 0.3 s ago, the new request waits until 0.3 s have passed.
    /// Otherwise, it is sent at once. If no session has this SSRC, the request is ignored.
    pub fn request(&self, ssrc: u32, request: KeyFrameRequest) {
        let mut wanted = self.wanted();
        if wanted.len() < MOST || wanted.contains_key(&ssrc) {
            let most = wanted.entry(ssrc).or_insert(request);
            *most = request.max(*most);
        }
        drop(wanted);
        // The write fails only if the counter would overflow. In this case the descriptor is already readable.
        let _ = self.shared.wakeup.write(1);
    }

    /// Returns all waiting requests and removes them.
    pub(super) fn take(&self) -> BTreeMap<u32, KeyFrameRequest> {
        let _ = self.shared.wakeup.read();
        std::mem::take(&mut self.wanted())
    }

    /// A descriptor that is readable if there is a request.
    pub(super) fn wakeup(&self) -> BorrowedFd<'_> {
        self.shared.wakeup.as_fd()
    }

    fn wanted(&self) -> MutexGuard<'_, BTreeMap<u32, KeyFrameRequest>> {
        // No code panics while it has the lock, so a poisoned lock is harmless.
        self.shared.wanted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// If this test fails, a program on this host that sends many requests uses up all memory.
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
