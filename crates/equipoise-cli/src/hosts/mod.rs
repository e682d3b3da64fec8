//! Sessions between hosts: `equipoise send` and `equipoise receive`.

pub(crate) mod args;
mod input;
mod rate_socket;
pub(crate) mod receive;
mod results;
pub(crate) mod send;
mod writer;

use std::env;
use std::fs;

use equipoise_net::Key;

use self::args::Ends;
use crate::error::RealError;

/// Where the key is looked for when no file is named.
const KEY_VARIABLE: &str = "EQUIPOISE_KEY";

/// The key that was asked for; `None` for a session without security.
fn key(ends: &Ends) -> Result<Option<Key>, RealError> {
    if ends.insecure {
        return Ok(None);
    }
    let (from, secret) = if let Some(path) = &ends.key {
        let secret = fs::read(path).map_err(|source| RealError::KeyFile { path: path.clone(), source })?;
        (path.display().to_string(), secret)
    } else {
        let secret = env::var(KEY_VARIABLE).map_err(|_| RealError::NoKey)?;
        (format!("the environment variable {KEY_VARIABLE}"), secret.into_bytes())
    };
    Key::new(&secret).map(Some).map_err(|source| RealError::Key { from, source })
}
