use super::*;

fn record() -> WorldRecord {
    WorldRecord {
        name: "base".to_owned(),
        created: 300,
        owner: "k".to_owned(),
        parent: Some((WorldId(9), "up".to_owned(), Version(7))),
        expires: None,
        run: None,
        salt: [5; 16],
        versions: Versions::default(),
    }
}

#[test]
fn a_world_without_versions_is_written_as_before_there_were_any() {
    let mut first = vec![1, 4];
    first.extend_from_slice(b"base");
    first.extend_from_slice(&[0xac, 2, 1, b'k', 1, 0, 0, 0, 0, 0, 0, 0, 9, 2, b'u', b'p', 7, 0, 0]);
    first.extend_from_slice(&[5; 16]);
    first.push(0);
    assert_eq!(record().encode(), first);
    assert_eq!(WorldRecord::decode(&first).unwrap(), record());
}

#[test]
fn a_world_with_versions_is_written_in_a_form_that_older_programs_refuse() {
    for versioning in [Versioning::Enabled, Versioning::Suspended] {
        let versioned = WorldRecord { versions: Versions { versioning, since: Version(1 << 60) }, ..record() };
        let written = versioned.encode();
        assert_eq!(written[0], 2);
        assert_eq!(WorldRecord::decode(&written).unwrap(), versioned);
        for end in 0..written.len() {
            assert!(WorldRecord::decode(&written[..end]).is_err());
        }
    }
    let mut newer = record().encode().to_vec();
    newer[0] = 3;
    assert!(WorldRecord::decode(&newer).unwrap_err().to_string().contains("newer"));
}
