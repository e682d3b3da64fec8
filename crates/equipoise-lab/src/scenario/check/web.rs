//! Checks a TCP flow that is web traffic.

use equipoise::units::Size;
use equipoise_path::source::{WebConfig, WebError};
use toml::{Spanned, Value};

use super::Check;
use crate::scenario::error::{Problem, ScenarioError};
use crate::scenario::raw::{RawFlow, RawTcp, RawWeb};

impl Check<'_> {
    /// Checks the settings of fetches. The defaults of the number of flows, the sizes and the times are those of RFC
    /// 8867 and RFC 8868.
    pub(super) fn web(&self, raw: &RawFlow, given: &RawWeb) -> Result<WebConfig, ScenarioError> {
        self.nothing_but_web(raw)?;
        let usual = WebConfig::STANDARD;
        let number = |value: &Option<Spanned<u32>>, usual: u32| value.as_ref().map_or(usual, |value| *value.get_ref());
        let flows = number(&given.flows, usual.flows);
        let [smallest, largest] = match &given.size {
            None => [usual.smallest, usual.largest],
            Some(bounds) => self.sizes(bounds)?,
        };
        let config = WebConfig {
            flows,
            on: number(&given.on, usual.on.min(flows)),
            connections: number(&given.connections, usual.connections),
            smallest,
            largest,
            idle: given.idle.as_ref().map_or(Ok(usual.idle), |idle| self.quantity("idle", idle))?,
        };
        config.check().map_err(|error| self.wrong_web(raw, given, error))?;
        Ok(config)
    }

    /// Checks the lower and the upper limit of the sizes of fetches.
    fn sizes(&self, bounds: &Spanned<Vec<Spanned<Value>>>) -> Result<[Size; 2], ScenarioError> {
        match bounds.get_ref().as_slice() {
            [smallest, largest] => Ok([self.quantity("size", smallest)?, self.quantity("size", largest)?]),
            _ => Err(self.wrong("size", bounds.span(), Problem::TwoSizes)),
        }
    }

    /// Returns an error that points to the value that causes it, or to the flow if that value is a default.
    fn wrong_web(&self, raw: &RawFlow, given: &RawWeb, error: WebError) -> ScenarioError {
        let span = match error.field() {
            "flows" => given.flows.as_ref().map(Spanned::span),
            "on" => given.on.as_ref().map(Spanned::span),
            "connections" => given.connections.as_ref().or(given.flows.as_ref()).map(Spanned::span),
            "size" => given.size.as_ref().map(Spanned::span),
            _ => given.idle.as_ref().map(Spanned::span),
        };
        self.wrong(error.field(), span.unwrap_or(raw.name.span()), error.into())
    }

    /// Refuses settings that web traffic cannot have: the keys about the data and the bandwidth of a single connection,
    /// a `handshake` other than "on", and a flow pair.
    fn nothing_but_web(&self, raw: &RawFlow) -> Result<(), ScenarioError> {
        let host = raw.tcp.as_ref();
        let supply = |of: fn(&RawTcp) -> Option<&Spanned<Value>>| host.and_then(of).map(Spanned::span);
        let no_handshake = host.and_then(|host| host.handshake.as_ref()).filter(|word| word.get_ref() != "on");
        let stray = [
            ("source", raw.sources().first().map(|source| source.kind.span())),
            ("bandwidth", raw.bandwidth.as_ref().map(|bandwidth| bandwidth.kind.span())),
            ("transfer", supply(|host| host.transfer.as_ref())),
            ("rate", supply(|host| host.rate.as_ref())),
            ("handshake", no_handshake.map(Spanned::span)),
            ("pair", raw.pair.as_ref().map(|pair| pair.adu.span())),
        ];
        match stray.into_iter().find_map(|(key, span)| Some((key, span?))) {
            Some((key, span)) => Err(self.wrong(key, span, Problem::NotOfWeb)),
            None => Ok(()),
        }
    }
}
