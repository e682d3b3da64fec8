//! `equipoise capture`: analyses captures of real traffic.

pub(crate) mod args;
mod rtp;

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use equipoise_papers::capture::{AckRule, Analysis, Direction, Distribution, Options, Side, analyse};
use equipoise_papers::page::capture_html;

use crate::error::{CliError, PaperError};
use crate::outcome::Outcome;
use crate::output::{Output, say};
use args::{Acks, Rtt};
pub(crate) use rtp::rtp;

/// Maximum number of directions of TCP connections that the printed text describes.
const SHOWN: usize = 10;

/// Runs `equipoise capture rtt`.
pub(crate) fn rtt(options: &Rtt) -> Result<Outcome, CliError> {
    let failed = |source| PaperError::Capture { file: options.file.clone(), source };
    let source = open(&options.file).map_err(|source| failed(source.into()))?;
    let html = options.results.report.as_deref().map(Output::promise).transpose()?;
    let json = options.results.json.as_deref().map(Output::promise).transpose()?;
    let rule = match options.acks {
        Acks::Pair => AckRule::Pair,
        Acks::Every => AckRule::Every,
    };
    let analysis = analyse(source, &Options { rule, bin: options.bin }).map_err(failed)?;
    say(options.results.quiet || Output::take_stdout([&json, &html]), &text(&analysis));
    if let Some(html) = html {
        html.fulfil(&capture_html(&name(&options.file), &analysis))?;
    }
    json.map_or(Ok(()), |json| json.fulfil(&analysis.to_json()))?;
    Ok(Outcome::Complete)
}

/// Opens the file, or standard input for `-`.
fn open(file: &Path) -> io::Result<Box<dyn Read + Send>> {
    if file.as_os_str() == "-" { Ok(Box::new(io::stdin())) } else { Ok(Box::new(File::open(file)?)) }
}

/// Returns the title of the report's page: the name of the file. The folder is left out, because other people may read
/// the page, and the folder's name may be private.
fn name(file: &Path) -> String {
    let named = file.file_name().filter(|name| *name != "-");
    named.map_or_else(|| "standard input".to_owned(), |name| name.to_string_lossy().into_owned())
}

fn text(analysis: &Analysis) -> String {
    let mut text = format!(
        "{} frames, {} TCP segments, {} connections\n",
        analysis.frames,
        analysis.segments,
        analysis.connections.len()
    );
    if let Some(ended) = &analysis.ended {
        text.push_str(&format!("the file is {ended}; the part before that is analysed\n"));
    }
    for (reason, count) in &analysis.skipped {
        text.push_str(&format!("  {count} frames skipped: {reason}\n"));
    }
    let measured = analysis.measured();
    for (direction, rtt) in measured.iter().take(SHOWN) {
        text.push_str(&described(direction, rtt));
    }
    if measured.len() > SHOWN {
        text.push_str(&format!("\nand {} directions with fewer samples\n", measured.len() - SHOWN));
    }
    if measured.is_empty() {
        text.push_str("it contains no measurable round-trip time\n");
    }
    text
}

fn described(direction: &Direction, rtt: &Distribution) -> String {
    let side = match direction.side {
        Side::Sender => "captured at the sender: round-trip times of the path",
        Side::Receiver => "captured at the receiver: its delay in acknowledging, NOT the path's round-trip time",
        Side::Unknown => "captured between the ends, or at an unknown place: round-trip times from the capture's place",
    };
    let ms = |seconds: f64| format!("{:.3} ms", seconds * 1e3);
    let or_dash = |value: Option<f64>, digits: usize| value.map_or("-".to_owned(), |value| format!("{value:.digits$}"));
    let mut text = format!(
        "\n{} > {}\n  {side}\n  {} data segments, {} bytes, {} retransmitted; {} samples\n",
        direction.from,
        direction.to,
        direction.data_segments,
        direction.data_bytes,
        direction.retransmitted,
        rtt.samples
    );
    text.push_str(&format!(
        "  min {}  median {}  mean {}  95 % {}  max {}  standard deviation {}\n",
        ms(rtt.min_s),
        ms(rtt.p50_s),
        ms(rtt.mean_s),
        ms(rtt.p95_s),
        ms(rtt.max_s),
        rtt.deviation_s.map_or("-".to_owned(), ms)
    ));
    text.push_str(&format!(
        "  skewness {}  excess kurtosis {}  Kolmogorov-Smirnov distance to a normal distribution {}\n",
        or_dash(rtt.skewness, 3),
        or_dash(rtt.excess_kurtosis, 3),
        or_dash(rtt.ks_distance, 4)
    ));
    if let Some(fit) = &rtt.fit {
        let [a, b, c] = fit.standard_errors;
        text.push_str(&format!(
            "  Gaussian fit: a = {:.1} ± {a:.1} in {}, b = {} ± {}, c = {} ± {}, R² = {:.4}\n",
            fit.a,
            ms(rtt.bin_s),
            ms(fit.b_s),
            ms(b),
            ms(fit.c_s),
            ms(c),
            fit.r2
        ));
    }
    for (reason, count) in &direction.left_out {
        text.push_str(&format!("  {count} acknowledgements left out: {reason}\n"));
    }
    text
}
