#!/usr/bin/env bash
# A world exported over NFS, read and written by the tools of libnfs, and by the kernel's client where there is one.
set -euo pipefail
MW=${MW:-target/debug/mw}
for tool in nfs-ls nfs-cp nfs-cat; do
    command -v "$tool" >/dev/null || { echo "skipped: needs $tool (Debian package libnfs-utils)"; exit 77; }
done

work=$(mktemp -d)
export MW_DATA=$work/data HOME=$work
server=
cleanup() {
    mountpoint -q "$work/mnt" 2>/dev/null && umount -f "$work/mnt" || true
    [ -z "$server" ] || kill "$server" 2>/dev/null || true
    [ -z "$server" ] || wait "$server" 2>/dev/null || true
    rm -rf "$work"
}
trap cleanup EXIT
start() {
    "$MW" serve --listen 127.0.0.1:0 >"$work/ready" 2>>"$work/log" &
    server=$!
    for _ in $(seq 200); do grep -q '^ready' "$work/ready" && return; sleep 0.05; done
    echo "the server did not start"; cat "$work/log"; exit 1
}
check() { if [ "$1" = "$2" ]; then echo "ok: $3"; else echo "FAILED: $3: got '$1', wanted '$2'"; exit 1; fi; }

start
"$MW" world create base >/dev/null
mkdir -p "$work/tree/deep/er"
head -c 5000000 /dev/urandom >"$work/tree/big"
: >"$work/tree/empty"
echo hello >"$work/tree/deep/er/small"
"$MW" put "$work/tree" mw://base/tree >/dev/null
port=$("$MW" export base --json | python3 -c 'import json,sys; print(json.load(sys.stdin)["port"])')
url() { echo "nfs://127.0.0.1/$1?nfsport=$port&mountport=$port"; }

check "$(nfs-ls -R "$(url tree)" | awk '{print $NF}' | sort | tr '\n' ' ')" "big deep deep/er deep/er/small empty " "nfs-ls lists what was put"
nfs-cat "$(url tree/big)" >"$work/out"
cmp "$work/out" "$work/tree/big" && echo "ok: nfs-cat reads 5 MB, the same bytes"
head -c 3000000 /dev/urandom >"$work/new"
nfs-cp "$work/new" "$(url tree/deep/new)" >/dev/null
"$MW" cat mw://base/tree/deep/new >"$work/back"
cmp "$work/back" "$work/new" && echo "ok: nfs-cp writes 3 MB, the same bytes for everybody"
if nfs-cat "$(url nothing)" >/dev/null 2>&1; then echo "FAILED: a file that is not there"; exit 1; else echo "ok: what is not there is not there"; fi

# A past instant takes nothing.
version=$("$MW" snapshot take base)
past=$("$MW" export "base@$version" --json | python3 -c 'import json,sys; print(json.load(sys.stdin)["port"])')
"$MW" rm mw://base/tree/deep/new >/dev/null
nfs-cat "nfs://127.0.0.1/tree/deep/new?nfsport=$past&mountport=$past" | cmp - "$work/new" && echo "ok: the past is as it was"
if nfs-cp "$work/new" "nfs://127.0.0.1/x?nfsport=$past&mountport=$past" >/dev/null 2>&1; then echo "FAILED: the past was changed"; exit 1; fi
echo "ok: and takes no changes"

# After a kill the exports are back on their ports.
kill -9 "$server"; wait "$server" 2>/dev/null || true
start
nfs-cat "$(url tree/deep/er/small)" | grep -q '^hello$' && echo "ok: back on the same port after a kill"
check "$("$MW" exports --json | python3 -c 'import json,sys; print(len(json.load(sys.stdin)["exports"]))')" 2 "both exports are back"

# The kernel's own client, where this machine has one and lets us.
mkdir -p "$work/mnt"
if [ "$(id -u)" = 0 ] && command -v mount.nfs >/dev/null && mount -t nfs -o "vers=3,tcp,nolock,soft,timeo=50,port=$port,mountport=$port" 127.0.0.1:/ "$work/mnt" 2>/dev/null; then
    cp -r "$work/tree" "$work/mnt/copy"
    diff -r "$work/tree" "$work/mnt/copy" && echo "ok: the kernel's client copies a tree"
    (cd "$work/mnt" && git init -q repo && cd repo && cp -r ../copy . && git add -A && git -c user.name=a -c user.email=a@b commit -qm x && git fsck 2>/dev/null)
    echo "ok: git works over the kernel's client"
    rm -r "$work/mnt/copy" "$work/mnt/repo" && echo "ok: rm -r"
    umount "$work/mnt"
else
    echo "not tried: this machine cannot mount NFS"
fi
"$MW" unexport "$port" >/dev/null
if timeout 5 nfs-ls "$(url "")" >/dev/null 2>&1; then echo "FAILED: it still answers"; exit 1; else echo "ok: an export that was taken away answers nobody"; fi
