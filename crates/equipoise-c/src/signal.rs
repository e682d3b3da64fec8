//! Descriptors that an event loop can poll, and functions that wait until such a descriptor is readable.

use std::os::fd::{AsFd as _, AsRawFd as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::eventfd::{EfdFlags, EventFd};

use crate::error::{Fault, eq_error};

/// Locks a mutex, even if a thread panicked while it held the lock. The data is still consistent, because every change
/// under a lock is a single step.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A descriptor that `raise` makes readable, until `lower` is called.
#[derive(Debug)]
pub(crate) struct Signal(EventFd);

impl Signal {
    pub(crate) fn new() -> Result<Arc<Self>, Fault> {
        let event = EventFd::from_flags(EfdFlags::EFD_NONBLOCK | EfdFlags::EFD_CLOEXEC);
        let refused = |errno| Fault::new(eq_error::EQ_E_SYSTEM, format!("the system gives no descriptor: {errno}"));
        event.map(|event| Arc::new(Self(event))).map_err(refused)
    }

    pub(crate) fn raise(&self) {
        // The write fails only if the event counter would overflow. In that case the descriptor is readable already.
        let _ = self.0.write(1);
    }

    pub(crate) fn lower(&self) {
        // The read fails if the descriptor was not raised. In that case there is nothing to do.
        let _ = self.0.read();
    }

    /// Returns the descriptor's number, so that the C program can poll it.
    pub(crate) fn number(&self) -> i32 {
        self.0.as_fd().as_raw_fd()
    }

    /// Waits until the descriptor is readable. Returns false if `deadline` passes first.
    fn wait(&self, deadline: Deadline) -> Result<bool, Fault> {
        loop {
            let mut polled = [PollFd::new(self.0.as_fd(), PollFlags::POLLIN)];
            match poll(&mut polled, deadline.left()) {
                Ok(0) if deadline.is_over() => return Ok(false),
                Ok(0) | Err(Errno::EINTR) => {}
                Ok(_) => return Ok(true),
                Err(errno) => {
                    return Err(Fault::new(eq_error::EQ_E_SYSTEM, format!("the system does not poll: {errno}")));
                }
            }
        }
    }
}

impl Wake for Signal {
    fn wake(self: Arc<Self>) {
        self.raise();
    }
}

/// The time at which a wait ends without success; `None` for a wait without limit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline(Option<Instant>);

impl Deadline {
    /// The deadline after a timeout in milliseconds. A negative timeout means no deadline.
    pub(crate) fn after_ms(timeout_ms: i32) -> Self {
        let wait = u64::try_from(timeout_ms).ok().map(Duration::from_millis);
        Self(wait.and_then(|wait| Instant::now().checked_add(wait)))
    }

    /// Returns the deadline as a time, for a timer of the Tokio runtime.
    pub(crate) const fn at(self) -> Option<Instant> {
        self.0
    }

    fn is_over(self) -> bool {
        self.0.is_some_and(|at| at <= Instant::now())
    }

    fn left(self) -> PollTimeout {
        let Some(at) = self.0 else { return PollTimeout::NONE };
        let left = at.saturating_duration_since(Instant::now());
        // The remaining time is rounded up to whole milliseconds. Rounded down, it would be 0 during the last
        // millisecond, and the caller would poll in a busy loop.
        let millis = left.as_millis() + u128::from(left.subsec_nanos() % 1_000_000 > 0);
        PollTimeout::try_from(millis.min(60_000)).unwrap_or(PollTimeout::ZERO)
    }
}

/// A source of items, such as sessions or payloads.
pub(crate) trait Source {
    /// The type of the source's items.
    type Item;
    /// Returns the next item, or `None` after the last item. If no item is available yet, the source wakes the
    /// context's waker when an item is available.
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Self::Item>>;
}

/// A source with a descriptor. The descriptor is readable while there is an item to take, after the source has ended,
/// and after the inbox was stopped. Several threads may use one inbox.
pub(crate) struct Inbox<S: Source> {
    signal: Arc<Signal>,
    waker: Waker,
    stopped: AtomicBool,
    inner: Mutex<Inner<S>>,
}

struct Inner<S: Source> {
    source: S,
    next: Next<S::Item>,
}

enum Next<T> {
    Unknown,
    There(T),
    Over,
}

impl<S: Source> Inbox<S> {
    pub(crate) fn new(source: S) -> Result<Self, Fault> {
        let signal = Signal::new()?;
        let (waker, inner) = (Waker::from(signal.clone()), Mutex::new(Inner { source, next: Next::Unknown }));
        let inbox = Self { signal, waker, stopped: AtomicBool::new(false), inner };
        inbox.look(&mut locked(&inbox.inner));
        Ok(inbox)
    }

    /// Returns the descriptor's number, so that the C program can poll it.
    pub(crate) fn descriptor(&self) -> i32 {
        self.signal.number()
    }

    /// Wakes every call that waits for an item. Later calls return immediately with an error.
    pub(crate) fn stop(&self) {
        self.stopped.store(true, Ordering::SeqCst);
        self.signal.raise();
    }

    /// Calls `look` with the source, and returns the result of `look`.
    pub(crate) fn source<T>(&self, look: impl FnOnce(&mut S) -> T) -> T {
        look(&mut locked(&self.inner).source)
    }

    /// Returns the source, so that the caller can close it.
    pub(crate) fn into_source(self) -> S {
        self.inner.into_inner().unwrap_or_else(PoisonError::into_inner).source
    }

    /// Polls the source for the next item. Makes the descriptor readable if there is an item, if the source has ended,
    /// or if the inbox was stopped.
    fn look(&self, inner: &mut Inner<S>) {
        if matches!(inner.next, Next::Unknown) {
            self.signal.lower();
            inner.next = match inner.source.poll(&mut Context::from_waker(&self.waker)) {
                Poll::Ready(Some(item)) => Next::There(item),
                Poll::Ready(None) => Next::Over,
                Poll::Pending => Next::Unknown,
            };
        }
        if !matches!(inner.next, Next::Unknown) || self.stopped.load(Ordering::SeqCst) {
            self.signal.raise();
        }
    }

    /// Waits for the next item until `deadline`, and returns it if `fits` accepts it. Otherwise the item stays in the
    /// inbox.
    pub(crate) fn take(
        &self,
        deadline: Deadline,
        fits: impl Fn(&S::Item) -> Result<(), Fault>,
    ) -> Result<S::Item, Fault> {
        loop {
            if self.stopped.load(Ordering::SeqCst) {
                return Err(Fault::new(eq_error::EQ_END, "it was stopped from this end"));
            }
            let mut inner = locked(&self.inner);
            self.look(&mut inner);
            match std::mem::replace(&mut inner.next, Next::Unknown) {
                Next::There(item) => {
                    if let Err(fault) = fits(&item) {
                        inner.next = Next::There(item);
                        return Err(fault);
                    }
                    self.look(&mut inner);
                    return Ok(item);
                }
                Next::Over => {
                    inner.next = Next::Over;
                    return Err(Fault::new(eq_error::EQ_END, "it is over, and all that came was taken"));
                }
                Next::Unknown => drop(inner),
            }
            if !self.signal.wait(deadline)? {
                return Err(Fault::new(eq_error::EQ_AGAIN, "nothing came within the time that was given"));
            }
        }
    }
}
