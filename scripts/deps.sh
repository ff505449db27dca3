#!/usr/bin/env bash
# Installs what the tests use, where it is missing: system packages, cargo-nextest, and the S3 clients for Python and for Node.js, each in
# a folder of their own under the build directory. Says nothing and takes no time when nothing is missing.
#
# With CI=true a package that cannot be installed is an error; elsewhere it is a warning, and the tests that need it are skipped.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1

BOTO3=1.40.0
AWSCLI=1.42.0
PJDFSTEST=0.2.2
FSX=0.3.2
E2E=0.14.1
PNPM=9.8.0
tools=${MW_TOOLS:-${CARGO_TARGET_DIR:-target}/tools}
MCP=2.3.0
TIGRIS_BOTO3=0.8.0
MINIO=7.2.20
TIGRIS_CLI=3.4.3
TIGRIS_STORAGE=3.21.0
STORAGESDK=0.5.0
STORAGESDK_ADAPTERS=0.10.0
AWS_JS=3.1169.0
venv=${MW_VENV:-${CARGO_TARGET_DIR:-target}/venv}
npm=${MW_NPM:-$(dirname "$venv")/npm}
failed=0

cannot() {
    echo "deps: $*" >&2
    failed=1
}

# Command and the Debian package that brings it.
wanted="
bwrap bubblewrap
fusermount3 fuse3
rclone rclone
s3cmd s3cmd
restic restic
sqlite3 sqlite3
nfs-ls libnfs-utils
rsync rsync
strace strace
setfattr attr
jq jq
git git
curl curl
openssl openssl
cc build-essential
python3 python3
node nodejs
npm npm
setfacl acl
mkfs.ext4 e2fsprogs
fio fio
inotifywait inotify-tools
psql postgresql
"
# `deps.sh demo` installs only what the demo needs.
if [ "${1:-}" = demo ]; then
    wanted="
bwrap bubblewrap
fusermount3 fuse3
curl curl
cc build-essential
python3 python3
"
fi
missing=()
while read -r command package; do
    [ -z "$command" ] || command -v "$command" >/dev/null || missing+=("$package")
done <<<"$wanted"
[ "${1:-}" = demo ] || [ -e /usr/include/sys/acl.h ] || missing+=(libacl1-dev)
if [ "${1:-}" = demo ]; then
    :
elif command -v python3 >/dev/null; then
    python3 -c 'import ensurepip, venv' 2>/dev/null || missing+=(python3-venv)
else
    missing+=(python3-venv)
fi

if [ ${#missing[@]} -gt 0 ]; then
    root=()
    [ "$(id -u)" -eq 0 ] || root=(sudo -n)
    if ! command -v apt-get >/dev/null; then
        cannot "missing ${missing[*]}, and there is no apt-get; install them with this system's own tool"
    elif [ ${#root[@]} -gt 0 ] && ! sudo -n true 2>/dev/null; then
        cannot "missing ${missing[*]}; run: sudo apt-get install ${missing[*]}"
    else
        echo "deps: installing ${missing[*]}"
        "${root[@]}" apt-get update -q >/dev/null &&
            "${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends "${missing[@]}" >/dev/null ||
            cannot "apt-get could not install ${missing[*]}"
    fi
fi

if [ "${1:-}" = demo ] && [ $failed -eq 0 ]; then
    exit 0
fi

if ! command -v cargo >/dev/null; then
    cannot "cargo is missing; install Rust from https://rustup.rs"
else
    for component in fmt clippy; do
        cargo "$component" --version >/dev/null 2>&1 || {
            echo "deps: installing the Rust component $component"
            rustup component add "${component/#fmt/rustfmt}" || cannot "cargo $component is missing"
        }
    done
    cargo nextest --version >/dev/null 2>&1 || {
        echo "deps: installing cargo-nextest"
        cargo install cargo-nextest --locked || cannot "cargo could not install cargo-nextest"
    }
fi

# The conformance suites for file systems. Built apart, so that nothing of them is kept.
for tool in "pjdfstest $PJDFSTEST" "fsx $FSX"; do
    read -r name version <<<"$tool"
    [ -e "$tools/installed-$name-$version" ] && continue
    echo "deps: installing $name $version in $tools"
    if CARGO_TARGET_DIR=$tools/build cargo install "$name" --version "$version" --locked --force --root "$tools" >/dev/null; then
        touch "$tools/installed-$name-$version"
    else
        cannot "cargo could not install $name $version"
    fi
    rm -rf "$tools/build"
done

# The public suites for S3 stores (tests/real/suites.sh): `s3s-e2e`, and a program around the one of the crate `object_store`. They share
# most of what they are built of; not optimised, as the server does the work.
suites="$tools/installed-suites-$E2E-$(cat tests/suites/Cargo.* tests/suites/src/* | cksum | cut -d' ' -f1)"
if [ ! -e "$suites" ]; then
    echo "deps: installing the public S3 suites s3s-e2e $E2E and object_store in $tools"
    if CARGO_TARGET_DIR=$tools/build CARGO_PROFILE_DEV_DEBUG=0 cargo install -q --debug --locked --force --root "$tools" "s3s-e2e@=$E2E" &&
        CARGO_TARGET_DIR=$tools/build CARGO_PROFILE_DEV_DEBUG=0 cargo install -q --debug --locked --force --root "$tools" --path tests/suites; then
        touch "$suites"
    else
        cannot "cargo could not build the public S3 suites"
    fi
    rm -rf "$tools/build"
fi

if [ ! -e "$tools/installed-pnpm-$PNPM" ]; then
    echo "deps: installing pnpm $PNPM in $tools"
    if npm install --silent --no-audit --no-fund --prefix "$tools/npm" "pnpm@$PNPM" && mkdir -p "$tools/bin" &&
        ln -sf ../npm/node_modules/.bin/pnpm "$tools/bin/pnpm"; then
        touch "$tools/installed-pnpm-$PNPM"
    else
        cannot "npm could not install pnpm"
    fi
fi

# The file is written last, so that an installation that broke off is done again.
stamp="$venv/installed-$BOTO3-$AWSCLI"
if [ ! -e "$stamp" ]; then
    echo "deps: installing boto3 $BOTO3 and awscli $AWSCLI in $venv"
    rm -rf "$venv"
    if python3 -m venv "$venv" && "$venv/bin/pip" install -q --disable-pip-version-check "boto3==$BOTO3" "awscli==$AWSCLI"; then
        touch "$stamp"
    else
        cannot "pip could not install boto3 and awscli"
    fi
fi

# What came after the first clients for Python is added to what is there.
add() { # package...
    local stamp="$venv/installed-$(IFS=-; echo "${*//==/-}")"
    [ -e "$venv/bin/pip" ] && [ ! -e "$stamp" ] || return 0
    echo "deps: installing $* in $venv"
    # boto3 is named, so that it stays what it is.
    if "$venv/bin/pip" install -q --disable-pip-version-check "$@" "boto3==$BOTO3"; then
        touch "$stamp"
    else
        cannot "pip could not install $*"
    fi
}
add "mcp==$MCP"
add "tigris-boto3-ext==$TIGRIS_BOTO3" "minio==$MINIO"

# No script of a package is run: they would write into the home directory.
packages=(
    "@tigrisdata/cli@$TIGRIS_CLI"
    "@tigrisdata/storage@$TIGRIS_STORAGE"
    "@storagesdk/core@$STORAGESDK"
    "@storagesdk/adapters@$STORAGESDK_ADAPTERS"
    "@aws-sdk/client-s3@$AWS_JS"
    "@aws-sdk/s3-request-presigner@$AWS_JS"
)
stamp="$npm/installed-$TIGRIS_CLI-$TIGRIS_STORAGE-$STORAGESDK-$STORAGESDK_ADAPTERS-$AWS_JS"
if [ ! -e "$stamp" ]; then
    echo "deps: installing ${packages[*]} in $npm"
    rm -rf "$npm"
    mkdir -p "$npm" && echo '{"private":true}' >"$npm/package.json"
    if npm install --prefix "$npm" --silent --no-audit --no-fund --no-update-notifier --ignore-scripts "${packages[@]}" >/dev/null; then
        touch "$stamp"
    else
        cannot "npm could not install ${packages[*]}"
    fi
fi

[ "$failed" -eq 0 ] || [ "${CI:-}" != true ]
