//! The raw form of the sections `[[link]]`.

use std::collections::BTreeMap;

use serde::Deserialize;
use toml::{Spanned, Value};

/// Defines a struct with the keys of a link direction. The macro is used once for the keys of a whole link, and once
/// for the keys of the reverse direction.
macro_rules! direction {
    ($(#[$doc:meta])* $name:ident { $($more:ident: $kind:ty,)* }) => {
        $(#[$doc])*
        #[derive(Debug, Deserialize)]
        #[serde(deny_unknown_fields)]
        pub(super) struct $name {
            $(pub(super) $more: $kind,)*
            pub(super) rate: Option<Spanned<Value>>,
            pub(super) rate_burst: Option<Spanned<Value>>,
            pub(super) rate_trace: Option<Spanned<String>>,
            pub(super) rate_csv: Option<Spanned<String>>,
            pub(super) rate_offset: Option<Spanned<Value>>,
            pub(super) delay: Option<Spanned<Value>>,
            pub(super) queue: Option<Spanned<Value>>,
            pub(super) aqm: Option<Spanned<BTreeMap<String, Spanned<Value>>>>,
            pub(super) loss: Option<Spanned<Value>>,
            pub(super) loss_burst: Option<Spanned<Value>>,
            pub(super) police: Option<Spanned<Value>>,
            pub(super) police_burst: Option<Spanned<Value>>,
            pub(super) jitter: Option<Spanned<Value>>,
            pub(super) reorder: Option<Spanned<Value>>,
            pub(super) reorder_by: Option<Spanned<Value>>,
            pub(super) duplicate: Option<Spanned<Value>>,
            pub(super) steps: Option<Vec<RawLinkStep>>,
        }

        impl $name {
            pub(super) const fn keys(&self) -> Keys<'_> {
                Keys {
                    rate: self.rate.as_ref(),
                    rate_burst: self.rate_burst.as_ref(),
                    rate_trace: self.rate_trace.as_ref(),
                    rate_csv: self.rate_csv.as_ref(),
                    rate_offset: self.rate_offset.as_ref(),
                    delay: self.delay.as_ref(),
                    queue: self.queue.as_ref(),
                    aqm: self.aqm.as_ref(),
                    loss: self.loss.as_ref(),
                    loss_burst: self.loss_burst.as_ref(),
                    police: self.police.as_ref(),
                    police_burst: self.police_burst.as_ref(),
                    jitter: self.jitter.as_ref(),
                    reorder: self.reorder.as_ref(),
                    reorder_by: self.reorder_by.as_ref(),
                    duplicate: self.duplicate.as_ref(),
                    steps: self.steps.as_ref(),
                }
            }
        }
    };
}

direction! {
    /// A link; its keys apply to both directions.
    RawLink { name: Spanned<String>, duplex: Option<Spanned<String>>, back: Option<RawBack>, }
}
direction! {
    /// The keys of the reverse direction that differ from those of the link.
    RawBack {}
}

/// A step in which properties of a link change.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawLinkStep {
    pub(super) at: Spanned<Value>,
    pub(super) rate: Option<Spanned<Value>>,
    pub(super) delay: Option<Spanned<Value>>,
    pub(super) loss: Option<Spanned<Value>>,
}

/// A quantity of a link direction, if the scenario sets it.
type Quantity<'r> = Option<&'r Spanned<Value>>;

/// The keys of one link direction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Keys<'r> {
    pub(super) rate: Quantity<'r>,
    pub(super) rate_burst: Quantity<'r>,
    pub(super) rate_trace: Option<&'r Spanned<String>>,
    pub(super) rate_csv: Option<&'r Spanned<String>>,
    pub(super) rate_offset: Quantity<'r>,
    pub(super) delay: Quantity<'r>,
    pub(super) queue: Quantity<'r>,
    pub(super) aqm: Option<&'r Spanned<BTreeMap<String, Spanned<Value>>>>,
    pub(super) loss: Quantity<'r>,
    pub(super) loss_burst: Quantity<'r>,
    pub(super) police: Quantity<'r>,
    pub(super) police_burst: Quantity<'r>,
    pub(super) jitter: Quantity<'r>,
    pub(super) reorder: Quantity<'r>,
    pub(super) reorder_by: Quantity<'r>,
    pub(super) duplicate: Quantity<'r>,
    pub(super) steps: Option<&'r Vec<RawLinkStep>>,
}

impl Keys<'_> {
    /// Returns these keys, with the keys of `both` as defaults. There are three groups of keys. The keys of a
    /// group all come from `self` or all come from `both`:
    ///
    /// - capacity: all keys of the group come from `self` if it sets `rate`, `rate_trace` or `rate_csv`;
    /// - loss: all come from `self` if it sets `loss` or `loss_burst`;
    /// - policer: all come from `self` if it sets `police`.
    ///
    /// If `self` sets none of the keys that are named for a group, all keys of the group come from `both`. Further keys
    /// of the group in `self`, such as `rate_burst`, are then ignored.
    pub(super) fn over(self, both: Self) -> Self {
        let rate =
            if self.rate.is_some() || self.rate_trace.is_some() || self.rate_csv.is_some() { self } else { both };
        let loss = if self.loss.is_some() || self.loss_burst.is_some() { self } else { both };
        let police = if self.police.is_some() { self } else { both };
        Self {
            rate: rate.rate,
            rate_burst: rate.rate_burst,
            rate_trace: rate.rate_trace,
            rate_csv: rate.rate_csv,
            rate_offset: rate.rate_offset,
            delay: self.delay.or(both.delay),
            queue: self.queue.or(both.queue),
            aqm: self.aqm.or(both.aqm),
            loss: loss.loss,
            loss_burst: loss.loss_burst,
            police: police.police,
            police_burst: police.police_burst,
            jitter: self.jitter.or(both.jitter),
            reorder: self.reorder.or(both.reorder),
            reorder_by: self.reorder_by.or(both.reorder_by),
            duplicate: self.duplicate.or(both.duplicate),
            steps: self.steps.or(both.steps),
        }
    }
}
