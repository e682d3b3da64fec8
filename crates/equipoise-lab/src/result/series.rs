use super::Run;

impl Run {
    /// Removes the time series and the distributions, so that the results are much smaller. The periods of flow pairs
    /// remain, because a metric counts them.
    #[must_use]
    pub fn without_series(mut self) -> Self {
        for flow in &mut self.flows {
            (flow.intervals, flow.distribution, flow.received) = (Vec::new(), Vec::new(), Vec::new());
            flow.beliefs = Vec::new();
            flow.paths.iter_mut().for_each(|path| path.intervals = Vec::new());
            flow.tcp.iter_mut().for_each(|tcp| tcp.samples = Vec::new());
        }
        self.links.iter_mut().for_each(|link| link.samples = Vec::new());
        self
    }
}
