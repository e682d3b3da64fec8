//! Checks the groups of flows that share their rate.

use equipoise::control::coupled::{Coupling, FlowGroup, GroupError};

use super::super::raw::RawFlow;
use super::super::{Choice, CoupledFlow, Flow, Problem, ScenarioError};
use super::{Check, LARGEST_PACKET};

impl Check<'_> {
    /// Checks the group of a session over one path, and the session's priority and coupling in the group.
    pub(super) fn coupled(&self, raw: &RawFlow, controller: &Choice) -> Result<Option<CoupledFlow>, ScenarioError> {
        let Some(group) = &raw.group else { return Ok(None) };
        let given = group.get_ref();
        self.name(&given.name)?;
        let is_coupled = controller.build(LARGEST_PACKET).is_ok_and(|built| built.calculated_rate().is_some());
        self.that(is_coupled, "group", group, || GroupError::NotCoupled.into())?;
        let priority = given.priority.as_ref().map_or(1.0, |priority| *priority.get_ref());
        if let Some(written) = &given.priority {
            let (min, max) = FlowGroup::PRIORITIES;
            let is_weight = (min..=max).contains(&priority);
            self.that(is_weight, "priority", written, || GroupError::Priority { found: priority, min, max }.into())?;
        }
        let coupling = match self.word("coupling", given.coupling.as_ref(), &["active", "conservative"])? {
            Some("conservative") => Coupling::Conservative,
            _ => Coupling::Active,
        };
        Ok(Some(CoupledFlow { group: given.name.get_ref().clone(), priority, coupling }))
    }

    /// Checks that all flows of a group have the same coupling.
    pub(super) fn one_coupling(&self, raw: &RawFlow, flow: &Flow, before: &[Flow]) -> Result<(), ScenarioError> {
        let (Some(group), Some(own)) = (&raw.group, flow.coupled()) else { return Ok(()) };
        let other = before.iter().filter_map(Flow::coupled).find(|other| other.group == own.group);
        let agrees = other.is_none_or(|other| other.coupling == own.coupling);
        self.that(agrees, "group", group, || Problem::OneCoupling)
    }
}
