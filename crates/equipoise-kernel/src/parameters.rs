use libbpf_rs::{MapCore, MapFlags, MapType};

use crate::error::KernelError;
use crate::support::{is_registered, maps};

/// Parameters of the congestion control, the same for all connections. They can be changed while connections run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parameters {
    /// γ, weight of the rate of other flows, from 0.01 to 0.99 (0.95 in Kodama 2009, Sec. 3.3).
    pub gamma: f64,
    /// ε, speed of convergence in 1/s, from 0.01 to 100 (our choice: 1.95).
    pub epsilon_per_s: f64,
    /// l, how strongly noise of the measurements lowers γ, from 0 to 100 (4 in Kodama 2009, Sec. 3.3). With zero, γ is
    /// constant.
    pub noise_weight: f64,
    /// m, strength of the random oscillation of the window in 1/√s, from 0 to 1. With zero, there is no oscillation.
    pub oscillation: f64,
}

/// Name of the BPF map with the parameters.
pub(crate) const MAP: &str = "symb_parameters";
/// The number 1 in the format Q20, as in `symbiosis::fixed`.
const ONE: f64 = 1_048_576.0;
/// Name, minimum and maximum of each parameter, in the order of `struct parameters` in `flow.h`.
const RANGES: [(&str, f64, f64); 4] =
    [("gamma", 0.01, 0.99), ("epsilon", 0.01, 100.0), ("noise_weight", 0.0, 100.0), ("oscillation", 0.0, 1.0)];

impl Default for Parameters {
    fn default() -> Self {
        Self { gamma: 0.95, epsilon_per_s: 1.95, noise_weight: 4.0, oscillation: 0.0 }
    }
}

impl Parameters {
    const fn values(&self) -> [f64; 4] {
        [self.gamma, self.epsilon_per_s, self.noise_weight, self.oscillation]
    }

    /// Checks that all parameters are within their ranges, and not NaN.
    ///
    /// # Errors
    /// [`KernelError::Parameter`] for the first parameter that is out of range.
    pub fn check(&self) -> Result<(), KernelError> {
        for ((name, least, most), value) in RANGES.into_iter().zip(self.values()) {
            if !(least..=most).contains(&value) {
                return Err(KernelError::Parameter { name, value, least, most });
            }
        }
        Ok(())
    }

    /// Encodes the parameters as the `struct parameters` that the BPF program reads.
    fn to_bytes(self) -> Vec<u8> {
        self.values().into_iter().flat_map(|value| ((value * ONE).round() as u64).to_ne_bytes()).collect()
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let mut values =
            bytes.chunks_exact(8).map(|bytes| Some(u64::from_ne_bytes(bytes.try_into().ok()?) as f64 / ONE));
        let mut next = || values.next().flatten();
        Some(Self { gamma: next()?, epsilon_per_s: next()?, noise_weight: next()?, oscillation: next()? })
    }

    /// Writes the parameters to a BPF map.
    pub(crate) fn write(self, map: &impl MapCore) -> Result<(), KernelError> {
        self.check()?;
        map.update(&0_u32.to_ne_bytes(), &self.to_bytes(), MapFlags::ANY).map_err(KernelError::of("set the parameters"))
    }
}

/// Returns the parameters of the loaded congestion control.
///
/// # Errors
/// [`KernelError::NotLoaded`], [`KernelError::Rights`], [`KernelError::Refused`]; [`KernelError::Version`] if the
/// loaded program is from another version of this crate.
pub fn parameters() -> Result<Parameters, KernelError> {
    if !is_registered(crate::NAME) {
        return Err(KernelError::NotLoaded);
    }
    // Maps of programs that were loaded earlier may still exist. The last map is the newest.
    let map = maps(MapType::Array, MAP)?.pop().ok_or(KernelError::NotLoaded)?;
    let bytes = map.lookup(&0_u32.to_ne_bytes(), MapFlags::ANY).map_err(KernelError::of("read the parameters"))?;
    bytes.as_deref().and_then(Parameters::from_bytes).ok_or(KernelError::Version)
}

/// Sets the parameters of the loaded congestion control. Connections that still use a program loaded earlier get the
/// parameters, too.
///
/// # Errors
/// [`KernelError::Parameter`], [`KernelError::NotLoaded`], [`KernelError::Rights`], [`KernelError::Refused`].
pub fn set_parameters(parameters: Parameters) -> Result<(), KernelError> {
    parameters.check()?;
    let maps = maps(MapType::Array, MAP)?;
    if maps.is_empty() || !is_registered(crate::NAME) {
        return Err(KernelError::NotLoaded);
    }
    maps.iter().try_for_each(|map| parameters.write(map))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_out_of_range_are_refused_by_name() {
        assert!(Parameters::default().check().is_ok());
        for (wrong, name) in [
            (Parameters { gamma: 1.0, ..Parameters::default() }, "gamma"),
            (Parameters { epsilon_per_s: 0.0, ..Parameters::default() }, "epsilon"),
            (Parameters { noise_weight: -1.0, ..Parameters::default() }, "noise_weight"),
            (Parameters { oscillation: f64::NAN, ..Parameters::default() }, "oscillation"),
        ] {
            let error = wrong.check().expect_err("wrong on purpose").to_string();
            assert!(error.contains(name) && error.contains("between"), "{error}");
        }
    }

    #[test]
    fn what_is_written_reads_back_to_a_millionth() {
        let given = Parameters { gamma: 0.5, epsilon_per_s: 12.5, noise_weight: 3.25, oscillation: 0.3 };
        let read = Parameters::from_bytes(&given.to_bytes()).expect("thirty-two bytes");
        assert!(given.values().iter().zip(read.values()).all(|(a, b)| (a - b).abs() < 1e-6), "{read:?}");
        assert_eq!(Parameters::from_bytes(&[0; 31]), None);
    }
}
