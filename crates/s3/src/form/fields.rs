//! The parts of a form: bounded fields up to the file, which is streamed. What follows the file is not read.

use crate::errors::error;
use crate::meta::tags as checked;
use bytes::Bytes;
use futures::{Stream, StreamExt};
use multer::{Constraints, Multipart, SizeLimit};
use s3s::dto::Tagging;
use s3s::xml::{Deserialize as _, Deserializer};
use s3s::{Body, S3Error, S3ErrorCode, S3Result, StdError};

/// The longest field, in bytes (AWS: 20 KB for all of them; a policy alone may come near).
const FIELD_MAX: u64 = 64 << 10;
/// The longest form without its file.
const FIELDS_MAX: usize = 256 << 10;
/// The most fields.
const COUNT_MAX: usize = 200;

/// What stands before the file, and the file.
pub(super) struct Fields {
    /// Names in lower case, and values; the file's name is not among them.
    pub(super) list: Vec<(String, String)>,
    /// The file's content.
    pub(super) file: Box<dyn Stream<Item = Result<Bytes, StdError>> + Send + Unpin>,
    /// What the browser called the file.
    pub(super) name: Option<String>,
}

/// Says that a form cannot be read.
pub(super) fn malformed(why: &multer::Error) -> S3Error {
    match why {
        multer::Error::IncompleteStream
        | multer::Error::IncompleteFieldData { .. }
        | multer::Error::IncompleteHeaders
        | multer::Error::StreamReadFailed(_) => {
            error(S3ErrorCode::IncompleteBody, "The form ends before its last boundary.")
        }
        multer::Error::FieldSizeExceeded { .. } | multer::Error::StreamSizeExceeded { .. } => error(
            S3ErrorCode::MaxPostPreDataLengthExceededError,
            "Your POST request fields preceding the upload file were too large.",
        ),
        _ => error(
            S3ErrorCode::MalformedPOSTRequest,
            "The body of your POST request is not well-formed multipart/form-data.",
        ),
    }
}

/// Opens a form.
pub(super) fn open(body: Body, boundary: String) -> Multipart<'static> {
    let sizes = SizeLimit::new().per_field(FIELD_MAX).for_field("file", u64::MAX);
    Multipart::with_constraints(body, boundary, Constraints::new().size_limit(sizes))
}

/// Reads a form up to its file.
///
/// # Errors
/// `MalformedPOSTRequest`, `InvalidArgument` without a file, `MaxPostPreDataLengthExceededError`.
pub(super) async fn read(form: &mut Multipart<'static>) -> S3Result<Fields> {
    let (mut list, mut size): (Vec<(String, String)>, usize) = (Vec::new(), 0);
    loop {
        let field = form.next_field().await.map_err(|e| malformed(&e))?;
        let Some(field) = field else {
            return Err(error(S3ErrorCode::InvalidArgument, "POST requires exactly one file upload per request."));
        };
        let name = field.name().unwrap_or_default().to_ascii_lowercase();
        if name == "file" {
            // A browser of old names the whole path.
            let called = field.file_name().map(|n| n.rsplit(['/', '\\']).next().unwrap_or(n).to_owned());
            let file = field.map(|piece| piece.map_err(|e| StdError::from(malformed(&e).to_string())));
            return Ok(Fields { list, file: Box::new(file), name: called });
        }
        let value = field.bytes().await.map_err(|e| malformed(&e))?;
        size += name.len() + value.len();
        if size > FIELDS_MAX || list.len() >= COUNT_MAX {
            return Err(malformed(&multer::Error::StreamSizeExceeded { limit: FIELDS_MAX as u64 }));
        }
        let value = String::from_utf8(value.to_vec())
            .map_err(|_| error(S3ErrorCode::InvalidArgument, format!("The field {name:?} is not UTF-8.")))?;
        if list.iter().any(|(other, _)| *other == name) {
            return Err(error(S3ErrorCode::InvalidArgument, format!("The form has two fields named {name:?}.")));
        }
        list.push((name, value));
    }
}

/// Reads tags, which a form gives as the document of PutObjectTagging.
///
/// # Errors
/// `MalformedXML`, `InvalidTag`.
pub(super) fn tags(xml: &str) -> S3Result<Vec<(String, String)>> {
    let mut reader = Deserializer::new(xml.as_bytes());
    let read = Tagging::deserialize(&mut reader).and_then(|tagging| reader.expect_eof().map(|()| tagging));
    let Tagging { tag_set } = read.map_err(|_| {
        error(
            S3ErrorCode::MalformedXML,
            "The XML you provided was not well-formed or did not validate against our published schema",
        )
    })?;
    checked(tag_set.into_iter().map(|t| (t.key.unwrap_or_default(), t.value.unwrap_or_default())).collect())
}
