use std::io::Write as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use crate::error::CliError;

/// Pause after a failed `accept`, before the next attempt.
const PAUSE: Duration = Duration::from_millis(100);

/// Controls encoders through a Unix socket: sends them a line `rate BITS_PER_SECOND` for each new payload rate, and a
/// line `keyframe` for each requested key frame.
pub(super) struct RateSocket {
    path: PathBuf,
    state: Arc<Mutex<Listeners>>,
}

#[derive(Default)]
struct Listeners {
    last: Option<u64>,
    streams: Vec<UnixStream>,
}

impl Listeners {
    fn tell(&mut self, line: &str) {
        self.streams.retain_mut(|stream| writeln!(stream, "{line}").is_ok());
    }
}

impl RateSocket {
    pub(super) fn open(path: &Path) -> Result<Self, CliError> {
        let failed = |source| CliError::Output { path: path.to_path_buf(), source };
        let listener = UnixListener::bind(path).map_err(failed)?;
        let state = Arc::new(Mutex::new(Listeners::default()));
        let shared = state.clone();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(mut stream) = stream else {
                    // `accept` can fail immediately and repeatedly, for example if the process has no file descriptors
                    // left. The pause keeps this loop from using a whole processor.
                    thread::sleep(PAUSE);
                    continue;
                };
                let mut listeners = shared.lock().unwrap_or_else(PoisonError::into_inner);
                // Writing to the stream never blocks. A client that does not read is disconnected.
                let ready = stream.set_nonblocking(true).is_ok();
                let told = listeners.last.is_none_or(|rate| writeln!(stream, "rate {rate}").is_ok());
                if ready && told {
                    listeners.streams.push(stream);
                }
            }
        });
        Ok(Self { path: path.to_path_buf(), state })
    }

    pub(super) fn tell_rate(&self, rate: u64) {
        let mut listeners = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if listeners.last.replace(rate) != Some(rate) {
            listeners.tell(&format!("rate {rate}"));
        }
    }

    pub(super) fn ask_for_key_frame(&self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).tell("keyframe");
    }
}

impl Drop for RateSocket {
    fn drop(&mut self) {
        // This process created the socket file. An error is ignored, because the file may already have been removed.
        let _ = std::fs::remove_file(&self.path);
    }
}
