use super::Run;

impl Run {
    /// The run without what it has over time and without distributions: what is left takes the same memory however long it was.
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
