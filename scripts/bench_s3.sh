#!/usr/bin/env bash
# `make bench-s3`: Manyworlds beside garage, with the syncs of its metadata and its data switched on, and s3s-fs, which does not sync at all.
# All on the same disk, in the same run; `strace` counts the syncs of 200 puts of each, to show who is durable.
#
# MW: the binary. MW_BENCH_DIR: where to work, on a disk with 40 GiB free. MW_PEERS: a folder with bin/garage and bin/s3s-fs; what is missing
# there is installed with cargo (half an hour, once), unless MW_BENCH_PEERS=no, and left out when that does not work.
# MW_BENCH_KEYS=100000 for a tenth of the keys; MW_BENCH_LARGE, MW_BENCH_UPLOAD, MW_BENCH_TIME: see the example. MW_BENCH_PARTS: which
# parts to run, of "syncs objects list". MW_BENCH_EXAMPLE: the example, built.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
GARAGE=2.5.0
S3S_FS=0.14.1
: "${MW:?set MW to the mw binary}"
target=${CARGO_TARGET_DIR:-target}
peers=${MW_PEERS:-$target/peers}
parts=${MW_BENCH_PARTS:-syncs objects list}
example=${MW_BENCH_EXAMPLE:-$target/release/examples/bench_s3}
export MW_BENCH_DIR=${MW_BENCH_DIR:-${TMPDIR:-/tmp}}
work=$(mktemp -d "$MW_BENCH_DIR/mw-bench-s3.XXXXXX") || exit 1
export MW_BENCH_DIR=$work
pids=()
finish() {
    for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null; done
    wait
    rm -rf "$work"
}
trap finish EXIT
trap 'exit 130' INT TERM

install() { # command, package, version, more
    [ -x "$peers/bin/$1" ] && return
    [ "${MW_BENCH_PEERS:-}" = no ] && return 1
    echo "installing $2 $3 in $peers, once"
    CARGO_TARGET_DIR=$peers/build cargo install -q "$2" --version "$3" --locked --root "$peers" "${@:4}" || return 1
    rm -rf "$peers/build"
}
free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }
answers() { for _ in $(seq 400); do curl -s -o /dev/null "http://$1/" && return; sleep 0.05; done; return 1; }

# Manyworlds.
"$MW" serve --data "$work/mw" --listen 127.0.0.1:0 >"$work/ready" 2>"$work/mw.log" &
pids+=($!)
pid=$!
for _ in $(seq 400); do grep -q '^ready' "$work/ready" && break; sleep 0.05; done
address=$(sed -n 's|^ready http://||p' "$work/ready")
key=$(python3 -c 'import json,sys; k=json.load(open(sys.argv[1])); print(k["id"]+"="+k["secret"])' "$work/mw/root-key.json") || { cat "$work/mw.log"; exit 1; }
MW_ENDPOINT=http://$address AWS_ACCESS_KEY_ID=${key%%=*} AWS_SECRET_ACCESS_KEY=${key#*=} "$MW" world create bench >/dev/null || exit 1
ours="manyworlds=$address=$key=$pid"
echo "manyworlds: $("$MW" --version), every put durable before it is answered"

# garage: one node. `garage_serve true` has everything synced, `false` nothing: for filling, of which nothing is measured.
garage() { "$peers/bin/garage" -c "$work/garage.toml" "$@"; }
garage_pid=
garage_serve() { # synced
    if [ -n "$garage_pid" ]; then
        kill "$garage_pid"
        wait "$garage_pid" 2>/dev/null
    fi
    cat >"$work/garage.toml" <<END
metadata_dir = "$work/garage/meta"
data_dir = "$work/garage/data"
db_engine = "lmdb"
metadata_fsync = $1
data_fsync = $1
replication_factor = 1
rpc_bind_addr = "127.0.0.1:$rpc"
rpc_public_addr = "127.0.0.1:$rpc"
rpc_secret = "$rpc_secret"
[s3_api]
s3_region = "auto"
api_bind_addr = "127.0.0.1:$port"
root_domain = ".s3.localhost"
[admin]
api_bind_addr = "127.0.0.1:$admin"
END
    # Not by the function: that would be a shell of its own, and what is counted is the process.
    "$peers/bin/garage" -c "$work/garage.toml" server >>"$work/garage.log" 2>&1 &
    garage_pid=$!
    pids+=($!)
    answers "127.0.0.1:$port"
}
id='' secret=''
durable() { [ -n "$garage_pid" ] && echo "garage=127.0.0.1:$port=$id=$secret=$garage_pid"; }
if install garage garage "$GARAGE" --no-default-features --features bundled-libs,lmdb; then
    port=$(free_port) rpc=$(free_port) admin=$(free_port) rpc_secret=$(openssl rand -hex 32)
    if garage_serve true && {
        node=$(garage node id -q | cut -d@ -f1)
        garage layout assign -z here -c 100G "$node" && garage layout apply --version 1
        made=$(garage key create bench)
        id=$(sed -n 's/^Key ID: *//p' <<<"$made") secret=$(sed -n 's/^Secret key: *//p' <<<"$made")
        garage bucket create bench && garage bucket allow --read --write --owner bench --key "$id"
    } >>"$work/garage.log" 2>&1; then
        echo "garage: $GARAGE, metadata_fsync and data_fsync on"
    else
        echo "garage does not start; its log ends with:"
        tail -n 5 "$work/garage.log"
        garage_pid=
    fi
else
    echo "garage $GARAGE cannot be installed: there is no durable peer in this run"
fi

# s3s-fs: files in a folder, nothing synced.
loose=
if install s3s-fs s3s-fs "$S3S_FS" --features binary; then
    loose_port=$(free_port)
    mkdir -p "$work/s3s/bench"
    "$peers/bin/s3s-fs" --host 127.0.0.1 --port "$loose_port" --access-key bench --secret-key bench-secret "$work/s3s" >"$work/s3s.log" 2>&1 &
    pids+=($!)
    if answers "127.0.0.1:$loose_port"; then
        loose="s3s-fs=127.0.0.1:$loose_port=bench=bench-secret=$!"
        echo "s3s-fs: $S3S_FS, which never syncs"
    else
        echo "s3s-fs does not start:"
        tail -n 5 "$work/s3s.log"
    fi
else
    echo "s3s-fs $S3S_FS cannot be installed"
fi

[ -x "$example" ] || { echo "build the example first: cargo build --release --workspace --example bench_s3"; exit 1; }
bench() {
    echo "   \$ bench_s3 $1 $(for server in "${@:2}"; do printf '%s ' "${server%%=*}"; done)"
    "$example" "$@"
}
status=0
for part in $parts; do
    case $part in
    syncs)
        command -v strace >/dev/null || { echo "== no strace: syncs are not counted"; continue; }
        echo "== syncs of 200 puts of 4 KiB on one connection (strace)"
        for server in "$ours" $(durable) $loose; do
            strace -f -qq -e trace=fsync,fdatasync,msync,sync_file_range -o "$work/syncs" -p "${server##*=}" &
            tracer=$!
            sleep 0.5
            "$example" syncs "$server" || { echo "   ${server%%=*}: failed"; status=1; }
            kill -INT "$tracer"
            wait "$tracer" 2>/dev/null
            printf '   %-12s %5s   %s\n' "${server%%=*}" "$(grep -c 'sync.*= 0' "$work/syncs")" "$(grep -o '[a-z_]*sync[a-z_]*(' "$work/syncs" | tr -d '(' | sort | uniq -c | tr -s ' \n' ' ')"
        done
        ;;
    objects)
        echo "== objects (figures of this machine at this moment; compare within a row)"
        bench objects "$ours" $(durable) $loose || status=1
        ;;
    list)
        echo "== keys (s3s-fs, which syncs nothing, is left out)"
        # Nothing is learnt from waiting for the peer's disk a million times; it is synced again for what is measured.
        [ -n "$garage_pid" ] && garage_serve false
        bench fill "$ours" $(durable) || { status=1; continue; }
        [ -n "$garage_pid" ] && garage_serve true
        bench list "$ours" $(durable) || status=1
        ;;
    *)
        echo "there is no part $part: syncs, objects or list"
        status=1
        ;;
    esac
done
exit "$status"
