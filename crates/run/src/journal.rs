//! The records of runs in `meta`. Each is written durably before the step that it announces.

use crate::error::{Error, Result};
use crate::record::Run;
use bytes::Bytes;
use mw_meta::{Batch, Durability, Expect, Meta, Order};
use mw_model::{ErrorKind, Hash};
use std::sync::Arc;

/// The keys of runs: tenant 0, tag `J` (see FORMAT.md).
const RUN: [u8; 5] = [0, 0, 0, 0, b'J'];
const AFTER: [u8; 5] = [0, 0, 0, 0, b'J' + 1];
/// Under the same tag: idempotency keys.
const ONCE: &str = "once/";

/// The records.
#[derive(Clone)]
pub(crate) struct Journal(pub Arc<dyn Meta>);

fn key(id: &str) -> Bytes {
    [&RUN[..], id.as_bytes()].concat().into()
}

fn encode(run: &Run) -> Result<Bytes> {
    let mut value = vec![1];
    serde_json::to_writer(&mut value, run)
        .map_err(|e| Error::caused(ErrorKind::Invalid, "the run cannot be written down", e))?;
    Ok(value.into())
}

fn decode(value: &[u8]) -> Result<Run> {
    match value.split_first() {
        Some((1, json)) => serde_json::from_slice(json)
            .map_err(|e| Error::caused(ErrorKind::Corrupt, "a run's record does not decode", e)),
        _ => Err(Error::new(ErrorKind::Corrupt, "a run's record is of a newer version; use a newer `mw`")),
    }
}

impl Journal {
    /// Writes a new run down, unless the same request was made with the same idempotency key: then returns that run.
    pub(crate) fn plan(&self, run: &Run, idempotency: Option<&str>) -> Result<Option<Run>> {
        let mut batch = Batch::new();
        batch.require(key(&run.id), Expect::Absent);
        batch.put(key(&run.id), encode(run)?);
        let Some(idempotency) = idempotency else {
            self.0.commit(batch, Durability::Durable)?;
            return Ok(None);
        };
        let place = key(&format!("{ONCE}{}", Hash::of(format!("{}\0{idempotency}", run.key).as_bytes())));
        let request = serde_json::to_vec(&run.spec)
            .map_err(|e| Error::caused(ErrorKind::Invalid, "the run cannot be written down", e))?;
        let value: Bytes = [&Hash::of(&request).0[..], run.id.as_bytes()].concat().into();
        batch.require(place.clone(), Expect::Absent);
        batch.put(place.clone(), value.clone());
        match self.0.commit(batch, Durability::Durable) {
            Ok(()) => Ok(None),
            Err(e) if e.kind() == ErrorKind::Conflict => {
                let before = self.0.get(&place)?.ok_or(e)?;
                if before.get(..32) != value.get(..32) {
                    return Err(Error::new(
                        ErrorKind::Conflict,
                        "this idempotency key was used for another run; use a fresh key for a new one",
                    ));
                }
                let id = String::from_utf8_lossy(before.get(32..).unwrap_or_default()).into_owned();
                self.get(&id)
            }
            Err(e) => Err(e.into()),
        }
    }

    /// Writes a run's state down, durably.
    pub(crate) fn save(&self, run: &Run) -> Result<()> {
        let mut batch = Batch::new();
        batch.put(key(&run.id), encode(run)?);
        Ok(self.0.commit(batch, Durability::Durable)?)
    }

    pub(crate) fn get(&self, id: &str) -> Result<Option<Run>> {
        if id.is_empty() || id.len() > 64 || id.contains('/') {
            return Ok(None);
        }
        self.0.get(&key(id))?.map(|value| decode(&value)).transpose()
    }

    /// Returns all runs, in no order that means anything.
    pub(crate) fn all(&self) -> Result<Vec<Run>> {
        let found = self.0.scan(&RUN, &AFTER, usize::MAX, Order::Up)?;
        found.iter().filter(|(k, _)| !k[5..].starts_with(ONCE.as_bytes())).map(|(_, value)| decode(value)).collect()
    }
}
