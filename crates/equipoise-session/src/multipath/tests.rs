//! Two ends and several paths, in virtual time.

mod bench;
mod life;
mod payload;
