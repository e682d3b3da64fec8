//! Groups of sessions that share one total rate among them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use equipoise::control::BoxedController;
use equipoise::control::coupled::{Coupled, FlowGroup, GroupError, SharedGroup};

use crate::scenario::CoupledFlow;

/// A group of flows, protected by a mutex.
#[derive(Debug)]
struct LockedGroup(Mutex<FlowGroup>);

impl SharedGroup for LockedGroup {
    fn with(&self, act: &mut dyn FnMut(&mut FlowGroup)) {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

/// The groups of coupled flows in one run, by the names of the groups.
#[derive(Debug, Default)]
pub(crate) struct Groups(BTreeMap<String, Arc<LockedGroup>>);

impl Groups {
    /// Adds `controller` to the group of its flow, and returns the coupled controller. If the flow has no group,
    /// returns `controller` unchanged.
    pub(crate) fn join(
        &mut self,
        controller: BoxedController,
        flow: Option<&CoupledFlow>,
    ) -> Result<BoxedController, GroupError> {
        let Some(flow) = flow else { return Ok(controller) };
        let new = || Arc::new(LockedGroup(Mutex::new(FlowGroup::new(flow.coupling))));
        let group = Arc::clone(self.0.entry(flow.group.clone()).or_insert_with(new));
        Ok(Box::new(Coupled::new(controller, group, flow.priority)?))
    }
}
