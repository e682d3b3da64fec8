//! Writes the files of `--qlog`: a folder with one file for each end of each session and flow pair.

use std::fs;
use std::path::Path;

use equipoise::units::{Instant, SenderClock, Span};
use equipoise_lab::qlog::{Origin, Qlog};
use equipoise_lab::result::World;
use equipoise_lab::scenario::Scenario;
use equipoise_session::{Event, Half};

use crate::error::CliError;
use crate::output::Output;

/// The qlog files of a run.
pub(super) struct QlogFiles {
    /// The files of each flow, for its sender and its receiver; `None` for a flow that has no qlog.
    flows: Vec<Option<Ends>>,
}

struct Ends {
    sender: End,
    receiver: End,
}

struct End {
    file: Output,
    qlog: Qlog,
}

impl QlogFiles {
    /// Creates `folder`, and opens the qlog files of a run in this folder.
    pub(super) fn promise(folder: &Path, scenario: &Scenario, seed: u64, world: World) -> Result<Self, CliError> {
        fs::create_dir_all(folder).map_err(|source| CliError::Output { path: folder.to_path_buf(), source })?;
        let end = |place: usize, half: Half| -> Result<End, CliError> {
            let flow = &scenario.flows[place];
            let (qlog, head) = Qlog::begin(&Origin { scenario, flow, half, seed, world });
            let mut file = Output::promise(&folder.join(name(place, &flow.name, half)))?;
            file.append(head)?;
            Ok(End { file, qlog })
        };
        let ends = |place: usize| -> Result<Option<Ends>, CliError> {
            if !Qlog::is_of(&scenario.flows[place]) {
                return Ok(None);
            }
            Ok(Some(Ends { sender: end(place, Half::Sending)?, receiver: end(place, Half::Receiving)? }))
        };
        Ok(Self { flows: (0..scenario.flows.len()).map(ends).collect::<Result<_, _>>()? })
    }

    /// Appends the qlog records of an event to the file of one end (`half`) of flow number `flow`.
    pub(super) fn records(
        &mut self,
        (flow, half): (usize, Half),
        at: Span,
        path: Option<&str>,
        origin: Instant<SenderClock>,
        event: &Event,
    ) -> Result<(), CliError> {
        let Some(Some(ends)) = self.flows.get_mut(flow) else { return Ok(()) };
        let End { file, qlog } = match half {
            Half::Sending => &mut ends.sender,
            Half::Receiving => &mut ends.receiver,
        };
        file.append(qlog.records(at, path, origin, event))
    }

    /// Moves all completed files to their final paths.
    pub(super) fn finish(self) -> Result<(), CliError> {
        let ends = self.flows.into_iter().flatten().flat_map(|ends| [ends.sender, ends.receiver]);
        ends.map(|end| end.file).try_for_each(Output::finish)
    }
}

/// Returns the name of the file of one end of a flow. The name contains the flow's number in the scenario, counted from
/// 1, because two flow names may become equal when characters that are not allowed in file names are replaced.
fn name(place: usize, flow: &str, half: Half) -> String {
    let is_plain = |letter: char| letter.is_alphanumeric() || matches!(letter, '-' | '_' | '.');
    let flow: String = flow.chars().map(|letter| if is_plain(letter) { letter } else { '_' }).collect();
    let end = match half {
        Half::Sending => "sender",
        Half::Receiving => "receiver",
    };
    format!("{}-{flow}-{end}.sqlog", place + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flow_with_any_name_has_a_file() {
        assert_eq!(name(0, "media", Half::Sending), "1-media-sender.sqlog");
        assert_eq!(name(2, "../caf\u{e9}/1 2", Half::Receiving), "3-.._caf\u{e9}_1_2-receiver.sqlog");
    }
}
