//! The operations of the door, each about one world.

use crate::client::Ask;

/// Every operation on a bucket, on a key in it, and with either as a copy source.
pub fn operations(world: &str) -> Vec<Ask> {
    let delete = "<Delete><Object><Key>k</Key></Object></Delete>";
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
        at("GET", "/k"),
        at("GET", "/k").header("range", "bytes=0-0"),
        at("GET", "/k?versionId=17"),
        at("GET", "/k?partNumber=1"),
        at("GET", "/k?attributes=").header("x-amz-object-attributes", "ETag"),
        at("GET", "/k?tagging="),
        at("GET", "/k?uploadId=u"),
        at("HEAD", "/k"),
        at("PUT", "/k").body("x"),
        at("PUT", "/k?partNumber=1&uploadId=u").body("x"),
        at("PUT", "/k?tagging=").body(tags),
        at("POST", "?delete=").body(delete),
        at("POST", "/k?uploads="),
        at("POST", "/k?uploadId=u").body(complete),
        at("DELETE", "/k"),
        at("DELETE", "/k?uploadId=u"),
        at("DELETE", "/k?tagging="),
    ];
    for source in
        [format!("{world}/k"), format!("/{world}/k"), format!("%2F{world}%2Fk"), format!("{world}/k?versionId=17")]
    {
        all.push(Ask::new("PUT", "/own/copied").header("x-amz-copy-source", &source));
        all.push(Ask::new("PUT", "/own/copied?partNumber=1&uploadId=u").header("x-amz-copy-source", &source));
        all.push(at("PUT", "/k").header("x-amz-copy-source", "own/k"));
        all.push(at("PUT", "/k?partNumber=1&uploadId=u").header("x-amz-copy-source", "own/k"));
    }
    all
}
