//! Tests of this crate with models of paths and traffic from other crates, and against other implementations.

mod gcc;
mod inline;
