//! Refusals before the signature.

use super::*;
use hyper::Request;

const V4: &str =
    "AWS4-HMAC-SHA256 Credential=k/20250101/us-east-1/s3/aws4_request, SignedHeaders=host;x-amz-date, Signature=0";
const QUERY: &str =
    "X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=k&X-Amz-Signature=0&X-Amz-Date=1&X-Amz-SignedHeaders=host";

fn answer(uri: &str, headers: &[(&str, &str)]) -> Result<Framed, String> {
    let mut request = Request::builder().method("PUT").uri(uri);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    admit(&request.body(()).unwrap().into_parts().0).map_err(|e| e.code().as_str().to_owned())
}

fn code(uri: &str, headers: &[(&str, &str)]) -> String {
    answer(uri, headers).unwrap_err()
}

#[test]
fn one_credential_of_the_new_kind() {
    assert_eq!(answer("/b/k", &[("authorization", V4)]), Ok(Framed::Plain));
    assert_eq!(code("/b/k?AWSAccessKeyId=a&Signature=b&Expires=1", &[]), "InvalidRequest");
    assert_eq!(code("/b/k", &[("authorization", "AWS a:b")]), "InvalidRequest");
    assert_eq!(code("/b/k", &[("authorization", "Bearer x")]), "InvalidArgument");
    assert_eq!(code("/b/k", &[("authorization", V4), ("authorization", V4)]), "InvalidArgument");
    assert_eq!(code("/b/k?X-Amz-Signature=1", &[("authorization", V4)]), "InvalidArgument");
    assert_eq!(code("/b/k", &[("authorization", V4), ("x-amz-security-token", "t")]), "AccessDenied");
}

#[test]
fn presigned_urls() {
    let life = |seconds: &str| answer(&format!("/b/k?{QUERY}&X-Amz-Expires={seconds}"), &[]);
    assert_eq!(life("1"), Ok(Framed::Plain));
    assert_eq!(life("604800"), Ok(Framed::Plain));
    for bad in ["604801", "0", "-1", "%2B1", "x", ""] {
        assert_eq!(life(bad).unwrap_err(), "AuthorizationQueryParametersError", "{bad}");
    }
    for part in QUERY.split('&') {
        let without = format!("/b/k?{}&X-Amz-Expires=1", QUERY.replace(part, "a=b"));
        assert_eq!(code(&without, &[]), "AuthorizationQueryParametersError", "{part}");
        let twice = format!("/b/k?{QUERY}&{part}&X-Amz-Expires=1");
        assert_eq!(code(&twice, &[]), "AuthorizationQueryParametersError", "{part}");
    }
    let url = format!("/b/k?{QUERY}&X-Amz-Expires=60");
    assert_eq!(code(&url, &[("x-amz-copy-source", "b/other")]), "AccessDenied");
    assert_eq!(answer(&url, &[("x-amz-content-sha256", "UNSIGNED-PAYLOAD")]), Ok(Framed::Plain));
}

#[test]
fn unsigned_headers_and_vendor_headers() {
    assert_eq!(code("/b/k", &[("authorization", V4), ("x-amz-acl", "private")]), "AccessDenied");
    assert_eq!(code("/b/k", &[("authorization", &V4.replace("host;", ""))]), "AccessDenied");
    for name in ["x-tigris-snapshot", "x-tigris-made-up", "tigris-force-delete"] {
        assert_eq!(code("/b", &[("authorization", V4), (name, "true")]), "AccessDenied");
        let signed = V4.replace("host;", &format!("host;{name};"));
        assert_eq!(answer("/b", &[("authorization", &signed), (name, "true")]), Ok(Framed::Plain));
    }
}

#[test]
fn framing_is_declared() {
    let with = |sha: &str, more: &[(&str, &str)]| {
        let mut headers = vec![("x-amz-content-sha256", sha)];
        headers.extend_from_slice(more);
        answer("/b/k", &headers)
    };
    let length = [("x-amz-decoded-content-length", "6")];
    assert_eq!(with("STREAMING-UNSIGNED-PAYLOAD-TRAILER", &length), Ok(Framed::Unsigned(6)));
    assert_eq!(with("STREAMING-AWS4-HMAC-SHA256-PAYLOAD", &length), Ok(Framed::Signed(6)));
    for length in ["", "+6", "-6", "0x6", "6 6"] {
        let length = [("x-amz-decoded-content-length", length)];
        assert_eq!(with("STREAMING-AWS4-HMAC-SHA256-PAYLOAD", &length).unwrap_err(), "MissingContentLength");
    }
    assert_eq!(with("STREAMING-AWS4-HMAC-SHA256-PAYLOAD", &[]).unwrap_err(), "MissingContentLength");
    let chunked = ("content-encoding", "gzip, aws-chunked");
    assert_eq!(with("UNSIGNED-PAYLOAD", &[chunked]), Ok(Framed::Plain));
    for of_frames in [("x-amz-decoded-content-length", "6"), ("x-amz-trailer", "x-amz-checksum-crc32")] {
        assert_eq!(with("UNSIGNED-PAYLOAD", &[chunked, of_frames]).unwrap_err(), "InvalidRequest");
    }
}
