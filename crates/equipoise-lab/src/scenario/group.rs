use equipoise::control::coupled::Coupling;

/// How a session shares its rate with others of one application (RFC 8699).
#[derive(Clone, Debug, PartialEq)]
pub struct CoupledFlow {
    /// The name of its group: all flows with this group name share one rate.
    pub group: String,
    /// Its weight in the group.
    pub priority: f64,
    /// How the rates of its flows make up the rate of the group; equal for all flows of a group.
    pub coupling: Coupling,
}
