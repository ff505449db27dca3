"""boto3, unmodified: versions at every page size, a browser form, CORS, ACLs. The endpoint and the key come from the environment."""
import os
import urllib.request

import boto3
from botocore.config import Config

ENDPOINT = os.environ["AWS_ENDPOINT_URL_S3"]
BUCKET = "versions-of-boto"

s3 = boto3.client(
    "s3",
    endpoint_url=ENDPOINT,
    region_name="us-east-1",
    config=Config(signature_version="s3v4", s3={"addressing_style": "path"}),
)
s3.create_bucket(Bucket=BUCKET)
s3.put_bucket_versioning(Bucket=BUCKET, VersioningConfiguration={"Status": "Enabled"})
ids = [s3.put_object(Bucket=BUCKET, Key="k", Body=str(n).encode())["VersionId"] for n in range(5)]
deleted = s3.delete_object(Bucket=BUCKET, Key="k")
assert deleted["DeleteMarker"]
assert s3.get_object(Bucket=BUCKET, Key="k", VersionId=ids[2])["Body"].read() == b"2"
for size in (1, 2, 1000):
    found = []
    pages = s3.get_paginator("list_object_versions").paginate(Bucket=BUCKET, PaginationConfig={"PageSize": size})
    for page in pages:
        found += [(v["VersionId"], v["IsLatest"]) for v in page.get("Versions", []) + page.get("DeleteMarkers", [])]
    assert sorted(v for v, _ in found) == sorted(ids + [deleted["VersionId"]]), (size, found)
    assert sum(latest for _, latest in found) == 1
s3.delete_object(Bucket=BUCKET, Key="k", VersionId=deleted["VersionId"])
assert s3.get_object(Bucket=BUCKET, Key="k")["Body"].read() == b"4"

form = s3.generate_presigned_post(
    BUCKET,
    "up/${filename}",
    Fields={"acl": "private"},
    Conditions=[{"acl": "private"}, ["content-length-range", 1, 100]],
    ExpiresIn=600,
)
boundary = "a-boundary"
body = b"".join(
    f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'.encode()
    for name, value in form["fields"].items()
)
body += (
    f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="f.txt"\r\n\r\nhello\r\n--{boundary}--\r\n'
).encode()
request = urllib.request.Request(
    form["url"], data=body, headers={"Content-Type": f"multipart/form-data; boundary={boundary}"}
)
assert urllib.request.urlopen(request).status == 204
assert s3.get_object(Bucket=BUCKET, Key="up/f.txt")["Body"].read() == b"hello"

rules = {"CORSRules": [{"AllowedMethods": ["GET"], "AllowedOrigins": ["*"]}]}
s3.put_bucket_cors(Bucket=BUCKET, CORSConfiguration=rules)
assert s3.get_bucket_cors(Bucket=BUCKET)["CORSRules"][0]["AllowedMethods"] == ["GET"]
assert s3.get_bucket_acl(Bucket=BUCKET)["Grants"][0]["Permission"] == "FULL_CONTROL"
s3.put_object_acl(Bucket=BUCKET, Key="k", ACL="private")

resource = boto3.resource("s3", endpoint_url=ENDPOINT, region_name="us-east-1")
resource.Bucket(BUCKET).object_versions.delete()
s3.delete_bucket(Bucket=BUCKET)
print("  boto3: versions, form, CORS, ACLs")
