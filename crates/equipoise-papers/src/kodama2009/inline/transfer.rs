//! Runs transfers of finite length, to count the packets that the inline measurement adds.

use super::super::series::{PAYLOAD, samples, tcp};
use super::super::{Lab, Rule, Spec};
use super::setting::{OWN, Own, SECTION, Setting, runs};
use crate::Claim;
use equipoise_lab::scenario::Override;
use equipoise_lab::sim::SimError;
use equipoise_lab::statistics::Estimate;

/// Length of a transfer in segments. Our choice.
const SEGMENTS: u64 = 5000;

pub(super) const EXTRA: Spec = Spec::new(
    "inline.no_extra_packets",
    SECTION,
    "The measurement sends no packet of its own: a transfer sends as many as its data have segments, in every setting.",
    Rule::within(0.0, 0.0),
)
.paper(0.0)
.unit("packets, the most of any run");

/// Returns the settings in which the transfers are run: all paths, with and without delayed acknowledgements.
pub(super) fn transfers() -> impl Iterator<Item = Setting> {
    Setting::all()
        .filter(|setting| setting.own == Own::Limited(100) && setting.load == 30 && setting.traffic == "poisson")
}

/// Returns the claim about the number of packets that are sent in addition to the data segments and the
/// retransmissions.
pub(super) fn extra_packets(lab: &Lab<'_>) -> Result<Claim, SimError> {
    let transfer = Override::set("flow.own.tcp.transfer", format!("{} B", SEGMENTS * PAYLOAD));
    let scenarios = transfers().map(|setting| setting.scenario(true, std::slice::from_ref(&transfer)));
    let extra = lab.each(scenarios.zip(0..), |run| {
        let (flow, tcp) = (run.flows.get(OWN)?, tcp(run, OWN)?);
        tcp.finished_s?;
        let measured = samples(run, OWN).iter().any(|sample| sample.available_bps.is_some());
        let again = tcp.retransmissions;
        measured.then(|| flow.packets_sent as f64 - (SEGMENTS + again) as f64)
    })?;
    let complete = extra.iter().all(Option::is_some);
    let most = extra.iter().flatten().copied().map(f64::abs).fold(0.0, f64::max);
    Ok(EXTRA.decide(runs(lab), complete.then_some(Estimate { value: most, ci95: [most, most] }), ""))
}
