#!/usr/bin/env python3
"""tigris-boto3-ext and the MinIO client against a running server, verb by verb, bytes compared. The server is named by `mw env`."""

import io
import os
import tarfile
import urllib.request
from urllib.parse import urlparse

import boto3
import tigris_boto3_ext as tigris
from botocore.config import Config
from botocore.exceptions import ClientError
from minio import Minio
from minio.commonconfig import CopySource
from minio.error import S3Error
from tigris_boto3_ext import TigrisAPIError

ENDPOINT = os.environ["AWS_ENDPOINT_URL_S3"]
s3 = boto3.client("s3", config=Config(s3={"addressing_style": "path"}, signature_version="s3v4"))


def step(what):
    print(f"  {what}", flush=True)


def read(bucket, key, **more):
    return s3.get_object(Bucket=bucket, Key=key, **more)["Body"].read()


def boto3_ext():
    b = "py-tigris"
    step("snapshots")
    tigris.create_snapshot_bucket(s3, b)
    assert tigris.has_snapshot_enabled(s3, b)
    s3.put_object(Bucket=b, Key="k", Body=b"one")
    version = tigris.get_snapshot_version(tigris.create_snapshot(s3, b, snapshot_name="first one"))
    assert len(version) == 19 and version.isdigit(), version
    s3.put_object(Bucket=b, Key="k", Body=b"two")
    assert tigris.get_object_from_snapshot(s3, b, "k", version)["Body"].read() == b"one"
    assert tigris.head_object_from_snapshot(s3, b, "k", version)["ContentLength"] == 3
    assert [o["Key"] for o in tigris.list_objects_from_snapshot(s3, b, version)["Contents"]] == ["k"]
    assert [n["Name"] for n in tigris.list_snapshots(s3, b)["Buckets"]] == [f"{version}; name=first one"]
    url = tigris.presign(s3, b, "k", snapshot_version=version)["url"]
    assert urllib.request.urlopen(url).read() == b"one"
    step("forks")
    tigris.create_fork(s3, "py-fork", b, snapshot_version=version)
    assert read("py-fork", "k") == b"one"
    info = tigris.get_bucket_info(s3, "py-fork")
    assert (info["fork_source_bucket"], info["fork_source_snapshot"]) == (b, version), info
    assert info["snapshot_enabled"]
    assert [f["name"] for f in tigris.list_forks(s3, b)["buckets"]] == ["py-fork"]
    metadata = tigris.get_bucket_metadata(s3, b, with_size=True)
    assert metadata["is_fork_parent"] and metadata["size"]["objects"] == 1, metadata
    assert tigris.get_bucket_metadata(s3, "py-fork")["fork_parents"][0]["snapshot"] == version
    step("listing and settings")
    page = tigris.list_buckets(s3, include_type=True, include_fork_info=True, include_owner=True, max_buckets=1)
    assert page["continuation_token"] and page["buckets"][0]["snapshot_enabled"], page
    assert [x["name"] for x in tigris.list_buckets(s3, only_forks=True)["buckets"]] == ["py-fork"]
    assert tigris.get_stats(s3)["active_buckets"] == 2
    tigris.update_bucket(s3, "py-fork", snapshot_enabled=False)
    assert not tigris.has_snapshot_enabled(s3, "py-fork")
    for settings in [{"cache_control": "no-store"}, {"access": "public"}]:
        try:
            tigris.update_bucket(s3, "py-fork", **settings)
            raise AssertionError(f"{settings} should be refused")
        except TigrisAPIError as error:
            assert error.status_code == 501 and error.code == "NotImplemented", error
    step("rename and bundle")
    s3.put_object(Bucket=b, Key="a b+ü", Body=b"renamed", ContentType="text/x")
    tigris.rename_object(s3, b, "a b+ü", "dir/new name")
    assert read(b, "dir/new name") == b"renamed"
    assert [o["Key"] for o in s3.list_objects_v2(Bucket=b)["Contents"]] == ["dir/new name", "k"]
    bundle = tigris.bundle_objects(s3, b, ["k", "dir/new name", "none"])
    assert (bundle.object_count, bundle.skipped_count, bundle.bundle_bytes) == (2, 1, 10)
    with tarfile.open(fileobj=bundle, mode="r|") as tar:
        content = {m.name: tar.extractfile(m).read() for m in tar}
    assert content["k"] == b"two" and content["dir/new name"] == b"renamed" and b"NoSuchKey" in content["__bundle_errors.json"]
    step("a snapshot deleted is not a bucket deleted")
    tigris.delete_snapshot(s3, b, version)
    assert read(b, "k") == b"two" and tigris.list_snapshots(s3, b).get("Buckets", []) == []
    assert read("py-fork", "k") == b"one"
    step("ends")
    for bucket in ["py-fork", b]:
        try:
            s3.delete_bucket(Bucket=bucket)
            raise AssertionError("it is not empty")
        except ClientError as error:
            assert error.response["Error"]["Code"] == "BucketNotEmpty"
        tigris.force_delete_bucket(s3, bucket)
    assert tigris.list_buckets(s3)["buckets"] == []


def minio():
    url = urlparse(ENDPOINT)
    client = Minio(
        url.netloc,
        access_key=os.environ["AWS_ACCESS_KEY_ID"],
        secret_key=os.environ["AWS_SECRET_ACCESS_KEY"],
        secure=url.scheme == "https",
    )
    b = "py-minio"
    step("buckets")
    client.make_bucket(b)
    assert client.bucket_exists(b) and not client.bucket_exists("nowhere")
    step("objects")
    small, big = os.urandom(1000), os.urandom(12 << 20)
    for key, body in [("a b+ü/%41", small), ("empty", b""), ("big", big)]:
        client.put_object(b, key, io.BytesIO(body), len(body), content_type="text/x", metadata={"m": "1"}, part_size=5 << 20)
        assert client.get_object(b, key).read() == body, key
    stat = client.stat_object(b, "big")
    assert (stat.size, stat.content_type, stat.metadata["x-amz-meta-m"]) == (len(big), "text/x", "1")
    assert client.get_object(b, "big", offset=5, length=10).read() == big[5:15]
    client.copy_object(b, "copy", CopySource(b, "a b+ü/%41"))
    assert client.get_object(b, "copy").read() == small
    step("streams of unknown length, presigned URLs")
    client.put_object(b, "stream", io.BytesIO(big), -1, part_size=5 << 20)
    assert client.get_object(b, "stream").read() == big
    request = urllib.request.Request(client.presigned_put_object(b, "by url"), data=b"put", method="PUT")
    assert urllib.request.urlopen(request).status == 200
    assert urllib.request.urlopen(client.presigned_get_object(b, "by url")).read() == b"put"
    step("listing and deletes")
    names = [o.object_name for o in client.list_objects(b, recursive=True)]
    assert names == sorted(["a b+ü/%41", "big", "by url", "copy", "empty", "stream"], key=str.encode), names
    assert [o.object_name for o in client.list_objects(b, prefix="a")] == ["a b+ü/"]
    from minio.deleteobjects import DeleteObject

    assert list(client.remove_objects(b, [DeleteObject(n) for n in names])) == []
    client.remove_bucket(b)
    try:
        client.get_object(b, "k")
        raise AssertionError("the bucket is gone")
    except S3Error as error:
        assert error.code == "NoSuchBucket"


for name, run in [("tigris-boto3-ext", boto3_ext), ("minio", minio)]:
    print(name, flush=True)
    run()
