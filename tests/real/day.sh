#!/usr/bin/env bash
# A day of work in mounted forks, with nothing but a disk in sight: clone, build, test, edit, commit, fork, promote; the fork's time
# runs out, a fork is dropped under a program, the server is killed over lunch, and `mw status` says what there is.
set -euo pipefail
export LC_ALL=C GIT_CONFIG_NOSYSTEM=1
[ -e /dev/fuse ] || { echo "needs /dev/fuse"; exit 77; }
for tool in git cargo cc; do
    command -v "$tool" >/dev/null || { echo "needs $tool"; [ "${CI-}" = true ] && exit 1; exit 77; }
done
unset CARGO_TARGET_DIR
# They are found by the home directory, which becomes another one.
RUSTUP_HOME=${RUSTUP_HOME:-$HOME/.rustup}; export RUSTUP_HOME
. "$(dirname "$0")/server.inc"
git config --global user.name t; git config --global user.email t@example.com; git config --global init.defaultBranch main
export CARGO_HOME=$work/cargo

base=$work/base a=$work/a b=$work/b
mkdir "$base" "$a" "$b"
unmounted() { ! grep -q " $1 fuse.mw " /proc/mounts; }
mounts() { "$MW" status --json | python3 -c 'import json,sys; print("\n".join(" ".join([m["dir"], m["world"], str(m["alive"]), m.get("version") or "-", str(m["unsynced"])]) for m in json.load(sys.stdin)["mounted"]))'; }
soon() { for _ in $(seq 200); do "$@" && return; sleep 0.1; done; echo "not in time: $*"; exit 1; }

step "morning: a repository with a program, in a world"
origin=$work/origin
cargo new -q --vcs git --lib "$origin" --name words
cat >"$origin/src/lib.rs" <<'R'
pub fn words(text: &str) -> usize {
    text.split_whitespace().count()
}

#[cfg(test)]
mod tests {
    #[test]
    fn words_are_counted() {
        assert_eq!(super::words("a  b c"), 3);
    }
}
R
(cd "$origin" && cargo generate-lockfile -q --offline && git add . && git commit -qm "words")
"$MW" world create work >/dev/null
"$MW" mount work "$base" >/dev/null
git clone -q "file://$origin" "$base/words"
(cd "$base/words" && cargo test -q --offline >"$work/out" 2>&1) || { cat "$work/out"; exit 1; }

step "a fork for each task; in each what was built is there, and is not built again"
"$MW" fork work task-a >/dev/null; "$MW" fork work task-b >/dev/null
"$MW" mount task-a "$a" >/dev/null; "$MW" mount task-b "$b" >/dev/null
for fork in "$a" "$b"; do
    [ -z "$(git -C "$fork/words" status --porcelain)" ] || { echo "git finds changes in a fresh fork"; exit 1; }
    find "$fork/words/target" -type f -printf '%P %T@\n' | sort | cmp - <(find "$base/words/target" -type f -printf '%P %T@\n' | sort)
done
[[ $(mounts | grep "^$a ") == "$a task-a True "[0-9]* ]] || { echo "mw status: $(mounts)"; exit 1; }

step "edit, build, test and commit in one; it is promoted, and the base has it"
(
    cd "$a/words"
    sed -i 's/split_whitespace()/split(char::is_whitespace).filter(|w| !w.is_empty())/' src/lib.rs
    printf '\npub fn lines(text: &str) -> usize {\n    text.lines().count()\n}\n' >>src/lib.rs
    cargo test -q --offline >"$work/out" 2>&1 || { cat "$work/out"; exit 1; }
    git commit -qam "lines" && git fsck --strict 2>"$work/out" && [ -z "$(git status --porcelain)" ]
)
! grep -q lines "$base/words/src/lib.rs" || { echo "the base has what was not promoted"; exit 1; }
"$MW" promote task-a >/dev/null
grep -q "fn lines" "$base/words/src/lib.rs"
(cd "$base/words" && [ "$(git log --format=%s | head -n 1)" = lines ] && git fsck --strict 2>"$work/out" && git status --porcelain >"$work/out" && [ ! -s "$work/out" ] &&
    cargo test -q --offline >"$work/out" 2>&1) || { cat "$work/out"; exit 1; }

step "the other takes the same way, a fork of a fork within it"
(cd "$b/words" && echo 'pub const WORDS: &str = "words";' >src/more.rs && git add src/more.rs)
"$MW" fork task-b try >/dev/null; mkdir "$work/try"; "$MW" mount try "$work/try" >/dev/null
(cd "$work/try/words" && git commit -qm "more" && git log --format=%s | head -n 1 | grep -qx more)
[ "$(git -C "$b/words" log --format=%s | head -n 1)" = words ]

step "lunch: the server is killed, and everything is there when it is back"
echo "before lunch" >"$b/note"
port=${endpoint##*:}
kill -KILL "$server"; wait "$server" 2>/dev/null || true
"$MW" serve --data "$work/data" --listen "127.0.0.1:$port" >"$work/again" 2>>"$work/log" & server=$!
soon grep -q '^ready ' "$work/again"
[ "$(cat "$b/note")" = "before lunch" ]
git -C "$work/try/words" fsck --strict 2>"$work/out"

step "a fork is dropped under a program: it hears so at once, and the mount is gone"
exec 8>"$work/try/open"
echo more >&8
"$MW" discard try >/dev/null 2>&1
soon unmounted "$work/try"
if { echo late >&8; } 2>"$work/err"; then echo "a dropped fork took a write"; exit 1; fi
grep -q "No such device" "$work/err" || { echo "what a program hears of a dropped fork: $(cat "$work/err")"; exit 1; }
exec 8>&-

step "a fork's time runs out"
"$MW" fork work short --ttl 1s >/dev/null; mkdir "$work/short"
"$MW" mount short "$work/short" >/dev/null
ls "$work/short/words" >/dev/null
soon unmounted "$work/short"
fails "$MW" mount short "$work/short"

step "a mount that somebody else took away is told from one that lives, and can be taken again"
umount "$b"
soon eval '[[ $(mounts | grep "^$b ") == "$b task-b False "* ]]'
"$MW" mount task-b "$b" >/dev/null
[ "$(cat "$b/note")" = "before lunch" ]

step "evening: the mounts go, the store is whole"
head -c 100000 /dev/zero >"$b/unsynced"
[[ $(mounts | grep "^$b ") == "$b task-b True "*" 100000" ]] || { echo "mw status: $(mounts)"; exit 1; }
sync "$b/unsynced"
[[ $(mounts | grep "^$b ") == "$b task-b True "*" 0" ]] || { echo "mw status: $(mounts)"; exit 1; }
for at in "$base" "$a" "$b"; do "$MW" unmount "$at" >/dev/null; done
"$MW" fsck >/dev/null
ended
