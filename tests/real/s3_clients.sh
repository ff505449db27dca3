#!/usr/bin/env bash
# Real clients against a real server, verb by verb, bytes compared: boto3, the AWS CLI, rclone, s3cmd.
#
# Usage: MW=path/to/mw [MW_VENV=path/to/venv] s3_clients.sh
# A client that is not installed is skipped and named, or fails when CI is true; a client that fails ends the run.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=server.inc
. "$here/server.inc"
have() { command -v "$1" >/dev/null || { lacks "$1"; return 1; }; }

mkdir -p "$work/tree/dir with space/deep"
head -c 100 /dev/urandom >"$work/tree/small"
: >"$work/tree/empty"
head -c 3000000 /dev/urandom >"$work/tree/dir with space/middle"
head -c 20000000 /dev/urandom >"$work/tree/dir with space/deep/big+100%.bin"
echo 'über' >"$work/tree/dir with space/ünïcode & <co>"

if python3 -c 'import boto3' 2>/dev/null; then
    echo boto3
    python3 "$here/s3_boto.py"
    python3 "$here/s3_versions.py"
else
    lacks boto3
fi

if have aws; then
    echo "aws: $(aws --version 2>&1)"
    b=awscli
    step mb; aws s3 mb "s3://$b" >/dev/null
    step cp; aws s3 cp --quiet "$work/tree/small" "s3://$b/small"
    aws s3 cp --quiet "s3://$b/small" "$work/back" && same "$work/tree/small" "$work/back"
    step 'cp from a pipe'; aws s3 cp --quiet - "s3://$b/pipe" <"$work/tree/dir with space/middle"
    aws s3 cp --quiet "s3://$b/pipe" - | cmp - "$work/tree/dir with space/middle"
    step sync; aws s3 sync --only-show-errors "$work/tree" "s3://$b/tree"
    aws s3 sync --only-show-errors "s3://$b/tree" "$work/aws-back" && diff -r "$work/tree" "$work/aws-back"
    [[ -z $(aws s3 sync "$work/tree" "s3://$b/tree") ]] || { echo "a second sync has work to do"; exit 1; }
    step 'checksums'
    for a in CRC32 CRC32C SHA1 SHA256 CRC64NVME; do
        # Some algorithms need an optional library of the client.
        if aws s3 cp --only-show-errors "$work/tree/dir with space/deep/big+100%.bin" "s3://$b/sum-$a" --checksum-algorithm "$a" >"$work/out" 2>&1; then
            aws s3api head-object --bucket "$b" --key "sum-$a" --checksum-mode ENABLED | grep -q "Checksum$a"
            aws s3 cp --quiet "s3://$b/sum-$a" "$work/back" && same "$work/tree/dir with space/deep/big+100%.bin" "$work/back"
        else
            grep -qi 'awscrt\|CRT\|invalid choice\|Unsupported' "$work/out" || { cat "$work/out"; exit 1; }
        fi
    done
    step mv; aws s3 mv --quiet "s3://$b/tree/dir with space/deep/big+100%.bin" "s3://$b/moved/100% + x"
    aws s3 cp --quiet "s3://$b/moved/100% + x" "$work/back" && same "$work/tree/dir with space/deep/big+100%.bin" "$work/back"
    fails aws s3api head-object --bucket "$b" --key "tree/dir with space/deep/big+100%.bin"
    step presign; curl -fsS "$(aws s3 presign "s3://$b/moved/100% + x")" -o "$work/back"
    same "$work/tree/dir with space/deep/big+100%.bin" "$work/back"
    step 'ranges and conditions'
    aws s3api get-object --bucket "$b" --key small --range bytes=10-19 "$work/back" >/dev/null
    cmp <(tail -c +11 "$work/tree/small" | head -c 10) "$work/back"
    fails aws s3api put-object --bucket "$b" --key small --if-none-match '*'
    grep -q PreconditionFailed "$work/out"
    step 'rm --recursive'; aws s3 rm --quiet --recursive "s3://$b"
    [[ -z $(aws s3 ls --recursive "s3://$b") ]]
    step rb; aws s3 rb "s3://$b" >/dev/null
    fails aws s3 ls "s3://$b"
fi

if have rclone; then
    echo "rclone: $(rclone version | head -1)"
    export RCLONE_CONFIG=$work/rclone.conf && : >"$work/rclone.conf"
    export RCLONE_CONFIG_MW_TYPE=s3 RCLONE_CONFIG_MW_PROVIDER=Other RCLONE_CONFIG_MW_ENV_AUTH=true
    export RCLONE_CONFIG_MW_ENDPOINT=$endpoint RCLONE_CONFIG_MW_FORCE_PATH_STYLE=true RCLONE_CONFIG_MW_REGION=us-east-1
    export RCLONE_S3_UPLOAD_CUTOFF=6M RCLONE_S3_CHUNK_SIZE=5M
    step mkdir; rclone mkdir mw:rclone
    step sync; rclone sync "$work/tree" mw:rclone/tree
    step check; rclone check --download "$work/tree" mw:rclone/tree 2>/dev/null
    rclone sync mw:rclone/tree "$work/rclone-back" && diff -r "$work/tree" "$work/rclone-back"
    [[ -z $(rclone sync --dry-run "$work/tree" mw:rclone/tree 2>&1 | grep -i 'copy\|update' || true) ]] || { echo "a second sync has work to do"; exit 1; }
    step 'move on the server'; rclone moveto "mw:rclone/tree/small" "mw:rclone/moved + 1%"
    rclone cat "mw:rclone/moved + 1%" | cmp - "$work/tree/small"
    step rcat; rclone rcat mw:rclone/piped <"$work/tree/dir with space/deep/big+100%.bin"
    rclone cat mw:rclone/piped | cmp - "$work/tree/dir with space/deep/big+100%.bin"
    step purge; rclone purge mw:rclone
fi

if have s3cmd; then
    echo "s3cmd: $(s3cmd --version)"
    host=${endpoint#*://}
    cat >"$work/s3cfg" <<CFG
[default]
access_key = $AWS_ACCESS_KEY_ID
secret_key = $AWS_SECRET_ACCESS_KEY
host_base = $host
host_bucket = $host
use_https = False
signature_v2 = False
bucket_location = us-east-1
CFG
    s3() { s3cmd -q -c "$work/s3cfg" "$@"; }
    step mb; s3 mb s3://s3cmd
    step put; s3 put "$work/tree/small" s3://s3cmd/small
    s3 put --multipart-chunk-size-mb=5 "$work/tree/dir with space/deep/big+100%.bin" "s3://s3cmd/big+100%.bin"
    step get; s3 get --force "s3://s3cmd/big+100%.bin" "$work/back"
    same "$work/tree/dir with space/deep/big+100%.bin" "$work/back"
    step sync; s3 sync "$work/tree/" s3://s3cmd/tree/
    mkdir -p "$work/s3cmd-back" && s3 sync s3://s3cmd/tree/ "$work/s3cmd-back/"
    diff -r "$work/tree" "$work/s3cmd-back"
    step 'cp and mv'; s3 cp s3://s3cmd/small s3://s3cmd/copy && s3 mv s3://s3cmd/copy "s3://s3cmd/moved it"
    s3 get --force "s3://s3cmd/moved it" "$work/back" && same "$work/tree/small" "$work/back"
    step 'del and rb'; s3 del --recursive --force s3://s3cmd && s3 rb s3://s3cmd
fi

ended
