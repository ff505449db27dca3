//! Work that takes long: what it does is told line by line, then its result.

use crate::Error;
use crate::body::{Gone, produce};
use crate::call::Reply;
use crate::types::Progress;

/// Runs `work` and reports its progress, then its result, as lines. A reader that goes away does not stop the work.
pub(super) fn report<T: serde::Serialize + 'static>(
    work: impl FnOnce(&mut dyn FnMut(&str)) -> mw_world::Result<T> + Send + 'static,
) -> Reply {
    Reply::lines(produce(move |sink| {
        let outcome = work(&mut |text| {
            let _: std::result::Result<(), Gone> = sink.line(&Progress::<()>::Progress(text.to_owned()));
        });
        let last = match outcome {
            Ok(result) => Progress::Result(result),
            Err(error) => {
                tracing::error!(%error, "long work failed");
                Progress::Error(Error::from(error).reply().error)
            }
        };
        let _: std::result::Result<(), Gone> = sink.line(&last);
    }))
}
