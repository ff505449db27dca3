//! Uploads by browser form (AWS, *Browser-based uploads using POST*): the fields first, signed as a whole by their policy, then the
//! file, streamed like the content of a PUT.
//!
//! `s3s` has such forms too, but holds the file in memory before it looks at the policy, takes the time of the signature for the time
//! of the request, and knows no `${filename}`. The signature is one HMAC over the policy's text, checked here against the same
//! secrets; what is checked and what is put are the same fields.

mod fields;
mod policy;
mod signature;

use crate::auth::{Asked, Encrypted, Secrets, presented};
use crate::body::{Length, Received, take};
use crate::chunks::Faults;
use crate::errors::{About, custom, error, internal, of};
use crate::guard::pairs;
use crate::host::{Suffix, place};
use crate::meta::of_request;
use crate::names::{key_of, percent};
use crate::owner::owner_alone;
use crate::verbs::Verbs;
use crate::versions::id_of;
use fields::Fields;
use hyper::header::{CONTENT_TYPE, ETAG, HeaderName, HeaderValue, LOCATION};
use hyper::http::request::Parts;
use hyper::{HeaderMap, Method, Response, StatusCode};
use mw_world::{ChecksumAlgorithm, ObjectInfo, PutOptions, Session};
use policy::Policy;
use s3s::{Body, S3ErrorCode, S3Result};
use std::net::SocketAddr;
use std::sync::Arc;

/// Fields that become headers of the object, beside those of user metadata and checksums.
const HEADERS: [&str; 9] = [
    "cache-control",
    "content-type",
    "content-disposition",
    "content-encoding",
    "content-language",
    "expires",
    "x-amz-acl",
    "x-amz-storage-class",
    "x-amz-server-side-encryption",
];

/// Whether a request is an upload by form.
pub(crate) fn is_form(parts: &Parts) -> bool {
    let kind = parts.headers.get(CONTENT_TYPE).map(|v| v.as_bytes()).unwrap_or_default();
    let form = b"multipart/form-data";
    parts.method == Method::POST && kind.get(..form.len()).is_some_and(|k| k.eq_ignore_ascii_case(form))
}

/// What was put by a form, as the answer says it.
struct Put {
    bucket: String,
    key: String,
    info: ObjectInfo,
    version: Option<String>,
}

/// Takes an upload by form.
///
/// # Errors
/// The S3 error to answer with; then nothing was put.
pub(crate) async fn post(
    verbs: &Verbs,
    suffix: Option<&Suffix>,
    parts: &Parts,
    body: Body,
) -> S3Result<Response<Body>> {
    let (bucket, key) = place(parts, suffix).unwrap_or_default();
    if bucket.is_empty() || !key.is_empty() {
        return Err(error(
            S3ErrorCode::MethodNotAllowed,
            "The specified method is not allowed against this resource; a form is posted to a bucket.",
        ));
    }
    let boundary = parts.headers.get(CONTENT_TYPE).and_then(|v| v.to_str().ok()).unwrap_or_default();
    let boundary = multer::parse_boundary(boundary).map_err(|e| fields::malformed(&e))?;
    let mut form = fields::open(body, boundary);
    let Fields { list, file, name } = fields::read(&mut form).await?;
    let get = |name: &str| list.iter().find(|(field, _)| field == name).map(|(_, value)| value.as_str());
    let now = verbs.store.env().now();
    let secrets = Secrets { store: Arc::clone(&verbs.store) };
    let signed = signature::verify(&secrets, &list, now).await?;
    let written = get("key").filter(|key| !key.is_empty()).ok_or_else(|| {
        error(
            S3ErrorCode::InvalidArgument,
            "Bucket POST must contain a field named 'key'. If it is specified, please check the \
             order of the fields.",
        )
    })?;
    let written = written.replace("${filename}", name.as_deref().unwrap_or_default());
    let policy = Policy::read(signed.policy)?;
    let mut judged: Vec<(String, String)> = list.clone();
    judged.iter_mut().filter(|(field, _)| field == "key").for_each(|(_, value)| value.clone_from(&written));
    policy.check(&judged, &bucket, now)?;
    let key = key_of(&written)?;
    let source = parts.extensions.get::<SocketAddr>().map(SocketAddr::ip);
    let principal = presented(&verbs.store, signed.key, get("x-amz-security-token"), source)?;
    let asked = Arc::new(Asked {
        principal,
        encrypted: parts.extensions.get::<Encrypted>().is_some(),
        at: None,
        region: signed.region.to_owned(),
        headers: headers(&list)?,
        settings: Vec::new(),
        faults: Faults::default(),
        trailer: None,
    });
    owner_alone(&asked)?;
    let user = list.iter().filter_map(|(n, v)| Some((n.strip_prefix("x-amz-meta-")?.to_owned(), v.clone())));
    let mut meta = of_request(&asked, Some(user.collect()))?;
    if let Some(tagging) = get("tagging") {
        meta.tags = fields::tags(tagging)?;
    }
    let (session, staged) = verbs
        .within(&asked, &bucket, |session| {
            let staged = session.stage().map_err(|e| of(&e, About::Key))?;
            Ok((session, staged))
        })
        .await?;
    let (least, most) = policy.lengths();
    let always = [ChecksumAlgorithm::Crc64Nvme];
    let Received { staged, digested } =
        take(verbs, staged, file, Length::Within(least, most), &asked, None, &always).await?;
    let options = PutOptions { meta, etag: digested.etag(), checksums: digested.checksums, ..PutOptions::default() };
    let put = verbs.pool.run(move || put(&session, &key, staged, &options)).await?;
    let (info, version) = put;
    answer(verbs, parts, &list, &Put { bucket, key: written, info, version })
}

fn put(
    session: &Session,
    key: &[u8],
    staged: mw_world::Staged,
    options: &PutOptions,
) -> S3Result<(ObjectInfo, Option<String>)> {
    let info = session.put(key, staged, options).map_err(|e| of(&e, About::Key))?;
    let id = id_of(session, &info);
    Ok((info, id))
}

/// The fields as the headers that a PUT of the same object would have.
fn headers(list: &[(String, String)]) -> S3Result<HeaderMap> {
    let mut headers = HeaderMap::new();
    for (name, value) in list {
        let meant = HEADERS.contains(&name.as_str())
            || name == "content-md5"
            || name.starts_with("x-amz-checksum-")
            || name.starts_with("x-amz-grant-")
            || name.starts_with("x-amz-server-side-encryption-")
            || name.starts_with("x-amz-object-lock-")
            || name == "x-amz-website-redirect-location";
        if meant {
            let wrong =
                || error(S3ErrorCode::InvalidArgument, format!("The value of the field {name} is no header's."));
            headers.append(
                HeaderName::try_from(name.as_str()).map_err(|_| wrong())?,
                HeaderValue::from_bytes(value.as_bytes()).map_err(|_| wrong())?,
            );
        }
    }
    Ok(headers)
}

/// Answers as the form asks: with a redirect, or a status.
fn answer(verbs: &Verbs, parts: &Parts, list: &[(String, String)], put: &Put) -> S3Result<Response<Body>> {
    let get = |name: &str| list.iter().find(|(field, _)| field == name).map(|(_, value)| value.as_str());
    let etag = format!("\"{}\"", put.info.etag);
    let host = parts.headers.get(hyper::header::HOST).and_then(|v| v.to_str().ok());
    let base = verbs.base_at(host, parts.extensions.get::<Encrypted>().is_some());
    let location = format!("{base}/{}/{}", put.bucket, percent(&put.key));
    let mut response = Response::new(Body::empty());
    let redirect = get("success_action_redirect").or_else(|| get("redirect")).and_then(|to| redirected(to, put, &etag));
    let mut said = vec![(ETAG, etag.clone())];
    if let Some(version) = &put.version {
        said.push((HeaderName::from_static("x-amz-version-id"), version.clone()));
    }
    match (redirect, get("success_action_status")) {
        (Some(to), _) => {
            *response.status_mut() = StatusCode::SEE_OTHER;
            said.push((LOCATION, to));
        }
        (None, Some("200")) => said.push((LOCATION, location)),
        (None, Some("201")) => {
            *response.status_mut() = StatusCode::CREATED;
            let text = |text: &str| {
                let text = crate::names::xml_of(text.as_bytes());
                text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
            };
            *response.body_mut() = Body::from(format!(
                "<?xml version=\"1.0\" encoding=\"UTF-8\"?><PostResponse><Location>{}</Location><Bucket>{}</Bucket><Key>{}</Key>\
                 <ETag>{}</ETag></PostResponse>",
                text(&location),
                text(&put.bucket),
                text(&put.key),
                text(&etag)
            ));
            said.push((LOCATION, location));
            said.push((CONTENT_TYPE, "application/xml".to_owned()));
        }
        _ => {
            *response.status_mut() = StatusCode::NO_CONTENT;
            said.push((LOCATION, location));
        }
    }
    for (name, value) in said {
        response.headers_mut().insert(name, HeaderValue::from_str(&value).map_err(|e| internal(&e))?);
    }
    Ok(response)
}

/// Returns where to go; none, and no redirect, when that is no URL of the web (AWS then answers as if the field were absent).
fn redirected(to: &str, put: &Put, etag: &str) -> Option<String> {
    let web = to.starts_with("http://") || to.starts_with("https://");
    let uri: hyper::Uri = to.parse().ok()?;
    uri.authority().filter(|_| web && to.is_ascii() && !to.contains(char::is_control))?;
    let (to, fragment) = to.split_once('#').map_or((to, String::new()), |(to, rest)| (to, format!("#{rest}")));
    let join = if uri.query().is_some() { '&' } else { '?' };
    let encoded = |text: &str| percent(text).replace('/', "%2F");
    let (bucket, key, etag) = (encoded(&put.bucket), encoded(&put.key), encoded(etag));
    Some(format!("{to}{join}bucket={bucket}&key={key}&etag={etag}{fragment}"))
}

/// A form that is signed in some other way besides has two answers to who signed it.
///
/// # Errors
/// `InvalidArgument`.
pub(crate) fn signed_once(parts: &Parts) -> S3Result<()> {
    let query = pairs(parts.uri.query().unwrap_or_default());
    let presigned =
        query.iter().any(|(name, _)| name.to_ascii_lowercase().starts_with("x-amz-") || name == "Signature");
    if presigned || parts.headers.contains_key(hyper::header::AUTHORIZATION) {
        return Err(custom(
            "InvalidArgument",
            400,
            "Only one auth mechanism allowed; a form is signed in its fields alone",
        ));
    }
    Ok(())
}
