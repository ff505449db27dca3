//! What every verb needs: the store, a pool for blocking work, and the world that the caller may reach.

use crate::auth::Asked;
use crate::errors::{About, error, of};
use crate::pool::Pool;
use crate::share::Shares;
use mw_model::Version;
use mw_world::{At, Session, Store};
use s3s::{S3ErrorCode, S3Result};
use std::sync::Arc;

/// The verbs over a store.
#[derive(Clone)]
pub(crate) struct Verbs {
    pub(crate) store: Arc<Store>,
    pub(crate) pool: Pool,
    pub(crate) shares: Shares,
    pub(crate) public_url: Option<String>,
    pub(crate) encrypted_url: Option<String>,
}

impl Verbs {
    /// Opens a world for the caller and works on it, on a blocking thread.
    ///
    /// # Errors
    /// The one refusal when the key is not for this world, existing or not; else those of `work`.
    pub(crate) async fn within<R: Send + 'static>(
        &self,
        asked: &Arc<Asked>,
        bucket: &str,
        work: impl FnOnce(Session) -> S3Result<R> + Send + 'static,
    ) -> S3Result<R> {
        let (verbs, asked, bucket) = (self.clone(), Arc::clone(asked), bucket.to_owned());
        self.pool.run(move || work(verbs.session(&asked, &bucket, None)?)).await
    }

    /// Opens a world, now or as it was at `version`. Blocks.
    ///
    /// # Errors
    /// The one refusal; `NoSuchBucket`; `InvalidArgument` for a version that cannot be one.
    pub(crate) fn session(&self, asked: &Asked, bucket: &str, version: Option<&str>) -> S3Result<Session> {
        let who = &asked.principal;
        match version {
            None | Some("null") => self.now_or_then(asked, bucket),
            Some(version) => {
                // The key is asked about the world before the version is looked at.
                self.store.session(who, bucket).map_err(|e| of(&e, About::World))?;
                let version =
                    version.parse().map_err(|_| error(S3ErrorCode::InvalidArgument, "Invalid version id specified"))?;
                let then = self.store.session_at(who, bucket, At::Version(Version(version)));
                then.map_err(|e| of(&e, About::Version))
            }
        }
    }

    /// Opens a world as it is, or as it was at the instant that a header of the request names.
    fn now_or_then(&self, asked: &Asked, bucket: &str) -> S3Result<Session> {
        let session = self.store.session(&asked.principal, bucket).map_err(|e| of(&e, About::World))?;
        match asked.at {
            None => Ok(session),
            Some(version) => session.at(&At::Version(version)).map_err(|e| of(&e, About::Version)),
        }
    }

    /// Returns the address of the store as the client reaches it.
    pub(crate) fn base(&self, asked: &Asked) -> String {
        self.base_at(asked.header("host"), asked.encrypted)
    }

    /// Returns the address of the store for a client that reaches it under `host`.
    pub(crate) fn base_at(&self, host: Option<&str>, encrypted: bool) -> String {
        let host = host.unwrap_or("localhost");
        match (&self.public_url, &self.encrypted_url) {
            (Some(url), _) => url.trim_end_matches('/').to_owned(),
            (None, _) if encrypted => format!("https://{host}"),
            (None, Some(url)) => url.clone(),
            (None, None) => format!("http://{host}"),
        }
    }
}
