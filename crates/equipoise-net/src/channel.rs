use std::collections::{BTreeMap, VecDeque};
use std::future::poll_fn;
use std::os::fd::{AsFd, BorrowedFd};
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

use nix::sys::eventfd::{EfdFlags, EventFd};
use thiserror::Error;

use crate::NetError;

/// The application's endpoint of a bounded channel, which passes payload to a sender's thread. It can be cloned. When
/// the last clone is dropped, the sender sends the waiting payload and then ends the session.
#[derive(Debug)]
pub struct PayloadSender {
    shared: Arc<Shared>,
}

/// The error of passing payload to the sender of a session that is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the session is over; its sender takes no more payload")]
pub struct Closed;

/// The endpoint of the channel on the sender's thread.
#[derive(Debug)]
pub(crate) struct PayloadReceiver {
    shared: Arc<Shared>,
}

/// The next message in the channel, for the sender's thread.
#[derive(Debug)]
pub(crate) enum Message {
    /// Payload bytes, and whether an application data unit ends after them.
    Payload(Vec<u8>, bool),
    None,
    Closed,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    /// Number of bytes that the sender has taken from the channel, but not sent.
    unsent: AtomicUsize,
    /// Becomes readable when there is payload, or when a [`PayloadSender`] is dropped.
    wakeup: EventFd,
}

#[derive(Debug, Default)]
struct State {
    messages: VecDeque<(Vec<u8>, bool)>,
    bytes: usize,
    /// The threads and tasks that wait for free space in the channel, in order of arrival.
    waiting: BTreeMap<u64, Waker>,
    next_ticket: u64,
    writers: usize,
    reader_gone: bool,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        // No code panics while it has the lock, so a poisoned lock is harmless.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ring(&self) {
        // The write fails only if the event counter would overflow. Then the descriptor is already readable.
        let _ = self.wakeup.write(1);
    }

    fn put(&self, mut state: MutexGuard<'_, State>, payload: &[u8], end: bool) -> Result<(), Closed> {
        if state.reader_gone {
            return Err(Closed);
        }
        if end || !payload.is_empty() {
            state.bytes += weight(payload.len(), end);
            state.messages.push_back((payload.to_vec(), end));
            drop(state);
            self.ring();
        }
        Ok(())
    }
}

/// Number of bytes by which a message fills the channel. The end of an application data unit counts as 64 bytes, so
/// that the number of empty units in the channel is limited.
const fn weight(length: usize, end: bool) -> usize {
    if end { length + 64 } else { length }
}

/// Wakes all threads and tasks that wait for free space in the channel.
fn wake(mut state: MutexGuard<'_, State>) {
    let waiting = std::mem::take(&mut state.waiting);
    drop(state);
    waiting.into_values().for_each(Waker::wake);
}

/// Creates both endpoints of a bounded channel of bytes.
pub(crate) fn channel() -> Result<(PayloadSender, PayloadReceiver), NetError> {
    let wakeup = EventFd::from_value_and_flags(0, EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC);
    let wakeup = wakeup.map_err(|errno| NetError::Wait { sockets: 1, source: errno.into() })?;
    let state = Mutex::new(State { writers: 1, ..State::default() });
    let shared = Arc::new(Shared { state, unsent: AtomicUsize::new(0), wakeup });
    Ok((PayloadSender { shared: shared.clone() }, PayloadReceiver { shared }))
}

impl PayloadSender {
    /// Maximum number of bytes in the channel. Our choice: the maximum size of the session's own payload queue.
    pub const MOST: usize = 256 << 10;

    /// Maximum length of a part in bytes. Longer payload is divided into parts, and each part is passed as soon as the
    /// channel has space for it.
    pub(crate) const PART: usize = Self::MOST / 4;
    /// Threads and tasks that wait for space are woken when the channel contains at most this many bytes. Our choice:
    /// then there is space for two parts of [`PART`](Self::PART) bytes, and the sender's thread need not wake a waiting
    /// thread for every packet.
    const LOW: usize = Self::MOST / 2;

    /// Passes payload to the sender, and blocks while the channel is full. The payload is either the next bytes of a
    /// stream, of any length, or one RTP packet.
    ///
    /// # Errors
    /// [`Closed`] if the session is over.
    pub fn push(&self, payload: &[u8]) -> Result<(), Closed> {
        for part in payload.chunks(Self::PART) {
            self.push_part(part, false)?;
        }
        Ok(())
    }

    /// Passes one part of at most [`PART`](Self::PART) bytes, and blocks while the channel is full. If `end` is true,
    /// the application data unit ends with this part.
    pub(crate) fn push_part(&self, part: &[u8], end: bool) -> Result<(), Closed> {
        if self.try_put(part, end)? { Ok(()) } else { block_on(self.pushing(part, end)) }
    }

    /// The asynchronous variant of [`push_part`](Self::push_part).
    pub(crate) async fn push_part_async(&self, part: &[u8], end: bool) -> Result<(), Closed> {
        self.pushing(part, end).await
    }

    /// The asynchronous variant of [`push`](Self::push): waits for free space without blocking the thread.
    ///
    /// If the future is dropped before it completes, no payload has been passed. Exception: if the payload is longer
    /// than 64 kB, its first bytes may have been passed.
    ///
    /// # Errors
    /// [`Closed`] if the session is over.
    pub async fn push_async(&self, payload: &[u8]) -> Result<(), Closed> {
        for part in payload.chunks(Self::PART) {
            self.push_part_async(part, false).await?;
        }
        Ok(())
    }

    /// Passes payload to the sender if the channel has space for all of it. Otherwise returns false and passes nothing.
    ///
    /// # Errors
    /// [`Closed`] if the session is over.
    pub fn try_push(&self, payload: &[u8]) -> Result<bool, Closed> {
        self.try_put(payload, false)
    }

    fn try_put(&self, payload: &[u8], end: bool) -> Result<bool, Closed> {
        let state = self.shared.state();
        if state.bytes + weight(payload.len(), end) > Self::MOST {
            return if state.reader_gone { Err(Closed) } else { Ok(false) };
        }
        self.shared.put(state, payload, end).map(|()| true)
    }

    /// Waits until [`try_push`](Self::try_push) would accept `length` bytes (at most [`MOST`](Self::MOST)), or until
    /// the session is over. Another task may use the space first.
    pub async fn room(&self, length: usize) {
        let mut room = Room { shared: &self.shared, weight: length.min(Self::MOST), ticket: None };
        poll_fn(|context| room.poll(context).map(drop)).await;
    }

    /// Number of bytes that are not sent yet: the bytes in the channel, and the bytes that the sender has taken from
    /// it. This number divided by the rate is the time that the next bytes have to wait. The number is approximate
    /// while the sender takes bytes from the channel.
    pub fn waiting(&self) -> usize {
        self.shared.state().bytes + self.shared.unsent.load(Ordering::Relaxed)
    }

    fn pushing<'a>(&'a self, part: &'a [u8], end: bool) -> Pushing<'a> {
        let room = Room { shared: &self.shared, weight: weight(part.len(), end), ticket: None };
        Pushing { room, part, end }
    }
}

/// A future that passes one part of payload, at once or as soon as the channel has space.
struct Pushing<'a> {
    room: Room<'a>,
    part: &'a [u8],
    end: bool,
}

impl Future for Pushing<'_> {
    type Output = Result<(), Closed>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match self.room.poll(context) {
            Poll::Ready(state) => Poll::Ready(self.room.shared.put(state, self.part, self.end)),
            Poll::Pending => Poll::Pending,
        }
    }
}

/// A future that waits until the channel has a given amount of free space.
struct Room<'a> {
    shared: &'a Shared,
    weight: usize,
    ticket: Option<u64>,
}

impl<'a> Room<'a> {
    /// Returns the locked state when the channel has space, or when the session is over.
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<MutexGuard<'a, State>> {
        let mut state = self.shared.state();
        if state.bytes + self.weight <= PayloadSender::MOST || state.reader_gone {
            return Poll::Ready(state);
        }
        let ticket = self.ticket.unwrap_or(state.next_ticket);
        state.next_ticket = state.next_ticket.max(ticket + 1);
        state.waiting.insert(ticket, context.waker().clone());
        self.ticket = Some(ticket);
        Poll::Pending
    }
}

impl Drop for Room<'_> {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket {
            self.shared.state().waiting.remove(&ticket);
        }
    }
}

/// A waker that unparks a thread which waits for a future.
struct Parked(Thread);

impl Wake for Parked {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

fn block_on(pushing: Pushing<'_>) -> Result<(), Closed> {
    let (mut pushing, waker) = (pin!(pushing), Waker::from(Arc::new(Parked(thread::current()))));
    let mut context = Context::from_waker(&waker);
    loop {
        if let Poll::Ready(result) = pushing.as_mut().poll(&mut context) {
            return result;
        }
        thread::park();
    }
}

impl Clone for PayloadSender {
    fn clone(&self) -> Self {
        self.shared.state().writers += 1;
        Self { shared: self.shared.clone() }
    }
}

impl Drop for PayloadSender {
    fn drop(&mut self) {
        self.shared.state().writers -= 1;
        self.shared.ring();
    }
}

impl PayloadReceiver {
    /// Removes the next message from the channel and returns it.
    pub(crate) fn take(&mut self) -> Message {
        let mut state = self.shared.state();
        if state.messages.len() <= 1 {
            // The descriptor is reset only when the last message is taken, so it stays readable as long as the channel
            // has messages.
            let _ = self.shared.wakeup.read();
        }
        match state.messages.pop_front() {
            Some((payload, end)) => {
                state.bytes -= weight(payload.len(), end);
                if state.bytes <= PayloadSender::LOW && !state.waiting.is_empty() {
                    wake(state);
                }
                Message::Payload(payload, end)
            }
            None if state.writers == 0 => Message::Closed,
            None => Message::None,
        }
    }

    /// Whether the channel is empty and every [`PayloadSender`] is dropped.
    pub(crate) fn is_closed(&self) -> bool {
        let state = self.shared.state();
        state.writers == 0 && state.messages.is_empty()
    }

    /// Records how many bytes the sender has taken from the channel, but not sent.
    pub(crate) fn note_unsent(&self, bytes: usize) {
        self.shared.unsent.store(bytes, Ordering::Relaxed);
    }

    /// A descriptor that is readable while the channel has payload. It also becomes readable when a [`PayloadSender`]
    /// is dropped.
    pub(crate) fn wakeup(&self) -> BorrowedFd<'_> {
        self.shared.wakeup.as_fd()
    }
}

impl Drop for PayloadReceiver {
    fn drop(&mut self) {
        let mut state = self.shared.state();
        state.reader_gone = true;
        wake(state);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(queue: &mut PayloadReceiver) -> Option<Vec<u8>> {
        if let Message::Payload(payload, _) = queue.take() { Some(payload) } else { None }
    }

    #[test]
    fn payload_comes_in_order_and_the_end_is_told() {
        let (payloads, mut queue) = channel().expect("an event descriptor");
        let second = payloads.clone();
        payloads.push(b"one").expect("open");
        second.push(b"two").expect("open");
        drop((payloads, second));
        assert!(!queue.is_closed(), "two messages are left");
        assert_eq!((taken(&mut queue), taken(&mut queue)), (Some(b"one".to_vec()), Some(b"two".to_vec())));
        assert!(queue.is_closed() && matches!(queue.take(), Message::Closed));
    }

    #[test]
    fn a_writer_waits_for_room_and_hears_of_the_end() {
        let (payloads, mut queue) = channel().expect("an event descriptor");
        assert_eq!(payloads.try_push(&vec![0; PayloadSender::MOST]), Ok(true));
        assert_eq!(payloads.try_push(b"more"), Ok(false));
        let writer = thread::spawn(move || (payloads.push(b"more"), payloads.push(&vec![0; 2 * PayloadSender::MOST])));
        while taken(&mut queue).is_none_or(|payload| payload != b"more") {
            thread::yield_now();
        }
        drop(queue);
        let (first, second) = writer.join().expect("no panic");
        // The second payload does not fit into the channel, so it cannot be passed completely before the queue is
        // dropped.
        assert_eq!((first, second), (Ok(()), Err(Closed)));
    }

    /// Polls a future once, with a waker that does nothing.
    fn look<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
        future.poll(&mut Context::from_waker(Waker::noop()))
    }

    #[test]
    fn a_task_waits_for_room_and_hears_of_the_end() {
        let (payloads, mut queue) = channel().expect("an event descriptor");
        assert_eq!(payloads.try_push(&vec![0; PayloadSender::MOST]), Ok(true));
        let mut pushing = pin!(payloads.push_async(b"more"));
        assert_eq!(look(pushing.as_mut()), Poll::Pending);
        assert_eq!(look(pushing.as_mut()), Poll::Pending);
        assert_eq!(queue.shared.state().waiting.len(), 1, "it waits once, however often it is looked at");
        assert!(taken(&mut queue).is_some_and(|payload| payload.len() == PayloadSender::MOST));
        assert_eq!(look(pushing.as_mut()), Poll::Ready(Ok(())));
        assert_eq!(taken(&mut queue), Some(b"more".to_vec()));
        assert_eq!(payloads.try_push(&vec![0; PayloadSender::MOST]), Ok(true));
        let mut pushing = pin!(payloads.push_async(b"too late"));
        assert_eq!(look(pushing.as_mut()), Poll::Pending);
        drop(queue);
        assert_eq!(look(pushing.as_mut()), Poll::Ready(Err(Closed)));
    }

    #[test]
    fn who_waits_for_room_alone_is_woken_when_there_is_some_or_the_session_is_over() {
        let (payloads, mut queue) = channel().expect("an event descriptor");
        let half = vec![0; PayloadSender::MOST / 2];
        assert_eq!((payloads.try_push(&half), payloads.try_push(&half)), (Ok(true), Ok(true)));
        assert_eq!(look(pin!(payloads.room(0))), Poll::Ready(()));
        let mut room = pin!(payloads.room(1));
        assert_eq!(look(room.as_mut()), Poll::Pending);
        assert!(taken(&mut queue).is_some());
        assert_eq!(look(room.as_mut()), Poll::Ready(()));
        assert_eq!(payloads.try_push(&half), Ok(true));
        let mut room = pin!(payloads.room(usize::MAX));
        assert_eq!(look(room.as_mut()), Poll::Pending);
        drop(queue);
        assert_eq!((look(room.as_mut()), payloads.try_push(b"more")), (Poll::Ready(()), Err(Closed)));
    }

    /// If this test fails, an application that cancels sending after a timeout leaks memory while nothing can be sent.
    #[test]
    fn who_gives_up_waiting_leaves_nothing_behind() {
        let (payloads, mut queue) = channel().expect("an event descriptor");
        assert_eq!(payloads.try_push(&vec![0; PayloadSender::MOST]), Ok(true));
        for _ in 0..3 {
            assert_eq!(look(pin!(payloads.push_async(b"given up"))), Poll::Pending);
        }
        assert!(queue.shared.state().waiting.is_empty());
        assert!(taken(&mut queue).is_some_and(|payload| payload.len() == PayloadSender::MOST));
        assert_eq!(taken(&mut queue), None);
    }

    /// If this test fails, a thread and a task that send at the same time can wait forever.
    #[test]
    fn threads_and_tasks_wait_in_the_same_line() {
        const EACH: usize = 4 * PayloadSender::MOST;
        let (payloads, mut queue) = channel().expect("an event descriptor");
        let (thread, task) = (payloads.clone(), payloads);
        let thread = thread::spawn(move || thread.push(&vec![1; EACH]));
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        let task = thread::spawn(move || runtime.block_on(task.push_async(&vec![2; EACH])));
        let mut counts = [0; 3];
        while !queue.is_closed() {
            taken(&mut queue).iter().flatten().for_each(|byte| counts[usize::from(*byte)] += 1);
        }
        assert_eq!(thread.join().expect("no panic"), Ok(()));
        assert_eq!(task.join().expect("no panic"), Ok(()));
        assert_eq!(counts, [0, EACH, EACH]);
    }
}
