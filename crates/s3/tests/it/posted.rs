//! A form as a browser posts it, signed by its policy, before and after it is laid out.

use crate::client::{Answer, Client, Wire, hex, stamp};
use mw_env::Env;
use s3s::crypto::{Checksum, Sha256};

pub const BOUNDARY: &str = "----boundary";

pub fn base64(data: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for three in data.chunks(3) {
        let n = three.iter().fold(0u32, |n, b| n << 8 | u32::from(*b)) << (8 * (3 - three.len()));
        for i in 0..4 {
            let c = if i <= three.len() { ALPHABET[(n >> (18 - 6 * i)) as usize & 63] } else { b'=' };
            out.push(char::from(c));
        }
    }
    out
}

fn hmac(key: &[u8], data: &[u8]) -> Vec<u8> {
    let mut block = [0u8; 64];
    block[..key.len()].copy_from_slice(key);
    let pad = |with: u8| block.map(|b| b ^ with);
    let inner = Sha256::checksum(&[&pad(0x36)[..], data].concat());
    Sha256::checksum(&[&pad(0x5c)[..], &inner].concat()).to_vec()
}

fn now() -> i64 {
    (Env::real().now() / 1_000_000_000) as i64
}

/// Writes an instant as a policy does.
fn iso(seconds: i64) -> String {
    let s = stamp(seconds);
    format!("{}-{}-{}T{}:{}:{}.000Z", &s[..4], &s[4..6], &s[6..8], &s[9..11], &s[11..13], &s[13..15])
}

/// A form before it is sent.
#[derive(Clone)]
pub struct Form {
    pub fields: Vec<(String, String)>,
    pub conditions: Vec<String>,
    pub file: Vec<u8>,
    pub name: String,
    pub expires: i64,
    pub signed: i64,
    pub bucket: String,
}

impl Form {
    pub fn new(key: &str, file: &[u8]) -> Self {
        Self {
            fields: vec![("key".into(), key.into())],
            conditions: vec![r#"{"bucket":"base"}"#.into(), r#"["starts-with","$key",""]"#.into()],
            file: file.to_vec(),
            name: "photo.jpg".into(),
            expires: 3600,
            signed: 0,
            bucket: "base".into(),
        }
    }

    pub fn field(mut self, name: &str, value: &str) -> Self {
        self.fields.push((name.into(), value.into()));
        self
    }

    /// A field with the condition that allows it.
    pub fn allowed(self, name: &str, value: &str) -> Self {
        self.field(name, value).condition(&format!(r#"["eq","${name}","{value}"]"#))
    }

    pub fn condition(mut self, condition: &str) -> Self {
        self.conditions.push(condition.into());
        self
    }

    /// Signs the form and lays it out.
    pub fn wire(&self, client: &Client) -> Wire {
        lay_out(client, &self.bucket, &self.signed_by(client), Some((&self.name, &self.file)))
    }

    /// Returns the fields with those of the signature.
    pub fn signed_by(&self, client: &Client) -> Vec<(String, String)> {
        let date = stamp(now() + self.signed);
        let scope = format!("{}/us-east-1/s3/aws4_request", &date[..8]);
        let credential = format!("{}/{scope}", client.id);
        let mut conditions = self.conditions.clone();
        for (name, value) in
            [("x-amz-algorithm", "AWS4-HMAC-SHA256"), ("x-amz-credential", &credential[..]), ("x-amz-date", &date[..])]
        {
            conditions.push(format!(r#"{{"{name}":"{value}"}}"#));
        }
        let policy =
            format!(r#"{{"expiration":"{}","conditions":[{}]}}"#, iso(now() + self.expires), conditions.join(","));
        let policy = base64(policy.as_bytes());
        let key = [&date[..8], "us-east-1", "s3", "aws4_request"]
            .iter()
            .fold(format!("AWS4{}", client.secret).into_bytes(), |key, part| hmac(&key, part.as_bytes()));
        let mut fields = self.fields.clone();
        for (name, value) in [
            ("x-amz-algorithm", "AWS4-HMAC-SHA256".to_owned()),
            ("x-amz-credential", credential),
            ("x-amz-date", date),
            ("x-amz-signature", hex(&hmac(&key, policy.as_bytes()))),
            ("policy", policy),
        ] {
            if !fields.iter().any(|(n, _)| n == name) {
                fields.push((name.to_owned(), value));
            }
        }
        fields
    }

    pub fn post(&self, client: &Client) -> Answer {
        client.raw(&self.wire(client))
    }
}

pub fn lay_out(client: &Client, bucket: &str, fields: &[(String, String)], file: Option<(&str, &[u8])>) -> Wire {
    let mut body = Vec::new();
    for (name, value) in fields {
        body.extend_from_slice(
            format!("--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n").as_bytes(),
        );
    }
    if let Some((name, content)) = file {
        body.extend_from_slice(
            format!(
                "--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"file\"; filename=\"{name}\"\r\n\
                 Content-Type: image/jpeg\r\n\r\n"
            )
            .as_bytes(),
        );
        body.extend_from_slice(content);
        body.extend_from_slice(
            format!("\r\n--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"submit\"\r\n\r\nUpload\r\n").as_bytes(),
        );
    }
    body.extend_from_slice(format!("--{BOUNDARY}--\r\n").as_bytes());
    Wire {
        target: format!("/{bucket}"),
        method: "POST".into(),
        headers: vec![
            ("host".into(), client.addr.to_string()),
            ("content-type".into(), format!("multipart/form-data; boundary={BOUNDARY}")),
        ],
        body,
        signature: String::new(),
        date: String::new(),
    }
}
