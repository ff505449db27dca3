#!/usr/bin/env python3
"""The doors agree: what is written through one is read through every other, under names of every odd byte.

usage: doors.py MW
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile

import boto3
from botocore.config import Config

MW = sys.argv[1]
DIR = tempfile.mkdtemp(prefix="mw-doors-")
DATA, MOUNT = f"{DIR}/data", f"{DIR}/mnt".encode()
ODD = ["a b", " lead", "trail ", "é", "e\u0301", "İ", "ß", "日本", "\u200b", "\U0001f600", "&<>\"'", "%00", "100%", "a+b", "q?x=1#y", "tab\t", "cr\r", "lf\n", "~x", "it's(1)!*", "README", "readme", "..x", ".hidden", "-dash", "\x01", "\x7f"]


def shown(name):
    """A name as S3 shows it: each byte that text cannot carry is the character U+F700 + byte."""
    out = ""
    for char in name.decode("utf-8", "surrogateescape"):
        out += chr(0xF700 + ord(char) - 0xDC00) if 0xDC80 <= ord(char) <= 0xDCFF else char
    return out


def main():
    os.makedirs(MOUNT)
    server = subprocess.Popen([MW, "serve", "--data", DATA, "--listen", "127.0.0.1:0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        endpoint = server.stdout.readline().decode().split()[1]
        key = json.load(open(f"{DATA}/root-key.json"))
        env = dict(os.environ, MW_ENDPOINT=endpoint, AWS_ACCESS_KEY_ID=key["id"], AWS_SECRET_ACCESS_KEY=key["secret"])
        mw = lambda *args: subprocess.run([MW, *args], env=env, check=True, capture_output=True).stdout
        s3 = boto3.client(
            "s3",
            endpoint_url=endpoint,
            region_name="auto",
            aws_access_key_id=key["id"],
            aws_secret_access_key=key["secret"],
            config=Config(signature_version="s3v4", s3={"addressing_style": "path"}),
        )
        get = lambda k: s3.get_object(Bucket="www", Key=k)["Body"].read()
        mw("world", "create", "www")
        mw("mount", "www", MOUNT.decode())

        # Written through the mount: every byte that a file name can hold.
        names = [b"n" + bytes([b]) + b"x" for b in range(1, 256) if b != 0x2F] + [bytes([b]) for b in range(1, 256) if b not in b"./"]
        os.mkdir(MOUNT + b"/m")
        for name in names:
            with open(MOUNT + b"/m/" + name, "wb") as file:
                file.write(b"mount " + name)
        keys = {o["Key"] for page in s3.get_paginator("list_objects_v2").paginate(Bucket="www", Prefix="m/") for o in page["Contents"]}
        assert keys == {"m/" + shown(n) for n in names}, keys ^ {"m/" + shown(n) for n in names}
        for name in names:
            assert get("m/" + shown(name)) == b"mount " + name, name

        # Written through S3.
        for name in ODD:
            s3.put_object(Bucket="www", Key=f"s/{name}", Body=b"s3 " + name.encode())
        assert sorted(os.listdir(MOUNT + b"/s")) == sorted(n.encode() for n in ODD)
        for name in ODD:
            assert open(MOUNT + b"/s/" + name.encode(), "rb").read() == b"s3 " + name.encode(), name
            assert mw("cat", f"mw://www/s/{name}") == b"s3 " + name.encode(), name

        # Written through the command line, from a directory.
        os.mkdir(f"{DIR}/in")
        for name in names:
            with open(f"{DIR}/in/".encode() + name, "wb") as file:
                file.write(b"put " + name)
        os.symlink("/etc/passwd", f"{DIR}/in/link")
        mw("put", f"{DIR}/in", "mw://www/c")
        for name in names:
            assert open(MOUNT + b"/c/" + name, "rb").read() == b"put " + name, name
            assert get("c/" + shown(name)) == b"put " + name, name
        assert os.readlink(MOUNT + b"/c/link") == b"/etc/passwd"
        assert get("c/link") == b"/etc/passwd"

        # And out again, whole.
        mw("get", "mw://www/", f"{DIR}/out")
        assert subprocess.run(["diff", "-r", "--no-dereference", MOUNT, f"{DIR}/out"]).returncode == 0

        # Changed and deleted through one, seen at once through the others.
        for i, name in enumerate(ODD):
            path, k = MOUNT + b"/s/" + name.encode(), f"s/{name}"
            with open(path, "ab") as file:
                file.write(b" appended")
            assert get(k) == b"s3 " + name.encode() + b" appended"
            s3.put_object(Bucket="www", Key=k, Body=b"longer than what was there before, or shorter"[: 10 + i])
            assert open(path, "rb").read() == b"longer than what was there before, or shorter"[: 10 + i]
            if i % 2:
                os.unlink(path)
                assert "Contents" not in s3.list_objects_v2(Bucket="www", Prefix=k)
            else:
                s3.delete_object(Bucket="www", Key=k)
                assert not os.path.lexists(path)
        mw("fork", "www", "fork")
        assert s3.get_object(Bucket="fork", Key="m/" + shown(names[7]))["Body"].read() == b"mount " + names[7]
        assert subprocess.run([MW, "fsck"], env=env, capture_output=True).returncode == 0
        mw("unmount", MOUNT.decode())
        print(f"doors: {2 * len(names) + len(ODD)} names through S3, mount and command line agree")
    finally:
        server.terminate()
        server.wait(timeout=30)
        subprocess.run(["umount", "-l", MOUNT], stderr=subprocess.DEVNULL)
        shutil.rmtree(DIR, ignore_errors=True)


main()
