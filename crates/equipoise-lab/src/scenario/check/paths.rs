//! Checks named paths, and flows that use several paths.

use std::collections::BTreeMap;

use equipoise::control::{Controller as _, Needs, Value as Given};
use equipoise::units::Span;
use equipoise_session::feedback::{Format, Reporting};
use equipoise_session::multipath::{MAX_PATHS, Sender};
use toml::{Spanned, Value};

use super::{Check, LARGEST_PACKET};
use crate::scenario::error::{Problem, ScenarioError};
use crate::scenario::raw::{RawFlow, RawOutage, RawPath};
use crate::scenario::{Choice, Direction, Link, MultipathFlow, Outage, Path, Scenario, SchedulerChoice};

impl Check<'_> {
    pub(super) fn named_path(&self, raw: &RawPath, links: &[Link], duration: Span) -> Result<Path, ScenarioError> {
        let down = self.outages(&raw.down, duration)?;
        Ok(Path { name: raw.name.get_ref().clone(), links: self.chain(("links", &raw.name), &raw.links, links)?, down })
    }

    /// Checks a list of outages. The outages must be in order of time and must not overlap.
    pub(super) fn outages(&self, raw: &[RawOutage], duration: Span) -> Result<Vec<Outage>, ScenarioError> {
        let mut outages: Vec<Outage> = Vec::new();
        for outage in raw {
            let before = outages.last().map(|last| last.until.unwrap_or(duration));
            let at = self.step("at", &outage.at, before, duration)?;
            let until = outage.until.as_ref().map(|until| self.step("until", until, Some(at), duration)).transpose()?;
            outages.push(Outage { at, until });
        }
        Ok(outages)
    }

    /// Checks a session over several paths. Returns the session and the links of all its paths.
    pub(super) fn multipath(
        &self,
        raw: &RawFlow,
        names: &Spanned<Vec<Spanned<String>>>,
        scenario: &Scenario,
    ) -> Result<(MultipathFlow, Vec<usize>), ScenarioError> {
        let (Some(controller), Some(interval), Some(scheduler)) =
            (&raw.controller, &raw.report_interval, &raw.scheduler)
        else {
            return Err(self.wrong("name", raw.name.span(), Problem::WhatMultipath));
        };
        if let Some(source) = raw.sources().first() {
            return Err(self.wrong("kind", source.kind.span(), Problem::ContentOverPaths));
        }
        if let Some(playout) = &raw.playout {
            return Err(self.wrong("playout", playout.span(), Problem::PlayoutOverPaths));
        }
        let paths = self.paths(names, scenario)?;
        let used = || paths.iter().filter_map(|path| scenario.paths.get(*path));
        let nearest =
            used().map(|path| scenario.propagation_delay(&path.links, Direction::Forward)).min().unwrap_or(Span::ZERO);
        let (controller, report_interval, target) = self.session(raw, controller, interval, nearest)?;
        let reporting = self.path_reporting(raw, &controller)?;
        let period = match &raw.period {
            None => Sender::PERIOD.max(report_interval),
            Some(value) => {
                let period = self.quantity("period", value)?;
                self.that(period >= report_interval, "period", value, || Problem::Period { min: report_interval })?;
                period
            }
        };
        let scheduler = self.scheduler(raw, scheduler, paths.len())?;
        let mut links: Vec<usize> = used().flat_map(|path| path.links.iter().copied()).collect();
        links.sort_unstable();
        links.dedup();
        Ok((MultipathFlow { controller, reporting, report_interval, period, scheduler, paths, target }, links))
    }

    /// Returns the format and the interval of the per-packet feedback on each path; `None` if the controller does not
    /// need such feedback.
    fn path_reporting(&self, raw: &RawFlow, controller: &Choice) -> Result<Option<Reporting>, ScenarioError> {
        let built = controller.build(LARGEST_PACKET).ok();
        let is_for_each = built.is_some_and(|built| built.needs().contains(Needs::PACKETS));
        if let Some(feedback) = raw.feedback.as_ref().filter(|_| !is_for_each) {
            return Err(self.wrong("feedback", feedback.span(), Problem::FeedbackOfWhat));
        }
        let reporting = self.reporting(raw, controller)?;
        let given = raw.feedback.as_ref().and_then(|feedback| feedback.get_ref().format.as_ref());
        if let Some(format) = given.filter(|format| format.get_ref() != "rfc8888") {
            return Err(self.wrong("format", format.span(), Problem::FormatOfPaths));
        }
        Ok(reporting.map(|reporting| Reporting { format: Format::CongestionFeedback, ..reporting }))
    }

    fn paths(&self, names: &Spanned<Vec<Spanned<String>>>, scenario: &Scenario) -> Result<Vec<usize>, ScenarioError> {
        let count = names.get_ref().len();
        self.that((1..=MAX_PATHS).contains(&count), "paths", names, || Problem::HowManyPaths { most: MAX_PATHS })?;
        let mut paths: Vec<usize> = Vec::new();
        for name in names.get_ref() {
            let Some(place) = scenario.paths.iter().position(|path| path.name == *name.get_ref()) else {
                let known = scenario.paths.iter().map(|path| path.name.as_str()).collect::<Vec<_>>().join(", ");
                return Err(self.wrong("paths", name.span(), Problem::UnknownPath { known }));
            };
            self.that(!paths.contains(&place), "paths", name, || Problem::PathTwice)?;
            let same = paths.iter().filter_map(|path| scenario.paths.get(*path));
            let same =
                same.into_iter().find(|path| scenario.paths.get(place).is_some_and(|own| own.links == path.links));
            if let Some(other) = same {
                return Err(self.wrong("paths", name.span(), Problem::SameLinks { other: other.name.clone() }));
            }
            paths.push(place);
        }
        Ok(paths)
    }

    fn scheduler(
        &self,
        raw: &RawFlow,
        given: &BTreeMap<String, Spanned<Value>>,
        paths: usize,
    ) -> Result<SchedulerChoice, ScenarioError> {
        let choice = self.choice("scheduler", raw, &self.catalogue.schedulers, given)?;
        let single = choice.parameters.iter().find(|(parameter, _)| *parameter == "path");
        if let (Some((_, Given::Number(number))), Some(value)) = (single, given.get("path")) {
            let right = number.fract() == 0.0 && number < paths as f64;
            self.that(right, "path", value, || Problem::NoSuchPath { paths })?;
        }
        Ok(choice)
    }
}
