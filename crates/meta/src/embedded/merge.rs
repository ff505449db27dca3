//! Merging sorted sources into one scan: pure, no locks, no I/O of its own.
//!
//! Invariant: of equal keys the source named first wins, and a tombstone hides the key and is not counted.

use crate::{Order, Result};
use bytes::Bytes;
use std::iter::Peekable;

/// A source of a scan, sorted in the scan's order without duplicates.
pub(super) type Source<'a> = Box<dyn Iterator<Item = Result<(Bytes, Option<Bytes>)>> + 'a>;

/// Returns the first `limit` pairs that are not hidden.
pub(super) fn merge<'a>(
    sources: impl IntoIterator<Item = Source<'a>>,
    limit: usize,
    order: Order,
) -> Result<Vec<(Bytes, Bytes)>> {
    let mut sources: Vec<_> = sources.into_iter().map(Iterator::peekable).collect();
    let mut out = Vec::new();
    while out.len() < limit {
        let Some(next) = next_key(&mut sources, order)? else { break };
        let mut winner = None;
        for source in &mut sources {
            if let Some(Ok((_, value))) = source.next_if(|item| matches!(item, Ok((key, _)) if *key == next)) {
                winner.get_or_insert(value);
            }
        }
        if let Some(value) = winner.flatten() {
            out.push((next, value));
        }
    }
    Ok(out)
}

fn next_key(sources: &mut [Peekable<Source<'_>>], order: Order) -> Result<Option<Bytes>> {
    let mut best: Option<Bytes> = None;
    for source in sources {
        match source.peek() {
            None => {}
            Some(Err(error)) => return Err(error.clone()),
            Some(Ok((key, _))) => {
                let nearer = best.as_ref().is_none_or(|best| match order {
                    Order::Up => key < best,
                    Order::Down => key > best,
                });
                if nearer {
                    best = Some(key.clone());
                }
            }
        }
    }
    Ok(best)
}

#[cfg(test)]
mod tests;
