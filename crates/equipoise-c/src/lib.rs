//! `libequipoise`: Equipoise for C.
//!
//! - [`controller`]: a rate controller and its pacer in a stack of the caller's own.
//! - [`media`]: sessions between hosts, as `equipoise send` and `equipoise receive` have them, with descriptors to poll.
//! - [`pair`]: flow pairs, in a header of their own.
//!
//! What holds for every call: it returns an [`eq_error`](error::eq_error) or a value that cannot be one; NULL is never followed;
//! nothing panics across the border. The documentation of the calls is that of the headers, which are generated from this.

#![expect(
    clippy::doc_markdown,
    reason = "the documentation of the calls is that of the header, where nobody reads Markdown"
)]
#![expect(non_camel_case_types, reason = "types have the names that they have in C")]

mod address;
mod border;
pub mod catalogue;
pub mod controller;
pub mod error;
pub mod media;
pub mod pacer;
pub mod pair;
mod runtime;
mod signal;
pub mod time;
pub mod version;

#[cfg(test)]
mod tests;
