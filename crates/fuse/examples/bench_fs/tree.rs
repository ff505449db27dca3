//! What is unpacked, cloned and read: a tree of small files made from a seed, as an archive and as a repository.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A sequence of numbers that a seed decides (SplitMix64).
pub struct Dice(pub u64);

impl Dice {
    /// Returns the next number.
    pub fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns text of `len` bytes that compresses about as source code does.
    pub fn text(&mut self, len: usize) -> Vec<u8> {
        const WORDS: [&str; 16] = [
            "let ", "fn ", "self.", "return ", "value", "(", ") ", "{\n", "}\n", "    ", "if ", " = ", "match ", "// ",
            "result", ";\n",
        ];
        let mut out = Vec::with_capacity(len + 16);
        while out.len() < len {
            let roll = self.roll();
            out.extend_from_slice(WORDS[(roll & 15) as usize].as_bytes());
            if roll & 0x70 == 0 {
                let _ = write!(out, "{:x}", roll >> 40);
            }
        }
        out.truncate(len);
        out
    }

    /// Returns a file's length: most have one to four KiB, a few up to 64.
    fn len(&mut self) -> usize {
        let scale = 1 << (8 + self.roll() % 5);
        let len = scale + (self.roll() % scale) as usize as u64;
        (if self.roll().is_multiple_of(64) { len * 8 } else { len }) as usize
    }
}

/// The tree on the disk, in every form that a case wants.
pub struct Trees {
    /// An archive of the tree.
    pub tar: PathBuf,
    /// A bare repository of it.
    pub repository: PathBuf,
}

/// Makes `files` files below `dir`.
pub fn make(dir: &Path, files: usize, seed: u64) -> io::Result<Trees> {
    let (tree, tar, repository) = (dir.join("tree"), dir.join("tree.tar"), dir.join("tree.git"));
    let mut dice = Dice(seed);
    for n in 0..files {
        // Sixteen files a directory, and sixteen directories a directory.
        let at = tree.join(format!("part{:02x}/mod{:03x}", n / 256, n / 16));
        if n.is_multiple_of(16) {
            std::fs::create_dir_all(&at)?;
        }
        let len = dice.len();
        std::fs::write(at.join(format!("file{n:05}.rs")), dice.text(len))?;
    }
    run(dir, "tar", &["cf", "tree.tar", "tree"])?;
    run(&tree, "git", &["init", "-q", "-b", "main"])?;
    // Nothing of git's may be at work in the background when the tree goes.
    run(&tree, "git", &["config", "gc.auto", "0"])?;
    run(&tree, "git", &["config", "maintenance.auto", "false"])?;
    run(&tree, "git", &["add", "."])?;
    run(&tree, "git", &["-c", "user.name=n", "-c", "user.email=e", "commit", "-q", "-m", "all"])?;
    run(dir, "git", &["clone", "-q", "--bare", "tree", "tree.git"])?;
    run(&repository, "git", &["repack", "-q", "-a", "-d"])?;
    std::fs::remove_dir_all(&tree)?;
    Ok(Trees { tar, repository })
}

/// Runs a program in a directory, and fails when it does.
pub fn run(dir: &Path, program: &str, args: &[&str]) -> io::Result<()> {
    let status = Command::new(program).args(args).current_dir(dir).stdout(std::process::Stdio::null()).status()?;
    if status.success() { Ok(()) } else { Err(io::Error::other(format!("{program} {args:?} ended with {status}"))) }
}
