//! The list of controllers, by number.

use std::ffi::{CString, c_char};
use std::ptr;
use std::sync::OnceLock;

use equipoise::control::{BoxedController, Entry, Parameter, entries, find};
use equipoise::units::Size;

use crate::border::{Growing, fill, pairs, text};
use crate::error::{Fault, eq_error, guarded};

/// A parameter of a controller. All texts belong to the library.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct eq_parameter {
    /// sizeof(eq_parameter), set by the caller.
    pub struct_size: usize,
    /// Its name.
    pub name: *const c_char,
    /// Its type: "rate", "time", the unit of a number, "number", or the possible words, separated by commas.
    pub kind: *const c_char,
    /// Its default value; NULL if it has to be given.
    pub standard: *const c_char,
    /// Its smallest value; NULL for words.
    pub least: *const c_char,
    /// Its largest value; NULL for words.
    pub most: *const c_char,
    /// Its meaning, and the effect of changing it.
    pub meaning: *const c_char,
}

// SAFETY: it is `repr(C)`, begins with its size, and has pointers otherwise.
unsafe impl Growing for eq_parameter {
    const NAME: &'static str = "eq_parameter";

    fn standard() -> Self {
        let none = ptr::null();
        let struct_size = size_of::<Self>();
        Self { struct_size, name: none, kind: none, standard: none, least: none, most: none, meaning: none }
    }
}

/// The number of controllers.
#[unsafe(no_mangle)]
pub extern "C" fn eq_controller_count() -> usize {
    entries().len()
}

/// The name of controller `index`, from 0; NULL after the last. The text belongs to the library.
#[unsafe(no_mangle)]
pub extern "C" fn eq_controller_name(index: usize) -> *const c_char {
    listing().get(index).map_or(ptr::null(), |listed| listed.name.as_ptr())
}

/// A summary of controller `index` with its source, in one line; NULL after the last. The text belongs to the library.
#[unsafe(no_mangle)]
pub extern "C" fn eq_controller_summary(index: usize) -> *const c_char {
    listing().get(index).map_or(ptr::null(), |listed| listed.summary.as_ptr())
}

/// The number of parameters of controller `index`; 0 after the last.
#[unsafe(no_mangle)]
pub extern "C" fn eq_controller_parameter_count(index: usize) -> usize {
    listing().get(index).map_or(0, |listed| listed.parameters.len())
}

/// Parameter `number` of controller `index`, both from 0. Returns EQ_END after the last, or EQ_E_ARGUMENT.
///
/// # Safety
/// `parameter` is null, or begins with a `usize` and points to that many writable bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn eq_controller_parameter(
    index: usize,
    number: usize,
    parameter: *mut eq_parameter,
) -> eq_error {
    guarded(|| {
        let listed = listing().get(index).and_then(|listed| listed.parameters.get(number));
        let listed = listed.ok_or_else(|| {
            Fault::new(eq_error::EQ_END, format!("controller {index} has no parameter {number}; they count from 0"))
        })?;
        // SAFETY: the caller vouches for the pointer.
        unsafe { fill(parameter, listed.shown()) }
    })
}

/// Creates a controller of the catalogue from its name and "name=value" texts.
///
/// # Safety
/// As documented in the header: `name` is null or a text, and `parameters` are `count` texts.
pub(crate) unsafe fn build(
    name: *const c_char,
    parameters: *const *const c_char,
    count: usize,
    packet: Size,
) -> Result<BoxedController, Fault> {
    // SAFETY: the caller vouches for them.
    let (name, parameters) = unsafe { (text(name, "name")?, pairs(parameters, count)?) };
    let unknown = || {
        let known: Vec<_> = entries().iter().map(|entry| entry.name).collect();
        Fault::new(eq_error::EQ_E_NAME, format!("there is no controller `{name}`; there are {}", known.join(", ")))
    };
    let entry = find(name).ok_or_else(unknown)?;
    Ok(entry.build(&entry.parse(&parameters)?, packet)?)
}

/// A controller's texts as C strings.
struct Listed {
    name: CString,
    summary: CString,
    parameters: Vec<ListedParameter>,
}

struct ListedParameter {
    name: CString,
    kind: CString,
    standard: Option<CString>,
    range: Option<(CString, CString)>,
    meaning: CString,
}

fn listing() -> &'static [Listed] {
    static LISTING: OnceLock<Vec<Listed>> = OnceLock::new();
    LISTING.get_or_init(|| entries().iter().map(Listed::new).collect())
}

/// No text of the catalogue contains a zero byte; such a text would become empty.
fn for_c(text: &str) -> CString {
    CString::new(text).unwrap_or_default()
}

impl Listed {
    fn new(entry: &Entry) -> Self {
        Self {
            name: for_c(entry.name),
            summary: for_c(&format!("{} ({})", entry.summary, entry.source)),
            parameters: entry.parameters.iter().map(ListedParameter::new).collect(),
        }
    }
}

impl ListedParameter {
    fn new(parameter: &Parameter) -> Self {
        Self {
            name: for_c(parameter.name),
            kind: for_c(&parameter.kind.to_string()),
            standard: parameter.default.map(for_c),
            range: parameter.range.map(|(least, most)| (for_c(least), for_c(most))),
            meaning: for_c(parameter.meaning),
        }
    }

    fn shown(&self) -> eq_parameter {
        let end = |range: fn(&(CString, CString)) -> &CString| {
            self.range.as_ref().map_or(ptr::null(), |found| range(found).as_ptr())
        };
        eq_parameter {
            name: self.name.as_ptr(),
            kind: self.kind.as_ptr(),
            standard: self.standard.as_ref().map_or(ptr::null(), |text| text.as_ptr()),
            least: end(|range| &range.0),
            most: end(|range| &range.1),
            meaning: self.meaning.as_ptr(),
            ..eq_parameter::standard()
        }
    }
}
