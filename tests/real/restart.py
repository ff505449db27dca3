#!/usr/bin/env python3
"""Restarts the server in place, again and again, while programs are in the middle of calls in two mounts of one world, and S3 clients put.

Nobody may notice: no call fails, no connection is refused, and everything has the content that it would have on a disk.

usage: restart.py MW RESTARTS
"""

import fcntl
import hashlib
import json
import mmap
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import traceback

MW, RESTARTS = sys.argv[1], int(sys.argv[2])
DIR = tempfile.mkdtemp(prefix="mw-restart-", dir="/dev/shm" if os.path.isdir("/dev/shm") else None)
DATA, MOUNT, OTHER, DISK = f"{DIR}/data", f"{DIR}/mnt", f"{DIR}/other", f"{DIR}/disk"
stop = threading.Event()
failures, turns, started = [], {}, []


def start():
    log = open(f"{DIR}/server.log", "ab")
    server = subprocess.Popen([MW, "serve", "--data", DATA, "--listen", "127.0.0.1:0"], stdout=subprocess.PIPE, stderr=log)
    line = server.stdout.readline().decode()
    assert line.startswith("ready http://"), f"the server did not start: {open(f'{DIR}/server.log').read()[-2000:]}"
    key = json.load(open(f"{DATA}/root-key.json"))
    os.environ.update(MW_ENDPOINT=line.split()[1], AWS_ACCESS_KEY_ID=key["id"], AWS_SECRET_ACCESS_KEY=key["secret"])
    return server


def mw(*args):
    done = subprocess.run([MW, *args], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, f"mw {args}: {done.stdout}{done.stderr}"
    return done.stdout


def again(name, work):
    """Runs `work` in turns, on a thread, until it is told to stop."""

    def run():
        turn = 0
        try:
            while not stop.is_set():
                work(turn)
                turn += 1
        except BaseException:
            failures.append(f"{name}, turn {turn}:\n{traceback.format_exc()}")
        turns[name] = turn

    thread = threading.Thread(target=run)
    thread.start()
    return thread


def run(*args, cwd):
    done = subprocess.run(args, cwd=cwd, capture_output=True, text=True)
    assert done.returncode == 0, f"{args}: {done.stdout}{done.stderr}"
    return done.stdout


# What programs do. Each has its own corner, so that what must be there at the end is known.
def appender(at):
    file = open(f"{at}/log", "ab", buffering=0)
    written = []

    def work(turn):
        line = b"%d " % turn + b"x" * (turn % 9000) + b"\n"
        assert file.write(line) == len(line)
        written.append(line)
        if turn % 50 == 0:
            os.fsync(file.fileno())

    def check():
        assert open(f"{at}/log", "rb").read() == b"".join(written), "the log"

    return work, check


def rewriter(at):
    """An unlinked file that is open, written and read at random places, beside the same in memory."""
    fd = os.open(f"{at}/unlinked", os.O_RDWR | os.O_CREAT)
    os.unlink(f"{at}/unlinked")
    mirror = bytearray(1 << 20)
    os.ftruncate(fd, len(mirror))

    def work(turn):
        place, length = (turn * 7919) % (len(mirror) - 70000), 1 + (turn * 31) % 69999
        data = hashlib.sha256(b"%d" % turn).digest() * (length // 32 + 1)
        assert os.pwrite(fd, data[:length], place) == length
        mirror[place : place + length] = data[:length]
        place = (turn * 104729) % (len(mirror) - 5000)
        assert os.pread(fd, 5000, place) == mirror[place : place + 5000], "the unlinked file"

    def check():
        assert os.fstat(fd).st_nlink == 0 and os.pread(fd, len(mirror), 0) == mirror, "the unlinked file"
        os.close(fd)

    return work, check


def mapper(at):
    fd = os.open(f"{at}/mapped", os.O_RDWR | os.O_CREAT)
    os.ftruncate(fd, 1 << 20)
    pages = mmap.mmap(fd, 1 << 20)
    mirror = bytearray(1 << 20)

    def work(turn):
        place = (turn * 12289) % ((1 << 20) - 8)
        pages[place : place + 8] = mirror[place : place + 8] = b"%08d" % (turn % 10**8)
        if turn % 20 == 0:
            pages.flush()
        time.sleep(0.0005)

    def check():
        assert pages[:] == mirror, "the mapped pages"
        pages.flush()
        assert open(f"{at}/mapped", "rb").read() == mirror, "the mapped file"

    return work, check


def lister(at):
    """A directory that is listed a little at a time, while names come and go beside those that stay."""
    os.mkdir(f"{at}/many")
    stay = {f"stay-{n:05}-{'y' * 30}" for n in range(2500)}
    for name in stay:
        open(f"{at}/many/{name}", "w").close()
    state = {"scan": iter(()), "seen": []}

    def work(turn):
        name = f"{at}/many/pass-{turn}"
        open(name, "w").close()
        for _ in range(100):
            entry = next(state["scan"], None)
            if entry is None:
                seen = [name for name in state["seen"] if name.startswith("stay")]
                assert not state["seen"] or (len(seen) == len(stay) and set(seen) == stay), f"{len(seen)} names"
                state.update(scan=os.scandir(f"{at}/many"), seen=[])
                break
            state["seen"].append(entry.name)
        os.unlink(name)

    return work, lambda: None


def worker(at):
    """A shell that lives in a directory."""
    os.mkdir(f"{at}/home")
    shell = subprocess.Popen(["sh"], cwd=f"{at}/home", stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)

    def work(turn):
        shell.stdin.write(f"echo {turn} > ./f{turn % 20} && cat ./f{turn % 20}\n")
        said = shell.stdout.readline()
        assert said == f"{turn}\n", f"the shell said {said!r}"

    def check():
        shell.stdin.close()
        assert shell.wait() == 0

    return work, check


def archiver(at):
    def work(turn):
        to = f"{at}/unpacked-{turn % 2}"
        shutil.rmtree(to, ignore_errors=True)
        os.mkdir(to)
        run("tar", "xf", f"{DISK}/tree.tar", "-C", to, cwd=at)
        run("diff", "-r", f"{DISK}/tree", f"{to}/tree", cwd=at)

    return work, lambda: None


def committer(at):
    git = ["git", "-c", "user.name=n", "-c", "user.email=e@x", "-c", "core.fsync=none", "-c", "gc.auto=0"]
    run("git", "init", "-q", "repo", cwd=at)

    def work(turn):
        for n in range(20):
            with open(f"{at}/repo/file{(turn + n) % 60}", "w") as file:
                file.write(f"{turn} {n}\n" * 50)
        run(*git, "add", "-A", cwd=f"{at}/repo")
        run(*git, "commit", "-qm", f"turn {turn}", cwd=f"{at}/repo")

    def check():
        count = int(run("git", "rev-list", "--count", "HEAD", cwd=f"{at}/repo"))
        assert count == turns["committer"], f"{count} commits, {turns['committer']} made"
        run("git", "fsck", "--strict", cwd=f"{at}/repo")
        assert run("git", "status", "--porcelain", cwd=f"{at}/repo") == ""

    return work, check


def other_side(at):
    """Changes through one mount are there in the other at the next look."""

    def work(turn):
        with open(f"{MOUNT}/both", "w") as file:
            file.write(f"{turn}")
        # The other one may hear a moment later when it is being told of something else.
        until = time.monotonic() + 30
        while open(f"{OTHER}/both").read() != f"{turn}":
            assert time.monotonic() < until, "a change does not reach the other mount"

    return work, lambda: None


def counter(at):
    """A number that is counted up through both mounts, by whoever has the lock."""

    def work(turn):
        with open(f"{at}/counter.lock", "a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            try:
                with open(f"{at}/counter") as file:
                    number = int(file.read())
            except FileNotFoundError:
                number = 0
            with open(f"{at}/counter", "w") as file:
                file.write(f"{number + 1}")

    def check():
        counted = int(open(f"{at}/counter").read())
        assert counted == turns["counter"] + turns["counter_too"], f"counted to {counted}, in {turns} turns"

    return work, check


def counter_too(at):
    return counter(at)[0], lambda: None


def putter(_):
    import boto3
    from botocore.config import Config

    # No second try: whatever goes wrong is seen.
    config = Config(retries={"total_max_attempts": 1}, s3={"addressing_style": "path"})
    kept = {}

    def work(turn):
        # A client of its own: nothing is asked on a connection that the server may be about to close.
        s3 = boto3.session.Session().client("s3", endpoint_url=os.environ["MW_ENDPOINT"], region_name="us-east-1", config=config)
        body = hashlib.sha256(b"%d" % turn).digest() * (1 + turn % 3 * 40000)
        s3.put_object(Bucket="base", Key=f"put/{turn % 40}", Body=body)
        kept[turn % 40] = body
        assert s3.get_object(Bucket="base", Key=f"put/{turn % 40}")["Body"].read() == body
        s3.close()

    def check():
        for key, body in kept.items():
            assert open(f"{MOUNT}/put/{key}", "rb").read() == body, "an object"

    return work, check


PROGRAMS = [appender, rewriter, mapper, lister, worker, archiver, counter, counter_too, committer, other_side, putter]


def main():
    for place in (MOUNT, OTHER, f"{DISK}/tree"):
        os.makedirs(place)
    for n in range(300):
        os.makedirs(f"{DISK}/tree/d{n % 17}", exist_ok=True)
        with open(f"{DISK}/tree/d{n % 17}/f{n}", "wb") as file:
            file.write(hashlib.sha256(b"%d" % n).digest() * (n % 300))
    run("tar", "cf", "tree.tar", "tree", cwd=DISK)
    server = start()
    started.append(server)
    mw("world", "create", "base")
    mw("mount", "base", MOUNT)
    mw("mount", "base", OTHER)
    programs = []
    for n, program in enumerate(PROGRAMS):
        programs.append((program.__name__, *program((MOUNT, OTHER)[n % 2])))
    threads = [again(name, work) for name, work, _ in programs]
    slowest = 0
    for n in range(RESTARTS):
        time.sleep(1 + n % 3 * 0.3)
        assert not failures, failures[0]
        report = json.loads(mw("restart", "--json"))
        assert report["state"] == "done" and report["mounts"] == 2 and "problem" not in report, report
        assert report["pid"] == server.pid
        slowest = max(slowest, report["waited"])
    time.sleep(0.5)
    stop.set()
    for thread in threads:
        thread.join(timeout=120)
        assert not thread.is_alive(), "a program hangs"
    assert not failures, failures[0]
    for name, _, check in programs:
        assert turns[name] > 1, f"{name} did not get on"
        check()
    mw("fsck")
    for place in (MOUNT, OTHER):
        mw("unmount", "--lazy", place)
    server.terminate()
    assert server.wait(timeout=60) == 0
    print(f"restart: {RESTARTS} restarts, nobody noticed ({sum(turns.values())} turns); clients waited {slowest} ms at most")


if __name__ == "__main__":
    try:
        main()
        shutil.rmtree(DIR, ignore_errors=True)
    except BaseException:
        stop.set()
        for server in started:
            server.kill()
        # What hangs holds on to the mounts; those of this test only.
        for place in (MOUNT, OTHER):
            subprocess.run(["umount", "-f", place], capture_output=True)
            subprocess.run(["umount", "-l", place], capture_output=True)
        traceback.print_exc()
        print(f"restart: the server's log is {DIR}/server.log", file=sys.stderr, flush=True)
        # Not waiting for programs that wait for one another.
        os._exit(1)
