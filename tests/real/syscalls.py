#!/usr/bin/env python3
"""Random system calls on a mount and on a plain directory, step by step the same: every result, error and byte must agree.

The plain directory is the model: what this machine's own file system does. Compared are results and errno of every call, and, now and
then, the two trees: names, types, modes, owners, link counts, sizes, contents, link targets, extended attributes, and times that were
set. Not compared is what a file system may choose: sizes of directories, inode numbers, allocated blocks, times that were not set.

usage: syscalls.py MOUNTED PLAIN SEED STEPS
As root it calls as three users.
"""

import ctypes
import errno
import os
import random
import stat
import sys

MOUNTED, PLAIN, SEED, STEPS = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
RNG = random.Random(SEED)
LIBC = ctypes.CDLL(None, use_errno=True)
ROOT = os.geteuid() == 0
# Two levels down, so that `..` is inside as well.
SIDES = tuple(f"{side}/s{SEED}/top" for side in (MOUNTED, PLAIN))
# Few names, so that calls meet; some of them odd.
NAMES = [b"a", b"b", b"c", b"a.", b"a-", b"\xff\xfe", "ü".encode(), b" x\n", b"n" * 255]
BAD = [b"n" * 256, b"", b".", b".."]
XATTRS = ["user.a", "user.b", "user." + "x" * 250]
USERS = [0, 0, 0, 1, 2] if ROOT else [os.geteuid()]


def check(result):
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result


def renameat2(a, b, flags):
    check(LIBC.renameat2(-100, a, -100, b, flags))


def linkat(a, b, flags):
    check(LIBC.linkat(-100, a, -100, b, flags))


def fallocate(fd, mode, offset, length):
    check(LIBC.fallocate(fd, mode, ctypes.c_long(offset), ctypes.c_long(length)))


def path(side, parts):
    return b"/".join([os.fsencode(side), *parts])


class Calls:
    """Each method makes up one call and returns a function of the side; files that stay open are remembered by number."""

    def __init__(self):
        self.open = {side: {} for side in SIDES}
        self.flags = {}
        self.next = 0

    def any_path(self):
        depth = RNG.choice([1, 1, 2, 2, 3])
        parts = [RNG.choice(NAMES[:5] if i + 1 < depth else NAMES) for i in range(depth)]
        if RNG.random() < 0.04:
            parts[-1] = RNG.choice(BAD)
        return parts

    def any_open(self):
        return RNG.choice(list(self.flags)) if self.flags else None

    def mkdir(self):
        p, mode = self.any_path(), RNG.choice([0o777, 0o755, 0o700, 0o1777, 0o2775, 0])
        return lambda side: os.mkdir(path(side, p), mode)

    def rmdir(self):
        p = self.any_path()
        return lambda side: os.rmdir(path(side, p))

    def unlink(self):
        p = self.any_path()
        return lambda side: os.unlink(path(side, p))

    def rename(self):
        p, q, flags = self.any_path(), self.any_path(), RNG.choice([0, 0, 0, 1, 2, 3])
        return lambda side: renameat2(path(side, p), path(side, q), flags)

    def link(self):
        p, q = self.any_path(), self.any_path()
        return lambda side: os.link(path(side, p), path(side, q), follow_symlinks=False)

    def symlink(self):
        p, target = self.any_path(), RNG.choice([b"a", b"../b", b"a/b", b"nowhere", b"x" * 300, b"t" * 4095, b"t" * 4096])
        return lambda side: os.symlink(target, path(side, p))

    def readlink(self):
        p = self.any_path()
        return lambda side: os.readlink(path(side, p))

    def mknod(self):
        p, kind = self.any_path(), RNG.choice([stat.S_IFIFO, stat.S_IFSOCK, stat.S_IFREG])
        return lambda side: os.mknod(path(side, p), kind | 0o640)

    def chmod(self):
        p, mode = self.any_path(), RNG.choice([0o644, 0o600, 0o755, 0o4755, 0o2755, 0o6777, 0o1777, 0, 0o222])
        return lambda side: os.chmod(path(side, p), mode)

    def chown(self):
        p, uid, gid = self.any_path(), RNG.choice([-1, 0, 1, 2]), RNG.choice([-1, 0, 1, 2])
        return lambda side: os.lchown(path(side, p), uid, gid)

    def utime(self):
        p, times = self.any_path(), tuple(RNG.choice([0, 1, 10**18 + 123456789, -1, -(10**9)]) for _ in range(2))
        follow = RNG.random() < 0.5
        return lambda side: os.utime(path(side, p), ns=times, follow_symlinks=follow)

    def stat(self):
        p = self.any_path()

        def call(side):
            s = os.lstat(path(side, p))
            size = 0 if stat.S_ISDIR(s.st_mode) else s.st_size
            return (s.st_mode, s.st_nlink, s.st_uid, s.st_gid, size)

        return call

    def access(self):
        p, mode = self.any_path(), RNG.choice([os.F_OK, os.R_OK, os.W_OK, os.X_OK])
        return lambda side: os.access(path(side, p), mode, effective_ids=True)

    def listdir(self):
        p = self.any_path()
        return lambda side: sorted(os.listdir(path(side, p)))

    def truncate(self):
        p, size = self.any_path(), RNG.choice([0, 1, 4095, 4096, 5000, 70_000, -1])
        return lambda side: os.truncate(path(side, p), size)

    def setxattr(self):
        p, name, value, flags = self.any_path(), RNG.choice(XATTRS), RNG.randbytes(RNG.choice([0, 3, 300])), RNG.choice([0, 0, 1, 2])
        return lambda side: os.setxattr(path(side, p), name, value, flags, follow_symlinks=False)

    def getxattr(self):
        p, name = self.any_path(), RNG.choice(XATTRS)
        return lambda side: os.getxattr(path(side, p), name, follow_symlinks=False)

    def removexattr(self):
        p, name = self.any_path(), RNG.choice(XATTRS)
        return lambda side: os.removexattr(path(side, p), name, follow_symlinks=False)

    def openfile(self):
        p = self.any_path()
        flags = RNG.choice([os.O_RDONLY, os.O_WRONLY, os.O_RDWR, os.O_RDWR])
        for extra in (os.O_CREAT, os.O_CREAT, os.O_EXCL, os.O_TRUNC, os.O_APPEND, os.O_NOFOLLOW, os.O_DIRECTORY, os.O_SYNC):
            flags |= extra if RNG.random() < 0.3 else 0
        mode, number = RNG.choice([0o666, 0o600, 0o444, 0o4755]), self.next
        self.next += 1

        def call(side):
            fd = os.open(path(side, p), flags | os.O_NONBLOCK, mode)
            self.open[side][number] = fd
            self.flags[number] = flags

        return call

    def tmpfile(self):
        p, number = self.any_path()[:-1], self.next
        self.next += 1

        def call(side):
            self.open[side][number] = os.open(path(side, p) or b"/", os.O_TMPFILE | os.O_RDWR, 0o640)
            self.flags[number] = os.O_RDWR

        return call

    def linkfd(self):
        number, q = self.any_open(), self.any_path()
        return number is not None and (
            lambda side: linkat(f"/proc/self/fd/{self.open[side][number]}".encode(), path(side, q), 0x400)
        )

    def close(self):
        number = self.any_open()
        if number is None:
            return None

        def call(side):
            os.close(self.open[side].pop(number))
            self.flags.pop(number, None)

        return call

    def on_file(self, call):
        number = self.any_open()
        return number is not None and (lambda side: call(self.open[side][number]))

    def write(self):
        data, at = RNG.randbytes(RNG.choice([1, 100, 4096, 5000, 70_000])), RNG.choice([0, 1, 4000, 4096, 60_000])
        return self.on_file(lambda fd: os.pwrite(fd, data, at))

    def append(self):
        data = RNG.randbytes(RNG.choice([1, 100, 5000]))
        return self.on_file(lambda fd: (os.lseek(fd, 0, os.SEEK_END), os.write(fd, data)))

    def read(self):
        at, length = RNG.choice([0, 1, 4000, 4096, 60_000]), RNG.choice([0, 1, 5000, 200_000])
        return self.on_file(lambda fd: os.pread(fd, length, at))

    def ftruncate(self):
        size = RNG.choice([0, 10, 4096, 6000, 100_000])
        return self.on_file(lambda fd: os.ftruncate(fd, size))

    def allocate(self):
        mode, at, length = RNG.choice([0, 1, 3, 16, 17, 2]), RNG.choice([0, 100, 4096, 50_000]), RNG.choice([0, 1, 5000, 8192])
        return self.on_file(lambda fd: fallocate(fd, mode, at, length))

    def fstat(self):
        return self.on_file(lambda fd: (os.fstat(fd).st_mode, os.fstat(fd).st_nlink, os.fstat(fd).st_uid))

    def fsync(self):
        return self.on_file(os.fsync)

    def seekend(self):
        # Of a directory there is no hole to speak of.
        regular = lambda fd: stat.S_ISREG(os.fstat(fd).st_mode)
        return self.on_file(lambda fd: regular(fd) and os.lseek(fd, 0, os.SEEK_HOLE) <= os.fstat(fd).st_size)

    def copy(self):
        a, b = self.any_open(), self.any_open()
        at, to, length = RNG.choice([0, 1, 4096]), RNG.choice([0, 4096, 9000]), RNG.choice([1, 4096, 20_000])
        if a is None:
            return None

        def call(side):
            return os.copy_file_range(self.open[side][a], self.open[side][b], length, at, to)

        return call


def attempt(call, side):
    try:
        return ("ok", call(side))
    except OSError as e:
        return ("error", errno.errorcode.get(e.errno, e.errno))
    except ValueError as e:
        return ("value", str(e))


def tree(side):
    out = {}
    for top, dirs, files in os.walk(os.fsencode(side)):
        for name in dirs + files:
            full = os.path.join(top, name)
            s = os.lstat(full)
            kind = stat.S_IFMT(s.st_mode)
            line = [oct(s.st_mode), s.st_nlink, s.st_uid, s.st_gid]
            if kind == stat.S_IFREG:
                with open(full, "rb") as file:
                    line += [s.st_size, hash(file.read())]
            if kind == stat.S_IFLNK:
                line.append(os.readlink(full))
            line.append(sorted((x, os.getxattr(full, x, follow_symlinks=False)) for x in os.listxattr(full, follow_symlinks=False)))
            # A time that nothing set is about now on both sides.
            line.append(s.st_mtime_ns if s.st_mtime < 1.2e9 else None)
            out[full[len(os.fsencode(side)):]] = line
    return out


def main():
    calls = Calls()
    kinds = [getattr(calls, name) for name in Calls.__dict__ if not name.startswith(("_", "any_", "on_"))]
    for side in SIDES:
        os.makedirs(side, 0o755)
        os.chmod(side, 0o777)
    os.umask(RNG.choice([0, 0o022, 0o077]))
    done = {}
    for step in range(STEPS):
        kind = RNG.choice(kinds)
        call = kind()
        if not call:
            continue
        user = RNG.choice(USERS)
        results = []
        for side in SIDES:
            if ROOT:
                os.setegid(user)
                os.seteuid(user)
            results.append(attempt(call, side))
            if ROOT:
                os.seteuid(0)
                os.setegid(0)
        # An open file is open on both sides or is no file to go on with.
        for number in set(calls.open[SIDES[0]]) ^ set(calls.open[SIDES[1]]):
            for side in SIDES:
                fd = calls.open[side].pop(number, None)
                if fd is not None:
                    os.close(fd)
            calls.flags.pop(number, None)
        if len(calls.flags) > 20:
            for number in list(calls.flags):
                calls.flags.pop(number)
                for side in SIDES:
                    os.close(calls.open[side].pop(number))
        names = {SIDES[i]: str(results[i])[:300] for i in range(2)}
        assert results[0] == results[1], f"seed {SEED}, step {step}, {kind.__name__} as {user}: {names}, with {values(call)}"
        outcome = (kind.__name__, results[0][0])
        done[outcome] = done.get(outcome, 0) + 1
        if step % 200 == 199 or step == STEPS - 1:
            mounted, plain = map(tree, SIDES)
            for name in sorted(set(mounted) | set(plain)):
                assert mounted.get(name) == plain.get(name), f"seed {SEED}, step {step}: {name}: {mounted.get(name)} and {plain.get(name)}"
    # A run in which nothing works proves nothing.
    good = sum(count for (_, how), count in done.items() if how == "ok")
    assert good > STEPS / 10, done
    print(f"seed {SEED}: {sum(done.values())} calls, {good} of them with success")


def values(call):
    cells = getattr(call, "__closure__", None) or ()
    return [repr(cell.cell_contents)[:120] for cell in cells]


main()
