use clap::ValueEnum;
use equipoise_papers::page::paper_html;
use equipoise_papers::{Options, Results, asvarujanon2014, kodama2009, subramanya2003, tobe1999, waki2013};

use super::args::{AsvarujanonPart, KodamaPart, PaperRun, SubramanyaPart, TobePart, WakiPart};
use crate::bar::Bar;
use crate::error::CliError;
use crate::output::{Output, say};

/// Runs the requested parts of a paper, and writes their results to the requested outputs.
pub(super) fn carry_out<P: ValueEnum + Send + Sync, E: Into<CliError>>(
    asked: &PaperRun<P>,
    doing: &'static str,
    run: impl FnOnce(&Options, &(dyn Fn(f64) + Sync)) -> Result<Results, E>,
) -> Result<(), CliError> {
    let html = asked.results.report.as_deref().map(Output::promise).transpose()?;
    let json = asked.results.json.as_deref().map(Output::promise).transpose()?;
    let bar = Bar::new(asked.results.quiet, doing);
    let how =
        Options { runs: asked.runs, quick: asked.quick, seed: asked.seed, threads: asked.threads.map(usize::from) };
    let results = run(&how, &|share| bar.progress(share)).map_err(Into::into)?;
    bar.finish();
    say(asked.results.quiet || Output::take_stdout([&json, &html]), &results.to_text());
    if let Some(html) = html {
        html.fulfil(&paper_html(&results))?;
    }
    json.map_or(Ok(()), |json| json.fulfil(&results.to_json()))
}

pub(super) fn waki_parts(asked: WakiPart) -> Vec<waki2013::Part> {
    use waki2013::Part;
    match asked {
        WakiPart::Fig5 => vec![Part::Fig5],
        WakiPart::Fig7 => vec![Part::Fig7],
        WakiPart::Fig10 => vec![Part::Fig10],
        WakiPart::Fig12 => vec![Part::Fig12],
        WakiPart::Fig13 => vec![Part::Fig13],
        WakiPart::Fig14 => vec![Part::Fig14],
        WakiPart::Runaway => vec![Part::Runaway],
        WakiPart::Learning => vec![Part::Learning],
        WakiPart::All => Part::ALL.to_vec(),
    }
}

pub(super) fn kodama_parts(asked: KodamaPart) -> Vec<kodama2009::Part> {
    use kodama2009::Part;
    match asked {
        KodamaPart::Fig3 => vec![Part::Fig3],
        KodamaPart::Fig10 => vec![Part::Fig10],
        KodamaPart::Fig11 => vec![Part::Fig11],
        KodamaPart::Fig12 => vec![Part::Fig12],
        KodamaPart::Fig15 => vec![Part::Fig15],
        KodamaPart::Fig5 => vec![Part::Fig5],
        KodamaPart::Fig6 => vec![Part::Fig6],
        KodamaPart::Inline => vec![Part::Inline],
        KodamaPart::Beyond => vec![Part::Beyond],
        KodamaPart::All => Part::ALL.to_vec(),
    }
}

pub(super) fn subramanya_parts(asked: SubramanyaPart) -> Vec<subramanya2003::Part> {
    use subramanya2003::Part;
    match asked {
        SubramanyaPart::Table1 => vec![Part::Table1],
        SubramanyaPart::Table4 => vec![Part::Table4],
        SubramanyaPart::Table6 => vec![Part::Table6],
        SubramanyaPart::Fig6 => vec![Part::Fig6],
        SubramanyaPart::All => Part::ALL.to_vec(),
    }
}

pub(super) fn tobe_parts(asked: TobePart) -> Vec<tobe1999::Part> {
    use tobe1999::Part;
    match asked {
        TobePart::Fig3 => vec![Part::Fig3],
        TobePart::Fig10 => vec![Part::Fig10],
        TobePart::Fig12 => vec![Part::Fig12],
        TobePart::Fig19 => vec![Part::Fig19],
        TobePart::Table3 => vec![Part::Table3],
        TobePart::Fig22 => vec![Part::Fig22],
        TobePart::Fig29 => vec![Part::Fig29],
        TobePart::Beyond => vec![Part::Beyond],
        TobePart::All => Part::ALL.to_vec(),
    }
}

/// Returns the requested parts. `all` includes the part `pairs` only if `has_pairs` is set.
pub(super) fn asvarujanon_parts(asked: AsvarujanonPart, has_pairs: bool) -> Vec<asvarujanon2014::Part> {
    use asvarujanon2014::Part;
    match asked {
        AsvarujanonPart::Fig3 => vec![Part::Fig3],
        AsvarujanonPart::Fig4 => vec![Part::Fig4],
        AsvarujanonPart::Pairs => vec![Part::Pairs],
        AsvarujanonPart::Beyond => vec![Part::Beyond],
        AsvarujanonPart::All => {
            let pairs = has_pairs.then_some(Part::Pairs);
            Part::ALL.into_iter().chain(pairs).collect()
        }
    }
}
