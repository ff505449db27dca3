//! Digests of content: computed while it streams, compared with what the client claims, combined for multipart uploads.
//!
//! Rules are those of AWS, "Checking object integrity for data uploads": CRC64NVME is always of the full object, SHA-1 and SHA-256
//! of parts are always composite (a digest of the parts' digests, with `-N`), CRC32 and CRC32C may be either.

use crate::errors::{bad_digest, custom, error};
use fast_md5::Md5;
use hyper::HeaderMap;
use mw_world::{Checksum, ChecksumAlgorithm};
use s3s::crypto::{Checksum as _, Crc32, Crc32c, Crc64Nvme, Sha1, Sha256};
use s3s::{S3ErrorCode, S3Result};

/// The algorithms that are kept. S3 has more by now; those are refused by name.
pub(crate) const ALGORITHMS: [ChecksumAlgorithm; 5] = [
    ChecksumAlgorithm::Crc32,
    ChecksumAlgorithm::Crc32c,
    ChecksumAlgorithm::Sha1,
    ChecksumAlgorithm::Sha256,
    ChecksumAlgorithm::Crc64Nvme,
];

/// Returns the S3 name of an algorithm.
pub(crate) fn name(algorithm: ChecksumAlgorithm) -> &'static str {
    match algorithm {
        ChecksumAlgorithm::Crc32 => "CRC32",
        ChecksumAlgorithm::Crc32c => "CRC32C",
        ChecksumAlgorithm::Sha1 => "SHA1",
        ChecksumAlgorithm::Sha256 => "SHA256",
        ChecksumAlgorithm::Crc64Nvme => "CRC64NVME",
    }
}

/// Returns the algorithm with the S3 name `text`.
///
/// # Errors
/// `InvalidRequest` for a name that S3 does not know.
pub(crate) fn named(text: &str) -> S3Result<ChecksumAlgorithm> {
    ALGORITHMS.into_iter().find(|a| name(*a).eq_ignore_ascii_case(text)).ok_or_else(|| {
        error(
            S3ErrorCode::InvalidRequest,
            "Checksum algorithm provided is unsupported. Please try again with any of the valid types: [CRC32, CRC32C, \
             CRC64NVME, SHA1, SHA256]",
        )
    })
}

/// Returns the header, and the trailer, that carries a checksum.
pub(crate) fn header(algorithm: ChecksumAlgorithm) -> &'static str {
    match algorithm {
        ChecksumAlgorithm::Crc32 => "x-amz-checksum-crc32",
        ChecksumAlgorithm::Crc32c => "x-amz-checksum-crc32c",
        ChecksumAlgorithm::Sha1 => "x-amz-checksum-sha1",
        ChecksumAlgorithm::Sha256 => "x-amz-checksum-sha256",
        ChecksumAlgorithm::Crc64Nvme => "x-amz-checksum-crc64nvme",
    }
}

fn width(algorithm: ChecksumAlgorithm) -> usize {
    match algorithm {
        ChecksumAlgorithm::Crc32 | ChecksumAlgorithm::Crc32c => 4,
        ChecksumAlgorithm::Crc64Nvme => 8,
        ChecksumAlgorithm::Sha1 => 20,
        ChecksumAlgorithm::Sha256 => 32,
    }
}

/// Encodes bytes as S3 writes digests.
pub(crate) fn base64(bytes: &[u8]) -> String {
    base64_simd::STANDARD.encode_to_string(bytes)
}

fn decode(text: &str) -> Option<Vec<u8>> {
    base64_simd::STANDARD.decode_to_vec(text).ok()
}

/// A checksum being computed.
enum Running {
    Crc32(Crc32),
    Crc32c(Crc32c),
    Sha1(Sha1),
    Sha256(Sha256),
    Crc64Nvme(Crc64Nvme),
}

impl Running {
    fn new(algorithm: ChecksumAlgorithm) -> Self {
        match algorithm {
            ChecksumAlgorithm::Crc32 => Self::Crc32(Crc32::new()),
            ChecksumAlgorithm::Crc32c => Self::Crc32c(Crc32c::new()),
            ChecksumAlgorithm::Sha1 => Self::Sha1(Sha1::new()),
            ChecksumAlgorithm::Sha256 => Self::Sha256(Sha256::new()),
            ChecksumAlgorithm::Crc64Nvme => Self::Crc64Nvme(Crc64Nvme::new()),
        }
    }

    fn update(&mut self, data: &[u8]) {
        match self {
            Self::Crc32(c) => c.update(data),
            Self::Crc32c(c) => c.update(data),
            Self::Sha1(c) => c.update(data),
            Self::Sha256(c) => c.update(data),
            Self::Crc64Nvme(c) => c.update(data),
        }
    }

    fn finish(self) -> Vec<u8> {
        match self {
            Self::Crc32(c) => c.finalize().to_vec(),
            Self::Crc32c(c) => c.finalize().to_vec(),
            Self::Sha1(c) => c.finalize().to_vec(),
            Self::Sha256(c) => c.finalize().to_vec(),
            Self::Crc64Nvme(c) => c.finalize().to_vec(),
        }
    }
}

/// The digests of one body while it streams: always MD5, for the ETag, and the checksums asked for.
pub(crate) struct Digests {
    md5: Md5,
    running: Vec<(ChecksumAlgorithm, Running)>,
}

/// The digests of one whole body.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Digested {
    /// The MD5, whose hexadecimal form is the ETag.
    pub(crate) md5: [u8; 16],
    /// The checksums, none of them composite.
    pub(crate) checksums: Vec<Checksum>,
}

impl Digests {
    /// Starts MD5 and `algorithms`.
    pub(crate) fn new(algorithms: &[ChecksumAlgorithm]) -> Self {
        Self { md5: Md5::new(), running: algorithms.iter().map(|a| (*a, Running::new(*a))).collect() }
    }

    /// Takes the next bytes.
    pub(crate) fn update(&mut self, data: &[u8]) {
        self.md5.update(data);
        self.running.iter_mut().for_each(|(_, r)| r.update(data));
    }

    /// Ends.
    pub(crate) fn finish(self) -> Digested {
        let checksums = self
            .running
            .into_iter()
            .map(|(algorithm, r)| Checksum { algorithm, value: base64(&r.finish()), composite: false })
            .collect();
        Digested { md5: self.md5.finalize(), checksums }
    }
}

impl Digested {
    /// Returns the ETag of content that was put in one piece.
    pub(crate) fn etag(&self) -> String {
        hex(&self.md5)
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

/// What the client claims about a body.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Claims {
    md5: Option<Vec<u8>>,
    sums: Vec<(ChecksumAlgorithm, String)>,
    /// The checksums that the trailer will bring.
    trailing: Vec<ChecksumAlgorithm>,
    /// Whether a trailer was announced.
    trailer: bool,
    /// The algorithm named by `x-amz-sdk-checksum-algorithm`.
    asked: Option<ChecksumAlgorithm>,
}

impl Claims {
    /// Reads `Content-MD5`, `x-amz-checksum-*` and `x-amz-trailer`.
    ///
    /// # Errors
    /// `InvalidDigest` or `InvalidRequest` for a value that is no digest.
    pub(crate) fn of(headers: &HeaderMap) -> S3Result<Self> {
        let mut claims = Self { md5: md5_of(headers)?, ..Self::default() };
        for algorithm in ALGORITHMS {
            if let Some(value) = text(headers, header(algorithm))? {
                claims.sums.push((algorithm, checked(algorithm, value)?));
            }
        }
        if claims.sums.len() > 1 {
            return Err(error(
                S3ErrorCode::InvalidRequest,
                "Expecting a single x-amz-checksum- header. Multiple checksum Types are not allowed.",
            ));
        }
        for value in headers.get_all("x-amz-trailer") {
            claims.trailer = true;
            let value = value.to_str().unwrap_or_default();
            for one in value.split(',').map(str::trim).filter(|v| !v.is_empty()) {
                let known = ALGORITHMS.into_iter().find(|a| header(*a).eq_ignore_ascii_case(one));
                claims.trailing.push(known.ok_or_else(|| {
                    error(
                        S3ErrorCode::InvalidRequest,
                        "The value specified in the x-amz-trailer header is not supported",
                    )
                })?);
            }
        }
        if let Some(name) = text(headers, "x-amz-sdk-checksum-algorithm")? {
            claims.asked = Some(named(name)?);
        }
        Ok(claims)
    }

    /// Returns what must be computed. When the client asks for nothing, `otherwise`.
    pub(crate) fn algorithms(&self, otherwise: &[ChecksumAlgorithm]) -> Vec<ChecksumAlgorithm> {
        let mut all: Vec<_> = self.sums.iter().map(|(a, _)| *a).chain(self.trailing.iter().copied()).collect();
        all.extend(self.asked);
        if all.is_empty() {
            all.extend_from_slice(otherwise);
        }
        let mut once = Vec::new();
        all.into_iter().for_each(|a| {
            if !once.contains(&a) {
                once.push(a);
            }
        });
        once
    }

    /// Returns the algorithm of a checksum that the client sends.
    pub(crate) fn sent(&self) -> Option<ChecksumAlgorithm> {
        self.sums.first().map(|(a, _)| *a).or_else(|| self.trailing.first().copied())
    }

    /// Takes the trailer into account.
    ///
    /// # Errors
    /// `MalformedTrailerError` when an announced one is missing.
    pub(crate) fn with_trailer(mut self, trailer: Option<HeaderMap>) -> S3Result<Self> {
        let missing =
            || custom("MalformedTrailerError", 400, "The request contained trailing data that was not well-formed.");
        if !self.trailer {
            return Ok(self);
        }
        let trailer = trailer.ok_or_else(missing)?;
        for algorithm in std::mem::take(&mut self.trailing) {
            let value = text(&trailer, header(algorithm))?.ok_or_else(missing)?;
            self.sums.push((algorithm, checked(algorithm, value)?));
        }
        Ok(self)
    }

    /// Compares the claims with what was received.
    ///
    /// # Errors
    /// `BadDigest`.
    pub(crate) fn verify(&self, found: &Digested) -> S3Result<()> {
        if self.md5.as_ref().is_some_and(|md5| *md5 != found.md5) {
            return Err(bad_digest("Content-MD5"));
        }
        for (algorithm, value) in &self.sums {
            if !found.checksums.iter().any(|c| c.algorithm == *algorithm && c.value == *value) {
                return Err(bad_digest(name(*algorithm)));
            }
        }
        Ok(())
    }
}

fn text<'h>(headers: &'h HeaderMap, name: &str) -> S3Result<Option<&'h str>> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else { return Ok(None) };
    let value = value.to_str().ok().filter(|_| values.next().is_none());
    value.map(Some).ok_or_else(|| error(S3ErrorCode::InvalidRequest, format!("Value for {name} header is invalid.")))
}

fn md5_of(headers: &HeaderMap) -> S3Result<Option<Vec<u8>>> {
    let Some(value) = text(headers, "content-md5")? else { return Ok(None) };
    let md5 = decode(value).filter(|md5| md5.len() == 16);
    md5.map(Some).ok_or_else(|| error(S3ErrorCode::InvalidDigest, "The Content-MD5 you specified was invalid."))
}

/// Checks that `value` can be a checksum, and returns it in the one form in which it is compared.
fn checked(algorithm: ChecksumAlgorithm, value: &str) -> S3Result<String> {
    let raw = decode(value).filter(|raw| raw.len() == width(algorithm));
    raw.map(|raw| base64(&raw)).ok_or_else(|| {
        error(S3ErrorCode::InvalidRequest, format!("Value for {} header is invalid.", header(algorithm)))
    })
}

/// Returns the digests of a body that is in memory.
pub(crate) fn digest(data: &[u8], algorithms: &[ChecksumAlgorithm]) -> Digested {
    let mut digests = Digests::new(algorithms);
    digests.update(data);
    digests.finish()
}

/// Returns the ETag of an object made of parts: the MD5 of their MD5s, `-`, their number.
pub(crate) fn etag_of_parts<'e>(etags: impl Iterator<Item = &'e str>) -> String {
    let mut md5 = Md5::new();
    let mut count = 0;
    for etag in etags {
        count += 1;
        match unhex(etag) {
            Some(raw) => md5.update(&raw),
            // A copied part has an ETag that is no MD5; its text then stands for it.
            None => md5.update(etag.as_bytes()),
        }
    }
    format!("{}-{count}", hex(&md5.finalize()))
}

fn unhex(etag: &str) -> Option<Vec<u8>> {
    if etag.len() != 32 || !etag.is_ascii() {
        return None;
    }
    (0..16).map(|i| u8::from_str_radix(&etag[2 * i..2 * i + 2], 16).ok()).collect()
}

/// Returns the checksum of an object made of parts; `parts` holds the checksum and the size of each. `None` when one is missing or
/// is no checksum, or when the algorithm has no such form.
pub(crate) fn of_parts(
    algorithm: ChecksumAlgorithm,
    composite: bool,
    parts: &[(Option<&str>, u64)],
) -> Option<Checksum> {
    let raw = parts
        .iter()
        .map(|(value, size)| Some((value.and_then(decode).filter(|raw| raw.len() == width(algorithm))?, *size)))
        .collect::<Option<Vec<_>>>()?;
    if composite {
        let mut running = Running::new(algorithm);
        raw.iter().for_each(|(value, _)| running.update(value));
        return Some(Checksum { algorithm, value: format!("{}-{}", base64(&running.finish()), raw.len()), composite });
    }
    let crc = match algorithm {
        ChecksumAlgorithm::Crc32 => crc_fast::CrcAlgorithm::Crc32IsoHdlc,
        ChecksumAlgorithm::Crc32c => crc_fast::CrcAlgorithm::Crc32Iscsi,
        ChecksumAlgorithm::Crc64Nvme => crc_fast::CrcAlgorithm::Crc64Nvme,
        ChecksumAlgorithm::Sha1 | ChecksumAlgorithm::Sha256 => return None,
    };
    let number = |raw: &[u8]| raw.iter().fold(0u64, |n, b| n << 8 | u64::from(*b));
    let (first, rest) = raw.split_first()?;
    let sum = rest
        .iter()
        .fold(number(&first.0), |sum, (value, size)| crc_fast::checksum_combine(crc, sum, number(value), *size));
    let bytes = sum.to_be_bytes();
    Some(Checksum { algorithm, value: base64(&bytes[8 - width(algorithm)..]), composite })
}

#[cfg(test)]
mod tests;
