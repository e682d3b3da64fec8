//! Formats an error with all its causes as one text, for programs that show or pass on errors of any crate.

use core::error::Error;
use core::fmt;

/// An error and its causes, the outermost first, with colons between them: "flow media: the controller cannot be built:
/// a time has a unit".
#[derive(Clone, Copy, Debug)]
pub struct Chain<'a>(pub &'a (dyn Error + 'a));

impl fmt::Display for Chain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)?;
        let mut source = self.0.source();
        while let Some(cause) = source {
            write!(f, ": {cause}")?;
            source = cause.source();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString as _;
    use std::io;

    use super::*;

    #[derive(Debug)]
    struct Outer(io::Error);

    impl fmt::Display for Outer {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("the file cannot be read")
        }
    }

    impl Error for Outer {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            Some(&self.0)
        }
    }

    #[test]
    fn causes_follow_an_error() {
        let inner = io::Error::other("the disk is gone");
        assert_eq!(Chain(&inner).to_string(), "the disk is gone");
        assert_eq!(Chain(&Outer(inner)).to_string(), "the file cannot be read: the disk is gone");
    }
}
