//! One document, written as JSON or as the XML of AWS's query protocol.

use hyper::header::{ACCEPT, CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::{HeaderMap, StatusCode};
use s3s::{Body, S3Error, S3Response};
use serde_json::{Value, json};

const REQUEST_ID: HeaderName = HeaderName::from_static("x-amz-request-id");

/// What the caller reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    Json,
    Xml,
}

impl Dialect {
    /// JSON is for those who ask for it by name.
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        let accept = headers.get(ACCEPT).and_then(|v| v.to_str().ok()).unwrap_or_default();
        if accept.contains("application/json") { Self::Json } else { Self::Xml }
    }
}

/// What an action answers.
#[derive(Debug)]
pub(super) enum Document {
    /// The result of an AWS action: the content of its `…Result` element.
    Result(Value),
    /// A document that only the JSON dialect has; in XML it stands as the result.
    Plain(Value),
}

/// An answer being written.
pub(super) struct Answer<'a> {
    pub(super) dialect: Dialect,
    pub(super) id: &'a str,
}

impl Answer<'_> {
    /// Writes a document.
    pub(super) fn document(&self, action: &str, document: &Document) -> S3Response<Body> {
        match (self.dialect, document) {
            (Dialect::Json, Document::Plain(value)) => self.json(StatusCode::OK, value),
            (Dialect::Json, Document::Result(value)) => {
                self.json(StatusCode::OK, &json!({format!("{action}Result"): value}))
            }
            (Dialect::Xml, Document::Plain(value) | Document::Result(value)) => {
                let space = if is_sts(action) {
                    "https://sts.amazonaws.com/doc/2011-06-15/"
                } else {
                    "https://iam.amazonaws.com/doc/2010-05-08/"
                };
                let mut xml = format!("<{action}Response xmlns=\"{space}\"><{action}Result>");
                element(&mut xml, value);
                xml.push_str(&format!(
                    "</{action}Result><ResponseMetadata><RequestId>{}</RequestId></ResponseMetadata></{action}Response>",
                    self.id
                ));
                self.response(StatusCode::OK, "text/xml", xml)
            }
        }
    }

    /// Writes an error.
    pub(super) fn error(&self, error: &S3Error) -> S3Response<Body> {
        let status =
            error.status_code().or_else(|| error.code().status_code()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        self.refusal(status, error.code().as_str(), error.message().unwrap_or("The request was refused."))
    }

    /// Writes an error that is known by its parts.
    pub(super) fn refusal(&self, status: StatusCode, code: &str, message: &str) -> S3Response<Body> {
        match self.dialect {
            Dialect::Json => self.json(status, &json!({"Code": code, "Message": message, "RequestId": self.id})),
            Dialect::Xml => self.response(status, "text/xml", error_xml(status, code, message, self.id)),
        }
    }

    fn json(&self, status: StatusCode, value: &Value) -> S3Response<Body> {
        self.response(status, "application/json", value.to_string())
    }

    fn response(&self, status: StatusCode, kind: &'static str, body: String) -> S3Response<Body> {
        let mut response = S3Response::new(Body::from(body));
        response.status = Some(status);
        response.headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
        if let Ok(id) = HeaderValue::from_str(self.id) {
            response.headers.insert(REQUEST_ID, id);
        }
        response
    }
}

/// Writes an error as AWS's query protocol has it.
pub(super) fn error_xml(status: StatusCode, code: &str, message: &str, id: &str) -> String {
    let kind = if status.is_server_error() { "Receiver" } else { "Sender" };
    let mut xml = format!("<ErrorResponse><Error><Type>{kind}</Type><Code>{code}</Code><Message>");
    text(&mut xml, message);
    xml.push_str(&format!("</Message></Error><RequestId>{id}</RequestId></ErrorResponse>"));
    xml
}

fn is_sts(action: &str) -> bool {
    matches!(action, "GetCallerIdentity" | "GetFederationToken" | "AssumeRole" | "GetSessionToken")
}

/// Writes the content of an element: members of an object as elements, those of a list as `member`.
fn element(xml: &mut String, value: &Value) {
    match value {
        Value::Null => {}
        Value::Bool(b) => xml.push_str(if *b { "true" } else { "false" }),
        Value::Number(n) => xml.push_str(&n.to_string()),
        Value::String(s) => text(xml, s),
        Value::Array(list) => {
            for item in list {
                xml.push_str("<member>");
                element(xml, item);
                xml.push_str("</member>");
            }
        }
        Value::Object(map) => {
            for (name, item) in map {
                xml.push_str(&format!("<{name}>"));
                element(xml, item);
                xml.push_str(&format!("</{name}>"));
            }
        }
    }
}

/// Writes text; what XML cannot carry at all becomes a question mark.
fn text(xml: &mut String, text: &str) {
    for c in text.chars() {
        match c {
            '&' => xml.push_str("&amp;"),
            '<' => xml.push_str("&lt;"),
            '>' => xml.push_str("&gt;"),
            '"' => xml.push_str("&quot;"),
            '\t' | '\n' | '\u{20}'..='\u{D7FF}' | '\u{E000}'..='\u{FFFD}' | '\u{10000}'.. => xml.push(c),
            _ => xml.push('?'),
        }
    }
}
