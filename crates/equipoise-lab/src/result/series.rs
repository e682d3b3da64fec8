use super::Run;

impl Run {
    /// Removes time series and distributions, so that the size of the results does not depend on the length of the run.
    #[must_use]
    pub fn without_series(mut self) -> Self {
        for flow in &mut self.flows {
            (flow.intervals, flow.distribution, flow.received) = (Vec::new(), Vec::new(), Vec::new());
            flow.paths.iter_mut().for_each(|path| path.intervals = Vec::new());
            flow.tcp.iter_mut().for_each(|tcp| tcp.samples = Vec::new());
        }
        self.links.iter_mut().for_each(|link| link.samples = Vec::new());
        self
    }
}
