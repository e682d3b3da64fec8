use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::runtime::Handle;
use tokio::sync::{Notify, watch};

/// Publishes the latest value of a variable from a thread that must not wait.
///
/// While a task borrows the value of a [`watch::Receiver`], the [`watch::Sender`] has to wait, possibly for a long
/// time. Therefore the thread only stores the value, and a task forwards the value to the watch channel.
#[derive(Debug)]
pub(super) struct Publisher<T> {
    shared: Arc<Shared<T>>,
}

#[derive(Debug)]
struct Shared<T> {
    state: Mutex<State<T>>,
    news: Notify,
}

#[derive(Debug)]
struct State<T> {
    /// The latest value; `None` if it was already forwarded.
    latest: Option<T>,
    over: bool,
}

/// Creates a publisher and the receiver of its values. Until a value is published, the receiver has the value `first`.
/// When the publisher is dropped, the receiver is closed.
pub(super) fn publisher<T>(runtime: &Handle, first: T) -> (Publisher<T>, watch::Receiver<T>)
where
    T: Copy + PartialEq + Send + Sync + 'static,
{
    let state = Mutex::new(State { latest: None, over: false });
    let shared = Arc::new(Shared { state, news: Notify::new() });
    let (teller, watched) = watch::channel(first);
    runtime.spawn(forward(shared.clone(), teller));
    (Publisher { shared }, watched)
}

impl<T> Publisher<T> {
    /// Publishes `value`. It replaces an earlier value that was not forwarded yet.
    pub(super) fn tell(&self, value: T) {
        self.shared.state().latest = Some(value);
        self.shared.news.notify_one();
    }
}

impl<T> Drop for Publisher<T> {
    fn drop(&mut self) {
        self.shared.state().over = true;
        self.shared.news.notify_one();
    }
}

impl<T> Shared<T> {
    /// Locks the state. The lock is never kept for longer than it takes to copy a value.
    fn state(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn forward<T: Copy + PartialEq>(shared: Arc<Shared<T>>, teller: watch::Sender<T>) {
    loop {
        shared.news.notified().await;
        let (latest, over) = {
            let mut state = shared.state();
            (state.latest.take(), state.over)
        };
        if let Some(latest) = latest {
            teller.send_if_modified(|known| std::mem::replace(known, latest) != latest);
        }
        if over {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::thread;
    use std::time::Duration;

    use super::*;

    fn runtime() -> tokio::runtime::Runtime {
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().expect("a runtime")
    }

    /// If this test fails, an application that borrows the rate for a long time delays packets.
    #[test]
    fn who_tells_never_waits_for_who_looks() {
        let runtime = runtime();
        let (publisher, watched) = publisher(runtime.handle(), 0);
        let look = watched.borrow();
        let (done, is_done) = mpsc::channel();
        let teller = thread::spawn(move || {
            for value in 1..=100 {
                publisher.tell(value);
                thread::sleep(Duration::from_millis(1));
            }
            done.send(()).expect("somebody waits");
        });
        let told = is_done.recv_timeout(Duration::from_secs(10));
        assert_eq!(*look, 0);
        drop(look);
        teller.join().expect("no panic");
        assert_eq!(told, Ok(()));
    }

    #[test]
    fn the_last_value_is_told_before_the_end_and_what_is_the_same_is_no_news() {
        let runtime = runtime();
        let (publisher, mut watched) = publisher(runtime.handle(), 1);
        publisher.tell(1);
        publisher.tell(2);
        let first = runtime.block_on(watched.changed());
        assert!(first.is_ok() && *watched.borrow_and_update() == 2);
        publisher.tell(2);
        drop(publisher);
        assert!(runtime.block_on(watched.changed()).is_err());
        assert_eq!(*watched.borrow(), 2);
    }
}
