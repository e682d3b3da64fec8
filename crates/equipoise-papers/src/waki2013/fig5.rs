use equipoise::control::ap::md1;
use equipoise::units::Size;

use super::{Found, Spec};
use crate::{Figure, Plot, PlotData, PlotLayer};
use equipoise_lab::statistics::Estimate;

const FLAT: Spec = Spec::shown(
    "fig5.flat",
    "Fig. 5",
    "b(ρ) is nearly constant for ρ ≥ 0.5: a closed form, which no run can contradict.",
)
.unit("b(0.5) / b(1)");

pub(super) const CLAIMS: &[Spec] = &[FLAT];

/// Computes Fig. 5, which shows the coefficient of response b as a function of the load of an M/D/1 queue (Eq. 11).
pub(super) fn run(found: &mut Found) {
    let packet = Size::from_bytes(1000);
    let curve: Vec<_> = (10..=100).map(|percent| f64::from(percent) / 100.0).collect();
    let points = curve.iter().map(|&rho| (rho, md1::response(rho, packet))).collect();
    let spread = md1::response(0.5, packet) / md1::response(1.0, packet);
    let below = md1::response(0.05, packet) / md1::response(0.5, packet);
    let exact = Estimate { value: spread, ci95: [spread, spread] };
    let note = format!("Closed form, Eq. 11. From 0.05 to 0.5, b changes by a factor of {below:.1}.");
    found.claims.push(FLAT.decide(0, Some(exact), note));
    found.figures.push(Figure {
        name: "Fig. 5".to_owned(),
        title: "Coefficient of response b over the load".to_owned(),
        text: "The closed form for an M/D/1 queue with packets of 1000 bytes, 750 / (ρ(4 − ρ)).".to_owned(),
        charts: vec![Plot {
            title: "b over the load of an M/D/1 queue".to_owned(),
            x: "load ρ",
            y: "b (1/(s·Mbit/s))",
            y_limits: Some((0.0, 2000.0)),
            layers: vec![PlotLayer { name: "b(ρ)".to_owned(), data: PlotData::Line(points) }],
            marks: vec![(300.0, "300, the paper's constant".to_owned())],
        }],
        tables: Vec::new(),
    });
}
