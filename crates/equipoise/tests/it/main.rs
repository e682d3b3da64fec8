//! Tests of the core with models of paths and traffic from other crates, and with other implementations.

mod gcc;
mod inline;
