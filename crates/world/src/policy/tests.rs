//! Policies that are read, and those that are refused because something in them is not understood.

use super::*;
use mw_model::policy::{Context, Decision};

fn one(statement: &str) -> Result<Policy> {
    parse(&format!(r#"{{"Version":"2012-10-17","Statement":[{statement}]}}"#))
}

const NOW: Context<'_> = Context { source: None, now: 1_700_000_000_000_000_000, prefix: None };

#[test]
fn a_policy_as_aws_writes_it() {
    let policy = parse(
        r#"{
          "Version": "2012-10-17",
          "Id": "example",
          "Statement": [
            {"Sid": "Read", "Effect": "Allow", "Action": ["s3:Get*", "S3:LISTBUCKET"],
             "Resource": ["arn:aws:s3:::base", "arn:aws:s3:::base/docs/*"],
             "Condition": {"IpAddress": {"aws:SourceIp": ["10.0.0.0/8", "::1"]}, "DateLessThan": {"aws:CurrentTime": "2030-01-01T00:00:00Z"}}},
            {"Effect": "Deny", "Action": "*", "Resource": "arn:aws:s3:::base/docs/secret*"}
          ]
        }"#,
    )
    .unwrap();
    let here = Context { source: Some("10.1.1.1".parse().unwrap()), ..NOW };
    let decide = |action, resource: &str, context: &Context<'_>| policy.decide(action, resource.as_bytes(), context);
    assert_eq!(decide(Action::GetObject, "base/docs/a", &here), Decision::Allow);
    assert_eq!(decide(Action::GetObject, "base/docs/a", &NOW), Decision::Silent, "an address that is not known");
    assert_eq!(decide(Action::GetObject, "base/docs/secret.txt", &here), Decision::Deny);
    assert_eq!(decide(Action::ListBucket, "base", &here), Decision::Allow);
    assert_eq!(decide(Action::PutObject, "base/docs/a", &here), Decision::Silent);
    assert_eq!(decide(Action::GetObject, "base/docs/a", &Context { now: u64::MAX, ..here }), Decision::Silent);
}

#[test]
fn one_statement_needs_no_list() {
    let policy =
        parse(r#"{"Version":"2012-10-17","Statement":{"Effect":"Allow","Action":"s3:*","Resource":"*"}}"#).unwrap();
    assert_eq!(policy.decide(Action::PutObject, b"w/k", &NOW), Decision::Allow);
}

#[test]
fn what_is_not_understood_is_refused_by_name() {
    const FINE: &str = r#""Effect":"Allow","Action":"s3:GetObject","Resource":"*""#;
    for (statement, named) in [
        (r#"{"Effect":"Permit","Action":"s3:*","Resource":"*"}"#.to_owned(), "Permit"),
        (r#"{"Effect":"Allow","NotAction":"s3:*","Resource":"*"}"#.to_owned(), "NotAction"),
        (r#"{"Effect":"Allow","Action":"s3:*","NotResource":"*"}"#.to_owned(), "NotResource"),
        (format!(r#"{{{FINE},"Principal":"*"}}"#), "Principal"),
        (r#"{"Effect":"Allow","Action":"s3:*"}"#.to_owned(), "Resource"),
        (r#"{"Effect":"Allow","Resource":"*"}"#.to_owned(), "Action"),
        (r#"{"Action":"s3:*","Resource":"*"}"#.to_owned(), "Effect"),
        (r#"{"Effect":"Allow","Action":[],"Resource":"*"}"#.to_owned(), "Action"),
        (r#"{"Effect":"Allow","Action":"s3:FlyToTheMoon","Resource":"*"}"#.to_owned(), "FlyToTheMoon"),
        (r#"{"Effect":"Allow","Action":"ec2:*","Resource":"*"}"#.to_owned(), "ec2"),
        (r#"{"Effect":"Allow","Action":7,"Resource":"*"}"#.to_owned(), "one value"),
        (r#"{"Effect":"Allow","Action":"s3:*","Resource":"base/*"}"#.to_owned(), "base/*"),
        (r#"{"Effect":"Allow","Action":"s3:*","Resource":"arn:aws:s3:::"}"#.to_owned(), "arn:aws:s3:::"),
        (r#"{"Effect":"Allow","Action":"s3:*","Resource":"arn:aws:s3:eu-west-1::b"}"#.to_owned(), "eu-west-1"),
        (r#"{"Effect":"Allow","Action":"s3:*","Resource":"arn:aws:s3:::${aws:username}/*"}"#.to_owned(), "variable"),
        (format!(r#"{{{FINE},"Effect":"Deny"}}"#), "duplicate"),
        (format!(r#"{{{FINE},"Condition":{{"IpAddressIfExists":{{"aws:SourceIp":"::1"}}}}}}"#), "IpAddressIfExists"),
        (format!(r#"{{{FINE},"Condition":{{"IpAddress":{{"aws:VpcSourceIp":"::1"}}}}}}"#), "aws:VpcSourceIp"),
        (format!(r#"{{{FINE},"Condition":{{"IpAddress":{{"aws:SourceIp":"everywhere"}}}}}}"#), "everywhere"),
        (format!(r#"{{{FINE},"Condition":{{"IpAddress":{{"aws:SourceIp":[]}}}}}}"#), "no value"),
        (format!(r#"{{{FINE},"Condition":{{"Bool":{{"aws:SecureTransport":"true"}}}}}}"#), "Bool"),
        (format!(r#"{{{FINE},"Condition":{{"DateLessThan":{{"aws:CurrentTime":"tomorrow"}}}}}}"#), "tomorrow"),
        (format!(r#"{{{FINE},"Condition":{{"StringLike":{{"s3:prefix":"${{aws:userid}}/*"}}}}}}"#), "variable"),
        (
            format!(
                r#"{{{FINE},"Condition":{{"IpAddress":{{"aws:SourceIp":"::1"}},"IpAddress":{{"aws:SourceIp":"::/0"}}}}}}"#
            ),
            "duplicate",
        ),
        (
            format!(r#"{{{FINE},"Condition":{{"IpAddress":{{"aws:SourceIp":"::1","aws:SourceIp":"::/0"}}}}}}"#),
            "duplicate",
        ),
    ] {
        let error = one(&statement).expect_err(&statement).to_string();
        assert!(error.starts_with("MalformedPolicyDocument: ") && error.contains(named), "{statement}: {error}");
    }
    for document in [
        "",
        "null",
        "[]",
        "{}",
        r#"{"Version":"2012-10-17"}"#,
        r#"{"Version":"2012-10-17","Statement":[]}"#,
        r#"{"Version":"2008-10-17","Statement":[{"Effect":"Allow","Action":"s3:*","Resource":"*"}]}"#,
        r#"{"Statement":[{"Effect":"Allow","Action":"s3:*","Resource":"*"}]}"#,
        r#"{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"s3:*","Resource":"*"}],"More":1}"#,
        r#"{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"s3:*","Resource":"*"}]} x"#,
    ] {
        assert!(parse(document).is_err(), "{document}");
    }
    let deep = format!("{}{}", "[".repeat(5_000), "]".repeat(5_000));
    assert!(parse(&deep).is_err());
    let long = one(&format!(r#"{{"Effect":"Allow","Action":"s3:*","Resource":"arn:aws:s3:::{}"}}"#, "a".repeat(MAX)));
    assert!(long.expect_err("too long").to_string().contains("at most"));
}

/// Whatever bytes come, reading them ends in an answer; and what was read can be decided by.
#[test]
fn broken_documents_are_answers_and_no_panics() {
    let dir = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus/policy");
    let mut seeds: Vec<_> =
        std::fs::read_dir(dir).unwrap().map(|e| std::fs::read(e.unwrap().path()).unwrap()).collect();
    seeds.sort();
    let mut state = 7u64;
    let mut dice = |n: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % n
    };
    let mut read = 0;
    for _ in 0..20_000 {
        let mut bytes = seeds[dice(seeds.len())].clone();
        for _ in 0..=dice(3) {
            let at = dice(bytes.len());
            match dice(4) {
                0 => bytes[at] = b"\"{}[],:*?\\$ a0"[dice(14)],
                1 => drop(bytes.remove(at)),
                2 => bytes.insert(at, b"\"{}[],:*?\\$ a0"[dice(14)]),
                _ => {
                    let end = at + dice(bytes.len() - at);
                    let part = bytes[at..end].to_vec();
                    bytes.splice(at..at, part);
                }
            }
        }
        if let Ok(policy) = parse(&String::from_utf8_lossy(&bytes)) {
            read += 1;
            let _ = policy.decide(Action::GetObject, b"b/k", &NOW);
            let _ = policy.covers(Action::GetObject, "b", &NOW);
        }
    }
    assert!((100..19_900).contains(&read), "{read} of 20,000 were read");
}
