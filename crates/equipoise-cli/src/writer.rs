use std::cell::RefCell;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, RecvError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use serde::Serialize;

use crate::error::CliError;
use crate::output::{Output, say};
use crate::views::Views;

/// Writes to an output on a separate thread, so a stalled disk or reader does not block other threads. Data that does
/// not fit into the queue is dropped and counted.
#[derive(Debug)]
pub(crate) struct Writer {
    inlet: Inlet,
    /// The writing thread; `None` after it was joined.
    thread: Option<JoinHandle<Result<Output, CliError>>>,
}

/// The sending side of a [`Writer`].
#[derive(Clone, Debug)]
pub(crate) struct Inlet {
    /// The queue of data to write. `None` tells the thread to end.
    post: Sender<Option<Vec<u8>>>,
    /// Number of bytes that are queued or being written, plus [`PIECE`] bytes for each item.
    waiting: Arc<AtomicUsize>,
    most: usize,
    dropped: Arc<AtomicU64>,
}

/// Maximum number of queued bytes of payload. Our choice: if 200 Mbit/s of payload arrive, the disk may stall for one
/// second before payload is dropped.
pub(crate) const MOST_PAYLOAD: usize = 32 << 20;
/// Maximum number of queued bytes of text lines. Our choice: the lines of a thousand sessions in ten seconds, if each
/// session has one line of 350 bytes per second.
pub(crate) const MOST_LINES: usize = 4 << 20;
/// Memory, in bytes, that a queued item needs in addition to its data, for the queue and for the allocator.
const PIECE: usize = 64;
/// Pause of the writing thread when its queue is empty. Without the pause, the thread would wake up for every packet,
/// which costs as much as receiving the packet.
const NAP: Duration = Duration::from_millis(20);

impl Writer {
    /// Starts a thread that writes to `output`. At most `most` bytes are queued.
    pub(crate) fn start(output: Output, most: usize) -> Self {
        let (post, queue) = mpsc::channel();
        let waiting = Arc::new(AtomicUsize::new(0));
        let shared = waiting.clone();
        let thread = thread::spawn(move || write(output, &queue, &shared));
        Self { inlet: Inlet { post, waiting, most, dropped: Arc::default() }, thread: Some(thread) }
    }

    pub(crate) const fn inlet(&self) -> &Inlet {
        &self.inlet
    }

    /// Queues `value` as one line of JSON.
    pub(crate) fn line(&self, value: &impl Serialize) {
        // The conversion never fails, because the values contain only numbers and texts.
        let mut line = serde_json::to_vec(value).unwrap_or_default();
        line.push(b'\n');
        self.inlet.offer(line);
    }

    /// Whether writing has failed. [`finish`](Self::finish) returns the error.
    pub(crate) fn has_failed(&self) -> bool {
        self.thread.as_ref().is_some_and(JoinHandle::is_finished)
    }

    /// Waits until all queued data is written, and returns the output.
    pub(crate) fn finish(mut self) -> Result<Output, CliError> {
        match self.wait() {
            Some(written) => written,
            None => Err(CliError::Lost { path: Path::new("-").into(), source: std::io::ErrorKind::Other.into() }),
        }
    }

    /// Waits until all queued data is written, writes `last` as the last line of JSON, and renames the file to its
    /// final path.
    pub(crate) fn fulfil(self, last: &impl Serialize) -> Result<(), CliError> {
        self.finish()?.fulfil(&format!("{}\n", serde_json::to_string(last).unwrap_or_default()))
    }

    fn wait(&mut self) -> Option<Result<Output, CliError>> {
        let _ = self.inlet.post.send(None);
        self.thread.take()?.join().ok()
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        // `drop` cannot return the error of writing. Dropping the output deletes its temporary file.
        let _ = self.wait();
    }
}

impl Inlet {
    /// Queues `bytes`; if they do not fit into the queue, they are dropped and counted. Returns whether they were
    /// queued.
    pub(crate) fn offer(&self, bytes: Vec<u8>) -> bool {
        let size = bytes.len() + PIECE;
        let has_room = self.waiting.load(Ordering::Relaxed).saturating_add(size) <= self.most;
        if has_room {
            // `waiting` is raised before the bytes are queued. Otherwise the writer's thread could write the bytes and
            // lower `waiting` before `waiting` is raised.
            self.waiting.fetch_add(size, Ordering::Relaxed);
        }
        let taken = has_room && self.post.send(Some(bytes)).is_ok();
        self.dropped.fetch_add(u64::from(!taken), Ordering::Relaxed);
        taken
    }

    /// Returns the number of items that were dropped, because the queue was full or writing had failed.
    pub(crate) fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }
}

fn write(mut output: Output, queue: &Receiver<Option<Vec<u8>>>, waiting: &AtomicUsize) -> Result<Output, CliError> {
    let mut next = queue.recv();
    while let Ok(Some(bytes)) = next {
        output.append(&bytes)?;
        waiting.fetch_sub(bytes.len() + PIECE, Ordering::Relaxed);
        next = queue.try_recv().map_err(|_| RecvError);
        if next.is_err() {
            // The queue is empty, so the output is flushed. A reader of the output then sees everything that was
            // written.
            output.flush()?;
            thread::sleep(NAP);
            next = queue.recv();
        }
    }
    Ok(output)
}

/// Text for the user on standard output.
#[derive(Debug)]
pub(crate) enum Screen {
    /// No lines are printed.
    None,
    Lines(Writer),
    /// The terminal view is active. Texts about the whole run are kept and printed after the run; lines about events
    /// are not printed.
    Afterwards(RefCell<String>),
}

impl Screen {
    /// Creates the output for the user's text. The output prints nothing if `quiet` is set, or if a view uses standard
    /// output.
    pub(crate) fn new(quiet: bool, views: &Views) -> Self {
        if quiet || views.takes_stdout() {
            Self::None
        } else if views.has_ui() {
            Self::Afterwards(RefCell::default())
        } else {
            Self::Lines(Writer::start(Output::Stdout, MOST_LINES))
        }
    }

    /// Prints text about the whole run. If the terminal view is active, the text is printed after the run.
    pub(crate) fn say(&self, text: &str) {
        match self {
            Self::Afterwards(all) => all.borrow_mut().push_str(text),
            other => other.line(text),
        }
    }

    /// Prints text about an event. If the terminal view is active, the text is not printed.
    pub(crate) fn line(&self, text: &str) {
        if let Self::Lines(writer) = self {
            writer.inlet.offer(text.into());
        }
    }

    /// Waits until all text is printed. A closed pipe is not an error.
    pub(crate) fn finish(self) {
        let writer = match self {
            Self::None => return,
            Self::Afterwards(text) => return say(false, &text.into_inner()),
            Self::Lines(writer) => writer,
        };
        let dropped = writer.inlet.dropped();
        if let Ok(mut output) = writer.finish()
            && dropped > 0
        {
            let _ = output.append(format!("{dropped} lines were dropped because their reader stalled\n"));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::{Read as _, pipe};
    use std::os::fd::{AsRawFd as _, OwnedFd};
    use std::time::Instant;

    use super::*;

    /// If this test fails, output to a pager that does not read uses memory without limit.
    #[test]
    fn a_reader_that_stands_still_holds_nobody_up_and_costs_a_bounded_memory() {
        const MOST: usize = 1 << 20;
        let (mut reader, end) = pipe().expect("a pipe");
        let end = OwnedFd::from(end);
        let place = format!("/proc/self/fd/{}", end.as_raw_fd());
        let output = Output::promise(Path::new(&place)).expect("a pipe can be written to");
        drop(end);
        let writer = Writer::start(output, MOST);
        let taken = (0..10_000u64).filter(|_| writer.inlet().offer(vec![7; 1000])).count();
        let (dropped, has_failed) = (writer.inlet().dropped(), writer.has_failed());
        // `finish` waits until all data is written to the pipe. Without this reader, the wait would not end.
        let read = thread::spawn(move || {
            let mut all = Vec::new();
            reader.read_to_end(&mut all).map(|_| all.len())
        });
        drop(writer.finish().expect("what was taken is written"));
        assert!(taken < 2 * MOST / 1000, "{taken} pieces of 1000 bytes were kept");
        assert_eq!((dropped, has_failed), (10_000 - taken as u64, false));
        assert_eq!(read.join().expect("no panic").expect("readable"), taken * 1000);
    }

    #[test]
    fn an_output_that_cannot_be_written_is_told_and_nothing_more_is_taken() {
        let output = Output::promise(Path::new("/dev/full")).expect("it can be opened");
        let writer = Writer::start(output, MOST_PAYLOAD);
        // The output has a buffer. An error occurs only when the buffer is written to `/dev/full`, so the test offers
        // more data than the buffer can contain.
        let deadline = Instant::now() + Duration::from_secs(10);
        while !writer.has_failed() && Instant::now() < deadline {
            writer.inlet().offer(vec![0; 10_000]);
        }
        assert!(writer.has_failed());
        assert!(writer.finish().is_err());
        assert!(File::open("/dev/full").is_ok());
    }
}
