//! XDR (RFC 4506): numbers of four and eight bytes, big end first; bytes with their length, padded to four.

use bytes::Bytes;

/// What is read does not follow the coding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Garbage;

pub(crate) type Result<T> = std::result::Result<T, Garbage>;

/// Reads a message.
pub(crate) struct Reader(Bytes);

impl Reader {
    pub(crate) fn new(message: Bytes) -> Self {
        Self(message)
    }

    fn take(&mut self, n: usize) -> Result<Bytes> {
        if n > self.0.len() { Err(Garbage) } else { Ok(self.0.split_to(n)) }
    }

    pub(crate) fn u32(&mut self) -> Result<u32> {
        let four = self.take(4)?;
        Ok(u32::from_be_bytes([four[0], four[1], four[2], four[3]]))
    }

    pub(crate) fn u64(&mut self) -> Result<u64> {
        Ok(u64::from(self.u32()?) << 32 | u64::from(self.u32()?))
    }

    pub(crate) fn bool(&mut self) -> Result<bool> {
        match self.u32()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(Garbage),
        }
    }

    /// Reads bytes of a fixed length that needs no padding.
    pub(crate) fn eight(&mut self) -> Result<[u8; 8]> {
        Ok(self.u64()?.to_be_bytes())
    }

    /// Reads at most `most` bytes.
    pub(crate) fn opaque(&mut self, most: usize) -> Result<Bytes> {
        let n = self.u32()? as usize;
        if n > most {
            return Err(Garbage);
        }
        let bytes = self.take(n)?;
        self.take(n.next_multiple_of(4) - n)?;
        Ok(bytes)
    }
}

/// Writes a message.
#[derive(Debug, Default)]
pub(crate) struct Writer(pub Vec<u8>);

impl Writer {
    pub(crate) fn u32(&mut self, n: u32) -> &mut Self {
        self.0.extend_from_slice(&n.to_be_bytes());
        self
    }

    pub(crate) fn u64(&mut self, n: u64) -> &mut Self {
        self.0.extend_from_slice(&n.to_be_bytes());
        self
    }

    pub(crate) fn bool(&mut self, yes: bool) -> &mut Self {
        self.u32(u32::from(yes))
    }

    pub(crate) fn raw(&mut self, bytes: &[u8]) -> &mut Self {
        self.0.extend_from_slice(bytes);
        self
    }

    pub(crate) fn opaque(&mut self, bytes: &[u8]) -> &mut Self {
        self.u32(bytes.len() as u32);
        self.0.extend_from_slice(bytes);
        self.0.resize(self.0.len().next_multiple_of(4), 0);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::{Garbage, Reader, Writer};

    #[test]
    fn what_is_written_is_read() {
        let mut w = Writer::default();
        w.u32(7).u64(1 << 40).bool(true).opaque(b"12345").opaque(b"");
        assert_eq!(w.0.len() % 4, 0);
        let mut r = Reader::new(w.0.into());
        assert_eq!((r.u32(), r.u64(), r.bool()), (Ok(7), Ok(1 << 40), Ok(true)));
        assert_eq!(r.opaque(5).unwrap(), &b"12345"[..]);
        assert_eq!(r.opaque(5).unwrap(), &b""[..]);
        assert_eq!(r.u32(), Err(Garbage));
    }

    #[test]
    fn lengths_are_bounded_before_anything_is_kept() {
        let mut w = Writer::default();
        w.u32(u32::MAX);
        assert_eq!(Reader::new(w.0.clone().into()).opaque(usize::MAX), Err(Garbage));
        assert_eq!(Reader::new(w.0.into()).opaque(64), Err(Garbage));
        let mut w = Writer::default();
        w.u32(2);
        assert_eq!(Reader::new(w.0.into()).bool(), Err(Garbage));
    }
}
