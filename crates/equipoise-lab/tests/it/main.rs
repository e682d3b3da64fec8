//! Integration tests from the scenario to the results: invalid input, metrics computed by hand, determinism, and
//! comparisons of simulated and live runs.

mod beside_tcp;
mod both_ways;
mod by_packet;
mod coupled;
mod directions;
mod idle;
mod links;
mod live_media;
mod made;
mod metrics;
mod overrides;
mod pairs;
mod paths;
mod phases;
mod random_paths;
mod replay;
mod report;
mod scenario;
mod sessions;
mod suite;
mod web;
mod worlds;
