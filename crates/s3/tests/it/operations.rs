//! The operations of the door, each about one world.

use crate::client::Ask;

/// Every operation on a bucket, on the key `k` in it, and with either as a copy source.
pub fn operations(world: &str) -> Vec<Ask> {
    operations_on(world, "k", "own")
}

/// The same about another key; copies go to, and come from, keys under `home`.
pub fn operations_on(world: &str, key: &str, home: &str) -> Vec<Ask> {
    let delete = format!("<Delete><Object><Key>{key}</Key></Object></Delete>");
    let complete =
        "<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>\"e\"</ETag></Part></CompleteMultipartUpload>";
    let tags = "<Tagging><TagSet><Tag><Key>a</Key><Value>b</Value></Tag></TagSet></Tagging>";
    let at = |method: &str, rest: &str| Ask::new(method, &format!("/{world}{rest}"));
    let mut all = vec![
        at("GET", ""),
        at("HEAD", ""),
        at("GET", "?list-type=2"),
        at("GET", "?list-type=2&prefix=a&delimiter=%2F"),
        at("GET", "?uploads="),
        at("GET", "?location="),
        at("GET", "?versioning="),
        at("PUT", ""),
        at("DELETE", ""),
        at("GET", &format!("/{key}")),
        at("GET", &format!("/{key}")).header("range", "bytes=0-0"),
        at("GET", &format!("/{key}?versionId=17")),
        at("GET", &format!("/{key}?partNumber=1")),
        at("GET", &format!("/{key}?attributes=")).header("x-amz-object-attributes", "ETag"),
        at("GET", &format!("/{key}?tagging=")),
        at("GET", &format!("/{key}?uploadId=u")),
        at("HEAD", &format!("/{key}")),
        at("PUT", &format!("/{key}")).body("x"),
        at("PUT", &format!("/{key}?partNumber=1&uploadId=u")).body("x"),
        at("PUT", &format!("/{key}?tagging=")).body(tags),
        at("POST", "?delete=").body(delete.clone()),
        at("POST", &format!("/{key}?uploads=")),
        at("POST", &format!("/{key}?uploadId=u")).body(complete),
        at("DELETE", &format!("/{key}")),
        at("DELETE", &format!("/{key}?uploadId=u")),
        at("DELETE", &format!("/{key}?tagging=")),
    ];
    for source in [
        format!("{world}/{key}"),
        format!("/{world}/{key}"),
        format!("%2F{world}%2F{key}"),
        format!("{world}/{key}?versionId=17"),
    ] {
        all.push(Ask::new("PUT", &format!("/{home}/copied")).header("x-amz-copy-source", &source));
        all.push(
            Ask::new("PUT", &format!("/{home}/copied?partNumber=1&uploadId=u")).header("x-amz-copy-source", &source),
        );
        all.push(at("PUT", &format!("/{key}")).header("x-amz-copy-source", &format!("{home}/k")));
        all.push(
            at("PUT", &format!("/{key}?partNumber=1&uploadId=u")).header("x-amz-copy-source", &format!("{home}/k")),
        );
    }
    all
}
