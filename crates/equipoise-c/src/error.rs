//! Result codes of the calls of the C API, and error messages.

use std::cell::RefCell;
use std::error::Error;
use std::ffi::{CStr, CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};

use equipoise::control::ConfigError;
use equipoise::error::Chain;
use equipoise_net::flow_pair::SendError;
use equipoise_net::{Closed, KeyError, NetError};
use equipoise_session::rtp::SessionError;

/// Result of a call: EQ_OK, or a negative number. eq_last_error_message describes the error and how to correct it.
#[repr(i32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum eq_error {
    /// Success.
    EQ_OK = 0,
    /// The handle is NULL, or the flow-pair handle is unknown or closed.
    EQ_E_HANDLE = -1,
    /// A null pointer, an invalid address, a text that is not UTF-8, or a number out of range.
    EQ_E_ARGUMENT = -2,
    /// The call is not allowed in the present state, such as eq_send before eq_dst.
    EQ_E_STATE = -3,
    /// The other host does not answer, or refuses the session or the flow.
    EQ_E_PEER = -4,
    /// The session, the flow or the list is at its end, or was stopped. A loop that reads all items ends with this
    /// code.
    EQ_END = -5,
    /// The data is longer than the maximum. No part of the data was accepted.
    EQ_E_LENGTH = -6,
    /// The buffer is too short; the data can still be read.
    EQ_E_BUFFER = -7,
    /// The operating system refused a resource: a port that is in use, a thread, or a descriptor.
    EQ_E_SYSTEM = -8,
    /// An error in the library.
    EQ_E_INTERNAL = -9,
    /// Within the timeout there was nothing to read, or no space to write: poll the descriptor, then call again. The
    /// code has another meaning for eq_sender_close: some data may not have been sent, and the sender was freed.
    EQ_AGAIN = -10,
    /// There is no controller or parameter with this name.
    EQ_E_NAME = -11,
    /// A parameter's value is invalid or conflicts with another parameter, or the controller needs input that this API
    /// does not provide.
    EQ_E_VALUE = -12,
    /// The text is not a valid key.
    EQ_E_KEY = -13,
    /// The data is not valid feedback, or reports the arrival of packets that were never sent. The invalid feedback is
    /// not applied.
    EQ_E_FEEDBACK = -14,
}

use eq_error::{
    EQ_AGAIN, EQ_E_ARGUMENT, EQ_E_BUFFER, EQ_E_FEEDBACK, EQ_E_HANDLE, EQ_E_INTERNAL, EQ_E_KEY, EQ_E_LENGTH, EQ_E_NAME,
    EQ_E_PEER, EQ_E_STATE, EQ_E_SYSTEM, EQ_E_VALUE, EQ_END, EQ_OK,
};

/// Every result code with its name and its meaning.
const ALL: [(eq_error, &CStr, &CStr); 15] = [
    (EQ_OK, c"EQ_OK", c"no error"),
    (EQ_E_HANDLE, c"EQ_E_HANDLE", c"no such handle, or it was closed"),
    (EQ_E_ARGUMENT, c"EQ_E_ARGUMENT", c"a null pointer, or an argument that cannot be read or is out of its range"),
    (EQ_E_STATE, c"EQ_E_STATE", c"another call has to come before"),
    (EQ_E_PEER, c"EQ_E_PEER", c"the other host does not answer, or refuses"),
    (EQ_END, c"EQ_END", c"the session is over"),
    (EQ_E_LENGTH, c"EQ_E_LENGTH", c"it is longer than can be sent at once"),
    (EQ_E_BUFFER, c"EQ_E_BUFFER", c"the buffer is too short; what was to be read stays to be read"),
    (EQ_E_SYSTEM, c"EQ_E_SYSTEM", c"the system refused a port, a thread or a descriptor"),
    (EQ_E_INTERNAL, c"EQ_E_INTERNAL", c"a fault of the library's own"),
    (EQ_AGAIN, c"EQ_AGAIN", c"nothing to read, or no room, within the time that was given"),
    (EQ_E_NAME, c"EQ_E_NAME", c"no controller or parameter of that name"),
    (EQ_E_VALUE, c"EQ_E_VALUE", c"a parameter's value is wrong, or does not fit"),
    (EQ_E_KEY, c"EQ_E_KEY", c"no key"),
    (EQ_E_FEEDBACK, c"EQ_E_FEEDBACK", c"no feedback, or on packets that were never sent"),
];

thread_local! {
    static LAST: RefCell<CString> = RefCell::new(c"no call of this thread has failed".to_owned());
}

/// Returns the name of a result code, such as "EQ_E_PEER"; never NULL. The text belongs to the library.
#[unsafe(no_mangle)]
pub extern "C" fn eq_error_name(code: i32) -> *const c_char {
    named(code).map_or(c"no code of this library", |(_, name, _)| *name).as_ptr()
}

/// Returns the meaning of a result code, as a short English text; never NULL. The text belongs to the library.
#[unsafe(no_mangle)]
pub extern "C" fn eq_strerror(code: i32) -> *const c_char {
    named(code).map_or(c"no code of this library", |(_, _, words)| *words).as_ptr()
}

/// Returns a text in English that describes the last error in this thread and says how to correct it; never NULL. The
/// text is valid until another call in this thread fails.
#[unsafe(no_mangle)]
pub extern "C" fn eq_last_error_message() -> *const c_char {
    LAST.with_borrow(|message| message.as_ptr())
}

fn named(code: i32) -> Option<&'static (eq_error, &'static CStr, &'static CStr)> {
    ALL.iter().find(|(known, ..)| *known as i32 == code)
}

/// An error of a call: its result code and a message.
#[derive(Debug)]
pub(crate) struct Fault {
    pub(crate) code: eq_error,
    words: String,
}

impl Fault {
    pub(crate) fn new(code: eq_error, words: impl Into<String>) -> Self {
        Self { code, words: words.into() }
    }

    /// The error for a null pointer in the argument `what`.
    pub(crate) fn null(what: &str) -> Self {
        Self::new(EQ_E_ARGUMENT, format!("`{what}` is NULL"))
    }

    /// The error for a handle that is NULL.
    pub(crate) fn no_handle() -> Self {
        Self::new(EQ_E_HANDLE, "the handle is NULL")
    }

    /// An error whose message includes the messages of all its sources.
    fn chain(code: eq_error, error: &dyn Error) -> Self {
        Self { code, words: Chain(error).to_string() }
    }

    /// Stores the error's message for [`eq_last_error_message`], and returns the error's code.
    fn tell(self) -> eq_error {
        // With a zero byte in the message, `CString::new` would fail, and the message would be empty.
        let words = CString::new(self.words.replace('\0', "\\0")).unwrap_or_default();
        LAST.set(words);
        self.code
    }
}

impl From<NetError> for Fault {
    fn from(error: NetError) -> Self {
        let code = match &error {
            NetError::NoPair { .. }
            | NetError::NoAnswer { .. }
            | NetError::Refused { .. }
            | NetError::OtherVersion { .. } => EQ_E_PEER,
            NetError::Panicked { .. } => EQ_E_INTERNAL,
            NetError::Session(_) | NetError::Pair(_) | NetError::NoCongestionControl { .. } => EQ_E_VALUE,
            _ => EQ_E_SYSTEM,
        };
        Self::chain(code, &error)
    }
}

impl From<SendError> for Fault {
    fn from(error: SendError) -> Self {
        let code = match error {
            SendError::TooLong { .. } => EQ_E_LENGTH,
            SendError::Closed(_) => EQ_END,
            _ => EQ_E_INTERNAL,
        };
        Self::chain(code, &error)
    }
}

impl From<Closed> for Fault {
    fn from(error: Closed) -> Self {
        Self::chain(EQ_END, &error)
    }
}

impl From<ConfigError> for Fault {
    fn from(error: ConfigError) -> Self {
        let code = if matches!(error, ConfigError::UnknownParameter { .. }) { EQ_E_NAME } else { EQ_E_VALUE };
        Self::chain(code, &error)
    }
}

impl From<SessionError> for Fault {
    fn from(error: SessionError) -> Self {
        Self::chain(EQ_E_VALUE, &error)
    }
}

impl From<KeyError> for Fault {
    fn from(error: KeyError) -> Self {
        Self::chain(EQ_E_KEY, &error)
    }
}

impl From<std::io::Error> for Fault {
    fn from(error: std::io::Error) -> Self {
        Self::chain(EQ_E_SYSTEM, &error)
    }
}

/// Runs `body`. Returns `EQ_OK`, or the code of its error; a panic is an error, too.
pub(crate) fn guarded(body: impl FnOnce() -> Result<(), Fault>) -> eq_error {
    value(body).err().unwrap_or(EQ_OK)
}

/// Runs `body` and returns its value, or the code of its error; a panic is an error, too.
pub(crate) fn value<T>(body: impl FnOnce() -> Result<T, Fault>) -> Result<T, eq_error> {
    let panicked = || Fault::new(EQ_E_INTERNAL, "a fault of the library's own: it panicked, and said where on stderr");
    let result = catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|_| Err(panicked()));
    result.map_err(Fault::tell)
}
