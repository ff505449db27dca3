#!/usr/bin/env bash
# Real programs on a mount, compared with a plain directory. C27: package managers install, run and remove their trees there, and a fork
# needs no second installation.
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
work=$(mktemp -d "$base/mw-programs.XXXXXX"); chmod 755 "$work"
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

# kill -9 in the middle of commits, again and again: what was committed is there, and the database is whole.
step sqlite_killed; sqlite_killed() {
    needs python3 || return 127
    cat >writer.py <<'P'
import sqlite3, sys
db = sqlite3.connect("db", timeout=20)
db.execute(f"pragma journal_mode={sys.argv[1]}"); db.execute("pragma synchronous=full")
db.execute("create table if not exists t(i integer primary key, v text)"); db.commit()
last = db.execute("select coalesce(max(i),0) from t").fetchone()[0]
for i in range(last + 1, last + 100000):
    db.execute("insert into t values(?,?)", (i, "v" * (i % 500))); db.commit()
    print(i, flush=True)
P
    local mode acked round
    for mode in delete wal; do
        for round in 1 2 3; do
            rm -f acked; { python3 writer.py $mode >acked & } 2>/dev/null; local writer=$!
            for _ in $(seq 3000); do [ -e acked ] && [ "$(wc -l <acked)" -ge 5 ] && break; sleep 0.02; done
            sleep "0.0$round"; kill -9 $writer; wait $writer 2>/dev/null
            acked=$(grep -c . acked); acked=$(sed -n "${acked}p" acked)
            python3 - "$acked" <<'P' || return 1
import sqlite3, sys
db = sqlite3.connect("db", timeout=20)
assert db.execute("pragma integrity_check").fetchone()[0] == "ok"
last, count = db.execute("select max(i), count(*) from t").fetchone()
assert last == count >= int(sys.argv[1]), (last, count, sys.argv[1])
P
        done
        rm -f db db-wal db-shm db-journal; echo "$mode survives"
    done
    rm -f acked writer.py
}
# PostgreSQL: made, used by many, killed, recovered. It runs as a user of its own.
step postgres; postgres() {
    local bin
    bin=$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -V | tail -n 1)
    [ -x "$bin/initdb" ] && getent passwd postgres >/dev/null && [ "$(id -u)" = 0 ] || return 127
    local run=(setpriv --reuid=postgres --regid=postgres --clear-groups env HOME="$PWD/pg" PGHOST="$PWD/pg" PGUSER=postgres PGDATABASE=postgres)
    chmod 755 . && mkdir pg && chown postgres:postgres pg || return 1
    "${run[@]}" "$bin/initdb" -D pg/data -A trust >/dev/null 2>initdb.err || { cat initdb.err; return 1; }
    up() { "${run[@]}" "$bin/pg_ctl" -s -w -t 60 -D pg/data -l pg/log -o "-k $PWD/pg -c listen_addresses=" start; }
    up && "${run[@]}" "$bin/pgbench" -q -i -s 2 >/dev/null 2>&1 && "${run[@]}" "$bin/pgbench" -c 4 -j 2 -t 100 2>&1 | grep 'actually processed' || { tail pg/log; return 1; }
    "${run[@]}" "$bin/pgbench" -c 4 -j 2 -T 30 >/dev/null 2>&1 & local load=$!
    sleep 1.5; kill -9 "$(head -n 1 pg/data/postmaster.pid)"; wait $load
    # The other processes see that their parent is gone.
    for _ in $(seq 200); do pgrep -u postgres -f "$PWD/pg" >/dev/null || break; sleep 0.05; done
    rm -f pg/data/postmaster.pid pg/.s.PGSQL.*; up || { tail pg/log; return 1; }
    "${run[@]}" "$bin/psql" -Atc "select count(*), (select sum(abalance) from pgbench_accounts) = (select sum(bbalance) from pgbench_branches),
        (select sum(delta) from pgbench_history) = (select sum(tbalance) from pgbench_tellers) from pgbench_accounts"
    grep -c 'was not properly shut down' pg/log
    "${run[@]}" "$bin/pg_amcheck" --all --quiet 2>/dev/null || "${run[@]}" "$bin/psql" -Atc 'analyze'
    "${run[@]}" "$bin/pg_ctl" -s -w -D pg/data stop && rm -rf pg initdb.err
}
step fio_verify; fio_verify() {
    needs fio || return 127
    local engine
    for engine in psync mmap "psync --direct=1" "libaio --iodepth=8 --direct=1"; do
        # shellcheck disable=SC2086
        fio --name=v --filename=v --size=8m --bs=4k --rw=randwrite --verify=crc32c --do_verify=1 --verify_fatal=1 --ioengine=$engine >out 2>&1 ||
            { cat out; return 1; }
        rm -f v; echo "$engine verified"
    done
    fio --name=m --directory=. --nrfiles=8 --numjobs=2 --size=4m --bsrange=512-64k --rw=randrw --verify=md5 --do_verify=1 --verify_fatal=1 --ioengine=psync >out 2>&1 ||
        { cat out; return 1; }
    rm -f m.* out local-*-verify.state; echo "ranges verified"
}
step pip_venv; pip_venv() {
    /usr/bin/python3 -c 'import ensurepip, venv' 2>/dev/null || return 127
    /usr/bin/python3 - <<'P' && /usr/bin/python3 -m venv v && v/bin/pip install -q --no-index --disable-pip-version-check thing-1.0-py3-none-any.whl && v/bin/thing &&
import base64, hashlib, zipfile
files = {f"thing/m{i}.py": f"value = {i}\n" for i in range(100)}
files["thing/__init__.py"] = "def main():\n    from thing import m7\n    print('thing', m7.value)\n"
info = "thing-1.0.dist-info/"
files[info + "METADATA"] = "Metadata-Version: 2.1\nName: thing\nVersion: 1.0\n"
files[info + "WHEEL"] = "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
files[info + "entry_points.txt"] = "[console_scripts]\nthing = thing:main\n"
record = "".join(f"{n},sha256={base64.urlsafe_b64encode(hashlib.sha256(c.encode()).digest()).rstrip(b'=').decode()},{len(c)}\n" for n, c in files.items())
files[info + "RECORD"] = record + info + "RECORD,,\n"
with zipfile.ZipFile("thing-1.0-py3-none-any.whl", "w") as z:
    for name, content in files.items():
        z.writestr(name, content)
P
        v/bin/pip check --disable-pip-version-check && readlink v/lib64 && v/bin/pip uninstall -qy thing && ! ls v/lib/python*/site-packages/thing 2>/dev/null
    local rc=$?; rm -rf v ./*.whl; return $rc
}
step pnpm_install; pnpm_install() {
    needs pnpm || return 127
    mkdir -p dep app store && printf '{"name":"dep","version":"1.2.3","bin":{"dep":"cli.js"}}' >dep/package.json &&
        printf '#!/usr/bin/env node\nconsole.log("dep")\n' >dep/cli.js && mkdir dep/lib &&
        for i in $(seq 100); do echo "module.exports=$i" >"dep/lib/$i.js"; done && (cd dep && npm pack --silent --offline) &&
        cd app && printf '{"name":"app","version":"1.0.0","dependencies":{"dep":"file:../dep/dep-1.2.3.tgz"}}' >package.json &&
        pnpm install --offline --silent --store-dir ../store && ./node_modules/.bin/dep && readlink node_modules/dep &&
        ls node_modules/dep/lib | wc -l && rm -rf node_modules && pnpm install --offline --silent --frozen-lockfile --store-dir ../store && ./node_modules/.bin/dep
    local rc=$?; cd .. && rm -rf app store; return $rc
}
step inotify; inotify() {
    needs inotifywait || return 127
    mkdir d && inotifywait -mqr --format '%e %f' -e create,delete,modify,attrib,moved_to,moved_from,close_write d >events 2>&1 & local watcher=$!
    sleep 1
    echo a >d/a && echo b >>d/a && mv d/a d/b && chmod 600 d/b && ln d/b d/c && rm d/b && truncate -s 9 d/c && mkdir d/sub
    for _ in $(seq 100); do grep -q sub events && break; sleep 0.05; done
    kill $watcher; wait $watcher 2>/dev/null; cat events; rm events
}
# How editors save: beside and renamed, renamed away and written anew, in place with a copy kept, without a name and linked.
step editors; editors() {
    needs python3 || return 127
    python3 - <<'P'
import os
def put(path, text, flags=os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode=0o644):
    fd = os.open(path, flags, mode); os.write(fd, text); os.fsync(fd); os.close(fd)
put("f", b"one\n"); os.chmod("f", 0o640); os.link("f", "hard")
before = os.stat("f")
# Beside and renamed (most editors).
put(".f.swp", b"swap"); put("f.tmp", b"two\n", mode=0o640); os.rename("f.tmp", "f"); os.unlink(".f.swp")
assert open("f", "rb").read() == b"two\n" and open("hard", "rb").read() == b"one\n" and os.stat("hard").st_nlink == 1
# Renamed away and written anew (vim, backupcopy=no); 4913 is how vim asks whether it may.
put("4913", b""); os.chown("4913", before.st_uid, before.st_gid); os.unlink("4913")
os.rename("f", "f~"); put("f", b"three\n"); os.chmod("f", 0o640); os.setxattr("f", "user.editor", b"vim"); os.unlink("f~")
# In place with a copy kept (emacs, nano).
put("f~", open("f", "rb").read()); os.utime("f~", ns=(1, 1)); put("f", b"four, shorter\n", os.O_WRONLY | os.O_TRUNC)
assert os.getxattr("f", "user.editor") == b"vim" and os.stat("f~").st_mtime_ns == 1
# Swapped in one step, and without a name until whole.
import ctypes
put("g", b"five\n"); assert ctypes.CDLL(None).renameat2(-100, b"f", -100, b"g", 2) == 0
assert open("f", "rb").read() == b"five\n" and open("g", "rb").read() == b"four, shorter\n"
fd = os.open(".", os.O_TMPFILE | os.O_WRONLY, 0o600); os.write(fd, b"six\n"); os.fsync(fd)
assert ctypes.CDLL(None).linkat(-100, f"/proc/self/fd/{fd}".encode(), -100, b"h", 0x400) == 0; os.close(fd)
for name in sorted(os.listdir(".")): print(name, oct(os.stat(name).st_mode), open(name, "rb").read())
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

# ---------- the same things on a fork, and after the world went back
# A repository, a database and an installed package, made once; each must work where the world is forked and where it is set back.
check_kept() { # directory
    (cd "$1/kept/r" && git fsck --strict 2>&1 && git diff-files --name-only && git status --porcelain && git log --format=%H &&
        sqlite3 ../db 'pragma integrity_check; select count(*) from t' && ../app/node_modules/.bin/dep && sha256sum t/a/f* | sha256sum) 2>&1
}
if [ -n "$server" ] && needs git && needs sqlite3 && needs npm; then
    mkdir "$mounted/kept" "$work/fork"
    (cd "$mounted/kept" && git_clone && sqlite3 db 'pragma journal_mode=wal; create table t(i); insert into t values(1),(2);' && npm_install) >"$work/kept.out" 2>&1 ||
        { failed=$((failed + 1)); echo "FAILED kept: cannot be made"; tail "$work/kept.out"; }
    mv "$mounted/kept/c" "$mounted/kept/r"; [ -e "$mounted/kept/app" ] || mv "$mounted/kept/dep" "$mounted/kept/app"
    (cd "$mounted/kept/r" && git update-index --refresh) >/dev/null
    here=$(check_kept "$mounted")
    at=$("$MW" snapshot take programs 2>>"$log" | grep -o '[0-9]\{15,\}' | head -n 1)
    "$MW" fork programs programs-fork >>"$log" 2>&1 && "$MW" mount programs-fork "$work/fork" >>"$log" 2>&1 || die "mw fork"
    # The base goes on meanwhile, and wrong.
    (cd "$mounted/kept" && rm -rf r/.git/objects && sqlite3 db 'delete from t' && rm -rf app/node_modules && echo broken >>r/t/a/f1)
    there=$(check_kept "$work/fork")
    if [ "$here" = "$there" ]; then echo "ok on a fork"; passed=$((passed + 1)); else
        failed=$((failed + 1)); echo "FAILED on a fork"; diff <(echo "$here") <(echo "$there") | head -n 20
    fi
    "$MW" revert programs "$at" >>"$log" 2>&1 || die "mw revert"
    there=$(check_kept "$mounted")
    if [ "$here" = "$there" ]; then echo "ok after a revert"; passed=$((passed + 1)); else
        failed=$((failed + 1)); echo "FAILED after a revert"; diff <(echo "$here") <(echo "$there") | head -n 20
    fi
    "$MW" unmount "$work/fork" >>"$log" 2>&1
fi
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ] && { [ "$skipped" = 0 ] || [ "${CI-}" != true ]; }
