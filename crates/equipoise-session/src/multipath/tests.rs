//! Two ends and several paths, in virtual time.

mod bench;
mod harm;
mod life;
mod payload;
