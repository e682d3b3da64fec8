use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use nix::sys::eventfd::{EfdFlags, EventFd};
use thiserror::Error;

use crate::NetError;

/// Payload on its way from the application to a sender's thread. It can be cloned; when the last clone is dropped, the
/// sender sends what waits and says goodbye.
#[derive(Debug)]
pub struct Mailbox {
    shared: Arc<Shared>,
}

/// The sender is gone: nobody takes payload any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the session is over; its sender takes no payload any more")]
pub struct Closed;

/// The thread's side.
#[derive(Debug)]
pub(crate) struct Inbox {
    shared: Arc<Shared>,
}

/// What an inbox has.
#[derive(Debug)]
pub(crate) enum Letter {
    Payload(Vec<u8>),
    None,
    Closed,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    /// Told when there is room again.
    room: Condvar,
    /// Rung when there is payload, or nobody left to give it.
    bell: EventFd,
}

#[derive(Debug, Default)]
struct State {
    letters: VecDeque<Vec<u8>>,
    bytes: usize,
    writers: usize,
    reader_gone: bool,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing that holds the lock can panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ring(&self) {
        // It fails only when its counter overflows, and then it is ringing anyway.
        let _ = self.bell.write(1);
    }
}

/// A mailbox and the inbox at its other end.
pub(crate) fn mailbox() -> Result<(Mailbox, Inbox), NetError> {
    let bell = EventFd::from_value_and_flags(0, EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC);
    let bell = bell.map_err(|errno| NetError::Wait { sockets: 1, source: errno.into() })?;
    let state = Mutex::new(State { writers: 1, ..State::default() });
    let shared = Arc::new(Shared { state, room: Condvar::new(), bell });
    Ok((Mailbox { shared: shared.clone() }, Inbox { shared }))
}

impl Mailbox {
    /// Bytes that may wait. Ours: as many as wait in the sender itself.
    pub const MOST: usize = 256 << 10;

    /// Gives payload to the sender, and waits while there is no room: the next bytes of a stream, of any length, or one RTP
    /// packet.
    ///
    /// # Errors
    /// [`Closed`] where the session is over.
    pub fn push(&self, payload: &[u8]) -> Result<(), Closed> {
        for part in payload.chunks(Self::MOST / 4) {
            let mut state = self.shared.state();
            while state.bytes + part.len() > Self::MOST && !state.reader_gone {
                state = self.shared.room.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            self.put(state, part)?;
        }
        Ok(())
    }

    /// Gives payload to the sender where there is room for all of it; false where there is not, and nothing is taken.
    ///
    /// # Errors
    /// [`Closed`] where the session is over.
    pub fn try_push(&self, payload: &[u8]) -> Result<bool, Closed> {
        let state = self.shared.state();
        if state.bytes + payload.len() > Self::MOST {
            return if state.reader_gone { Err(Closed) } else { Ok(false) };
        }
        self.put(state, payload).map(|()| true)
    }

    fn put(&self, mut state: MutexGuard<'_, State>, payload: &[u8]) -> Result<(), Closed> {
        if state.reader_gone {
            return Err(Closed);
        }
        if !payload.is_empty() {
            state.bytes += payload.len();
            state.letters.push_back(payload.to_vec());
            drop(state);
            self.shared.ring();
        }
        Ok(())
    }
}

impl Clone for Mailbox {
    fn clone(&self) -> Self {
        self.shared.state().writers += 1;
        Self { shared: self.shared.clone() }
    }
}

impl Drop for Mailbox {
    fn drop(&mut self) {
        self.shared.state().writers -= 1;
        self.shared.ring();
    }
}

impl Inbox {
    /// The next payload.
    pub(crate) fn take(&mut self) -> Letter {
        let mut state = self.shared.state();
        if state.letters.len() <= 1 {
            // The bell rings on while letters are left.
            let _ = self.shared.bell.read();
        }
        match state.letters.pop_front() {
            Some(payload) => {
                state.bytes -= payload.len();
                drop(state);
                self.shared.room.notify_one();
                Letter::Payload(payload)
            }
            None if state.writers == 0 => Letter::Closed,
            None => Letter::None,
        }
    }

    /// Whether nothing is left, and nobody can give more.
    pub(crate) fn is_closed(&self) -> bool {
        let state = self.shared.state();
        state.writers == 0 && state.letters.is_empty()
    }

    /// Readable when there is payload.
    pub(crate) fn bell(&self) -> BorrowedFd<'_> {
        self.shared.bell.as_fd()
    }
}

impl Drop for Inbox {
    fn drop(&mut self) {
        self.shared.state().reader_gone = true;
        self.shared.room.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    fn taken(inbox: &mut Inbox) -> Option<Vec<u8>> {
        if let Letter::Payload(payload) = inbox.take() { Some(payload) } else { None }
    }

    #[test]
    fn payload_comes_in_order_and_the_end_is_told() {
        let (mailbox, mut inbox) = mailbox().expect("an event descriptor");
        let second = mailbox.clone();
        mailbox.push(b"one").expect("open");
        second.push(b"two").expect("open");
        drop((mailbox, second));
        assert!(!inbox.is_closed(), "two letters are left");
        assert_eq!((taken(&mut inbox), taken(&mut inbox)), (Some(b"one".to_vec()), Some(b"two".to_vec())));
        assert!(inbox.is_closed() && matches!(inbox.take(), Letter::Closed));
    }

    #[test]
    fn a_writer_waits_for_room_and_hears_of_the_end() {
        let (mailbox, mut inbox) = mailbox().expect("an event descriptor");
        assert_eq!(mailbox.try_push(&vec![0; Mailbox::MOST]), Ok(true));
        assert_eq!(mailbox.try_push(b"more"), Ok(false));
        let writer = thread::spawn(move || (mailbox.push(b"more"), mailbox.push(&vec![0; Mailbox::MOST])));
        while taken(&mut inbox).is_none_or(|payload| payload != b"more") {
            thread::yield_now();
        }
        drop(inbox);
        let (first, second) = writer.join().expect("no panic");
        assert_eq!(first, Ok(()));
        // The reader went in the middle of it, or just behind it.
        assert!(second == Err(Closed) || second == Ok(()));
    }
}
