//! `libequipoise`: Equipoise for C.
//!
//! - [`controller`]: a rate controller and its pacer, for a program with its own network code.
//! - [`media`]: sessions between hosts, as in `equipoise send` and `equipoise receive`, with descriptors to poll.
//! - [`pair`]: flow pairs, in a separate header.
//!
//! Most calls return an [`eq_error`](error::eq_error). If a call for a flow pair returns a negative number instead of a
//! handle, a length or a descriptor, the number is the code of an error. A call that only reads a value returns a
//! neutral value, such as 0, -1 or EQ_NEVER, if the handle is NULL. The library never dereferences NULL, and no panic
//! crosses into C. The headers are generated from this crate's comments.

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
