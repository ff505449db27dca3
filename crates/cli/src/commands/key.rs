//! `mw key`.

use super::Context;
use super::args::Idempotency;
use super::env;
use crate::failure::{DONE, Failure, Result};
use crate::units;
use clap::Subcommand;
use mw_http::sigv4::Credentials;
use mw_http::types::{Done, Grant, Keys, NewKey, NewTemporaryKey, Role, Secret, TemporaryKey};

/// Create, list and delete keys
#[derive(Debug, Subcommand)]
pub enum Key {
    /// Create a key and print its secret, which is shown once
    Create {
        /// A name for people
        name: String,
        /// What it may do: WORLD:reader, WORLD:editor or WORLD:admin; WORLD may be `*`. Narrowed by `,verbs=get+list` (get, list, put, delete,
        /// world) and by `,prefix=PATH`, which comes last. May be repeated
        #[arg(long = "grant", value_name = "WORLD:ROLE[,verbs=V+V][,prefix=P]", required_unless_present = "policy")]
        grants: Vec<String>,
        /// A file with a policy of its own, as AWS writes them; it may allow what no grant does
        #[arg(long, value_name = "FILE")]
        policy: Option<std::path::PathBuf>,
        /// How many worlds it may own that it forks from those it can read
        #[arg(long, value_name = "N", default_value_t = 0)]
        forks: u32,
        /// The key dies after this time, such as 2h
        #[arg(long, value_name = "DURATION")]
        ttl: Option<String>,
        #[command(flatten)]
        idempotency: Idempotency,
    },
    /// Create a temporary key that acts for the one in use, within bounds and for a while, and print it with its session token, once
    Temporary {
        /// A name for people: 2 to 64 of letters, digits and +=,.@_-
        #[arg(long, default_value = "temporary")]
        name: String,
        /// What it may do of what the key in use may, written as for `create`; `*:admin` is all of it. May be repeated
        #[arg(long = "grant", value_name = "WORLD:ROLE[,verbs=V+V][,prefix=P]", required_unless_present = "policy")]
        grants: Vec<String>,
        /// A file with a policy that bounds it, as AWS writes them
        #[arg(long, value_name = "FILE")]
        policy: Option<std::path::PathBuf>,
        /// It dies after this time, at most 36h, and with the key that it acts for
        #[arg(long, value_name = "DURATION", default_value = "1h")]
        ttl: String,
        /// Print export lines, as `mw env` does, for a shell that is to use it
        #[arg(long)]
        export: bool,
    },
    /// Give a key a new secret and print it, once; the old one is dead at once
    Rotate {
        /// The id
        id: String,
    },
    /// List keys; a scoped key sees itself
    List,
    /// Delete a key: it is dead at once, and for ever
    Delete {
        /// The id
        id: String,
    },
}

fn grant(text: &str) -> Result<Grant> {
    let wrong = || {
        Failure::usage(format!(
            "{text:?} is no grant; write WORLD:reader, WORLD:editor or WORLD:admin, then perhaps ,verbs=get+list and ,prefix=PATH"
        ))
    };
    let (head, prefix) = match text.split_once(",prefix=") {
        Some((head, prefix)) if !prefix.is_empty() => (head, Some(prefix.to_owned())),
        Some(_) => return Err(wrong()),
        None => (text, None),
    };
    let (head, verbs) = match head.split_once(",verbs=") {
        Some((head, verbs)) => (head, Some(verbs.to_owned())),
        None => (head, None),
    };
    let (world, role) = head.rsplit_once(':').filter(|(world, _)| !world.is_empty()).ok_or_else(wrong)?;
    let role = match role {
        "reader" => Role::Reader,
        "editor" => Role::Editor,
        "admin" => Role::Admin,
        _ => return Err(wrong()),
    };
    Ok(Grant { world: world.to_owned(), role, verbs, prefix })
}

fn role(role: Role) -> &'static str {
    match role {
        Role::Reader => "reader",
        Role::Editor => "editor",
        Role::Admin => "admin",
    }
}

/// Writes a grant as it is given.
fn shown(grant: &Grant) -> String {
    let verbs = grant.verbs.as_ref().map_or_else(String::new, |verbs| format!(",verbs={verbs}"));
    let prefix = grant.prefix.as_ref().map_or_else(String::new, |prefix| format!(",prefix={prefix}"));
    format!("{}:{}{verbs}{prefix}", grant.world, role(grant.role))
}

/// What a key has beside grants.
fn rights(key: &mw_http::types::Key) -> impl Iterator<Item = String> {
    let own = key.policy.as_ref().map(|_| "policy".to_owned());
    let forks = (key.forks > 0).then(|| format!("forks={}", key.forks));
    own.into_iter().chain(key.policies.iter().map(|name| format!("policy={name}"))).chain(forks)
}

fn read(path: std::path::PathBuf) -> Result<String> {
    std::fs::read_to_string(&path).map_err(|e| Failure::io(path.display(), e))
}

impl Key {
    pub fn run(self, context: &Context<'_>) -> Result<u8> {
        match self {
            Self::Create { name, grants, policy, forks, ttl, idempotency } => {
                let ttl_seconds = ttl.as_deref().map(units::duration).transpose()?.map(|ttl| ttl.as_secs());
                let grants = grants.iter().map(|text| grant(text)).collect::<Result<_>>()?;
                let request = NewKey { name, grants, policy: policy.map(read).transpose()?, forks, ttl_seconds };
                let secret: Secret =
                    context.client()?.post("keys", &request, idempotency.idempotency_key.as_deref())?;
                context.out.show(&secret, |secret| format!("id      {}\nsecret  {}", secret.id, secret.secret));
            }
            Self::Temporary { name, grants, policy, ttl, export } => {
                let request = NewTemporaryKey {
                    name,
                    grants: grants.iter().map(|text| grant(text)).collect::<Result<_>>()?,
                    policy: policy.map(read).transpose()?,
                    ttl_seconds: Some(units::duration(&ttl)?.as_secs()),
                };
                let client = context.client()?;
                let key: TemporaryKey = client.post("temporary-keys", &request, None)?;
                if export {
                    let credentials = Credentials { id: key.id, secret: key.secret, token: Some(key.token) };
                    let block = env::block(&client.found().endpoint, &credentials, &context.dir()?);
                    context.out.show(&block, env::lines);
                } else {
                    context.out.show(&key, |key| {
                        let expires = units::time(&key.expires);
                        format!("id      {}\nsecret  {}\ntoken   {}\nexpires {expires}", key.id, key.secret, key.token)
                    });
                }
            }
            Self::Rotate { id } => {
                let path = format!("keys/{}/rotate", mw_http::uri::encode(id.as_bytes(), false));
                let secret: Secret = context.client()?.post(&path, &serde_json::json!({}), None)?;
                context.out.show(&secret, |secret| format!("id      {}\nsecret  {}", secret.id, secret.secret));
            }
            Self::List => {
                let keys: Keys = context.client()?.get("keys", &[])?;
                context.out.show(&keys, |keys| {
                    let rows: Vec<_> = keys
                        .keys
                        .iter()
                        .map(|key| {
                            let grants: Vec<_> = key.grants.iter().map(shown).chain(rights(key)).collect();
                            let expires = key.expires.as_deref().map_or_else(|| "never".to_owned(), units::time);
                            vec![key.id.clone(), key.name.clone(), units::time(&key.created), expires, grants.join(" ")]
                        })
                        .collect();
                    context.out.table(&["ID", "NAME", "CREATED", "EXPIRES", "GRANTS"], &rows)
                });
            }
            Self::Delete { id } => {
                let path = format!("keys/{}", mw_http::uri::encode(id.as_bytes(), false));
                let done: Done = context.client()?.delete(&path, &[])?;
                context.out.show(&done, |_| format!("deleted the key {id}"));
            }
        }
        Ok(DONE)
    }
}
