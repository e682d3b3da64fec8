use std::ffi::{CStr, c_int};

use equipoise_net::NetError;
use equipoise_net::flow_pair::SendError;

/// What a call can come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Error {
    Handle,
    Argument,
    State,
    Peer,
    Over,
    Length,
    Buffer,
    System,
    Internal,
}

impl Error {
    const ALL: [(Self, c_int, &'static CStr); 9] = [
        (Self::Handle, crate::EQ_E_HANDLE, c"no such handle, or it was closed"),
        (
            Self::Argument,
            crate::EQ_E_ARGUMENT,
            c"a null pointer, an address of neither IPv4 nor IPv6, or flags other than 0",
        ),
        (Self::State, crate::EQ_E_STATE, c"eq_send wants eq_dst before it, eq_recv a local address and no destination"),
        (Self::Peer, crate::EQ_E_PEER, c"no receiver of flow pairs answers at the destination"),
        (Self::Over, crate::EQ_E_OVER, c"the flow is over"),
        (Self::Length, crate::EQ_E_LENGTH, c"the application data unit is longer than 1048576 bytes"),
        (
            Self::Buffer,
            crate::EQ_E_BUFFER,
            c"the buffer is shorter than the application data unit, which stays to be read",
        ),
        (Self::System, crate::EQ_E_SYSTEM, c"the system refused a port, a thread or a descriptor"),
        (Self::Internal, crate::EQ_E_INTERNAL, c"a fault of the library's own"),
    ];

    /// Its number for C.
    pub(crate) fn code(self) -> i16 {
        let found = Self::ALL.iter().find(|(error, ..)| *error == self);
        // Every one is in the list, and a test looks; all are between -1 and -9.
        found.map_or(-9, |(_, code, _)| *code as i16)
    }

    /// What a number means.
    pub(crate) fn words_of(code: c_int) -> &'static CStr {
        let found = Self::ALL.iter().find(|(_, known, _)| *known == code);
        match found {
            Some((.., words)) => words,
            None if code >= 0 => c"no error",
            None => c"no error of this library",
        }
    }
}

impl From<NetError> for Error {
    fn from(error: NetError) -> Self {
        match error {
            NetError::NoPair { .. } => Self::Peer,
            NetError::Panicked { .. } => Self::Internal,
            _ => Self::System,
        }
    }
}

impl From<SendError> for Error {
    fn from(error: SendError) -> Self {
        match error {
            SendError::TooLong { .. } => Self::Length,
            SendError::Closed(_) => Self::Over,
            _ => Self::Internal,
        }
    }
}
