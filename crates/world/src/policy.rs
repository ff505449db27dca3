//! Policies as people write them: a subset of AWS's JSON (*IAM JSON policy elements reference*), read strictly.
//!
//! What is not understood is refused, never ignored: a condition that was overlooked would allow what it was there to forbid. So unknown
//! elements, operators, condition keys, services and actions, variables, and members given twice are errors that name themselves.

use crate::error::{Error, Result};
use mw_model::policy::{Action, Condition, Effect, Glob, Net, Policy, Statement};
use mw_model::when::parse_instant;
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use std::fmt;
use std::marker::PhantomData;

/// The longest policy, in bytes.
pub(crate) const MAX: usize = 10_240;
/// What every resource starts with.
const ARN: &str = "arn:aws:s3:::";

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "PascalCase")]
struct Document {
    version: String,
    #[serde(default)]
    id: Option<String>,
    statement: Many<Written>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "PascalCase")]
struct Written {
    #[serde(default)]
    sid: Option<String>,
    effect: String,
    action: Many<String>,
    resource: Many<String>,
    #[serde(default)]
    condition: Option<Members<Members<Many<String>>>>,
}

/// One value, or a list of them.
struct Many<T>(Vec<T>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Many<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        struct Either<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Either<T> {
            type Value = Many<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("one value or a list of them")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> std::result::Result<Self::Value, E> {
                Ok(Many(vec![T::deserialize(serde::de::value::StrDeserializer::new(text))?]))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> std::result::Result<Self::Value, A::Error> {
                Ok(Many(vec![T::deserialize(serde::de::value::MapAccessDeserializer::new(map))?]))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> std::result::Result<Self::Value, A::Error> {
                let mut all = Vec::new();
                while let Some(one) = seq.next_element()? {
                    all.push(one);
                }
                Ok(Many(all))
            }
        }
        deserializer.deserialize_any(Either(PhantomData))
    }
}

/// The members of an object, in order; a name given twice is an error.
struct Members<T>(Vec<(String, T)>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Members<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        struct Each<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Each<T> {
            type Value = Members<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> std::result::Result<Self::Value, A::Error> {
                let mut all: Vec<(String, T)> = Vec::new();
                while let Some((name, value)) = map.next_entry::<String, T>()? {
                    if all.iter().any(|(n, _)| *n == name) {
                        return Err(serde::de::Error::custom(format!("duplicate field `{name}`")));
                    }
                    all.push((name, value));
                }
                Ok(Members(all))
            }
        }
        deserializer.deserialize_map(Each(PhantomData))
    }
}

fn wrong(why: impl fmt::Display) -> Error {
    Error::invalid(format!("MalformedPolicyDocument: {why}"))
}

/// Reads a policy.
///
/// # Errors
/// `Invalid`, with a text that begins with `MalformedPolicyDocument` and names what was not understood.
pub(crate) fn parse(json: &str) -> Result<Policy> {
    if json.len() > MAX {
        return Err(wrong(format!("a policy has at most {MAX} bytes")));
    }
    let document: Document = serde_json::from_str(json).map_err(wrong)?;
    if document.version != "2012-10-17" {
        return Err(wrong(format!("Version {:?} is not offered; use \"2012-10-17\"", document.version)));
    }
    let _ = document.id;
    if document.statement.0.is_empty() {
        return Err(wrong("there is no Statement"));
    }
    Ok(Policy { statements: document.statement.0.into_iter().map(statement).collect::<Result<_>>()? })
}

fn statement(written: Written) -> Result<Statement> {
    let _ = written.sid;
    let effect = match written.effect.as_str() {
        "Allow" => Effect::Allow,
        "Deny" => Effect::Deny,
        other => return Err(wrong(format!("Effect {other:?} is neither Allow nor Deny"))),
    };
    if written.action.0.is_empty() || written.resource.0.is_empty() {
        return Err(wrong("a statement names at least one Action and one Resource"));
    }
    let actions = written.action.0.iter().map(|text| action(text)).collect::<Result<_>>()?;
    let resources = written.resource.0.iter().map(|text| resource(text)).collect::<Result<_>>()?;
    let mut conditions = Vec::new();
    for (operator, members) in written.condition.map_or_else(Vec::new, |c| c.0) {
        for (key, values) in members.0 {
            conditions.push(condition(&operator, &key, &values.0)?);
        }
    }
    Ok(Statement { effect, actions, resources, conditions })
}

fn action(text: &str) -> Result<Glob> {
    let glob = Glob::new(text.to_ascii_lowercase());
    let known = |a: &&Action| glob.matches(a.name().to_ascii_lowercase().as_bytes());
    if Action::ALL.iter().any(|a| known(&a)) {
        return Ok(glob);
    }
    Err(wrong(format!("Action {text:?} is none that this store decides about; those are {}", names())))
}

fn names() -> String {
    Action::ALL.iter().map(|a| a.name()).collect::<Vec<_>>().join(", ")
}

fn resource(text: &str) -> Result<Glob> {
    literal(text)?;
    match text.strip_prefix(ARN) {
        Some(rest) if !rest.is_empty() => Ok(Glob::new(rest)),
        _ if text == "*" => Ok(Glob::new("*")),
        _ => Err(wrong(format!("Resource {text:?} is neither \"*\" nor {ARN}BUCKET or {ARN}BUCKET/KEY"))),
    }
}

/// Refuses variables, which would stand for themselves here.
fn literal(text: &str) -> Result<()> {
    if text.contains("${") {
        return Err(wrong(format!("the variable in {text:?} is not offered")));
    }
    Ok(())
}

fn condition(operator: &str, key: &str, values: &[String]) -> Result<Condition> {
    if values.is_empty() {
        return Err(wrong(format!("the condition {operator} on {key} has no value")));
    }
    let is = |name: &str| key.eq_ignore_ascii_case(name);
    let nets = || {
        let net = |text: &String| Net::parse(text).ok_or_else(|| wrong(format!("{text:?} is no address and no range")));
        values.iter().map(net).collect::<Result<Vec<_>>>()
    };
    let instants = || {
        let at = |text: &String| {
            parse_instant(text).ok_or_else(|| wrong(format!("{text:?} is no time; write YYYY-MM-DDThh:mm:ssZ")))
        };
        values.iter().map(at).collect::<Result<Vec<u64>>>()
    };
    for text in values {
        literal(text)?;
    }
    match operator {
        "IpAddress" if is("aws:SourceIp") => Ok(Condition::From(nets()?)),
        "NotIpAddress" if is("aws:SourceIp") => Ok(Condition::NotFrom(nets()?)),
        // One of several values is enough, so the most lenient decides.
        "DateLessThan" if is("aws:CurrentTime") => Ok(Condition::Before(instants()?.into_iter().max().unwrap_or(0))),
        "DateGreaterThan" if is("aws:CurrentTime") => {
            Ok(Condition::After(instants()?.into_iter().min().unwrap_or(u64::MAX)))
        }
        "StringEquals" if is("s3:prefix") => {
            Ok(Condition::PrefixIs(values.iter().map(|v| v.clone().into_bytes()).collect()))
        }
        "StringLike" if is("s3:prefix") => {
            Ok(Condition::PrefixLike(values.iter().map(|v| Glob::new(v.as_str())).collect()))
        }
        _ => Err(wrong(format!(
            "the condition {operator} on {key} is not offered; there are IpAddress and NotIpAddress on aws:SourceIp, DateLessThan and \
             DateGreaterThan on aws:CurrentTime, StringEquals and StringLike on s3:prefix"
        ))),
    }
}

#[cfg(test)]
mod tests;
