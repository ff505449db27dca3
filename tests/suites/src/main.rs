//! Runs the integration suite of the crate `object_store` against the bucket and endpoint that the `AWS_*` variables name.
//!
//! A case that does not hold panics and ends the run with its own message. The bucket must be empty.

use futures::TryStreamExt;
use object_store::aws::{AmazonS3, AmazonS3Builder, Checksum, S3CopyIfNotExists};
use object_store::integration::{
    copy_if_not_exists, copy_rename_nonexistent_object, get_nonexistent_object, get_opts, list_paginated,
    list_uses_directories_correctly, list_with_delimiter, list_with_offset_exclusivity, multipart,
    multipart_out_of_order, multipart_put_part_out_of_order, multipart_race_condition, multipart_with_opts,
    put_get_attributes, put_get_delete_list, put_opts, rename_and_copy, stream_get,
};
use object_store::path::Path;
use object_store::{Error, ObjectStore, ObjectStoreExt};

fn builder(bucket: &str) -> AmazonS3Builder {
    let once = S3CopyIfNotExists::Header("if-none-match".into(), "*".into());
    AmazonS3Builder::from_env().with_bucket_name(bucket).with_allow_http(true).with_copy_if_not_exists(once)
}

fn step(name: &str) {
    println!("  object_store: {name}");
}

/// Takes away what a case left: some want nothing but their own.
async fn empty(store: &AmazonS3) {
    let left: Vec<_> = store.list(None).map_ok(|object| object.location).try_collect().await.expect("a list");
    for path in left {
        store.delete(&path).await.expect("deleted");
    }
}

async fn all(store: &AmazonS3) {
    step("put, get, delete, list");
    put_get_delete_list(store).await;
    list_with_offset_exclusivity(store).await;
    list_uses_directories_correctly(store).await;
    list_with_delimiter(store).await;
    list_paginated(store, store).await;
    step("conditions, ranges, attributes");
    get_opts(store).await;
    put_opts(store, true).await;
    put_get_attributes(store).await;
    empty(store).await;
    step("copy and rename");
    rename_and_copy(store).await;
    copy_if_not_exists(store).await;
    copy_rename_nonexistent_object(store).await;
    empty(store).await;
    step("streams and uploads in parts");
    stream_get(store).await;
    multipart(store, store).await;
    multipart_with_opts(store, store).await;
    multipart_put_part_out_of_order(store, store).await;
    multipart_race_condition(store, true).await;
    multipart_out_of_order(store).await;
    empty(store).await;
}

#[tokio::main]
async fn main() {
    let bucket = std::env::args().nth(1).expect("the bucket");
    all(&builder(&bucket).build().expect("a client")).await;
    for (name, builder) in [
        ("unsigned payloads", builder(&bucket).with_unsigned_payload(true)),
        ("checksums by SHA-256", builder(&bucket).with_checksum_algorithm(Checksum::SHA256)),
        ("checksums by CRC64NVME", builder(&bucket).with_checksum_algorithm(Checksum::CRC64NVME)),
    ] {
        step(name);
        put_get_delete_list(&builder.build().expect("a client")).await;
    }
    let store = builder(&bucket).build().expect("a client");
    empty(&store).await;
    step("copies that must be new, by an upload in parts");
    let parts = builder(&bucket).with_copy_if_not_exists(S3CopyIfNotExists::Multipart);
    copy_if_not_exists(&parts.build().expect("a client")).await;
    step("what is not there");
    let nowhere = builder("nonexistentname").build().expect("a client");
    let name = Path::from("nonexistentname");
    let absent = get_nonexistent_object(&store, Some(name.clone())).await;
    assert!(matches!(absent, Err(Error::NotFound { .. })), "{absent:?}");
    store.delete(&name).await.expect("deleting what is not there");
    for missing in [
        nowhere.get(&name).await.map(drop),
        nowhere.put(&name, "x".into()).await.map(drop),
        nowhere.delete(&name).await,
    ] {
        assert!(matches!(missing, Err(Error::NotFound { .. })), "{missing:?}");
    }
}
