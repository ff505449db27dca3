//! The locks of one world: who has which, who waits for which, and what follows from a change.
//!
//! Invariant: nobody waits for what is free, and nobody waits for what would come to wait for it (EDEADLK, fcntl(2)). Decided without
//! I/O: a call returns whose waiting it has ended and how, and who holds the table sees to it that they hear of it. Rules are those of
//! Linux: who came first is looked at first, but does not keep later ones from what they can have.

use super::spans::{By, Held, LockKind, LockSpan, Owner, Spans};
use mw_model::Ino;
use std::collections::{HashMap, HashSet};

/// How many ranges a world has locked at the most.
const MOST: usize = 1 << 18;

/// How far a lock reaches. The two kinds do not see each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockReach {
    /// Bytes, as with fcntl(2).
    Bytes(LockSpan),
    /// The whole file, as with flock(2).
    Whole,
}

impl LockReach {
    fn span(self) -> LockSpan {
        match self {
            Self::Bytes(span) => span,
            Self::Whole => LockSpan::ALL,
        }
    }
}

/// A lock that somebody wants.
#[derive(Debug, Clone, Copy)]
pub struct WantedLock {
    /// The file.
    pub ino: Ino,
    /// What of it.
    pub reach: LockReach,
    /// What others are kept from.
    pub kind: LockKind,
    /// Whose it will be, in the client's numbers. What one owner has never keeps it from more.
    pub owner: u64,
    /// The open file through which it is taken, in the client's numbers.
    pub handle: u64,
    /// The process that asks, for whoever wants to know; 0 when that is not known.
    pub process: u32,
    /// The client hears of the lock's end only some time after the program.
    pub late: bool,
}

/// How the wish for a lock ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockEnd {
    /// It is there.
    Granted,
    /// Somebody else has it. `late`: perhaps no more, and the news is on its way.
    Held {
        /// Whether every lock in the way may have ended.
        late: bool,
    },
    /// Waiting would never end: somebody waits for the one who asked.
    Deadlock,
    /// The waiting was given up.
    Interrupted,
    /// The client, or its world, has gone.
    Gone,
    /// There are too many locks.
    TooMany,
}

/// A lock in the way of another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeldLock {
    /// What it covers.
    pub span: LockSpan,
    /// What it keeps others from.
    pub kind: LockKind,
    /// The process that took it; 0 when that is not known.
    pub process: u32,
}

/// Somebody who waits, in the numbers of the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Waiter {
    pub client: u64,
    pub number: u64,
}

/// Whose waiting has ended, and how.
pub(crate) type News = Vec<(Waiter, LockEnd)>;

/// Somebody who has or wants a lock.
#[derive(Debug, Clone, Copy)]
struct Party {
    owner: Owner,
    process: u32,
}

impl Party {
    /// Returns whether the two are one: an owner, or a process that goes through two clients.
    fn is(self, other: Self) -> bool {
        self.owner == other.owner
            || (self.owner.client != other.owner.client && self.process == other.process && self.process != 0)
    }
}

#[derive(Debug)]
struct Wait {
    waiter: Waiter,
    wanted: WantedLock,
    /// It waits until it has the lock, and not only for a moment.
    lasting: bool,
}

impl Wait {
    fn party(&self) -> Party {
        Party { owner: self.wanted.owner_of(self.waiter.client), process: self.wanted.process }
    }

    /// Returns whether it counts for who waits for whom: flock(2) knows no deadlocks.
    fn binds(&self) -> bool {
        self.lasting && self.wanted.reach != LockReach::Whole
    }
}

impl WantedLock {
    fn owner_of(&self, client: u64) -> Owner {
        Owner { client, number: self.owner }
    }

    fn by(&self) -> By {
        By { process: self.process, handle: self.handle, late: self.late }
    }
}

#[derive(Debug, Default)]
struct File {
    bytes: Spans,
    whole: Spans,
}

impl File {
    fn of(&self, reach: LockReach) -> &Spans {
        match reach {
            LockReach::Bytes(_) => &self.bytes,
            LockReach::Whole => &self.whole,
        }
    }

    fn of_mut(&mut self, reach: LockReach) -> &mut Spans {
        match reach {
            LockReach::Bytes(_) => &mut self.bytes,
            LockReach::Whole => &mut self.whole,
        }
    }

    fn len(&self) -> usize {
        self.bytes.len() + self.whole.len()
    }
}

/// All locks of a world.
#[derive(Debug, Default)]
pub(crate) struct Table {
    files: HashMap<Ino, File>,
    /// In the order in which they came.
    waits: Vec<Wait>,
    clients: HashSet<u64>,
    last: u64,
    /// How many ranges are locked.
    count: usize,
}

impl Table {
    /// Returns the number of a new client.
    pub(crate) fn join(&mut self) -> u64 {
        self.last += 1;
        self.clients.insert(self.last);
        self.last
    }

    /// A client goes with all it has and all that waits in it.
    pub(crate) fn leave(&mut self, client: u64) -> News {
        if !self.clients.remove(&client) {
            return News::new();
        }
        let (gone, stay) = std::mem::take(&mut self.waits).into_iter().partition(|wait| wait.waiter.client == client);
        self.waits = stay;
        let gone: Vec<Wait> = gone;
        let mut news: News = gone.into_iter().map(|wait| (wait.waiter, LockEnd::Gone)).collect();
        let files: Vec<Ino> = self.files.keys().copied().collect();
        for ino in files {
            news.extend(self.free(ino, |owner, _| owner.client == client));
        }
        news
    }

    /// The world is gone: every client goes, so that nobody is given what another has lost.
    pub(crate) fn end(&mut self) -> News {
        let ended = std::mem::replace(self, Self { last: self.last, ..Self::default() });
        ended.waits.into_iter().map(|wait| (wait.waiter, LockEnd::Gone)).collect()
    }

    /// Returns whether nothing is locked.
    pub(crate) fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// Returns all that a client has, as it would be asked for.
    pub(crate) fn of_client(&self, client: u64) -> Vec<WantedLock> {
        let mut all = Vec::new();
        for (ino, file) in &self.files {
            let bytes = file.bytes.all().map(|(owner, held)| (owner, held, LockReach::Bytes(held.span)));
            let whole = file.whole.all().map(|(owner, held)| (owner, held, LockReach::Whole));
            let of_client = bytes.chain(whole).filter(|(owner, ..)| owner.client == client);
            all.extend(of_client.map(|(owner, held, reach)| WantedLock {
                ino: *ino,
                reach,
                kind: held.kind,
                owner: owner.number,
                handle: held.by.handle,
                process: held.by.process,
                late: held.by.late,
            }));
        }
        all
    }

    /// Returns how many wishes of a client wait.
    pub(crate) fn waiting(&self, client: u64) -> usize {
        self.waits.iter().filter(|wait| wait.waiter.client == client).count()
    }

    /// Forgets the wishes of a client that wait, and returns whose they were.
    pub(crate) fn forget_waiting(&mut self, client: u64) -> Vec<Waiter> {
        let (gone, stay) = std::mem::take(&mut self.waits).into_iter().partition(|wait| wait.waiter.client == client);
        self.waits = stay;
        let gone: Vec<Wait> = gone;
        gone.into_iter().map(|wait| wait.waiter).collect()
    }

    /// Returns whether bytes of a file are locked.
    pub(crate) fn has_bytes(&self, ino: Ino) -> bool {
        self.files.get(&ino).is_some_and(|file| !file.bytes.is_empty())
    }

    /// Takes a lock, or says why not.
    pub(crate) fn try_lock(&mut self, client: u64, wanted: &WantedLock) -> (LockEnd, News) {
        if !self.clients.contains(&client) {
            return (LockEnd::Gone, News::new());
        }
        let owner = wanted.owner_of(client);
        // A conversion is no step: what was there goes first, also when the other kind cannot be had (flock(2)).
        let converted = wanted.reach == LockReach::Whole && self.drop_other_kind(owner, wanted);
        let in_the_way = {
            let mut late = self.in_the_way(owner, wanted).map(|(_, held)| held.by.late).peekable();
            late.peek().is_some().then(|| late.all(|late| late))
        };
        let end = match in_the_way {
            Some(late) => LockEnd::Held { late },
            None if self.count >= MOST => LockEnd::TooMany,
            None => return (LockEnd::Granted, self.grant(owner, wanted)),
        };
        (end, if converted { self.settle(wanted.ino) } else { News::new() })
    }

    /// Takes a lock, or waits for it and returns `None`. Only who waits `lasting` can be part of a deadlock.
    pub(crate) fn wait(&mut self, waiter: Waiter, wanted: WantedLock, lasting: bool) -> (Option<LockEnd>, News) {
        let (end, news) = self.try_lock(waiter.client, &wanted);
        if !matches!(end, LockEnd::Held { .. }) {
            return (Some(end), news);
        }
        // A circle that this wait closes goes through it, so nobody else need be looked at.
        let wait = Wait { waiter, wanted, lasting };
        if wait.binds() && self.is_deadlock(&wait) {
            return (Some(LockEnd::Deadlock), news);
        }
        self.waits.push(wait);
        (None, news)
    }

    /// Gives up waiting. Nothing happens when it has ended already.
    pub(crate) fn cancel(&mut self, waiter: Waiter, end: LockEnd) -> News {
        let at = self.waits.iter().position(|wait| wait.waiter == waiter);
        at.map(|at| (self.waits.remove(at).waiter, end)).into_iter().collect()
    }

    /// Frees what an owner has of `reach`.
    pub(crate) fn unlock(&mut self, client: u64, ino: Ino, reach: LockReach, owner: u64) -> News {
        if !self.files.contains_key(&ino) {
            return News::new();
        }
        self.change(ino, |file| file.of_mut(reach).set(Owner { client, number: owner }, reach.span(), None));
        self.settle(ino)
    }

    /// A program closes a descriptor of a file: all bytes that it has locked there are free (POSIX close). It may be the last descriptor
    /// of `handle`.
    pub(crate) fn close_owner(&mut self, client: u64, ino: Ino, owner: u64, handle: u64) -> News {
        let Some(file) = self.files.get_mut(&ino) else { return News::new() };
        file.bytes.may_end(client, handle);
        file.whole.may_end(client, handle);
        self.unlock(client, ino, LockReach::Bytes(LockSpan { first: 0, last: u64::MAX }), owner)
    }

    /// An open file has ended: what was locked through it is free.
    pub(crate) fn close_handle(&mut self, client: u64, ino: Ino, handle: u64) -> News {
        self.free(ino, |owner, held| owner.client == client && held.by.handle == handle)
    }

    /// Returns a lock in the way of the one that is wanted.
    pub(crate) fn in_way(&self, client: u64, wanted: &WantedLock) -> Option<HeldLock> {
        lowest(self.in_the_way(wanted.owner_of(client), wanted))
    }

    /// Returns a lock that an owner has in a range.
    pub(crate) fn own(&self, client: u64, ino: Ino, owner: u64, span: LockSpan) -> Option<HeldLock> {
        lowest(self.files.get(&ino)?.bytes.of(Owner { client, number: owner }, span))
    }

    fn in_the_way(&self, owner: Owner, wanted: &WantedLock) -> impl Iterator<Item = (Owner, &Held)> {
        let file = self.files.get(&wanted.ino).map(|file| file.of(wanted.reach));
        let (span, kind) = (wanted.reach.span(), wanted.kind);
        file.into_iter().flat_map(move |spans| spans.against(owner, span, kind))
    }

    fn drop_other_kind(&mut self, owner: Owner, wanted: &WantedLock) -> bool {
        let Some(file) = self.files.get(&wanted.ino) else { return false };
        let other = file.whole.of(owner, LockSpan::ALL).any(|(_, held)| held.kind != wanted.kind);
        if other {
            self.change(wanted.ino, |file| file.whole.set(owner, LockSpan::ALL, None));
        }
        other
    }

    /// Changes a file's locks, and keeps count.
    fn change<T>(&mut self, ino: Ino, change: impl FnOnce(&mut File) -> T) -> T {
        let file = self.files.entry(ino).or_default();
        let before = file.len();
        let done = change(file);
        let after = file.len();
        if after == 0 {
            self.files.remove(&ino);
        }
        self.count = self.count + after - before;
        done
    }

    fn free(&mut self, ino: Ino, goes: impl Fn(Owner, &Held) -> bool) -> News {
        if !self.files.contains_key(&ino) {
            return News::new();
        }
        let freed = self.change(ino, |file| file.bytes.free(&goes) | file.whole.free(&goes));
        if freed { self.settle(ino) } else { News::new() }
    }

    /// Notes a lock that nothing is in the way of. What it replaces may be what others wait for, and it may close a circle.
    fn grant(&mut self, owner: Owner, wanted: &WantedLock) -> News {
        let new = Some((wanted.kind, wanted.by()));
        self.change(wanted.ino, |file| file.of_mut(wanted.reach).set(owner, wanted.reach.span(), new));
        let mut news = self.settle(wanted.ino);
        news.extend(self.cut_circles(owner, wanted.ino));
        news
    }

    /// Gives those who wait what they can have now.
    fn settle(&mut self, ino: Ino) -> News {
        let mut news = News::new();
        loop {
            let next = self.waits.iter().position(|wait| {
                wait.wanted.ino == ino && self.in_the_way(wait.party().owner, &wait.wanted).next().is_none()
            });
            let Some(next) = next else { return news };
            let wait = self.waits.remove(next);
            let (owner, wanted) = (wait.party().owner, wait.wanted);
            let new = Some((wanted.kind, wanted.by()));
            self.change(ino, |file| file.of_mut(wanted.reach).set(owner, wanted.reach.span(), new));
            news.push((wait.waiter, LockEnd::Granted));
            news.extend(self.cut_circles(owner, ino));
        }
    }

    /// Ends the waiting of those who would wait for themselves now that `owner` has something new: only when it waits for something too.
    fn cut_circles(&mut self, owner: Owner, ino: Ino) -> News {
        let mut news = News::new();
        if !self.waits.iter().any(|wait| wait.binds() && wait.party().owner == owner) {
            return news;
        }
        while let Some(at) =
            self.waits.iter().position(|wait| wait.wanted.ino == ino && wait.binds() && self.is_deadlock(wait))
        {
            news.push((self.waits.remove(at).waiter, LockEnd::Deadlock));
        }
        news
    }

    /// Returns whether those who are in the way of a wait come to wait for it, directly or through others.
    fn is_deadlock(&self, wait: &Wait) -> bool {
        let blockers = |wait: &Wait| -> Vec<Party> {
            let held = self.in_the_way(wait.party().owner, &wait.wanted);
            held.map(|(owner, held)| Party { owner, process: held.by.process }).collect()
        };
        let (me, mut seen, mut open) = (wait.party(), HashSet::new(), blockers(wait));
        while let Some(party) = open.pop() {
            if party.is(me) {
                return true;
            }
            if seen.insert((party.owner, party.process)) {
                let waits = self.waits.iter().filter(|wait| wait.binds() && wait.party().is(party));
                open.extend(waits.flat_map(blockers));
            }
        }
        false
    }
}

fn lowest<'a>(held: impl Iterator<Item = (Owner, &'a Held)>) -> Option<HeldLock> {
    let lowest = held.map(|(_, held)| held).min_by_key(|held| held.span.first)?;
    Some(HeldLock { span: lowest.span, kind: lowest.kind, process: lowest.by.process })
}

#[cfg(test)]
mod tests;
