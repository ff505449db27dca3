//! In which of two dialects an answer is written: that of S3, or that of Tigris, whose errors are JSON.
//!
//! One client speaks both, and shows of an error only what it finds in the form that it expects.

use hyper::header::{ACCEPT, CONTENT_TYPE, USER_AGENT};
use hyper::http::request::Parts;
use hyper::{HeaderMap, Method};
use serde_json::{Value, json};

/// How a request is answered; it travels with the request.
#[derive(Debug, Clone)]
pub(crate) struct Manner {
    /// Whether errors are JSON.
    pub(crate) json: bool,
    /// The id of the request.
    pub(crate) id: String,
}

impl Manner {
    /// Finds out which dialect a request is in.
    ///
    /// The content type alone says nothing: a PUT of a `.json` file carries it too.
    pub(crate) fn of(parts: &Parts, id: &str) -> Self {
        let has = |name, part: &str| text(&parts.headers, name).to_ascii_lowercase().contains(part);
        let sdk = parts.headers.contains_key("amz-sdk-invocation-id")
            || ["aws-sdk", "aws-cli", "boto"].iter().any(|name| has(USER_AGENT.as_str(), name));
        let json = has(ACCEPT.as_str(), "application/json")
            || !sdk && has(CONTENT_TYPE.as_str(), "application/json") && is_ours(parts);
        Self { json, id: id.to_owned() }
    }
}

/// Whether it is an operation that clients ask for outside their S3 library.
fn is_ours(parts: &Parts) -> bool {
    let asks = |name: &str| {
        let query = parts.uri.query().unwrap_or_default();
        query.split('&').any(|pair| pair.split('=').next() == Some(name))
    };
    match parts.method {
        Method::PATCH => true,
        Method::POST => ["func", "bundle", "restore"].iter().any(|name| asks(name)),
        Method::PUT => ["x-tigris-merge-source-bucket", "x-tigris-rebase", "x-amz-copy-source"]
            .iter()
            .any(|name| parts.headers.contains_key(*name)),
        _ => false,
    }
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> &'a str {
    headers.get(name).and_then(|v| v.to_str().ok()).unwrap_or_default()
}

/// Writes an error.
pub(crate) fn error(code: &str, message: &str, id: &str) -> Value {
    json!({ "Code": code, "Message": message, "RequestId": id })
}

/// Turns an error as S3 writes it into JSON.
pub(crate) fn of_xml(xml: &str, id: &str) -> String {
    let tag = |name: &str| {
        let (_, rest) = xml.split_once(&format!("<{name}>"))?;
        let (text, _) = rest.split_once(&format!("</{name}>"))?;
        Some(unescaped(text))
    };
    let code = tag("Code").unwrap_or_else(|| "InternalError".to_owned());
    let message = tag("Message").unwrap_or_else(|| code.clone());
    error(&code, &message, id).to_string()
}

fn unescaped(text: &str) -> String {
    [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&apos;", "'"), ("&#13;", "\r"), ("&amp;", "&")]
        .iter()
        .fold(text.to_owned(), |text, (entity, plain)| text.replace(entity, plain))
}

#[cfg(test)]
mod tests {
    //! Who is answered in JSON.

    use super::*;

    fn json(method: &str, uri: &str, headers: &[(&str, &str)]) -> bool {
        let mut request = hyper::Request::builder().method(method).uri(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        Manner::of(&request.body(()).unwrap().into_parts().0, "id").json
    }

    const TYPE: (&str, &str) = ("content-type", "application/json");

    #[test]
    fn json_is_for_those_who_read_it() {
        assert!(json("GET", "/b?metadata", &[("accept", "application/json")]));
        assert!(json("PATCH", "/b", &[TYPE]));
        assert!(json("POST", "/?func=presign", &[TYPE]));
        assert!(json("PUT", "/b", &[TYPE, ("x-tigris-rebase", "true")]));
        assert!(json("PUT", "/b/k", &[TYPE, ("x-amz-copy-source", "b/o")]));
        assert!(!json("PUT", "/b/k.json", &[TYPE]));
        assert!(!json("GET", "/b/k", &[TYPE]));
        assert!(!json("GET", "/b/k", &[("accept", "*/*")]));
        let sdk = ("amz-sdk-invocation-id", "1");
        assert!(!json("PUT", "/b/k", &[TYPE, sdk, ("x-amz-copy-source", "b/o")]));
        let boto = ("user-agent", "Boto3/1.44.8 md/Botocore");
        assert!(!json("PUT", "/b/k", &[TYPE, boto, ("x-amz-copy-source", "b/o")]));
    }

    #[test]
    fn an_error_says_the_same_in_both() {
        let xml = "<Error><Code>NoSuchKey</Code><Message>&lt;a&gt; &amp;amp;</Message></Error>";
        assert_eq!(of_xml(xml, "R"), r#"{"Code":"NoSuchKey","Message":"<a> &amp;","RequestId":"R"}"#);
        assert_eq!(
            of_xml("<Error><Code>SlowDown</Code></Error>", "R"),
            r#"{"Code":"SlowDown","Message":"SlowDown","RequestId":"R"}"#
        );
    }
}
