//! Comparison of several variants of a scenario, each run with the same seeds.

use equipoise_lab::compare::{self as lab, MetricComparison, Plan, Sample, Variant};
use equipoise_lab::report;
use equipoise_lab::scenario::{Scenario, Swap};
use equipoise_lab::sim::{Execution, Stop};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::law::Laws;
use crate::result::loaded;
use crate::run::at_least_one;
use crate::table::{Columns, Table};
use crate::{error, job, source};

/// The results of a comparison.
#[pyclass(frozen, module = "equipoise")]
#[derive(Debug)]
pub(crate) struct Comparison(lab::Comparison);

/// Runs one scenario with several controllers, or runs several scenarios. All runs use the same seeds.
#[pyfunction]
#[pyo3(signature = (scenario, controllers=None, *, flow=None, set=None, seed=None, runs=20, laws=None, threads=None, progress=None))]
#[expect(clippy::too_many_arguments, reason = "they have names in Python")]
pub(crate) fn compare(
    py: Python<'_>,
    scenario: &Bound<'_, PyAny>,
    controllers: Option<Vec<String>>,
    flow: Option<String>,
    set: Option<&Bound<'_, PyDict>>,
    seed: Option<u64>,
    runs: u32,
    laws: Option<&Bound<'_, PyDict>>,
    threads: Option<usize>,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<Comparison> {
    let stop = Stop::default();
    let laws = Laws::new(laws, &stop)?;
    let variants = match &controllers {
        Some(names) => of_controllers(&laws, scenario, set, names, flow.as_deref()),
        None => of_scenarios(&laws, scenario, set).map(|variants| (variants, flow)),
    };
    let (variants, flow) = laws.checked(variants)?;
    let seed = seed.or_else(|| variants.first().map(|variant| variant.scenario.seed)).unwrap_or_default();
    let plan = Plan { seed, runs: at_least_one(runs)?, execution: Execution { threads, stop: stop.clone() } };
    let ran = job::aside(py, &stop, progress, |progress| lab::run(&variants, flow.as_deref(), &plan, progress))?;
    laws.checked(ran.map_err(|refused| error::not_compared(py, &refused))).map(Comparison)
}

/// Returns a variant of one scenario for each controller, and the name of the flow whose controller is replaced.
fn of_controllers(
    laws: &Laws,
    scenario: &Bound<'_, PyAny>,
    set: Option<&Bound<'_, PyDict>>,
    names: &[String],
    flow: Option<&str>,
) -> PyResult<(Vec<Variant>, Option<String>)> {
    let wrong = |refused| error::not_swapped(scenario.py(), &refused);
    let (text, overrides) = (source::text(scenario)?, source::overrides(set)?);
    let swap = Swap::new(&laws.catalogue, &text, &overrides, flow).map_err(wrong)?;
    let scenarios = swap.with(names.iter().map(String::as_str)).map_err(wrong)?;
    let variants = names.iter().zip(scenarios).map(|(name, scenario)| Variant { name: name.clone(), scenario });
    Ok((variants.collect(), Some(swap.flow().to_owned())))
}

/// Returns a variant for each of several scenarios. In a dict, the keys are the variants' names; in a list, the
/// scenarios' own names are used.
fn of_scenarios(laws: &Laws, given: &Bound<'_, PyAny>, set: Option<&Bound<'_, PyDict>>) -> PyResult<Vec<Variant>> {
    let read = |source: &Bound<'_, PyAny>| source::scenario(source, set, &laws.catalogue);
    if let Ok(named) = given.cast::<PyDict>() {
        let variant = |(name, source): (Bound<'_, PyAny>, Bound<'_, PyAny>)| {
            Ok(Variant { name: name.extract()?, scenario: read(&source)? })
        };
        return named.iter().map(variant).collect();
    }
    let sources: Vec<Bound<'_, PyAny>> = given.extract().map_err(|_| {
        PyTypeError::new_err("compare takes one scenario and `controllers`, or a list or a dict of scenarios")
    })?;
    let variant = |scenario: Scenario| Variant { name: scenario.name.clone(), scenario };
    sources.iter().map(|source| read(source).map(variant)).collect()
}

/// A row of a table: one metric of one flow in one variant.
struct Row<'a> {
    flow: &'a str,
    metric: &'static str,
    variant: &'a str,
    sample: &'a Sample,
}

#[pymethods]
impl Comparison {
    #[getter]
    fn metrics(&self) -> PyResult<Table> {
        Columns::of(self.rows())
            .text("flow", |row| Some(row.flow))
            .text("metric", |row| Some(row.metric))
            .text("variant", |row| Some(row.variant))
            .number("mean", |row| Some(row.sample.mean?.mean))
            .number("lo", |row| row.sample.mean?.ci95.map(|[lo, _]| lo))
            .number("hi", |row| row.sample.mean?.ci95.map(|[_, hi]| hi))
            .count("runs", |row| Some(row.sample.mean?.runs))
            .number("difference", |row| Some(row.sample.difference?.mean.mean))
            .number("difference_lo", |row| row.sample.difference?.mean.ci95.map(|[lo, _]| lo))
            .number("difference_hi", |row| row.sample.difference?.mean.ci95.map(|[_, hi]| hi))
            .text("word", |row| Some(row.sample.difference?.word.text()))
            .table()
    }

    #[getter]
    fn values(&self) -> PyResult<Table> {
        let seed = self.0.seed;
        let cells = self.rows().into_iter().flat_map(|Row { flow, metric, variant, sample }| {
            let values = sample.values.iter().enumerate();
            values.map(move |(number, value)| (flow, metric, variant, seed.wrapping_add(number as u64), *value))
        });
        Columns::of(cells)
            .text("flow", |(flow, ..)| Some(flow))
            .text("metric", |(_, metric, ..)| Some(metric))
            .text("variant", |(_, _, variant, ..)| Some(variant))
            .count("seed", |(_, _, _, seed, _)| Some(*seed))
            .number("value", |(.., value)| *value)
            .table()
    }

    #[getter]
    fn flow(&self) -> &str {
        &self.0.flow
    }

    fn to_json(&self) -> String {
        self.0.to_json()
    }

    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        loaded(py, self.0.to_json())
    }

    fn to_html(&self) -> String {
        report::comparison_html(&self.0)
    }

    fn __repr__(&self) -> String {
        let names: Vec<_> = self.0.variants.iter().map(|variant| variant.name.as_str()).collect();
        format!("Comparison({}: {} runs each)", names.join(", "), self.0.runs)
    }
}

impl Comparison {
    fn rows(&self) -> Vec<Row<'_>> {
        let names: Vec<_> = self.0.variants.iter().map(|variant| variant.name.as_str()).collect();
        let mut rows = Vec::new();
        for flow in &self.0.flows {
            for MetricComparison { metric, variants } in &flow.metrics {
                let row = |(variant, sample)| Row { flow: &flow.name, metric: metric.key, variant, sample };
                rows.extend(names.iter().copied().zip(variants).map(row));
            }
        }
        rows
    }
}
