#!/usr/bin/env bash
# Real programs on a mount, compared with a plain directory.
#
# Every step of the list below runs twice, with the same clock-free input: in a directory of a mounted world and in a plain
# directory. Exit codes and the resulting trees must be the same: names, types, modes, sizes, contents, link targets, link
# counts of files, and mtimes where the step sets them. Usage: MW=path/to/mw mount_programs.sh [STEP...]
# MOUNTED=DIR instead of MW runs the list on a directory that is mounted already.
# A program that is missing is reported as skipped, and fails the run under CI=true.
set -uo pipefail
export LC_ALL=C TZ=UTC GIT_CONFIG_NOSYSTEM=1 GIT_AUTHOR_DATE=2024-01-01T00:00:00Z GIT_COMMITTER_DATE=2024-01-01T00:00:00Z
unset CARGO_TARGET_DIR
umask 022

base=/dev/shm; [ -d "$base" ] || base=${TMPDIR:-/tmp}
work=$(mktemp -d "$base/mw-programs.XXXXXX")
log=$work/log
server=
cleanup() {
    if [ -n "$server" ]; then
        "$MW" unmount "$work/m" >>"$log" 2>&1
        kill "$server" 2>/dev/null; wait "$server" 2>/dev/null
    fi
    [ -n "${MOUNTED-}" ] && rm -rf "$mounted"
    rm -rf "$work"
}
trap cleanup EXIT
die() { echo "mount_programs: $*" >&2; [ -s "$log" ] && tail -n 50 "$log" >&2; exit 1; }

# Git, npm and cargo with a home of their own, the same for both sides.
export HOME=$work/home
mkdir -p "$HOME"
real_cargo_home=${CARGO_HOME:-$(getent passwd "$(id -u)" | cut -d: -f6)/.cargo}
export CARGO_HOME=$work/cargo-home RUSTUP_HOME=${RUSTUP_HOME:-${real_cargo_home%/.cargo}/.rustup} npm_config_cache=$work/npm
git config --global user.name t; git config --global user.email t@example.com
git config --global init.defaultBranch main; git config --global gc.auto 0; git config --global maintenance.auto false
git config --global protocol.file.allow always; git config --global safe.directory '*'

# ---------- the two sides
plain=$work/plain
mkdir -p "$plain"
if [ -n "${MOUNTED-}" ]; then
    mounted=$MOUNTED/programs.$$
    mkdir "$mounted" || die "cannot write in $MOUNTED"
else
    : "${MW:?set MW to the mw binary}"
    "$MW" serve --data "$work/data" --listen 127.0.0.1:0 >"$work/serve.out" 2>"$log" & server=$!
    for _ in $(seq 200); do
        grep -q '^ready ' "$work/serve.out" 2>/dev/null && break
        kill -0 "$server" 2>/dev/null || die "mw serve ended"
        sleep 0.05
    done
    MW_ENDPOINT=$(sed -n 's/^ready //p' "$work/serve.out" | head -n 1); export MW_ENDPOINT
    [ -n "$MW_ENDPOINT" ] || die "mw serve is not ready"
    field() { python3 -c 'import json,sys; k=json.load(open(sys.argv[1])); print(next(k[n] for n in sys.argv[2:] if n in k))' "$work/data/root-key.json" "$@"; }
    AWS_ACCESS_KEY_ID=$(field id access_key_id AccessKeyId) && AWS_SECRET_ACCESS_KEY=$(field secret secret_access_key SecretAccessKey) || die "no root key"
    export AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY
    mkdir "$work/m"
    "$MW" world create programs >>"$log" 2>&1 || die "mw world create"
    "$MW" mount programs "$work/m" >>"$log" 2>&1 || die "mw mount"
    # Otherwise the list would be compared with itself.
    grep -q " $work/m fuse.mw " /proc/mounts || die "nothing is mounted at $work/m"
    mounted=$work/m
fi

# ---------- what a tree looks like
# One line an entry: path, type, mode, links (files), size (files), link target or hash. Directory sizes are a file system's own.
tree() {
    (cd "$1" && find . -mindepth 1 \( -name .git -o -name target -o -name node_modules/.cache \) -prune -o -printf '%p|%y|%m|%l|' \
        \( -type f -printf '%n|%s|' -exec sha256sum -z {} \; -o -printf '\0' \) | tr '\0' '\n' | sed 's/  \..*$//' | sort)
}
times() { (cd "$1" && find . -mindepth 1 \( -name .git -o -name target \) -prune -o -type f -printf '%p %T@\n' | sort); }

# ---------- the list
# A step gets an empty directory as its working directory. What it prints is compared too, with the directory's name replaced.
steps=()
step() { steps+=("$1"); }
needs() { command -v "$1" >/dev/null; }

seed_tree() { # A tree of files, links and modes that follows from nothing but its name.
    mkdir -p "$1"/a/b/c "$1"/empty "$1"/bin
    for i in $(seq 60); do seq "$i" $((i * 37)) >"$1/a/f$i"; done
    for i in $(seq 20); do printf 'line %s\n' "$i" >"$1/a/b/c/g $i"; done
    printf '#!/bin/sh\necho hi\n' >"$1/bin/run"; chmod 755 "$1/bin/run"
    ln -s ../a/f1 "$1/bin/link"; ln -s nowhere "$1/bin/dangling"; ln "$1/a/f2" "$1/a/hard"
    chmod 444 "$1/a/f3"; chmod 600 "$1/a/f4"; : >"$1/a/zero"
    head -c 3000000 /dev/zero | tr '\0' z >"$1/a/large"
    find "$1" -exec touch -h -d '2023-04-05T06:07:08.123456789Z' {} +
}

step git_basics; git_basics() {
    needs git || return 127
    git init -q r && cd r && seed_tree t && git add . && git commit -qm one && git commit -q --allow-empty -m two &&
        git branch side && echo more >>t/a/f1 && git commit -qam three && git log --format=%H && git fsck --strict &&
        git gc -q && git fsck --strict && git status --porcelain && git rev-parse HEAD^{tree}
}
step git_clone; git_clone() {
    needs git || return 127
    git init -q s && (cd s && seed_tree t && git add . && git commit -qm one) && git clone -q --no-local s c &&
        git -C c fsck --strict && git -C c status --porcelain && git clone -q s d && git -C d log --format=%H && diff -r --no-dereference -x empty s/t c/t
}
step git_moves; git_moves() {
    needs git || return 127
    git init -q r && cd r && seed_tree t && git add . && git commit -qm one && git checkout -q -b side && git mv t/a moved &&
        git commit -qm moved && git checkout -q main && git worktree add -q ../wt side && ls ../wt &&
        echo x >t/new && echo y >>t/a/f5 && git stash -q -u && git status --porcelain && git stash pop -q && git status --porcelain &&
        git add . && git commit -qm two && git merge -q -m merged side && git rebase -q HEAD~1 && git reset -q --hard HEAD &&
        git clean -fdxq && git update-index --refresh && git diff-files --name-only && git worktree remove ../wt && git log --format=%T
}
step cargo_build; cargo_build() {
    needs cargo || return 127
    cargo new -q --vcs none hello && cd hello && cargo build -q --offline && ./target/debug/hello &&
        find target -type f -printf '%p %T@\n' | sort >../before && cargo build -q --offline &&
        find target -type f -printf '%p %T@\n' | sort | grep -v -e .cargo-lock >../after; grep -v -e .cargo-lock ../before | diff - ../after && echo unchanged
    local rc=$?; rm -f ../before ../after; [ $rc = 0 ] || return $rc
    printf 'fn main() { println!("again"); }\n' >src/main.rs && cargo build -q --offline && ./target/debug/hello
}
step npm_install; npm_install() {
    needs npm || return 127
    mkdir -p dep app && printf '{"name":"dep","version":"1.2.3","bin":{"dep":"cli.js"}}' >dep/package.json &&
        printf '#!/usr/bin/env node\nconsole.log("dep")\n' >dep/cli.js && printf 'module.exports=1\n' >dep/index.js && mkdir dep/lib &&
        for i in $(seq 200); do echo "module.exports=$i" >"dep/lib/$i.js"; done && (cd dep && npm pack --silent --offline) &&
        cd app && printf '{"name":"app","version":"1.0.0"}' >package.json &&
        npm install --silent --offline --no-audit --no-fund ../dep/dep-1.2.3.tgz && ./node_modules/.bin/dep &&
        readlink node_modules/.bin/dep && ls node_modules/dep/lib | wc -l && npm ls --offline && npm ci --silent --offline --no-audit --no-fund &&
        ./node_modules/.bin/dep
}
sqlite_in() {
    needs sqlite3 || return 127
    sqlite3 db "pragma journal_mode=$1; pragma synchronous=full; create table t(i integer primary key, v text);" &&
        sqlite3 db "with recursive n(i) as (select 1 union all select i+1 from n where i<5000) insert into t select i, hex(i*7) from n;" &&
        for i in 1 2 3 4; do
            (for j in $(seq 25); do sqlite3 -cmd '.timeout 20000' db "insert into t(v) values('$i-$j');" || exit 1; done) &
        done && for job in $(jobs -p); do wait "$job" || return 1; done
    sqlite3 db "begin; delete from t where i<100; rollback; select count(*), sum(i) from t; pragma integrity_check;" &&
        sqlite3 db "update t set v=v||'x' where i%3=0; vacuum; select count(*) from t where v like '%x'; pragma integrity_check;" &&
        sqlite3 db .dump | grep -v -e '-[0-9]*' | sha256sum && rm -f db db-wal db-shm
}
step sqlite_rollback; sqlite_rollback() { sqlite_in delete; }
step sqlite_truncate; sqlite_truncate() { sqlite_in truncate; }
step sqlite_wal; sqlite_wal() { sqlite_in wal; }
step rsync_twice; rsync_twice() {
    needs rsync || return 127
    seed_tree from && rsync -aHX from/ to/ && rsync -aHXi from/ to/ && rsync -aHXin --delete to/ from/ && echo settled &&
        echo more >>from/a/f9 && rm from/a/f10 && touch -d 2024-02-02T00:00:00Z from/a/f9 && rsync -aHXi --delete from/ to/
}
# With ACLs asked for: there are none on either side that mode bits do not say.
step rsync_acls; rsync_acls() {
    needs rsync || return 127
    seed_tree from && rsync -aHAX from/ to/ && rsync -aHAXi from/ to/ && echo settled
}
step tar_round_trip; tar_round_trip() {
    seed_tree t && tar cpf - t | sha256sum >/dev/null && tar cpf t.tar t && mkdir out && tar xpf t.tar -C out && tar df t.tar -C out &&
        diff -r --no-dereference t out/t && rm t.tar && find out -mindepth 1 -type d -printf '%p %T@\n' | sort
}
step editing; editing() {
    seed_tree t && sed -i 's/1/one/' t/a/f1 t/a/f3 && install -m 444 t/a/f1 ro && install -D -m 755 t/bin/run x/y/z/run && rm -f ro &&
        cp -a t u && cp -r t/a v && cp --sparse=always t/a/large sparse && cmp t/a/large sparse && mv t/a moved && mv -n moved/f5 moved/f6 &&
        ln -sf nothing t/bin/link && ln -f moved/f7 hard && truncate -s 100 moved/f8 && dd if=moved/f9 of=moved/f9 bs=7 seek=3 count=2 conv=notrunc status=none &&
        find u -name 'f1*' | sort && find u -newer u/a/f1 | sort && rm -rf v && rmdir t/empty && ! rmdir u 2>/dev/null && ls t
}
step appending; appending() {
    for i in $(seq 8); do (for j in $(seq 50); do echo "$i $j" >>log; done) & done; wait
    sort -n log >sorted && rm log && wc -l <sorted && uniq -d sorted
}
step making; making() {
    needs make && needs cc || return 127
    printf 'p: a.o b.o\n\tcc -o p a.o b.o\n%%.o: %%.c\n\tcc -c -o $@ $<\n' >Makefile && echo 'int f(void); int main(void){return f();}' >a.c &&
        echo 'int f(void){return 0;}' >b.c && make -s && ./p && make -q && echo 'int f(void){return 3;}' >b.c && touch -d '+2 seconds' b.c && make -s; ./p
    local rc=$?; rm -f p ./*.o; [ $rc = 3 ]
}
step big_removal; big_removal() {
    mkdir big && seq 20000 | (cd big && xargs touch) && find big -type f | wc -l && rm -rf big && ls
}
step mapped; mapped() {
    needs python3 || return 127
    python3 - <<'P'
import mmap, os
fd = os.open('m', os.O_CREAT | os.O_RDWR)
os.ftruncate(fd, 1 << 20)
m = mmap.mmap(fd, 1 << 20)
m[0:4] = b'ABCD'
assert os.pread(fd, 4, 0) == b'ABCD'
os.pwrite(fd, b'EFGH', 8192)
assert m[8192:8196] == b'EFGH'
m[500000:500004] = b'WXYZ'
m.flush()
os.close(fd)
m[0:4] = b'LAST'
m.close()
assert open('m', 'rb').read(4) == b'LAST'
P
}

# ---------- running it
run() { # side step -> exit code in $work/side.rc, words in $work/side.out, the tree in $work/side.tree
    local dir=$1/$2
    mkdir "$dir" || die "cannot make $dir"
    (cd "$dir" && "$2") >"$work/$3.raw" 2>&1
    echo $? >"$work/$3.rc"
    sed "s#$1#SIDE#g" "$work/$3.raw" >"$work/$3.out"
    tree "$dir" >"$work/$3.tree" 2>&1
    case $2 in rsync_*|tar_*) times "$dir" | grep -v -e ' t.tar' -e a/f9 >"$work/$3.times" ;; *) : >"$work/$3.times" ;; esac
}
failed=0 skipped=0 passed=0
[ $# -gt 0 ] && steps=("$@")
for name in "${steps[@]}"; do
    run "$plain" "$name" plain
    if [ "$(cat "$work/plain.rc")" = 127 ]; then
        echo "skipped: $name needs a program that is missing"; skipped=$((skipped + 1)); rmdir "$plain/$name" 2>/dev/null; continue
    fi
    run "$mounted" "$name" mounted
    bad=
    [ "$(cat "$work/plain.rc")" = 0 ] || bad="the step itself fails in a plain directory"
    for what in rc out tree times; do
        cmp -s "$work/plain.$what" "$work/mounted.$what" || bad="$bad $what"
    done
    if [ -n "$bad" ]; then
        failed=$((failed + 1)); echo "FAILED $name: $bad"
        for what in rc out tree times; do diff "$work/plain.$what" "$work/mounted.$what" | head -n 20; done
    else
        passed=$((passed + 1)); echo "ok $name"
    fi
    chmod -R u+w "$plain/$name" "$mounted/$name" 2>/dev/null
    rm -rf "${plain:?}/$name" "${mounted:?}/$name" || { failed=$((failed + 1)); echo "FAILED $name: cannot remove its tree"; }
done
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ] && { [ "$skipped" = 0 ] || [ "${CI-}" != true ]; }
