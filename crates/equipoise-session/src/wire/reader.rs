use super::WireError;

/// Reads big-endian fields from the front of a slice, and tracks the offset of the next field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reader<'a> {
    rest: &'a [u8],
    offset: usize,
}

impl<'a> Reader<'a> {
    /// Creates a reader of `bytes`, the first of which has the offset `offset`.
    pub(super) const fn new(bytes: &'a [u8], offset: usize) -> Self {
        Self { rest: bytes, offset }
    }

    /// Returns the bytes that were not read yet.
    pub(super) const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    pub(super) const fn offset(&self) -> usize {
        self.offset
    }

    pub(super) fn bytes(&mut self, need: usize, field: &'static str) -> Result<&'a [u8], WireError> {
        let (taken, rest) = self.rest.split_at_checked(need).ok_or(self.truncated(need, field))?;
        self.rest = rest;
        self.offset = self.offset.saturating_add(need);
        Ok(taken)
    }

    pub(super) fn array<const N: usize>(&mut self, field: &'static str) -> Result<[u8; N], WireError> {
        let (taken, rest) = self.rest.split_first_chunk().ok_or(self.truncated(N, field))?;
        self.rest = rest;
        self.offset = self.offset.saturating_add(N);
        Ok(*taken)
    }

    pub(super) fn u8(&mut self, field: &'static str) -> Result<u8, WireError> {
        self.array(field).map(u8::from_be_bytes)
    }

    pub(super) fn u16(&mut self, field: &'static str) -> Result<u16, WireError> {
        self.array(field).map(u16::from_be_bytes)
    }

    pub(super) fn u32(&mut self, field: &'static str) -> Result<u32, WireError> {
        self.array(field).map(u32::from_be_bytes)
    }

    pub(super) fn u64(&mut self, field: &'static str) -> Result<u64, WireError> {
        self.array(field).map(u64::from_be_bytes)
    }

    const fn truncated(&self, need: usize, field: &'static str) -> WireError {
        WireError::Truncated { field, offset: self.offset, need, have: self.rest.len() }
    }
}
