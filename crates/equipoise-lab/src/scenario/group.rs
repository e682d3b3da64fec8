use equipoise::control::coupled::Coupling;

/// How a session shares its rate with other sessions of the same sender (RFC 8699).
#[derive(Clone, Debug, PartialEq)]
pub struct CoupledFlow {
    /// Name of the session's group. All sessions with the same group name share one total rate.
    pub group: String,
    /// Weight of the session when the group's rate is divided.
    pub priority: f64,
    /// How the total rate of the group is calculated from the rates of its sessions' controllers. All sessions of a
    /// group have the same coupling.
    pub coupling: Coupling,
}
