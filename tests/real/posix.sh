#!/usr/bin/env bash
# The conformance suites on a mount: pjdfstest and fsx, and random system calls compared with a plain directory.
#
# pjdfstest runs on the mount and on ext4 (a loop device, or the directory $TMPDIR); a case that ext4 passes must pass. As root and,
# where we are root, as an ordinary user too. fsx runs seeds on the mount, on a world and its fork in lock-step, and across a remount and
# a restart. A mount with write-back has pjdfstest as whoever runs this, half of the random calls, and some seeds of fsx. Usage: MW=path/to/mw posix.sh; SEEDS and OPERATIONS say how much fsx does, CALLS how many random calls.
set -uo pipefail
export LC_ALL=C
: "${MW:?set MW to the mw binary}"
SEEDS=${SEEDS:-20} OPERATIONS=${OPERATIONS:-20000} CALLS=${CALLS:-3000} CALL_SEEDS=${CALL_SEEDS:-8}
here=$(cd "$(dirname "$0")" && pwd)
tools=${MW_TOOLS:-$(dirname "$(dirname "$MW")")/tools}/bin

# Cases that need not pass, by id.
# link::link_count_max: the C library knows no LINK_MAX of FUSE, so the case skips itself; crates/world tests 65,000 links.
exceptions=" link::link_count_max "

[ -e /dev/fuse ] || { echo "needs /dev/fuse"; exit 77; }
for tool in pjdfstest fsx; do
    [ -x "$tools/$tool" ] || {
        echo "needs $tool in $tools (scripts/deps.sh installs it)"
        [ "${CI-}" = true ] && exit 1
        exit 77
    }
done

base=/dev/shm; [ -d "$base" ] && [ -w "$base" ] || base=${TMPDIR:-/tmp}
work=$(mktemp -d "$base/mw-posix.XXXXXX"); chmod 755 "$work"
plain=$(mktemp -d "${TMPDIR:-/var/tmp}/mw-posix.XXXXXX"); chmod 755 "$plain"
server=
start() {
    "$MW" serve --data "$work/data" --listen 127.0.0.1:0 >"$work/serve.out" 2>>"$work/serve.log" & server=$!
    for _ in $(seq 400); do
        grep -q '^ready ' "$work/serve.out" && break
        kill -0 "$server" 2>/dev/null || die "mw serve ended"
        sleep 0.05
    done
    MW_ENDPOINT=$(sed -n 's/^ready //p' "$work/serve.out" | head -n 1); export MW_ENDPOINT
    [ -n "$MW_ENDPOINT" ] || die "mw serve is not ready"
}
cleanup() {
    if [ -n "$server" ]; then
        kill "$server" 2>/dev/null; wait "$server" 2>/dev/null
    fi
    mountpoint -q "$plain/ext4" && umount "$plain/ext4"
    rm -rf "$work" "$plain"
}
trap cleanup EXIT
die() { echo "posix: $*" >&2; [ -s "$work/serve.log" ] && tail -n 30 "$work/serve.log" >&2; exit 1; }
root() { [ "$(id -u)" = 0 ]; }
failed=0
bad() { echo "FAILED: $*"; failed=1; }

start
field() { python3 -c 'import json,sys; print(json.load(open(sys.argv[1]))[sys.argv[2]])' "$work/data/root-key.json" "$1"; }
AWS_ACCESS_KEY_ID=$(field id) && AWS_SECRET_ACCESS_KEY=$(field secret) || die "no root key"
export AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY
mkdir "$work/m" "$work/f" "$work/w"
"$MW" world create kept >/dev/null && "$MW" mount --writeback kept "$work/w" >/dev/null || die "mw mount --writeback"
chmod 777 "$work/w"
"$MW" world create posix >/dev/null && "$MW" mount posix "$work/m" >/dev/null || die "mw mount"
grep -q " $work/m fuse.mw " /proc/mounts || die "nothing is mounted at $work/m"
chmod 777 "$work/m"

# ---------- pjdfstest
ext4=$plain/ext4
mkdir "$ext4"
if root && truncate -s 256M "$plain/image" && mkfs.ext4 -q -b 4096 "$plain/image" && mount -o loop "$plain/image" "$ext4" 2>/dev/null; then
    echo "comparing with ext4 on a loop device"
else
    echo "comparing with $(stat -f -c %T "$ext4") at $ext4"
fi
chmod 777 "$ext4"
group=$(id -gn nobody)
config() { # allow_remount secondary
    printf '[features]\nposix_fallocate = {}\nrename_ctime = {}\nutime_now = {}\nutimensat = {}\nsecondary_fs = "%s"\n' "$2"
    printf '[settings]\nnaptime = 0.02\nallow_remount = %s\n[dummy_auth]\nentries = [["nobody", "%s"], ["daemon", "daemon"]]\n' "$1" "$group"
}
config false "$plain" >"$work/on-mount.toml"; config false "$work" >"$work/on-ext4.toml"
config true "$plain" >"$work/remount.toml"
chmod 644 "$work"/*.toml
# One line a case: name and outcome.
outcomes() { sed -n 's/^\([a-z0-9_:]*\) *\(ok\|FAILED\|skipped\)$/\1 \2/p' "$1" | sort; }
pjdfstest() { # label config dir words...
    local label=$1 config=$2 dir=$3; shift 3
    "$@" "$tools/pjdfstest" -c "$work/$config" -p "$dir" >"$work/$label.out" 2>&1
    outcomes "$work/$label.out" >"$work/$label.cases"
    [ -s "$work/$label.cases" ] || { bad "pjdfstest said nothing ($label)"; tail "$work/$label.out"; }
}
compare() { # who words...
    local who=$1; shift
    pjdfstest "mount-$who" on-mount.toml "$work/m" "$@"
    pjdfstest "ext4-$who" on-ext4.toml "$ext4" "$@"
    beside "$who"
    echo "pjdfstest as $who: $(grep -c ' ok$' "$work/mount-$who.cases") cases pass on the mount, $(grep -c ' ok$' "$work/ext4-$who.cases") on ext4"
}
beside() { # who
    local who=$1 name how
    while read -r name how; do
        [[ $exceptions == *" $name "* ]] && { echo "exception: $name"; continue; }
        bad "$name passes on ext4, and on the mount as $who: ${how:-it did not run}"
        grep -a -A2 "^$name " "$work/mount-$who.out" | tail -n 2
    done < <(sed -n 's/ ok$//p' "$work/ext4-$who.cases" | join -a 1 - <(grep -v ' ok$' "$work/mount-$who.cases") -o 0,2.2 |
        join -v 1 - <(sed -n 's/ ok$//p' "$work/mount-$who.cases"))
}
compare "$(id -un)"
pjdfstest mount-writeback on-mount.toml "$work/w"
cp "$work/ext4-$(id -un).cases" "$work/ext4-writeback.cases"
beside writeback
echo "pjdfstest with write-back: $(grep -c ' ok$' "$work/mount-writeback.cases") cases pass on the mount"
if root; then
    cp "$tools/pjdfstest" "$work/pjdfstest" && chmod 755 "$work/pjdfstest"
    (tools=$work; compare nobody setpriv --reuid=nobody "--regid=$group" --clear-groups; exit $failed) || failed=1
    # Read-only remounts: a run of their own, since they need a mount that nobody else uses. mount(8) would give the remount of a FUSE
    # mount to a helper that knows none; with -i it asks the kernel itself.
    mkdir "$work/bin"; printf '#!/bin/sh\nexec %s -i "$@"\n' "$(command -v mount)" >"$work/bin/mount"; chmod 755 "$work/bin/mount"
    PATH=$work/bin:$PATH "$tools/pjdfstest" -c "$work/remount.toml" -p "$work/m" erofs >"$work/erofs.out" 2>&1 || { bad "pjdfstest erofs"; cat "$work/erofs.out"; }
    echo "pjdfstest erofs: $(outcomes "$work/erofs.out" | grep -c ' ok$') cases pass on the mount"
fi

# ---------- random system calls
for seed in $(seq "$CALL_SEEDS"); do
    for mount in m w; do
        [ $mount = w ] && [ $((seed % 2)) = 0 ] && continue
        python3 "$here/syscalls.py" "$work/$mount" "$ext4" "$seed" "$CALLS" >"$work/calls.out" 2>&1 ||
            bad "random system calls on $mount: $(tail -n 1 "$work/calls.out")"
        rm -rf "$work/$mount/s$seed" "$ext4/s$seed"
    done
done
echo "random system calls: $CALL_SEEDS seeds of $CALLS, half of them with write-back too"
mountpoint -q "$ext4" && umount "$ext4"

# ---------- fsx
cat >"$work/fsx.toml" <<'F'
flen = 1048576
# From 1: posix_fallocate(3) refuses a length of 0 everywhere, and the seed would end there.
[opsize]
min = 1
max = 65536
[weights]
close_open = 1
invalidate = 1
mapread = 10
mapwrite = 10
read = 10
write = 10
truncate = 5
fsync = 0.1
fdatasync = 0.1
posix_fallocate = 3
punch_hole = 5
sendfile = 5
posix_fadvise = 1
copy_file_range = 5
F
fsx() { # seed operations file
    "$tools/fsx" -q -f "$work/fsx.toml" -S "$1" -N "$2" -P "$work" "$3" >"$work/fsx.$1.$(basename "$(dirname "$3")").out" 2>&1
}
whole() { # process seed [mount]
    wait "$1" || { bad "fsx seed $2 on ${3-m}"; tail -n 20 "$work/fsx.$2.${3-m}.out"; }
}
# Two at a time; every second pair on the world and on a fork of it, in lock-step: what one has the other must have.
for ((seed = 1; seed <= SEEDS; seed += 2)); do
    fsx "$seed" "$OPERATIONS" "$work/m/x$seed" & one=$!
    fsx $((seed + 1)) "$OPERATIONS" "$work/m/x$((seed + 1))" & two=$!
    whole $one "$seed"
    whole $two $((seed + 1))
done
echo "fsx: $SEEDS seeds of $OPERATIONS operations"
# With write-back, while forks have the kernel give up what it holds.
kept_seeds=$((SEEDS / 10 * 2))
for ((seed = 1; seed <= kept_seeds; seed += 2)); do
    fsx "$seed" "$OPERATIONS" "$work/w/x$seed" & one=$!
    fsx $((seed + 1)) "$OPERATIONS" "$work/w/x$((seed + 1))" & two=$!
    for n in 1 2 3 4; do
        "$MW" fork kept "kept-$seed-$n" >/dev/null || bad "a fork of a world that is mounted with write-back"
        sleep 0.2
    done
    whole $one "$seed" w
    whole $two $((seed + 1)) w
done
echo "fsx with write-back: $kept_seeds seeds of $OPERATIONS operations, beside forks"
kept=$(cd "$work/w" && sha256sum x* && stat -c '%n %s %y %z' x*)
"$MW" unmount "$work/w" >/dev/null && "$MW" mount kept "$work/w" >/dev/null || die "remount without write-back"
[ "$(cd "$work/w" && sha256sum x* && stat -c '%n %s %y %z' x*)" = "$kept" ] || bad "other bytes or times than the kernel had with write-back"
sums=$(cd "$work/m" && sha256sum x*)
"$MW" fork posix posix-fork >/dev/null && "$MW" mount posix-fork "$work/f" >/dev/null || die "mw fork"
[ "$(cd "$work/f" && sha256sum x*)" = "$sums" ] || bad "a fork has other bytes"
fsx 101 "$OPERATIONS" "$work/m/x1" & one=$!
fsx 101 "$OPERATIONS" "$work/f/x1" & two=$!
wait $one || { bad "fsx on the parent"; tail -n 20 "$work/fsx.101.m.out"; }
wait $two || { bad "fsx on the fork"; tail -n 20 "$work/fsx.101.f.out"; }
cmp "$work/m/x1" "$work/f/x1" || bad "parent and fork differ after the same operations"
sums=$(cd "$work/m" && sha256sum x*)
"$MW" unmount "$work/m" >/dev/null && "$MW" mount posix "$work/m" >/dev/null || die "remount"
[ "$(cd "$work/m" && sha256sum x*)" = "$sums" ] || bad "other bytes after a remount"
kill -KILL "$server"; wait "$server" 2>/dev/null
start
[ "$(cd "$work/m" && sha256sum x*)" = "$sums" ] || bad "other bytes after a restart"
fsx 102 2000 "$work/m/x2" || { bad "fsx after a restart"; tail -n 20 "$work/fsx.102.m.out"; }
echo "fsx: fork in lock-step, remount and restart"
"$MW" fsck >"$work/fsck.out" 2>&1 || { bad "mw fsck"; cat "$work/fsck.out"; }
grep -E 'ERROR|WARN' "$work/serve.log" | grep -v 'not signed\|loopback' | head -n 5
[ "$failed" = 0 ]
