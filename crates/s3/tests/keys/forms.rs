//! Forms signed by a policy are believed; each of many that differ from them in one signed thing is not.
//!
//! A policy covers what its conditions say of the fields, of the bucket, of the time and of the length of the file. A mutant breaks one of
//! these: another spelling of what the policy allows would be the same form. `mutants` does the like for the other ways to sign.

use crate::calls::{aws, credentials, encode};
use crate::client::{Client, Wire};
use crate::house::House;
use crate::mutants::{Dice, EACH, crc32, flip, house, state};
use crate::posted::{Form, base64, lay_out};

/// A signed form whose parts can still be changed.
#[derive(Clone)]
struct Signed {
    bucket: String,
    fields: Vec<(String, String)>,
    name: String,
    file: Vec<u8>,
}

impl Signed {
    fn of(form: &Form, client: &Client) -> Self {
        let (bucket, name, file) = (form.bucket.clone(), form.name.clone(), form.file.clone());
        Self { bucket, fields: form.signed_by(client), name, file }
    }

    fn wire(&self, client: &Client) -> Wire {
        lay_out(client, &self.bucket, &self.fields, Some((&self.name, &self.file)))
    }

    fn value(&mut self, name: &str) -> &mut String {
        &mut self.fields.iter_mut().find(|(field, _)| field == name).unwrap().1
    }
}

/// What else of a form its policy settles, beside its fields.
#[derive(Clone, Copy)]
struct Bounds {
    /// What the key must start with; none: it is given whole.
    prefix: Option<&'static str>,
    /// The greatest length of the file, when it has bounds. The least is one byte.
    most: Option<usize>,
    /// Whether a checksum of the file is among the fields.
    summed: bool,
}

/// Changes one thing that the policy covers; says what.
fn mutate(form: &mut Signed, bounds: Bounds, dice: &mut Dice) -> String {
    let at = dice.below(form.fields.len());
    let (name, value) = form.fields[at].clone();
    match dice.below(9) {
        0 => {
            let spoilt = match dice.below(3) {
                0 => flip(form.value("policy"), dice),
                // A policy of one's own, without a signature of one's own.
                1 => base64(br#"{"expiration":"2099-01-01T00:00:00Z","conditions":[["starts-with","$key",""]]}"#),
                _ => form.value("policy").replace('=', "") + "AAAA",
            };
            *form.value("policy") = spoilt;
            "the policy".into()
        }
        1 => {
            let signature = form.value("x-amz-signature");
            *signature =
                if dice.below(2) == 0 { flip(signature, dice) } else { signature[..dice.below(64)].to_owned() };
            format!("the signature: {signature}")
        }
        2 => {
            let changed = match (name.as_str(), bounds.prefix) {
                // What comes after the prefix is anybody's.
                ("key", Some(prefix)) => flip(prefix, dice) + &value[prefix.len()..],
                ("content-type", Some(_)) => value.replacen("image/", &flip("image/", dice), 1),
                _ => flip(&value, dice),
            };
            form.fields[at].1.clone_from(&changed);
            format!("the field {name}: {changed}")
        }
        3 => {
            form.fields.remove(at);
            format!("without the field {name}")
        }
        4 => {
            form.fields.push((name.clone(), flip(&value, dice)));
            format!("the field {name} twice")
        }
        5 => {
            let more = dice.of(&[
                "x-amz-meta-more",
                "x-amz-acl",
                "acl",
                "content-encoding",
                "success_action_redirect",
                "tagging",
                "x-amz-storage-class",
                "x-amz-server-side-encryption",
                "x-amz-website-redirect-location",
                "anything",
            ]);
            form.fields.insert(at, (more.to_owned(), "private".to_owned()));
            format!("the field {more} besides")
        }
        6 => {
            form.bucket = if dice.below(2) == 0 { "other".to_owned() } else { flip(&form.bucket, dice) };
            format!("the bucket {}", form.bucket)
        }
        7 if bounds.summed => {
            let at = dice.below(form.file.len());
            form.file[at] ^= 1 << dice.below(8);
            format!("the file at {at}")
        }
        7 if bounds.most.is_some() => {
            let most = bounds.most.unwrap();
            form.file = if dice.below(2) == 0 { Vec::new() } else { vec![b'x'; most + 1 + dice.below(2 * most)] };
            format!("a file of {}", form.file.len())
        }
        _ => {
            form.fields[at].0 = format!("x-amz-meta-{}", flip(&name, dice));
            format!("the field {name} under the name {}", form.fields[at].0)
        }
    }
}

/// Sends the form as it is, which must be believed, then mutants of it.
fn control(house: &House, name: &str, client: &Client, form: &Form, bounds: Bounds) {
    let signed = Signed::of(form, client);
    let fine = client.raw(&signed.wire(client));
    assert!(matches!(fine.status, 201 | 204), "{name}: {} {}", fine.status, fine.text());
    let before = state(house);
    let mut dice = Dice(name.len() as u64);
    for n in 0..EACH {
        let mut mutant = signed.clone();
        let what = mutate(&mut mutant, bounds, &mut dice);
        let answer = client.raw(&mutant.wire(client));
        let refused = matches!(answer.status, 400 | 403);
        assert!(refused, "{name}, mutant {n}, {what}: {} {}", answer.status, answer.text());
    }
    assert_eq!(state(house), before, "{name}: a mutant changed something");
}

/// A form for one key alone, with every kind of field.
fn whole() -> Form {
    let mut form = Form::new("dir/form", b"hello world")
        .allowed("content-type", "text/plain")
        .allowed("x-amz-meta-color", "blue")
        .allowed("success_action_status", "201")
        .condition(r#"["content-length-range", 1, 100]"#);
    form.conditions[1] = r#"["eq","$key","dir/form"]"#.to_owned();
    form
}

#[test]
fn forms_for_one_key() {
    let house = house();
    let bounds = Bounds { prefix: None, most: Some(100), summed: false };
    control(&house, "a form for one key", &house.root, &whole(), bounds);
}

#[test]
fn forms_for_a_prefix() {
    let house = house();
    let mut form = Form::new("dir/up/${filename}", b"hello world")
        .field("content-type", "image/jpeg")
        .condition(r#"["starts-with","$Content-Type","image/"]"#)
        .condition(r#"["content-length-range", 1, 100]"#);
    form.conditions[1] = r#"["starts-with","$key","dir/up/"]"#.to_owned();
    let bounds = Bounds { prefix: Some("dir/up/"), most: Some(100), summed: false };
    control(&house, "a form for a prefix", &house.root, &form, bounds);
}

#[test]
fn forms_with_a_checksum_of_the_file() {
    let house = house();
    let form = whole().allowed("x-amz-checksum-crc32", &crc32(b"hello world"));
    control(&house, "a form with a checksum", &house.root, &form, Bounds { prefix: None, most: None, summed: true });
}

#[test]
fn forms_of_temporary_keys() {
    let house = house();
    let role = encode("arn:aws:iam::000000000000:role/base/editor");
    let given = house.root.ask(&aws(&format!("Action=AssumeRole&RoleSessionName=agent&RoleArn={role}"))).ok();
    let (client, token) = credentials(&house, &given);
    let form = whole().allowed("x-amz-security-token", &token);
    control(
        &house,
        "a form of a temporary key",
        &client,
        &form,
        Bounds { prefix: None, most: Some(100), summed: false },
    );
}
