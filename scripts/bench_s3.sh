#!/usr/bin/env bash
# `make bench-s3`: Manyworlds beside garage, with the syncs of its metadata and its data switched on, and s3s-fs, which does not sync at all.
# All on the same disk, in the same run; `strace` counts the syncs of 200 puts of each, to show who is durable.
#
# MW: the binary. MW_BENCH_DIR: where to work, on a disk. MW_PEERS: a folder with bin/garage and bin/s3s-fs; what is missing there is
# installed with cargo, unless MW_BENCH_PEERS=no, and left out when that does not work. MW_BENCH_KEYS, MW_BENCH_LARGE, MW_BENCH_UPLOAD: see the example.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
GARAGE=2.5.0
S3S_FS=0.14.1
: "${MW:?set MW to the mw binary}"
target=${CARGO_TARGET_DIR:-target}
peers=${MW_PEERS:-$target/peers}
work=$(mktemp -d "${MW_BENCH_DIR:-${TMPDIR:-/tmp}}/mw-bench-s3.XXXXXX")
pids=()
trap 'for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null; done; wait; rm -rf "$work"' EXIT

install() { # command, package, version, more
    [ -x "$peers/bin/$1" ] && return
    [ "${MW_BENCH_PEERS:-}" = no ] && return 1
    echo "installing $2 $3 in $peers"
    CARGO_TARGET_DIR=$peers/build cargo install -q "$2" --version "$3" --locked --root "$peers" "${@:4}" || return 1
    rm -rf "$peers/build"
}
free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }
answers() { for _ in $(seq 400); do curl -s -o /dev/null "http://$1/" && return; sleep 0.05; done; return 1; }

servers=()
# Manyworlds.
"$MW" serve --data "$work/mw" --listen 127.0.0.1:0 >"$work/ready" 2>"$work/mw.log" & pids+=($!); pid=$!
for _ in $(seq 400); do grep -q '^ready' "$work/ready" && break; sleep 0.05; done
address=$(sed -n 's|^ready http://||p' "$work/ready")
key=$(python3 -c 'import json,sys; k=json.load(open(sys.argv[1])); print(k["id"]+"="+k["secret"])' "$work/mw/root-key.json") || { cat "$work/mw.log"; exit 1; }
MW_ENDPOINT=http://$address AWS_ACCESS_KEY_ID=${key%%=*} AWS_SECRET_ACCESS_KEY=${key#*=} "$MW" world create bench >/dev/null || exit 1
servers+=("manyworlds=$address=$key=$pid")

# garage: one node, everything synced.
garage() { "$peers/bin/garage" -c "$work/garage.toml" "$@"; }
if install garage garage "$GARAGE"; then
    port=$(free_port) rpc=$(free_port) admin=$(free_port)
    cat >"$work/garage.toml" <<EOF
metadata_dir = "$work/garage/meta"
data_dir = "$work/garage/data"
db_engine = "lmdb"
metadata_fsync = true
data_fsync = true
replication_factor = 1
rpc_bind_addr = "127.0.0.1:$rpc"
rpc_public_addr = "127.0.0.1:$rpc"
rpc_secret = "$(openssl rand -hex 32)"
[s3_api]
s3_region = "auto"
api_bind_addr = "127.0.0.1:$port"
root_domain = ".s3.localhost"
[admin]
api_bind_addr = "127.0.0.1:$admin"
EOF
    garage server >"$work/garage.log" 2>&1 & pids+=($!); pid=$!
    if answers "127.0.0.1:$port" && {
        node=$(garage node id -q | cut -d@ -f1)
        garage layout assign -z here -c 100G "$node" && garage layout apply --version 1
        made=$(garage key create bench)
        id=$(sed -n 's/^Key ID: *//p' <<<"$made") secret=$(sed -n 's/^Secret key: *//p' <<<"$made")
        garage bucket create bench && garage bucket allow --read --write --owner bench --key "$id"
    } >>"$work/garage.log" 2>&1; then
        servers+=("garage=127.0.0.1:$port=$id=$secret=$pid")
    else
        echo "garage does not start; its log ends with:"; tail -n 5 "$work/garage.log"
    fi
else
    echo "garage $GARAGE cannot be installed: there is no durable peer in this run"
fi

# s3s-fs: files in a folder, nothing synced.
if install s3s-fs s3s-fs "$S3S_FS" --features binary; then
    port=$(free_port)
    mkdir -p "$work/s3s/bench"
    "$peers/bin/s3s-fs" --host 127.0.0.1 --port "$port" --access-key bench --secret-key bench-secret "$work/s3s" >"$work/s3s.log" 2>&1 & pids+=($!); pid=$!
    answers "127.0.0.1:$port" && servers+=("s3s-fs=127.0.0.1:$port=bench=bench-secret=$pid") || { echo "s3s-fs does not start:"; tail -n 5 "$work/s3s.log"; }
else
    echo "s3s-fs $S3S_FS cannot be installed"
fi

bench() { cargo run -q ${MW_BENCH_PROFILE---release} --workspace --example bench_s3 -- "$@"; }
if command -v strace >/dev/null; then
    echo "== syncs of 200 puts of 4 KiB on one connection (strace)"
    for server in "${servers[@]}"; do
        strace -f -qq -e trace=fsync,fdatasync,msync,sync_file_range -o "$work/syncs" -p "${server##*=}" & tracer=$!
        sleep 0.5
        bench "$server" syncs || { echo "${server%%=*}: failed"; kill "$tracer"; continue; }
        kill -INT "$tracer"; wait "$tracer" 2>/dev/null
        printf '   %-12s %s\n' "${server%%=*}" "$(grep -c 'sync' "$work/syncs")"
    done
fi
echo "== figures of this machine at this moment; compare within a row"
bench "${servers[@]}"
