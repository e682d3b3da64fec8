//! What the core does with the models of paths and traffic, which stand on it, and beside foreign code.

mod gcc;
mod inline;
