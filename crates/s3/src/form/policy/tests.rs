//! Policies of strangers, and a slow reference for what they allow.

use super::Policy;
use crate::broken::edited;
use proptest::prelude::*;
use serde_json::{Value, json};

const NOW: u64 = 1_800_000_000_000_000_000;
/// Little to choose from, so that conditions and fields meet.
const NAMES: [&str; 4] = ["key", "acl", "x-amz-meta-a", "success_action_status"];
const VALUES: [&str; 5] = ["", "a", "ab", "b", "a/b"];

fn read(document: &[u8]) -> Option<Policy> {
    Policy::read(&base64_simd::STANDARD.encode_to_string(document)).ok()
}

fn written(conditions: &[Value]) -> Vec<u8> {
    json!({ "expiration": "2099-01-01T00:00:00.000Z", "conditions": conditions }).to_string().into_bytes()
}

/// One condition: which of the three forms it is written in, what it is about, and what it says.
fn condition() -> impl Strategy<Value = (u8, &'static str, &'static str)> {
    (0..3u8, prop::sample::select(&NAMES[..]), prop::sample::select(&VALUES[..]))
}

fn fields() -> impl Strategy<Value = Vec<(String, String)>> {
    let value = || prop::option::of(prop::sample::select(&VALUES[..]));
    (value(), value(), value(), value()).prop_map(|(a, b, c, d)| {
        let named = NAMES.iter().zip([a, b, c, d]);
        named.filter_map(|(name, value)| Some(((*name).to_owned(), value?.to_owned()))).collect()
    })
}

proptest! {
    /// A document that is read is one whose conditions are all understood, and allows no field that it never names.
    #[test]
    fn documents_of_strangers(document in prop_oneof![edited("forms"), prop::collection::vec(any::<u8>(), 0..60)]) {
        if let Some(policy) = read(&document) {
            let parsed: Value = serde_json::from_slice(&document).unwrap();
            let said: usize = parsed["conditions"].as_array().unwrap().iter()
                .map(|condition| condition.as_object().map_or(1, |pairs| pairs.len()))
                .sum();
            prop_assert_eq!(policy.conditions.len(), said);
            let stray = [("never-named-by-anybody".to_owned(), String::new())];
            prop_assert!(policy.check(&stray, "b", 0).is_err());
            let (least, most) = policy.lengths();
            let _ = (least, most, policy.check(&[], "b", u64::MAX));
        }
    }

    /// A form passes when every condition holds and every field has one.
    #[test]
    fn conditions_hold_or_they_do_not(conditions in prop::collection::vec(condition(), 0..4), fields in fields()) {
        let texts: Vec<Value> = conditions.iter().map(|(form, name, value)| match form {
            0 => json!({ *name: value }),
            1 => json!(["eq", format!("${name}"), value]),
            _ => json!(["starts-with", format!("${name}"), value]),
        }).collect();
        let given = |name: &str| fields.iter().find(|(n, _)| n == name).map_or("", |(_, value)| value);
        let held = conditions.iter().all(|(form, name, value)| {
            let given = given(name);
            if *form < 2 { given == *value } else { given.len() >= value.len() && &given[..value.len()] == *value }
        });
        let named = fields.iter().all(|(name, _)| conditions.iter().any(|(_, other, _)| other == name));
        let policy = read(&written(&texts)).unwrap();
        prop_assert_eq!(policy.check(&fields, "b", NOW).is_ok(), held && named);
    }

    /// Nothing passes once the time is over.
    #[test]
    fn a_policy_ends(seconds in 0..4_000_000_000u64, after in 0..1_000_000_000u64) {
        let mut text = Vec::new();
        let at = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(seconds);
        super::Timestamp::from(at).format(super::TimestampFormat::DateTime, &mut text).unwrap();
        let document = json!({ "expiration": String::from_utf8(text).unwrap(), "conditions": [] }).to_string();
        let policy = read(document.as_bytes()).unwrap();
        let end = seconds * 1_000_000_000;
        prop_assert!(policy.check(&[], "b", end + after).is_err());
        prop_assert!(end == 0 || policy.check(&[], "b", end - 1).is_ok());
    }
}
