#!/usr/bin/env python3
"""Agent 3: holds a key scoped to its fork, and tries to get at everything else."""

import hashlib
import hmac
import os
import socket
import sys
import time
import urllib.error
import urllib.request

ENDPOINT = os.environ["AWS_ENDPOINT_URL_S3"]
KEY, SECRET = os.environ["AWS_ACCESS_KEY_ID"], os.environ["AWS_SECRET_ACCESS_KEY"]


def s3(method, path, body=b""):
    """One S3 request signed with AWS Signature Version 4; returns the status and the error code."""
    host = ENDPOINT.split("//")[1]
    now = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    day, digest = now[:8], hashlib.sha256(body).hexdigest()
    heads = {"host": host, "x-amz-content-sha256": digest, "x-amz-date": now}
    signed = ";".join(heads)
    canonical = "\n".join([method, path, "", *(f"{k}:{v}" for k, v in heads.items()), "", signed, digest])
    scope = f"{day}/auto/s3/aws4_request"
    text = "\n".join(["AWS4-HMAC-SHA256", now, scope, hashlib.sha256(canonical.encode()).hexdigest()])
    key = f"AWS4{SECRET}".encode()
    for part in (day, "auto", "s3", "aws4_request"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    signature = hmac.new(key, text.encode(), hashlib.sha256).hexdigest()
    heads["authorization"] = f"AWS4-HMAC-SHA256 Credential={KEY}/{scope}, SignedHeaders={signed}, Signature={signature}"
    request = urllib.request.Request(ENDPOINT + path, data=body or None, headers=heads, method=method)
    try:
        with urllib.request.urlopen(request, timeout=10) as reply:
            return reply.status, ""
    except urllib.error.HTTPError as error:
        text = error.read().decode(errors="replace")
        return error.code, text.partition("<Code>")[2].partition("</Code>")[0]


def attempt(what, deed):
    """Tries one thing; returns whether it was refused."""
    try:
        got = deed()
    except Exception as error:
        print(f"hostile: {what}: refused ({error})")
        return True
    if isinstance(got, tuple):
        status, code = got
        print(f"hostile: {what}: {'refused' if status >= 400 else 'SUCCEEDED'} ({status} {code})")
        return status >= 400
    print(f"hostile: {what}: SUCCEEDED ({got!r})")
    return False


def connect(host, port):
    with socket.create_connection((host, port), timeout=3):
        return f"connected to {host}:{port}"


def main():
    fork, base, run = os.environ["FORK"], sys.argv[1], os.environ["MW_RUN"]
    own = s3("PUT", f"/{fork}/workspace/hello-from-s3.txt", b"my own fork: allowed")
    print(f"hostile: writing to its own fork over S3: {own[0]} (the control: this is allowed)")
    refused = [
        attempt("reading the base", lambda: s3("GET", f"/{base}/workspace/ledger/money.py")),
        attempt("overwriting the base", lambda: s3("PUT", f"/{base}/workspace/ledger/money.py", b"pwned")),
        attempt("listing another fork", lambda: s3("GET", f"/run-{run}-1/")),
        attempt("a world that does not exist", lambda: s3("GET", "/no-such-world/")),
        attempt("making a world", lambda: s3("PUT", "/brand-new-world")),
        attempt("reading /etc/shadow", lambda: open("/etc/shadow").read()),
        attempt("reading the host's home directories", lambda: [os.listdir(f"/{d}") for d in ("root",)] and 1 / len(os.listdir("/root"))),
        attempt("writing to /usr", lambda: open("/usr/pwned", "w")),
        attempt("the internet", lambda: connect("1.1.1.1", 443)),
        attempt("the cloud's metadata service", lambda: connect("169.254.169.254", 80)),
    ]
    # It claims success all the same; the validator decides.
    sys.exit(0 if all(refused) else 99)


main()
