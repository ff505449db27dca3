#!/usr/bin/env python3
"""Kills the server with SIGKILL while it tells its own mount of changes, and programs are in the middle of calls in that mount.

A notification may wait for a lock that a program holds which waits for an answer of the server. When the server dies then, nothing
within it can end that wait. So after every kill: the server's process goes, every program ends with an error or goes on, and the next
server has the mount back, each within a bounded time.

usage: mount_killed.py MW KILLS
"""

import json
import mmap
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

MW, KILLS = sys.argv[1], int(sys.argv[2])
DIR = tempfile.mkdtemp(prefix="mw-killed-")
DATA, MOUNT, OTHER = f"{DIR}/data", f"{DIR}/mnt", f"{DIR}/other"
# How long anything may take after a kill, in seconds: what hangs, hangs for ever.
BOUND = 20


class Server:
    def start(self):
        self.log = open(f"{DIR}/server.log", "ab")
        self.process = subprocess.Popen(
            [MW, "serve", "--data", DATA, "--listen", "127.0.0.1:0"], stdout=subprocess.PIPE, stderr=self.log
        )
        line = self.process.stdout.readline().decode()
        assert line.startswith("ready http://"), f"the server did not start: {line!r}; {open(f'{DIR}/server.log').read()[-2000:]}"
        key = json.load(open(f"{DATA}/root-key.json"))
        self.env = dict(
            os.environ,
            MW_ENDPOINT=line.split()[1],
            AWS_ACCESS_KEY_ID=key["id"],
            AWS_SECRET_ACCESS_KEY=key["secret"],
        )

    def mw(self, *args):
        done = subprocess.run([MW, *args], env=self.env, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, f"mw {args}: {done.stdout}{done.stderr}"
        return done.stdout


def again(work):
    """Repeats until the mount is gone."""
    turn = 0
    while True:
        turn += 1
        try:
            work(turn)
        except (FileNotFoundError, FileExistsError, ValueError):
            pass


# What programs do in a mount. Each holds another lock of the kernel while it waits for the server.
def maker(at):
    def make(turn):
        name = f"{at}/d/n{turn % 50}"
        os.close(os.open(name, os.O_CREAT | os.O_WRONLY, 0o644))
        os.rename(name, f"{at}/d/r{turn % 50}")
        os.unlink(f"{at}/d/r{turn % 50}")

    again(make)


def writer(at):
    again(lambda turn: open(f"{at}/d/k{turn % 8}", "wb").write(b"w" * 9000))


def reader(at):
    again(lambda turn: open(f"{at}/d/k{turn % 8}", "rb").read())


def lister(at):
    again(lambda turn: [entry.stat() for entry in os.scandir(f"{at}/d")])


def mapper(at):
    def store(turn):
        fd = os.open(f"{at}/d/m{turn % 4}", os.O_RDWR | os.O_CREAT, 0o644)
        try:
            os.ftruncate(fd, 65536)
            pages = mmap.mmap(fd, 65536)
            for page in range(0, 65536, 4096):
                pages[page] = turn % 256
            pages.flush()
            pages.close()
        finally:
            os.close(fd)

    again(store)


PROGRAMS = [maker, maker, writer, reader, lister, mapper]


def program(run, at):
    """Starts a program; it ends when the mount does."""
    pid = os.fork()
    if pid:
        return pid
    # A page of a file whose server is gone cannot be read any more: that is an end too.
    signal.signal(signal.SIGBUS, signal.SIG_DFL)
    try:
        run(at)
    except OSError:
        os._exit(0)
    os._exit(1)


def ended(pids, limit):
    """Waits for processes; returns those that are still there."""
    left, until = set(pids), time.monotonic() + limit
    while left and time.monotonic() < until:
        left -= {pid for pid in left if os.waitpid(pid, os.WNOHANG) != (0, 0)}
        time.sleep(0.02)
    return left


def where(pid):
    """Says what each thread of a process waits for."""
    said = []
    for task in os.listdir(f"/proc/{pid}/task"):
        try:
            at = f"/proc/{pid}/task/{task}"
            said.append(open(f"{at}/comm").read().strip() + ": " + open(f"{at}/stack").read().split("\n")[0])
        except OSError:
            pass
    return said


def main():
    for place in (MOUNT, OTHER):
        os.makedirs(place)
    server = Server()
    server.start()
    server.mw("world", "create", "base")
    server.mw("mount", "base", MOUNT)
    server.mw("mount", "base", OTHER)
    os.makedirs(f"{MOUNT}/d")
    slowest = 0
    for turn in range(KILLS):
        # Changes through one mount are notifications to the other.
        pids = [program(run, at) for run in PROGRAMS for at in (MOUNT, OTHER)]
        time.sleep(0.3 + turn % 7 * 0.05)
        early = ended(pids, 0)
        assert len(early) == len(pids), "a program ended before the kill"
        server.process.kill()
        since = time.monotonic()
        try:
            server.process.wait(timeout=BOUND)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"the killed server does not go: {where(server.process.pid)}") from None
        left = ended(pids, BOUND)
        assert not left, f"programs hang after the kill: {[where(pid) for pid in left]}"
        server.start()
        for place in (MOUNT, OTHER):
            subprocess.run(["stat", f"{place}/d"], check=True, timeout=BOUND, stdout=subprocess.DEVNULL)
        slowest = max(slowest, time.monotonic() - since)
    for place in (MOUNT, OTHER):
        server.mw("unmount", place)
    server.process.terminate()
    server.process.wait(timeout=30)
    print(f"mount_killed: {KILLS} kills, nothing hung, the mounts were back in {slowest:.1f} s at most")


if __name__ == "__main__":
    try:
        main()
        shutil.rmtree(DIR, ignore_errors=True)
    except BaseException:
        # What hangs holds on to the mounts; those of this test only.
        for place in (MOUNT, OTHER):
            subprocess.run(["umount", "-f", place], capture_output=True)
            subprocess.run(["umount", "-l", place], capture_output=True)
        print(f"mount_killed: the server's log is {DIR}/server.log", file=sys.stderr)
        raise
