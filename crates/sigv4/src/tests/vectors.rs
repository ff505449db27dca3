//! AWS's own vectors, out of the crate `aws-sigv4`. Where S3's rules are those of the other services, the canonical request, the string to
//! sign and the signature are compared; the rest is listed here with the reason, and must differ.

use super::super::*;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Vectors that S3 has other rules for.
const OTHER_RULES: [(&str, &str); 12] = [
    ("double-encode-path", "S3 encodes the path once (*Signature calculations*, CanonicalURI)"),
    ("double-url-encode", "S3 encodes the path once"),
    (
        "get-header-key-duplicate",
        "a header that is signed and comes twice is refused: two readers could take two of them",
    ),
    ("get-header-value-order", "a header that is signed and comes twice is refused"),
    (
        "get-header-value-multiline",
        "a value over several lines is no HTTP/1.1 any more (RFC 9112, 5.2); the server refuses it",
    ),
    ("get-relative-normalized", "S3 does not normalise paths: `a/../b` is a key"),
    ("get-relative-relative-normalized", "S3 does not normalise paths"),
    ("get-slash-dot-slash-normalized", "S3 does not normalise paths"),
    ("get-slash-normalized", "S3 does not normalise paths"),
    ("get-slash-pointless-dot-normalized", "S3 does not normalise paths"),
    ("get-slashes-normalized", "S3 does not normalise paths"),
    (
        "post-sts-header-after",
        "the session token is put into the URL after it was signed; here all of a URL's parameters are signed",
    ),
];

fn suite() -> PathBuf {
    // Packages of other platforms need not be on this machine.
    let version = std::process::Command::new("rustc").arg("-vV").output().unwrap();
    let version = String::from_utf8(version.stdout).unwrap();
    let platform = version.lines().find_map(|line| line.strip_prefix("host: ")).unwrap().to_owned();
    let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
    let asked = std::process::Command::new(env!("CARGO"))
        .args([
            "metadata",
            "--offline",
            "--format-version",
            "1",
            "--filter-platform",
            &platform,
            "--manifest-path",
            manifest,
        ])
        .output()
        .unwrap();
    assert!(asked.status.success(), "{}", String::from_utf8_lossy(&asked.stderr));
    let metadata: serde_json::Value = serde_json::from_slice(&asked.stdout).unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    let package = packages.iter().find(|p| p["name"] == "aws-sigv4").expect("a dev-dependency");
    Path::new(package["manifest_path"].as_str().unwrap()).with_file_name("aws-signing-test-suite").join("v4")
}

/// A vector.
struct Vector {
    dir: PathBuf,
    secret: String,
    scope: [String; 3],
    time: String,
}

/// A request of a vector: its target and headers as they stand there.
struct Wire {
    method: String,
    path: String,
    query: String,
    headers: Vec<(String, String)>,
}

impl Vector {
    /// Reads what a vector is about; none for two of an older form, which have rules that S3 has not.
    fn read(dir: PathBuf) -> Option<Self> {
        let context: serde_json::Value =
            serde_json::from_slice(&std::fs::read(dir.join("context.json")).ok()?).unwrap();
        let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
        let time = text(&context["timestamp"]).replace(['-', ':'], "");
        let scope = [time[..8].to_owned(), text(&context["region"]), text(&context["service"])];
        Some(Self { secret: text(&context["credentials"]["secret_access_key"]), dir, scope, time })
    }

    fn file(&self, name: &str) -> String {
        std::fs::read_to_string(self.dir.join(name)).unwrap_or_default().replace("\r\n", "\n").trim_end().to_owned()
    }

    /// Reads a signed request, and leaves out what is not part of what was signed.
    fn wire(&self, name: &str) -> Option<Wire> {
        let text = self.file(name);
        let mut lines = text.lines();
        let first = lines.next()?;
        let (method, rest) = first.split_once(' ')?;
        let (target, _) = rest.rsplit_once(" HTTP/")?;
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let signed: Vec<&str> = query.split('&').filter(|pair| !pair.starts_with("X-Amz-Signature=")).collect();
        let headers = lines.take_while(|line| !line.is_empty()).map(|line| line.split_once(':'));
        Some(Wire {
            method: method.to_owned(),
            path: path.to_owned(),
            query: signed.join("&"),
            headers: headers.map(|h| h.map(|(n, v)| (n.to_ascii_lowercase(), v.to_owned()))).collect::<Option<_>>()?,
        })
    }

    /// Whether the three steps come out as the vector has them.
    fn agrees(&self, kind: &str) -> bool {
        let expected = self.file(&format!("{kind}-canonical-request.txt"));
        let Some(wire) = self.wire(&format!("{kind}-signed-request.txt")) else { return false };
        let lines: Vec<&str> = expected.lines().collect();
        let [.., names, payload] = lines[..] else { return false };
        let mut signed = BTreeMap::new();
        for name in names.split(';') {
            let values: Vec<_> = wire.headers.iter().filter(|(n, _)| n == name).collect();
            let [(_, value)] = values[..] else { return false };
            signed.insert(name.to_owned(), value.clone());
        }
        let signed: Vec<(String, String)> = signed.into_iter().collect();
        let request = Request { method: &wire.method, path: &wire.path, query: &wire.query };
        let Ok(made) = canonical(request, &signed, payload) else { return false };
        let [date, region, service] = &self.scope;
        let scope = Scope { date, region, service };
        let text = string_to_sign(&self.time, &scope, &made);
        let signature = hex::encode(hmac(&scope.key(&self.secret), text.as_bytes()));
        made == expected
            && text == self.file(&format!("{kind}-string-to-sign.txt"))
            && signature == self.file(&format!("{kind}-signature.txt"))
    }
}

#[test]
fn the_vectors_of_aws() {
    let mut agreed = 0;
    for entry in std::fs::read_dir(suite()).unwrap() {
        let dir = entry.unwrap().path();
        let name = dir.file_name().unwrap().to_str().unwrap().to_owned();
        let vector = Vector::read(dir);
        let agrees = vector.is_some_and(|vector| vector.agrees("header") && vector.agrees("query"));
        let other = OTHER_RULES.iter().find(|(n, _)| *n == name);
        match other {
            None => assert!(agrees, "{name} does not agree, and no rule of S3 says why"),
            Some((_, why)) => assert!(!agrees, "{name} agrees, although {why}"),
        }
        agreed += usize::from(agrees);
    }
    assert!(agreed >= 20, "only {agreed} vectors were compared");
}
