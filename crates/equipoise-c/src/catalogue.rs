//! The list of controllers for programs in C. Each controller has a number.

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
    /// Name of the parameter.
    pub name: *const c_char,
    /// Type of the parameter: "rate", "time", or "number" for a number without a unit. If the parameter is a number
    /// with a unit, the type is this unit. If it is a word, the type is the list of the possible words, separated by
    /// commas.
    pub kind: *const c_char,
    /// Default value of the parameter; NULL if the caller must specify a value.
    pub standard: *const c_char,
    /// Minimum of the parameter; NULL if its value is a word.
    pub least: *const c_char,
    /// Maximum of the parameter; NULL if its value is a word.
    pub most: *const c_char,
    /// Meaning of the parameter, and the effect of a change.
    pub meaning: *const c_char,
}

// SAFETY: the structure is `repr(C)`, its first field is its size, and all its other fields are pointers.
unsafe impl Growing for eq_parameter {
    const NAME: &'static str = "eq_parameter";

    fn standard() -> Self {
        let none = ptr::null();
        let struct_size = size_of::<Self>();
        Self { struct_size, name: none, kind: none, standard: none, least: none, most: none, meaning: none }
    }
}

/// Returns the number of controllers in the library.
#[unsafe(no_mangle)]
pub extern "C" fn eq_controller_count() -> usize {
    entries().len()
}

/// Returns the name of controller `index`, which counts from 0; NULL if `index` is too large. The text belongs to the
/// library.
#[unsafe(no_mangle)]
pub extern "C" fn eq_controller_name(index: usize) -> *const c_char {
    listing().get(index).map_or(ptr::null(), |listed| listed.name.as_ptr())
}

/// Returns one line: what controller `index` does, and in parentheses the publication that defines it. Returns NULL if
/// `index` is too large. The text belongs to the library.
#[unsafe(no_mangle)]
pub extern "C" fn eq_controller_summary(index: usize) -> *const c_char {
    listing().get(index).map_or(ptr::null(), |listed| listed.summary.as_ptr())
}

/// Returns the number of parameters of controller `index`; 0 if `index` is too large.
#[unsafe(no_mangle)]
pub extern "C" fn eq_controller_parameter_count(index: usize) -> usize {
    listing().get(index).map_or(0, |listed| listed.parameters.len())
}

/// Describes parameter `number` of controller `index` in `*parameter`. Both numbers count from 0. Set
/// parameter->struct_size before the call. Returns EQ_OK, EQ_END if one of the numbers is too large, or EQ_E_ARGUMENT.
///
/// # Safety
/// `parameter` is null, or points to a structure that begins with its size and has that number of writable bytes.
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
        // SAFETY: the caller guarantees that the pointer is valid.
        unsafe { fill(parameter, listed.shown()) }
    })
}

/// Creates a controller of the catalogue from its name and from parameters of the form "name=value".
///
/// # Safety
/// `name` is null or a C string, and `parameters` points to `count` C strings.
pub(crate) unsafe fn build(
    name: *const c_char,
    parameters: *const *const c_char,
    count: usize,
    packet: Size,
) -> Result<BoxedController, Fault> {
    // SAFETY: the caller guarantees that the pointers are valid.
    let (name, parameters) = unsafe { (text(name, "name")?, pairs(parameters, count)?) };
    let unknown = || {
        let known: Vec<_> = entries().iter().map(|entry| entry.name).collect();
        Fault::new(eq_error::EQ_E_NAME, format!("there is no controller `{name}`; there are {}", known.join(", ")))
    };
    let entry = find(name).ok_or_else(unknown)?;
    Ok(entry.build(&entry.parse(&parameters)?, packet)?)
}

/// The name, the summary and the parameters of a controller as C strings.
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

/// Converts a text of the catalogue to a C string. The catalogue's texts have no zero bytes, so this
/// cannot fail.
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
