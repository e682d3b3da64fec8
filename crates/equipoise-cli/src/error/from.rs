//! Conversion of the errors of other crates to the error classes of the command.

#[cfg(feature = "papers")]
use equipoise_papers::ExperimentError;
#[cfg(feature = "papers")]
use equipoise_papers::asvarujanon2014::AsvarujanonError;

use super::CliError;
#[cfg(feature = "papers")]
use super::PaperError;
#[cfg(feature = "live")]
use super::RealError;

#[cfg(feature = "papers")]
impl From<ExperimentError> for CliError {
    fn from(error: ExperimentError) -> Self {
        match error {
            ExperimentError::Sim(error) => error.into(),
            #[cfg(feature = "live")]
            ExperimentError::Live(error) => error.into(),
        }
    }
}

#[cfg(feature = "papers")]
impl From<AsvarujanonError> for CliError {
    fn from(error: AsvarujanonError) -> Self {
        match error {
            AsvarujanonError::Sim(error) => error.into(),
            AsvarujanonError::Pairs(error) => PaperError::Pairs(error).into(),
        }
    }
}

#[cfg(feature = "live")]
macro_rules! real {
    ($($error:ty),*) => {
        $(impl From<$error> for CliError {
            fn from(error: $error) -> Self {
                RealError::from(error).into()
            }
        })*
    };
}
#[cfg(feature = "live")]
real!(equipoise_lab::link::NetError, equipoise_lab::live::LiveError);
#[cfg(feature = "kernel")]
real!(equipoise_kernel::KernelError);
