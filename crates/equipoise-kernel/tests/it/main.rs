//! The program's arithmetic against the heart's, and the program in this machine's kernel.

mod arithmetic;
mod kernel;
mod preset;
