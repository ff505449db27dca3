//! Blocking calls of the engine, off the reactor and bounded in number.
//!
//! A request holds a place only while the engine works for it, never while a client is slow to send or to receive.

use crate::errors::internal;
use s3s::S3Result;
use std::sync::Arc;
use tokio::sync::Semaphore;

/// A bounded right to block.
#[derive(Debug, Clone)]
pub(crate) struct Pool(Arc<Semaphore>);

impl Pool {
    /// Makes a pool in which `places` calls run at once.
    pub(crate) fn new(places: usize) -> Self {
        Self(Arc::new(Semaphore::new(places.max(1))))
    }

    /// Runs `work` on a blocking thread.
    ///
    /// A caller that goes away does not stop work that has begun.
    pub(crate) async fn run<R: Send + 'static>(
        &self,
        work: impl FnOnce() -> S3Result<R> + Send + 'static,
    ) -> S3Result<R> {
        let place = Arc::clone(&self.0).acquire_owned().await.map_err(|e| internal(&e))?;
        tokio::task::spawn_blocking(move || {
            let answer = work();
            drop(place);
            answer
        })
        .await
        .map_err(|e| internal(&e))?
    }
}
