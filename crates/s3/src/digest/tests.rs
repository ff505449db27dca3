//! Known values, and combination against the whole.

use super::*;

fn one(algorithm: ChecksumAlgorithm, data: &[u8]) -> String {
    digest(data, &[algorithm]).checksums[0].value.clone()
}

/// The MD5 is written in assembly; another that is not says the same, however long the content is and wherever it is cut.
#[test]
fn md5_is_md5_however_content_is_cut() {
    use s3s::crypto::Checksum as _;
    let bytes: Vec<u8> = (0..3_000_u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 11) as u8).collect();
    let other = |data: &[u8]| {
        let mut md5 = s3s::crypto::Md5::new();
        md5.update(data);
        md5.finalize()
    };
    for len in (0..600).chain([1_000, 1_024, 2_999, 3_000]) {
        assert_eq!(digest(&bytes[..len], &[]).md5, other(&bytes[..len]), "{len} bytes");
    }
    for step in 1..200 {
        let mut md5 = Digests::new(&[]);
        bytes.chunks(step).for_each(|part| md5.update(part));
        assert_eq!(md5.finish().md5, other(&bytes), "in parts of {step}");
        // From an address that is not aligned.
        assert_eq!(digest(&bytes[step..], &[]).md5, other(&bytes[step..]), "from {step} on");
    }
}

#[test]
fn check_values_of_the_catalogues() {
    assert_eq!(decode(&one(ChecksumAlgorithm::Crc32, b"123456789")).unwrap(), 0xCBF4_3926u32.to_be_bytes());
    assert_eq!(decode(&one(ChecksumAlgorithm::Crc32c, b"123456789")).unwrap(), 0xE306_9283u32.to_be_bytes());
    assert_eq!(
        decode(&one(ChecksumAlgorithm::Crc64Nvme, b"123456789")).unwrap(),
        0xAE8B_1486_0A79_9888u64.to_be_bytes()
    );
    assert_eq!(digest(b"", &[]).etag(), "d41d8cd98f00b204e9800998ecf8427e");
}

#[test]
fn crcs_of_parts_combine_to_the_crc_of_the_whole() {
    let data: Vec<u8> = (0..100_000u32).map(|n| (n * 7 % 251) as u8).collect();
    for algorithm in [ChecksumAlgorithm::Crc32, ChecksumAlgorithm::Crc32c, ChecksumAlgorithm::Crc64Nvme] {
        for cut in [1, 4096, 33_333, 100_000] {
            let sums: Vec<_> = data.chunks(cut).map(|c| (one(algorithm, c), c.len() as u64)).collect();
            let parts: Vec<_> = sums.iter().map(|(s, n)| (Some(s.as_str()), *n)).collect();
            assert_eq!(of_parts(algorithm, false, &parts).unwrap().value, one(algorithm, &data), "{algorithm:?} {cut}");
        }
    }
}

#[test]
fn sha_has_no_full_form_and_a_missing_part_has_no_sum() {
    let sum = one(ChecksumAlgorithm::Sha256, b"x");
    assert!(of_parts(ChecksumAlgorithm::Sha256, false, &[(Some(&sum), 1)]).is_none());
    assert!(of_parts(ChecksumAlgorithm::Sha256, true, &[(Some(&sum), 1), (None, 1)]).is_none());
    assert!(of_parts(ChecksumAlgorithm::Sha256, true, &[(Some(&sum), 1)]).unwrap().value.ends_with("=-1"));
}

#[test]
fn etag_of_parts_is_the_md5_of_md5s() {
    // Two parts with the MD5 of the empty string.
    let empty = "d41d8cd98f00b204e9800998ecf8427e";
    let expected = digest(&unhex(empty).unwrap().repeat(2), &[]).etag();
    assert_eq!(etag_of_parts([empty, empty].into_iter()), format!("{expected}-2"));
}

#[test]
fn claims() {
    let mut headers = HeaderMap::new();
    headers.insert("x-amz-checksum-crc32", base64(&0xCBF4_3926u32.to_be_bytes()).parse().unwrap());
    let claims = Claims::of(&headers).unwrap();
    let found = digest(b"123456789", &claims.algorithms(&[]));
    claims.verify(&found).unwrap();
    assert!(claims.verify(&digest(b"12345678", &claims.algorithms(&[]))).is_err());
    headers.insert("x-amz-checksum-crc32", "AAAA".parse().unwrap());
    assert_eq!(Claims::of(&headers).unwrap_err().code().as_str(), "InvalidRequest");
    headers.clear();
    headers.insert("content-md5", "xx".parse().unwrap());
    assert_eq!(Claims::of(&headers).unwrap_err().code().as_str(), "InvalidDigest");
    headers.clear();
    headers.insert("x-amz-trailer", "x-amz-checksum-sha1".parse().unwrap());
    let claims = Claims::of(&headers).unwrap();
    assert!(claims.clone().with_trailer(None).is_err());
    assert!(claims.with_trailer(Some(HeaderMap::new())).is_err());
}
