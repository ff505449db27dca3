//! `mw env`: export lines that point every S3 client at the server.
//!
//! One block serves the AWS command line and SDKs (`AWS_*`), the Tigris command line and SDK (`TIGRIS_*`, `TIGRIS_STORAGE_*`), and `mw` itself.

use super::Context;
use crate::failure::{DONE, Result};
use crate::serve::authority;
use clap::Args;
use mw_http::sigv4::Credentials;
use std::collections::BTreeMap;
use std::path::Path;

/// Print export lines for the key that the command itself uses. A secret is shown once, when its key is made: for another key, set
/// AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (and AWS_SESSION_TOKEN, of a temporary key)
#[derive(Debug, Args)]
pub struct Env {}

impl Env {
    pub fn run(self, context: &Context<'_>) -> Result<u8> {
        let client = context.client()?;
        let found = client.found();
        if found.started {
            context.out.note("mw: the server was started for this command and leaves after 60 s without clients; `mw serve` keeps one");
        }
        let block = block(&found.endpoint, &found.credentials, &context.dir()?);
        context.out.show(&block, lines);
        Ok(DONE)
    }
}

/// Writes a block for a shell.
pub(super) fn lines(block: &BTreeMap<&'static str, String>) -> String {
    let mut lines: String = block.iter().map(|(name, value)| format!("export {name}={}\n", quote(value))).collect();
    // One that another key left behind would have every request of this one refused.
    if !block.contains_key(TOKEN) && std::env::var_os(TOKEN).is_some() {
        lines.push_str(&format!("unset {TOKEN}\n"));
    }
    lines
}

/// Returns what points clients at `endpoint` with a key; `dir` is the server's directory, if it is of this machine.
pub(super) fn block(endpoint: &str, key: &Credentials, dir: &Path) -> BTreeMap<&'static str, String> {
    let mut block = variables(endpoint, key);
    if endpoint.starts_with("https://") {
        trust(&mut block, dir);
    }
    block
}

/// The variable with the session token of a temporary key.
const TOKEN: &str = "AWS_SESSION_TOKEN";

fn variables(endpoint: &str, key: &Credentials) -> BTreeMap<&'static str, String> {
    let endpoint = || endpoint.to_owned();
    let (id, secret) = (|| key.id.clone(), || key.secret.clone());
    let mut block = BTreeMap::from([
        ("MW_ENDPOINT", endpoint()),
        ("AWS_ACCESS_KEY_ID", id()),
        ("AWS_SECRET_ACCESS_KEY", secret()),
        ("AWS_ENDPOINT_URL", endpoint()),
        ("AWS_ENDPOINT_URL_S3", endpoint()),
        ("AWS_ENDPOINT_URL_IAM", endpoint()),
        ("AWS_REGION", "auto".to_owned()),
        ("AWS_DEFAULT_REGION", "auto".to_owned()),
        ("AWS_EC2_METADATA_DISABLED", "true".to_owned()),
        ("TIGRIS_ENDPOINT", endpoint()),
        ("TIGRIS_MGMT_ENDPOINT", endpoint()),
        ("TIGRIS_IAM_ENDPOINT", endpoint()),
        ("TIGRIS_STORAGE_ENDPOINT", endpoint()),
        ("TIGRIS_ACCESS_KEY_ID", id()),
        ("TIGRIS_SECRET_ACCESS_KEY", secret()),
        ("TIGRIS_STORAGE_ACCESS_KEY_ID", id()),
        ("TIGRIS_STORAGE_SECRET_ACCESS_KEY", secret()),
        ("TIGRIS_FORCE_PATH_STYLE", "true".to_owned()),
    ]);
    block.extend(key.token.clone().map(|token| (TOKEN, token)));
    block
}

/// Adds what makes clients trust the local authority of a server's directory, where there is one. Most of these variables take the place
/// of what the client trusts otherwise, so that they name a bundle that has both.
fn trust(block: &mut BTreeMap<&'static str, String>, dir: &Path) {
    let folder = authority::folder(dir);
    let (ca, bundle) = (folder.join(authority::CA), folder.join(authority::BUNDLE));
    if !ca.exists() || !bundle.exists() {
        return;
    }
    block.insert("NODE_EXTRA_CA_CERTS", ca.display().to_string());
    for name in ["AWS_CA_BUNDLE", "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "SSL_CERT_FILE"] {
        block.insert(name, bundle.display().to_string());
    }
}

/// Quotes a word for a POSIX shell.
fn quote(word: &str) -> String {
    let plain = !word.is_empty() && word.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._/:@%+,".contains(&b));
    if plain { word.to_owned() } else { format!("'{}'", word.replace('\'', "'\\''")) }
}
