//! The IAM and STS calls: keys, policies and temporary credentials, on the same listener as S3.
//!
//! Two dialects come by one route, `POST /` with a form: the Tigris clients want JSON and say so in `Accept`, the AWS clients want the
//! XML of the query protocol (*IAM API Reference*, *STS API Reference*). An action makes one document; `answer` writes it either
//! way. What an action may do is the store's to say; here is only decoding.

mod answer;
mod form;
mod keys;
mod policies;
pub(crate) mod signed;
mod sts;

use crate::auth::Asked;
use crate::errors::{About, of};
use crate::guard::pairs;
use crate::pool::Pool;
use answer::{Answer, Document};

pub(crate) use answer::Dialect;
use form::Form;
use hyper::header::{ACCEPT, CONTENT_TYPE};
use hyper::{HeaderMap, Method, Response};
use mw_world::{Principal, Store};
use s3s::{Body, S3Error, S3ErrorCode, S3Response, S3Result};
use serde_json::json;
use std::sync::Arc;

/// The one account that there is, as AWS writes accounts.
pub(crate) const ACCOUNT: &str = "000000000000";

/// A call of this part, once it is known to be one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Call {
    /// An action in a form.
    Action,
    /// `GET /users/whoami`.
    Whoami,
}

/// Returns which call a request is, if it is one. `path` has no bucket of a virtual host before it.
pub(crate) fn call_of(method: &Method, path: &str, query: Option<&str>, headers: &HeaderMap) -> Option<Call> {
    let header =
        |name| headers.get(name).and_then(|v: &hyper::header::HeaderValue| v.to_str().ok()).unwrap_or_default();
    let json = |text: &str| text.contains("application/json");
    if method == Method::GET && path == "/users/whoami" && (json(header(ACCEPT)) || json(header(CONTENT_TYPE))) {
        return Some(Call::Whoami);
    }
    if method != Method::POST || path != "/" {
        return None;
    }
    let named = pairs(query.unwrap_or_default()).iter().any(|(name, _)| name == "Action" || name == "Detailed");
    let form = header(CONTENT_TYPE).to_ascii_lowercase().starts_with("application/x-www-form-urlencoded");
    (named || form).then_some(Call::Action)
}

/// Answers a call; its errors are answers in the dialect of the caller.
pub(crate) async fn answer(
    store: &Arc<Store>,
    pool: &Pool,
    call: Call,
    query: &[(String, String)],
    asked: &Asked,
    id: &str,
    body: Body,
) -> S3Result<S3Response<Body>> {
    let dialect = Dialect::of(&asked.headers);
    let form = Form::read(query, body, &asked.faults).await;
    let action = form.as_ref().ok().and_then(|form| form.get("Action")).unwrap_or_default().to_owned();
    let outcome = match form {
        Err(error) => Err(error),
        Ok(form) => {
            let (store, who) = (Arc::clone(store), asked.principal.clone());
            pool.run(move || act(&store, &who, call, &form)).await
        }
    };
    Ok(match outcome {
        Ok(document) => Answer { dialect, id }.document(&action, &document),
        Err(error) => Answer { dialect, id }.error(&error),
    })
}

/// Says in the dialect of the caller what went wrong before the call was known: the verifier speaks as S3 does.
pub(crate) fn translated(answer: Response<Body>, dialect: Dialect, id: &str) -> Response<Body> {
    let xml = answer.headers().get(CONTENT_TYPE).is_some_and(|v| v == "application/xml");
    let Some(body) = answer.body().bytes().filter(|b| xml && !b.is_empty() && !answer.status().is_success()) else {
        return answer;
    };
    let text = String::from_utf8_lossy(&body).into_owned();
    let tag = |name: &str| {
        let (_, rest) = text.split_once(&format!("<{name}>"))?;
        Some(plain(rest.split_once(&format!("</{name}>"))?.0))
    };
    let code = tag("Code").unwrap_or_else(|| "InternalFailure".to_owned());
    let message = tag("Message").unwrap_or_else(|| "The request was refused.".to_owned());
    let S3Response { output, headers, .. } = Answer { dialect, id }.refusal(answer.status(), &code, &message);
    let mut translated = Response::new(output);
    *translated.status_mut() = answer.status();
    *translated.headers_mut() = headers;
    translated
}

/// Resolves the entities of XML.
fn plain(text: &str) -> String {
    text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&apos;", "'").replace("&amp;", "&")
}

fn act(store: &Arc<Store>, who: &Principal, call: Call, form: &Form) -> S3Result<Document> {
    if call == Call::Whoami {
        return Ok(Document::Plain(json!({"UserId": who.key_id(), "NamespaceId": "default"})));
    }
    match form.get("Action").unwrap_or_default() {
        "CreateAccessKeyWithBucketsRole" => keys::create_with_roles(store, who, form),
        "UpdateAccessKeyWithBucketsRole" => keys::update_roles(store, who, form),
        "CreateAccessKey" => keys::create(store, who, form),
        "ListAccessKeys" => keys::list(store, who, form),
        "DeleteAccessKey" => keys::delete(store, who, form),
        "RotateAccessKey" => keys::rotate(store, who, form),
        "CreatePolicy" => policies::create(store, who, form),
        "UpdatePolicy" => policies::update(store, who, form),
        "GetPolicy" | "GetPolicyDetailed" => policies::get(store, who, form),
        "ListPolicies" => policies::list(store, who),
        "DeletePolicy" => policies::delete(store, who, form, false),
        "ForceDeletePolicy" => policies::delete(store, who, form, true),
        "AttachUserPolicy" => policies::attach(store, who, form, true),
        "DetachUserPolicy" => policies::attach(store, who, form, false),
        "ListUserPolicies" => policies::names(store, who, form),
        "ListAttachedUserPolicies" => policies::attached(store, who, form),
        "GetCallerIdentity" => sts::caller(who),
        "GetFederationToken" => sts::federation_token(store, who, form),
        "AssumeRole" => sts::assume_role(store, who, form),
        "" => Err(wrong("MissingAction", "The request must contain the parameter Action.")),
        other => Err(wrong("InvalidAction", format!("The action {} is not offered here.", shown(other)))),
    }
}

/// An error of these interfaces, whose codes are not those of S3.
fn wrong(code: &'static str, message: impl Into<String>) -> S3Error {
    crate::errors::custom(code, 400, message)
}

/// Turns an error of the engine about a key into its IAM code.
fn about_key(error: &mw_world::Error) -> S3Error {
    use mw_model::ErrorKind as K;
    match error.kind() {
        K::NotFound => crate::errors::custom("NoSuchEntity", 404, error.to_string()),
        K::Invalid => match error.to_string().strip_prefix("MalformedPolicyDocument: ") {
            Some(why) => wrong("MalformedPolicyDocument", why),
            None => wrong("ValidationError", error.to_string()),
        },
        K::NotEmpty => crate::errors::custom("DeleteConflict", 409, error.to_string()),
        K::AlreadyExists => crate::errors::custom("EntityAlreadyExists", 409, error.to_string()),
        K::Conflict => crate::errors::custom("ConcurrentModification", 409, error.to_string()),
        _ => {
            let mut error = of(error, About::World);
            if *error.code() == S3ErrorCode::AccessDenied {
                // The Tigris client looks for these words.
                error = crate::errors::error(S3ErrorCode::AccessDenied, "Access Denied: this key may not do that");
            }
            error
        }
    }
}

/// A client's text in a message: short, and without what would break a line.
fn shown(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(64).collect()
}
