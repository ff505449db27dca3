//! Bounded binary encoding: LEB128 varints, length-prefixed bytes, fixed big-endian numbers.
//!
//! A decoder never allocates more than the input holds and never reads past it.

use crate::Hash;

/// Why stored bytes could not be decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DecodeError {
    /// The input ends too early.
    Short,
    /// A number or tag is out of range.
    Range,
    /// Bytes are left over.
    Trailing,
}

impl std::fmt::Display for DecodeError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Short => "the record ends too early",
            Self::Range => "a number in the record is out of range",
            Self::Trailing => "the record has bytes left over",
        })
    }
}

impl std::error::Error for DecodeError {}

/// Writes fields one after another.
#[derive(Debug, Default, Clone)]
pub struct Writer(pub Vec<u8>);

impl Writer {
    /// Starts an empty record.
    pub fn new() -> Self {
        Self::default()
    }

    /// Writes one byte.
    pub fn u8(&mut self, n: u8) -> &mut Self {
        self.0.push(n);
        self
    }

    /// Writes a number in 1 to 10 bytes.
    pub fn var(&mut self, mut n: u64) -> &mut Self {
        while n >= 0x80 {
            self.0.push(n as u8 | 0x80);
            n >>= 7;
        }
        self.0.push(n as u8);
        self
    }

    /// Writes a signed number (zigzag).
    pub fn int(&mut self, n: i64) -> &mut Self {
        self.var(((n << 1) ^ (n >> 63)) as u64)
    }

    /// Writes eight bytes, big-endian.
    pub fn u64(&mut self, n: u64) -> &mut Self {
        self.0.extend_from_slice(&n.to_be_bytes());
        self
    }

    /// Writes four bytes, big-endian.
    pub fn u32(&mut self, n: u32) -> &mut Self {
        self.0.extend_from_slice(&n.to_be_bytes());
        self
    }

    /// Writes a hash.
    pub fn hash(&mut self, hash: &Hash) -> &mut Self {
        self.0.extend_from_slice(&hash.0);
        self
    }

    /// Writes a length and the bytes.
    pub fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        self.var(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
        self
    }

    /// Writes a text as bytes.
    pub fn str(&mut self, text: &str) -> &mut Self {
        self.bytes(text.as_bytes())
    }

    /// Writes the bytes without a length.
    pub fn raw(&mut self, bytes: &[u8]) -> &mut Self {
        self.0.extend_from_slice(bytes);
        self
    }
}

/// Reads fields one after another.
#[derive(Debug, Clone, Copy)]
pub struct Reader<'a>(pub &'a [u8]);

impl<'a> Reader<'a> {
    /// Starts at the first byte of `input`.
    #[inline]
    pub fn new(input: &'a [u8]) -> Self {
        Self(input)
    }

    /// Takes `n` bytes.
    ///
    /// # Errors
    /// [`DecodeError::Short`] when fewer are left.
    #[inline]
    pub fn take(&mut self, n: usize) -> Result<&'a [u8], DecodeError> {
        let (head, tail) = self.0.split_at_checked(n).ok_or(DecodeError::Short)?;
        self.0 = tail;
        Ok(head)
    }

    /// Reads one byte.
    ///
    /// # Errors
    /// See [`Reader::take`].
    #[inline]
    pub fn u8(&mut self) -> Result<u8, DecodeError> {
        Ok(self.take(1)?[0])
    }

    /// Reads a varint.
    ///
    /// # Errors
    /// [`DecodeError::Range`] when it is over 64 bits.
    #[inline]
    pub fn var(&mut self) -> Result<u64, DecodeError> {
        // Most numbers are lengths and counts of one byte.
        if let [byte @ ..0x80, rest @ ..] = self.0 {
            self.0 = rest;
            return Ok(u64::from(*byte));
        }
        self.long()
    }

    fn long(&mut self) -> Result<u64, DecodeError> {
        let mut n = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.u8()?;
            let part = u64::from(byte & 0x7f);
            if shift == 63 && part > 1 {
                return Err(DecodeError::Range);
            }
            n |= part << shift;
            if byte & 0x80 == 0 {
                return Ok(n);
            }
        }
        Err(DecodeError::Range)
    }

    /// Reads a signed number.
    ///
    /// # Errors
    /// See [`Reader::var`].
    #[inline]
    pub fn int(&mut self) -> Result<i64, DecodeError> {
        let n = self.var()?;
        Ok((n >> 1) as i64 ^ -((n & 1) as i64))
    }

    /// Reads a varint that fits 32 bits.
    ///
    /// # Errors
    /// [`DecodeError::Range`] when it does not fit.
    #[inline]
    pub fn var32(&mut self) -> Result<u32, DecodeError> {
        u32::try_from(self.var()?).map_err(|_| DecodeError::Range)
    }

    /// Reads eight bytes, big-endian.
    ///
    /// # Errors
    /// See [`Reader::take`].
    #[inline]
    pub fn u64(&mut self) -> Result<u64, DecodeError> {
        let mut eight = [0; 8];
        eight.copy_from_slice(self.take(8)?);
        Ok(u64::from_be_bytes(eight))
    }

    /// Reads four bytes, big-endian.
    ///
    /// # Errors
    /// See [`Reader::take`].
    pub fn u32(&mut self) -> Result<u32, DecodeError> {
        let mut four = [0; 4];
        four.copy_from_slice(self.take(4)?);
        Ok(u32::from_be_bytes(four))
    }

    /// Reads a hash.
    ///
    /// # Errors
    /// See [`Reader::take`].
    #[inline]
    pub fn hash(&mut self) -> Result<Hash, DecodeError> {
        let mut hash = Hash::default();
        hash.0.copy_from_slice(self.take(32)?);
        Ok(hash)
    }

    /// Reads length-prefixed bytes.
    ///
    /// # Errors
    /// [`DecodeError::Short`] when the length is past the end.
    #[inline]
    pub fn bytes(&mut self) -> Result<&'a [u8], DecodeError> {
        let n = usize::try_from(self.var()?).map_err(|_| DecodeError::Range)?;
        self.take(n)
    }

    /// Reads a text.
    ///
    /// # Errors
    /// [`DecodeError::Range`] when it is not UTF-8.
    #[inline]
    pub fn str(&mut self) -> Result<&'a str, DecodeError> {
        std::str::from_utf8(self.bytes()?).map_err(|_| DecodeError::Range)
    }

    /// Returns whether everything was read.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Ends the record.
    ///
    /// # Errors
    /// [`DecodeError::Trailing`] when bytes are left.
    pub fn end(self) -> Result<(), DecodeError> {
        if self.0.is_empty() { Ok(()) } else { Err(DecodeError::Trailing) }
    }
}

#[cfg(test)]
mod tests;
