use equipoise::control::coupled::Coupling;

/// How a session shares its rate with other sessions of the same application (RFC 8699).
#[derive(Clone, Debug, PartialEq)]
pub struct CoupledFlow {
    /// Name of the session's group. All sessions with the same group name share one total rate.
    pub group: String,
    /// Weight of the session when the group's rate is divided.
    pub priority: f64,
    /// How the rates that the group's flows calculate are combined into the rate of the group; equal for all flows of a
    /// group.
    pub coupling: Coupling,
}
