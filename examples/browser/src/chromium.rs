//! A web page in Chromium, which this program controls by means of Node.js and puppeteer-core.

use std::error::Error;
use std::path::Path;
use std::process::Stdio;

use serde::Serialize;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

/// A running browser with one web page, which is a WebRTC peer.
pub(crate) struct Chromium {
    child: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
    pub(crate) version: String,
}

impl Chromium {
    /// Starts the browser `executable` with the additional command-line `flags`.
    pub(crate) async fn start(executable: &Path, flags: &[&str]) -> Result<Self, Box<dyn Error>> {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("js/chromium.js");
        let mut child = Command::new("node")
            .arg(script)
            .arg(executable)
            .args(flags)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let (input, output) = child.stdin.take().zip(child.stdout.take()).ok_or("node has no pipes")?;
        let mut lines = BufReader::new(output).lines();
        let first =
            lines.next_line().await?.ok_or("Chromium did not start: is `npm ci` done in examples/browser/js?")?;
        let version = serde_json::from_str::<Value>(&first)?["version"].as_str().unwrap_or_default().to_owned();
        Ok(Self { child, input, output: lines, version })
    }

    /// Calls the function `command` of the web page, and returns its result.
    pub(crate) async fn call(&mut self, command: &str, argument: impl Serialize) -> Result<Value, Box<dyn Error>> {
        let line = json!({ "command": command, "argument": argument }).to_string() + "\n";
        self.input.write_all(line.as_bytes()).await?;
        let answer = self.output.next_line().await?.ok_or("Chromium has ended")?;
        let mut answer: Value = serde_json::from_str(&answer)?;
        match answer["error"].as_str() {
            Some(error) => Err(format!("{command}: {error}").into()),
            None => Ok(answer["ok"].take()),
        }
    }

    /// Calls a function of the web page that returns a session description (SDP).
    pub(crate) async fn sdp(&mut self, command: &str, argument: impl Serialize) -> Result<String, Box<dyn Error>> {
        let description = self.call(command, argument).await?;
        Ok(description.as_str().ok_or_else(|| format!("{command}: no description"))?.to_owned())
    }

    /// Ends the browser.
    pub(crate) async fn close(mut self) -> Result<(), Box<dyn Error>> {
        drop(self.input);
        self.child.wait().await?;
        Ok(())
    }
}
