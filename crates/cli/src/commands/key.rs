//! `mw key`.

use super::Context;
use super::args::Idempotency;
use crate::failure::{DONE, Failure, Result};
use crate::units;
use clap::Subcommand;
use mw_http::types::{Done, Grant, Keys, NewKey, Role, Secret};

/// Create, list and delete keys
#[derive(Debug, Subcommand)]
pub enum Key {
    /// Create a key and print its secret, which is shown once
    Create {
        /// A name for people
        name: String,
        /// What it may do: WORLD:reader, WORLD:editor or WORLD:admin; WORLD may be `*`. May be repeated
        #[arg(long = "grant", value_name = "WORLD:ROLE", required = true)]
        grants: Vec<String>,
        /// The key dies after this time, such as 2h
        #[arg(long, value_name = "DURATION")]
        ttl: Option<String>,
        #[command(flatten)]
        idempotency: Idempotency,
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
    let wrong = || Failure::usage(format!("{text:?} is no grant; write WORLD:reader, WORLD:editor or WORLD:admin"));
    let (world, role) = text.rsplit_once(':').filter(|(world, _)| !world.is_empty()).ok_or_else(wrong)?;
    let role = match role {
        "reader" => Role::Reader,
        "editor" => Role::Editor,
        "admin" => Role::Admin,
        _ => return Err(wrong()),
    };
    Ok(Grant { world: world.to_owned(), role })
}

fn role(role: Role) -> &'static str {
    match role {
        Role::Reader => "reader",
        Role::Editor => "editor",
        Role::Admin => "admin",
    }
}

impl Key {
    pub fn run(self, context: &Context<'_>) -> Result<u8> {
        match self {
            Self::Create { name, grants, ttl, idempotency } => {
                let ttl_seconds = ttl.as_deref().map(units::duration).transpose()?.map(|ttl| ttl.as_secs());
                let grants = grants.iter().map(|text| grant(text)).collect::<Result<_>>()?;
                let request = NewKey { name, grants, ttl_seconds };
                let secret: Secret =
                    context.client()?.post("keys", &request, idempotency.idempotency_key.as_deref())?;
                context.out.show(&secret, |secret| format!("id      {}\nsecret  {}", secret.id, secret.secret));
            }
            Self::List => {
                let keys: Keys = context.client()?.get("keys", &[])?;
                context.out.show(&keys, |keys| {
                    let rows: Vec<_> = keys
                        .keys
                        .iter()
                        .map(|key| {
                            let grants: Vec<_> =
                                key.grants.iter().map(|g| format!("{}:{}", g.world, role(g.role))).collect();
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
