//! The command as a person or a script meets it: exit codes, messages, files, packets on the wire.

mod capture;
mod files;
mod interrupt;
mod link;
mod paper;
mod rtt;
mod support;
mod words;
