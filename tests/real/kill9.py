#!/usr/bin/env python3
"""Kills the real server with SIGKILL, again and again, under load through S3, a mount and the control plane.

The recorder lives outside the server: it notes an operation only after it was acknowledged (an HTTP 200, or an fsync that
returned). After every restart it reads everything back: what was acknowledged is there; what was under way is there whole or not at
all; fsck is clean. A second world is mounted with write-back: of that, what was synced is there. A kill counts only when at least 100 writes were acknowledged in the second before it.

usage: kill9.py MW KILLS [SEED]
"""

import hashlib
import hmac
import http.client
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

MW, KILLS = sys.argv[1], int(sys.argv[2])
SEED = int(sys.argv[3]) if len(sys.argv) > 3 else int(time.time())
WRITERS, KEYS = 8, 40
DIR = tempfile.mkdtemp(prefix="mw-kill9-")
DATA, MOUNT, KEPT = f"{DIR}/data", f"{DIR}/mnt", f"{DIR}/kept"
SLOTS = 64
LOCK = threading.Lock()


class Down(Exception):
    """The server is not there."""


class Server:
    """The server under test."""

    def start(self):
        self.process = subprocess.Popen(
            [MW, "serve", "--data", DATA, "--listen", "127.0.0.1:0"], stdout=subprocess.PIPE, stderr=open(f"{DIR}/server.log", "ab")
        )
        line = self.process.stdout.readline().decode()
        assert line.startswith("ready http://"), f"the server did not start: {line!r}; see {DIR}/server.log"
        self.address = line.split("//")[1].strip()
        key = json.load(open(f"{DATA}/root-key.json"))
        self.id, self.secret = key["id"], key["secret"]

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def mw(self, *args):
        env = dict(
            os.environ,
            MW_ENDPOINT=f"http://{self.address}",
            AWS_ACCESS_KEY_ID=self.id,
            AWS_SECRET_ACCESS_KEY=self.secret,
        )
        return subprocess.run([MW, *args], env=env, capture_output=True, text=True, timeout=120)


SERVER = Server()


class Client:
    """One connection; every request is signed."""

    def __init__(self):
        self.connection = None

    def call(self, method, path, body=b"", query=""):
        host = SERVER.address
        now = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
        digest = hashlib.sha256(body).hexdigest()
        heads = {"host": host, "x-amz-content-sha256": digest, "x-amz-date": now}
        signed = ";".join(heads)
        canonical = "\n".join([method, path, query, *(f"{k}:{v}" for k, v in heads.items()), "", signed, digest])
        scope = f"{now[:8]}/auto/s3/aws4_request"
        text = "\n".join(["AWS4-HMAC-SHA256", now, scope, hashlib.sha256(canonical.encode()).hexdigest()])
        key = f"AWS4{SERVER.secret}".encode()
        for part in (now[:8], "auto", "s3", "aws4_request"):
            key = hmac.new(key, part.encode(), hashlib.sha256).digest()
        signature = hmac.new(key, text.encode(), hashlib.sha256).hexdigest()
        heads["authorization"] = (
            f"AWS4-HMAC-SHA256 Credential={SERVER.id}/{scope}, SignedHeaders={signed}, Signature={signature}"
        )
        if path.startswith("/-/"):
            heads["content-type"] = "application/json"
        try:
            if self.connection is None or self.connection_host != host:
                self.connection = http.client.HTTPConnection(host, timeout=60)
                self.connection_host = host
            self.connection.request(method, path + (f"?{query}" if query else ""), body, heads)
            reply = self.connection.getresponse()
            return reply.status, reply.read()
        except (OSError, http.client.HTTPException) as error:
            self.connection = None
            raise Down(str(error)) from error


def content(key, n):
    """What write `n` of `key` holds: self-describing, of a length that tells small (in the log) from large (in segments)."""
    size = [40, 3000, 9000, 200_000][(n * 7 + len(key)) % 4]
    head = f"{key} {n} {size} ".encode()
    block = hashlib.sha256(head).digest()
    return (head + block * (size // 32 + 1))[: len(head) + size]


class Record:
    """What was acknowledged, and what was begun."""

    def __init__(self):
        self.acked, self.begun, self.times = {}, {}, []
        self.forks, self.begun_forks, self.snapshots = {}, {}, []
        self.log_acked, self.log_begun = 0, 0
        self.slots_acked, self.slots_begun = [0] * SLOTS, 0
        self.deleted = set()

    def ack(self):
        self.times.append(time.monotonic())


RECORD = Record()
STOP = threading.Event()


def writer(t):
    client, rng, n = Client(), random.Random(SEED * 1000 + t), 0
    while not STOP.is_set():
        key = f"w{t}/k{rng.randrange(KEYS)}"
        n += 1
        number = int(time.time() * 1e6)
        with LOCK:
            RECORD.begun[key] = number
        try:
            status, reply = client.call("PUT", f"/base/{key}", content(key, number))
        except Down:
            return
        assert status == 200, f"PUT {key}: {status} {reply[:300]}"
        with LOCK:
            RECORD.acked[key] = number
            RECORD.ack()


def mounted():
    """Appends fixed records to one file of the mount, and syncs: the acknowledgement is the fsync's return."""
    try:
        fd = os.open(f"{MOUNT}/log", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            while not STOP.is_set():
                with LOCK:
                    RECORD.log_begun += 1
                    n = RECORD.log_begun
                os.write(fd, f"{n:015d}\n".encode())
                os.fsync(fd)
                with LOCK:
                    RECORD.log_acked = n
                    RECORD.ack()
        finally:
            os.close(fd)
    except OSError:
        return


def kept():
    """Writes numbers all over a file of the mount with write-back, and syncs now and then: what was written by then is acknowledged."""
    rng = random.Random()
    try:
        fd = os.open(f"{KEPT}/slots", os.O_RDWR | os.O_CREAT, 0o644)
        try:
            written = list(RECORD.slots_acked)
            while not STOP.is_set():
                for _ in range(rng.randrange(1, 20)):
                    RECORD.slots_begun += 1
                    slot = rng.randrange(SLOTS)
                    os.pwrite(fd, RECORD.slots_begun.to_bytes(8, "big") * 512, slot * 4096)
                    written[slot] = RECORD.slots_begun
                os.fsync(fd)
                RECORD.slots_acked = list(written)
                with LOCK:
                    RECORD.ack()
        finally:
            os.close(fd)
    except OSError:
        return


def check_kept():
    if not any(RECORD.slots_acked):
        return
    with open(f"{KEPT}/slots", "rb") as file:
        data = file.read()
    for slot, acked in enumerate(RECORD.slots_acked):
        page = data[slot * 4096 : slot * 4096 + 4096]
        if not page and not acked:
            continue
        found = int.from_bytes(page[:8], "big")
        assert page == page[:8] * 512, f"slot {slot} of the mount with write-back is torn"
        assert acked <= found <= RECORD.slots_begun, f"slot {slot}: synced {acked}, found {found}"
        RECORD.slots_acked[slot] = found


def forker(round_number):
    """Forks, snapshots, promotes and sweeps, so that kills fall into them too."""
    client, i = Client(), 0
    while not STOP.is_set():
        i += 1
        name = f"f-{round_number}-{i}"
        try:
            with LOCK:
                RECORD.begun_forks[name] = None
                floor = dict(RECORD.acked)
            status, reply = client.call("POST", "/-/v1/worlds/base/forks", json.dumps({"name": name}).encode())
            assert status in (200, 201), f"fork: {status} {reply[:300]}"
            with LOCK:
                RECORD.forks[name] = floor
            if i % 3 == 0:
                number = int(time.time() * 1e6)
                key = f"promoted/{name}"
                status, reply = client.call("PUT", f"/{name}/{key}", content(key, number))
                assert status == 200, f"PUT in a fork: {status} {reply[:300]}"
                with LOCK:
                    RECORD.begun[key] = number
                status, reply = client.call("POST", f"/-/v1/worlds/{name}/promote", b"{}")
                assert status in (200, 201), f"promote: {status} {reply[:500]}"
                with LOCK:
                    RECORD.acked[key] = number
            if i % 4 == 0:
                status, reply = client.call("POST", "/-/v1/worlds/base/snapshots", b"{}")
                assert status in (200, 201), f"snapshot: {status} {reply[:300]}"
                with LOCK:
                    RECORD.snapshots.append(json.loads(reply)["version"])
            if i % 5 == 0:
                gone = next(iter(RECORD.forks))
                with LOCK:
                    RECORD.forks.pop(gone)
                    RECORD.deleted.add(gone)
                client.call("POST", f"/-/v1/worlds/{gone}/discard", b"{}")
            if i % 7 == 0:
                client.call("POST", "/-/v1/gc", b"{}")
        except Down:
            return


def uploader(round_number):
    """Multipart uploads of 6 MiB: a kill in the middle leaves no object, or the old one."""
    client, i = Client(), 0
    while not STOP.is_set():
        i += 1
        key = f"big/{round_number % 5}"
        number = int(time.time() * 1e6)
        first, last = bytes([number % 251]) * (5 << 20), str(number).encode()
        try:
            status, reply = client.call("POST", f"/base/{key}", b"", "uploads=")
            assert status == 200, f"upload: {status} {reply[:300]}"
            upload = reply.decode().partition("<UploadId>")[2].partition("</UploadId>")[0]
            tags = []
            for part, body in ((1, first), (2, last)):
                status, reply = client.call("PUT", f"/base/{key}", body, f"partNumber={part}&uploadId={upload}")
                assert status == 200, f"part: {status} {reply[:300]}"
                tags.append(hashlib.md5(body).hexdigest())
            done = "".join(f"<Part><PartNumber>{n + 1}</PartNumber><ETag>{t}</ETag></Part>" for n, t in enumerate(tags))
            xml = f"<CompleteMultipartUpload>{done}</CompleteMultipartUpload>".encode()
            with LOCK:
                RECORD.begun[key] = number
            status, reply = client.call("POST", f"/base/{key}", xml, f"uploadId={upload}")
            assert status == 200 and b"<Error>" not in reply, f"complete: {status} {reply[:300]}"
            with LOCK:
                RECORD.acked[key] = number
        except Down:
            return


def check(deep):
    client = Client()
    for key, number in RECORD.acked.items():
        status, body = client.call("GET", f"/base/{key}")
        assert status == 200, f"acknowledged {key} is gone: {status}"
        if key.startswith("big/"):
            got = int(body[5 << 20 :])
            assert body[: 5 << 20] == bytes([got % 251]) * (5 << 20), f"{key} is torn"
        else:
            name, got = body.split(b" ", 2)[:2]
            got = int(got)
            assert body == content(name.decode(), got), f"{key} is torn"
        assert got == number or got == RECORD.begun[key], f"{key}: acknowledged {number}, found {got}"
        RECORD.acked[key] = got
    for key in set(RECORD.begun) - set(RECORD.acked):
        status, _ = client.call("HEAD", f"/base/{key}")
        assert status in (200, 404), f"{key}: {status}"
    with open(f"{MOUNT}/log", "rb") as log:
        lines = log.read().split(b"\n")[:-1]
    numbers = [int(line) for line in lines]
    assert numbers == sorted(set(numbers)), "the appended file is out of order or repeats"
    assert not numbers and not RECORD.log_acked or numbers[-1] >= RECORD.log_acked, (
        f"fsynced record {RECORD.log_acked} is gone; the last is {numbers[-1] if numbers else None}"
    )
    RECORD.log_begun = max(RECORD.log_begun, numbers[-1] if numbers else 0)
    check_kept()
    forks = list(RECORD.forks)
    for name in forks if deep else random.sample(forks, min(5, len(forks))):
        for key in random.sample(sorted(RECORD.forks[name]), min(3, len(RECORD.forks[name]))):
            if key.startswith("big/"):
                continue
            status, body = client.call("GET", f"/{name}/{key}")
            assert status == 200, f"{key} in the acknowledged fork {name}: {status}"
            got = int(body.split(b" ", 2)[1])
            assert got >= RECORD.forks[name][key], f"{key} in fork {name} is older than what was acknowledged before it"
    for name in set(RECORD.begun_forks) - set(RECORD.forks) - RECORD.deleted:
        status, _ = client.call("HEAD", f"/{name}")
        assert status in (200, 404), f"the half-made fork {name}: {status}"
    known = SERVER.mw("snapshot", "list", "base", "--json").stdout
    for version in RECORD.snapshots:
        assert version in known, f"acknowledged snapshot {version} is gone"
    if deep:
        fsck = SERVER.mw("fsck")
        assert fsck.returncode == 0, f"fsck: {fsck.stdout} {fsck.stderr}"


def main():
    print(f"kill9: seed {SEED}, {KILLS} kills, in {DIR}", flush=True)
    os.makedirs(MOUNT)
    SERVER.start()
    assert SERVER.mw("world", "create", "base").returncode == 0
    mount = SERVER.mw("mount", "base", MOUNT)
    assert mount.returncode == 0, mount.stderr
    os.makedirs(KEPT)
    assert SERVER.mw("world", "create", "kept").returncode == 0
    mount = SERVER.mw("mount", "--writeback", "kept", KEPT)
    assert mount.returncode == 0, mount.stderr
    counted, tries = 0, 0
    while counted < KILLS:
        tries += 1
        assert tries < KILLS * 3 + 20, "too few writes a second for kills to count"
        STOP.clear()
        threads = [threading.Thread(target=writer, args=(t,)) for t in range(WRITERS)]
        threads += [threading.Thread(target=mounted), threading.Thread(target=forker, args=(tries,))]
        threads += [threading.Thread(target=uploader, args=(tries,)), threading.Thread(target=kept)]
        for thread in threads:
            thread.start()
        time.sleep(1.0 + random.Random(SEED + tries).random() * 0.4)
        SERVER.kill()
        moment = time.monotonic()
        STOP.set()
        for thread in threads:
            thread.join(timeout=90)
            assert not thread.is_alive(), "a client hangs after the kill"
        acked = sum(1 for t in RECORD.times if moment - 1 < t <= moment)
        RECORD.times.clear()
        counted += acked >= 100
        SERVER.start()
        deep = counted % 10 == 0 or counted == KILLS
        check(deep)
        if tries % 10 == 0 or counted == KILLS:
            print(f"kill9: {counted} kills counted of {tries}, {acked} writes in the last second before", flush=True)
        # A bounded number of forks: the oldest go.
        for name in list(RECORD.forks)[:-30]:
            RECORD.forks.pop(name)
            RECORD.deleted.add(name)
            Client().call("POST", f"/-/v1/worlds/{name}/discard", b"{}")
    SERVER.mw("unmount", MOUNT)
    SERVER.mw("unmount", KEPT)
    SERVER.process.terminate()
    SERVER.process.wait(timeout=30)
    print(f"kill9: {counted} kills, nothing acknowledged was lost, fsck is clean")


FAULTS = []


def fault(args):
    FAULTS.append(args.exc_value)
    print(f"kill9: a client met a fault (seed {SEED}): {args.exc_value!r}", file=sys.stderr, flush=True)


threading.excepthook = fault
try:
    main()
    if FAULTS:
        sys.exit(1)
    shutil.rmtree(DIR, ignore_errors=True)
except BaseException as error:
    print(f"kill9: FAILED with seed {SEED}: {error!r}; the evidence is in {DIR}", file=sys.stderr)
    raise
finally:
    if SERVER.process.poll() is None:
        SERVER.process.kill()
        SERVER.process.wait()
    subprocess.run(["umount", "-l", MOUNT, KEPT], stderr=subprocess.DEVNULL)
