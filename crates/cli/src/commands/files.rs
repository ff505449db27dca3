//! `mw ls`, `cat`, `put`, `get`, `rm`, `cp` and `mv`. Worlds are named `mw://WORLD[@VERSION]/PATH`.

use super::{Context, world};
use crate::client::Client;
use crate::failure::{DONE, Failure, Result};
use crate::place::{Place, world_verb};
use crate::transfer::pull::{self, Destination};
use crate::transfer::push::{self, Tally};
use crate::units;
use clap::Args;
use hyper::Method;
use mw_env::Env;
use mw_http::types::{Entries, Entry, Kind, Line, Moved, Remove, Transfer, path_text};
use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// How much is read and printed at a time, in bytes.
const PIECE: usize = 256 << 10;
/// How often progress is shown, in nanoseconds.
const TICK: u64 = 200_000_000;

/// List files
#[derive(Debug, Args)]
pub struct Ls {
    /// mw://WORLD[@VERSION]/PATH; all worlds when left out
    place: Option<OsString>,
    /// Show modes, owners, sizes and times
    #[arg(short, long)]
    long: bool,
    /// List directories within directories
    #[arg(short = 'R', long)]
    recursive: bool,
    /// Show names too that only S3 shows
    #[arg(long)]
    hidden: bool,
}

impl Ls {
    pub fn run(self, context: &Context<'_>) -> Result<u8> {
        let Some(place) = &self.place else {
            world::list(context, &context.client()?.get("worlds", &[])?);
            return Ok(DONE);
        };
        let place = Place::parse(place)?;
        let client = context.client()?;
        let mut query = place.query();
        query.extend(self.recursive.then(|| ("recursive", b"true".to_vec())));
        query.extend(self.hidden.then(|| ("hidden", b"true".to_vec())));
        let mut entries = Vec::new();
        let mut whole = false;
        client.stream(&Method::GET, &place.verb("files"), &query)?.lines(|line: Line| match line {
            Line::Entry(entry) => {
                entries.push(entry);
                Ok(())
            }
            Line::End(_) => {
                whole = true;
                Ok(())
            }
            Line::Error(error) => Err(Failure::told(error)),
        })?;
        if !whole {
            return Err(Failure::Unreachable("the listing broke off; try again".to_owned()));
        }
        let prefix = format!("{}/", path_text(place.path.strip_suffix(b"/").unwrap_or(&place.path)));
        context.out.show(&Entries { entries }, |listing| {
            let shown = |entry: &Entry| {
                let name =
                    if prefix == "/" { &entry.path } else { entry.path.strip_prefix(&prefix).unwrap_or(&entry.path) };
                let slash = if entry.kind == Kind::Directory && !name.ends_with('/') { "/" } else { "" };
                let target =
                    entry.target.as_ref().filter(|_| self.long).map(|to| format!(" -> {to}")).unwrap_or_default();
                printable(&format!("{name}{slash}{target}"))
            };
            if !self.long {
                return listing.entries.iter().map(|entry| format!("{}\n", shown(entry))).collect();
            }
            let rows: Vec<_> = listing
                .entries
                .iter()
                .map(|entry| {
                    let owner = format!("{}:{}", entry.uid, entry.gid);
                    let size = entry.size.to_string();
                    vec![
                        letters(entry),
                        entry.links.to_string(),
                        owner,
                        size,
                        units::time(&entry.modified),
                        shown(entry),
                    ]
                })
                .collect();
            context.out.table(&["MODE", "LINKS", "OWNER", "SIZE", "MODIFIED", "NAME"], &rows)
        });
        Ok(DONE)
    }
}

/// Writes control characters of a name so that they do nothing to a terminal.
fn printable(name: &str) -> String {
    name.chars().flat_map(|c| if c.is_control() { c.escape_default().collect() } else { vec![c] }).collect()
}

/// Writes type and mode as `ls` does.
fn letters(entry: &Entry) -> String {
    let kind = match entry.kind {
        Kind::File => '-',
        Kind::Directory => 'd',
        Kind::Symlink => 'l',
        Kind::Fifo => 'p',
        Kind::Socket => 's',
        Kind::CharDevice => 'c',
        Kind::BlockDevice => 'b',
    };
    let mode = u32::from_str_radix(&entry.mode, 8).unwrap_or(0);
    let mut text = String::from(kind);
    for (shift, special, letter) in [(6, 0o4000, 's'), (3, 0o2000, 's'), (0, 0o1000, 't')] {
        let bits = mode >> shift;
        text.push(if bits & 4 != 0 { 'r' } else { '-' });
        text.push(if bits & 2 != 0 { 'w' } else { '-' });
        text.push(match (bits & 1 != 0, mode & special != 0) {
            (true, true) => letter,
            (false, true) => letter.to_ascii_uppercase(),
            (true, false) => 'x',
            (false, false) => '-',
        });
    }
    text
}

/// Print files
#[derive(Debug, Args)]
pub struct Cat {
    /// mw://WORLD[@VERSION]/PATH
    #[arg(required = true)]
    places: Vec<OsString>,
}

impl Cat {
    pub fn run(self, context: &Context<'_>) -> Result<u8> {
        let places = self.places.iter().map(|place| Place::parse(place)).collect::<Result<Vec<_>>>()?;
        let client = context.client()?;
        for place in &places {
            print(context, &client, place)?;
        }
        Ok(DONE)
    }
}

fn print(context: &Context<'_>, client: &Client, place: &Place) -> Result<()> {
    let mut stream = client.stream(&Method::GET, &place.verb("content"), &place.query())?;
    let mut piece = vec![0; PIECE];
    loop {
        let n = stream.read(&mut piece).map_err(|e| Failure::Unreachable(format!("the content broke off: {e}")))?;
        if n == 0 {
            return Ok(());
        }
        context.out.bytes(&piece[..n]);
    }
}

/// Copy files of this machine into a world
#[derive(Debug, Args)]
pub struct Put {
    /// Files and directories, or - for standard input. What is in a directory comes into PATH; a file comes to PATH, or into it if it is a directory
    #[arg(required = true, value_name = "FILE")]
    sources: Vec<PathBuf>,
    /// mw://WORLD/PATH
    #[arg(value_name = "PLACE")]
    place: OsString,
}

impl Put {
    pub fn run(self, context: &Context<'_>) -> Result<u8> {
        let place = Place::parse(&self.place)?;
        if let Some(wrong) = self.sources.iter().find(|source| Place::is(source.as_os_str())) {
            return Err(Failure::usage(format!("{} is in a world; `mw cp` copies within the store", wrong.display())));
        }
        // Before anything is sent: a name that is not there is a mistake of the command line.
        for source in self.sources.iter().filter(|source| source.as_os_str() != "-") {
            std::fs::symlink_metadata(source).map_err(|e| Failure::io(source.display(), e))?;
        }
        let client = context.client()?;
        let many = self.sources.len() > 1;
        let mut total = Moved::default();
        for source in &self.sources {
            add(&mut total, put(context, &client, source, &place, many)?);
        }
        finish(context, &total, "put");
        Ok(DONE)
    }
}

fn put(context: &Context<'_>, client: &Client, source: &Path, place: &Place, many: bool) -> Result<Moved> {
    let mut query = place.query();
    let stdin = source.as_os_str() == "-";
    let directory = !stdin && if trailing(source) { source.is_dir() } else { is_real_dir(source) };
    if !stdin && (many || !directory) {
        let name = source.canonicalize().ok().filter(|_| source.file_name().is_none());
        let name = name.as_deref().unwrap_or(source).file_name().unwrap_or_default();
        query.push(("name", name.as_bytes().to_vec()));
        if many {
            // Several things can only go into a directory.
            let mut path = place.path.strip_suffix(b"/").unwrap_or(&place.path).to_vec();
            path.push(b'/');
            query.retain(|(name, _)| *name != "path");
            query.push(("path", path));
        }
    }
    let tally = Tally::default();
    let (sent, source) = (tally.clone(), source.to_owned());
    let env = Env::real();
    let now = env.now();
    let shown = tally.clone();
    let moved = ticking(context, &env, &shown, || {
        client.upload(&world_verb(&place.spot.world, "tree"), &query, move |sink| {
            if stdin {
                push::send_stream(&sink, std::io::stdin().lock(), now, &sent);
            } else {
                push::send(&sink, &source, &sent);
            }
        })
    });
    context.out.clear();
    moved
}

fn trailing(path: &Path) -> bool {
    path.as_os_str().as_bytes().ends_with(b"/")
}

fn is_real_dir(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_ok_and(|meta| meta.is_dir())
}

/// Does `work`, and shows meanwhile how far it is.
fn ticking<T: Send>(context: &Context<'_>, env: &Env, tally: &Tally, work: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let worker = scope.spawn(work);
        while !worker.is_finished() {
            env.sleep(std::time::Duration::from_millis(2));
            let (files, bytes) = tally.get();
            if files > 0 && env.monotonic() % TICK < 4_000_000 {
                context.out.progress(&format!("{}, {}", units::count(files, "file", "files"), units::size(bytes)));
            }
        }
        worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

fn add(total: &mut Moved, more: Moved) {
    total.files += more.files;
    total.directories += more.directories;
    total.links += more.links;
    total.bytes += more.bytes;
    total.skipped.extend(more.skipped);
}

fn finish(context: &Context<'_>, moved: &Moved, done: &str) {
    if !context.out.is_json() {
        moved.skipped.iter().for_each(|skipped| context.out.note(&format!("mw: left out {skipped}")));
    }
    context.out.show(moved, |moved| {
        format!(
            "{done} {}, {}, {}, {}",
            units::count(moved.files, "file", "files"),
            units::count(moved.directories, "directory", "directories"),
            units::count(moved.links, "link", "links"),
            units::size(moved.bytes)
        )
    });
}

/// Copy files of a world to this machine
#[derive(Debug, Args)]
pub struct Get {
    /// mw://WORLD[@VERSION]/PATH
    place: OsString,
    /// Where to; - prints a file. What is in a directory comes into it [default: the thing's own name, here]
    dest: Option<PathBuf>,
    /// Keep owners and the set-id bits too
    #[arg(long)]
    owner: bool,
}

impl Get {
    pub fn run(self, context: &Context<'_>) -> Result<u8> {
        let place = Place::parse(&self.place)?;
        let client = context.client()?;
        if self.dest.as_deref().is_some_and(|dest| dest.as_os_str() == "-") {
            print(context, &client, &place)?;
            return Ok(DONE);
        }
        let name = place.name();
        let path = self.dest.unwrap_or_else(|| PathBuf::from(OsStr::from_bytes(&name)));
        let destination = Destination { inside: trailing(&path), path, name, owner: self.owner };
        let env = Env::real();
        let stream = client.stream(&Method::GET, &place.verb("tree"), &place.query())?;
        let mut last = env.monotonic();
        let input = std::io::BufReader::with_capacity(PIECE, stream);
        let moved = pull::receive(input, &destination, env.token(16), &mut |moved| {
            let now = env.monotonic();
            if now - last > TICK {
                last = now;
                context.out.progress(&format!(
                    "{}, {}",
                    units::count(moved.files, "file", "files"),
                    units::size(moved.bytes)
                ));
            }
        })?;
        context.out.clear();
        finish(context, &moved, "got");
        Ok(DONE)
    }
}

/// Remove files
#[derive(Debug, Args)]
pub struct Rm {
    /// mw://WORLD/PATH
    #[arg(required = true)]
    places: Vec<OsString>,
    /// Remove directories with all that is in them
    #[arg(short, long)]
    recursive: bool,
}

impl Rm {
    pub fn run(self, context: &Context<'_>) -> Result<u8> {
        let places = self.places.iter().map(|place| live(place)).collect::<Result<Vec<_>>>()?;
        let client = context.client()?;
        let mut total = Moved::default();
        for place in places {
            let request = Remove { path: path_text(&place.path), recursive: self.recursive };
            add(&mut total, client.post(&place.verb("remove"), &request, None)?);
        }
        context.out.show(&total, |total| {
            format!(
                "removed {}, {}",
                units::count(total.files, "file", "files"),
                units::count(total.directories, "directory", "directories")
            )
        });
        Ok(DONE)
    }
}

/// Parses a place that is to be changed.
fn live(text: &OsStr) -> Result<Place> {
    let place = Place::parse(text)?;
    if place.spot.at.is_some() {
        return Err(Failure::new(
            mw_model::ErrorKind::ReadOnly,
            format!("{} is a past instant and takes no changes; name the world without @VERSION", place.spot),
        ));
    }
    Ok(place)
}

/// Copy files within the store
#[derive(Debug, Args)]
pub struct Cp {
    /// mw://WORLD[@VERSION]/PATH
    from: OsString,
    /// mw://WORLD/PATH; a directory there takes the thing under its own name
    to: OsString,
    /// Copy directories with all that is in them
    #[arg(short, long)]
    recursive: bool,
}

impl Cp {
    pub fn run(self, context: &Context<'_>) -> Result<u8> {
        if !Place::is(&self.from) || !Place::is(&self.to) {
            return Err(Failure::usage(
                "cp copies within the store; `mw put` brings files in, `mw get` takes them out",
            ));
        }
        let (from, to) = (Place::parse(&self.from)?, live(&self.to)?);
        let request = Transfer { from: from.document(), to: to.document(), recursive: self.recursive };
        let moved: Moved = context.client()?.post("copy", &request, None)?;
        finish(context, &moved, "copied");
        Ok(DONE)
    }
}

/// Move files within a world
#[derive(Debug, Args)]
pub struct Mv {
    /// mw://WORLD/PATH
    from: OsString,
    /// mw://WORLD/PATH; a directory there takes the thing under its own name
    to: OsString,
}

impl Mv {
    pub fn run(self, context: &Context<'_>) -> Result<u8> {
        let (from, to) = (live(&self.from)?, live(&self.to)?);
        let request = Transfer { from: from.document(), to: to.document(), recursive: true };
        let moved: Moved = context.client()?.post("move", &request, None)?;
        context.out.show(&moved, |_| format!("moved {} to {}", self.from.display(), self.to.display()));
        Ok(DONE)
    }
}
