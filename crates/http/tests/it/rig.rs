//! A store in memory behind a door.

use http_body_util::BodyExt;
use hyper::Request;
use mw_env::Env;
use mw_http::body::full;
use mw_http::sigv4::{self, Credentials};
use mw_http::{ControlDoor, Hosts, uri};
use mw_meta::Meta;
use mw_segments::Segments;
use mw_world::{Bounds, CreateOptions, Grant, KeyRequest, Options, Principal, Store};
use std::sync::Arc;

pub struct Rig {
    pub store: Arc<Store>,
    door: ControlDoor,
    runtime: tokio::runtime::Runtime,
}

/// What is asked: method, path under `/-/v1/`, query, document.
#[derive(Debug, Clone)]
pub struct Ask {
    pub method: &'static str,
    pub path: String,
    pub query: Vec<(&'static str, String)>,
    pub body: Vec<u8>,
}

impl Rig {
    pub fn new() -> Self {
        Self::over(Arc::new(mw_meta::Memory::new()), Arc::new(mw_segments::Memory::new()))
    }

    pub fn over(meta: Arc<dyn Meta>, segments: Arc<dyn Segments>) -> Self {
        let options = Options { background: false, memory: 64 << 20, ..Options::default() };
        let store = Store::open(meta, segments, Env::real(), options).unwrap();
        let door = ControlDoor::new(store.clone(), Hosts::default(), "test".to_owned());
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        Self { store, door, runtime }
    }

    pub fn root(&self) -> Principal {
        self.store.principal(&self.store.root_key().unwrap().id).unwrap()
    }

    pub fn root_credentials(&self) -> Credentials {
        let key = self.store.root_key().unwrap();
        Credentials { id: key.id, secret: key.secret, token: None }
    }

    pub fn world(&self, name: &str, keys: &[&str]) {
        self.store.create_world(&self.root(), name, &CreateOptions::default()).unwrap();
        let session = self.store.session(&self.root(), name).unwrap();
        for key in keys {
            let mut staged = session.stage().unwrap();
            staged.push(key.as_bytes()).unwrap();
            session.put(key.as_bytes(), staged, &Default::default()).unwrap();
        }
    }

    pub fn key(&self, grant: Grant) -> Credentials {
        let request = KeyRequest { name: "k".to_owned(), grants: vec![grant], ..KeyRequest::default() };
        let key = self.store.create_key(&self.root(), &request).unwrap();
        Credentials { id: key.id, secret: key.secret, token: None }
    }

    pub fn temporary(&self, who: &Principal, bounds: &Bounds) -> Credentials {
        let key = self.store.create_temporary(who, bounds).unwrap();
        Credentials { id: key.secret.id, secret: key.secret.secret, token: Some(key.token) }
    }

    /// Signs, then lets `change` spoil what is sent, and returns status and body.
    pub fn send(
        &self,
        who: &Credentials,
        ask: &Ask,
        change: impl FnOnce(&mut Request<mw_http::Body>),
    ) -> (u16, Vec<u8>) {
        let path = format!("/-/v1/{}", ask.path);
        let pairs: Vec<(&str, &[u8])> = ask.query.iter().map(|(n, v)| (*n, v.as_bytes())).collect();
        let query = uri::query(&pairs);
        let signed = sigv4::sign(
            who,
            "auto",
            sigv4::Request { method: ask.method, path: &path, query: &query },
            &[("host", "here")],
            &sigv4::sha256_hex(&ask.body),
            self.store.env().now(),
        )
        .unwrap();
        let target = if query.is_empty() { path } else { format!("{path}?{query}") };
        let mut request = Request::builder().method(ask.method).uri(target).header("host", "here");
        for (name, value) in signed {
            request = request.header(name, value);
        }
        let mut request = request.body(full(ask.body.clone())).unwrap();
        change(&mut request);
        self.runtime.block_on(async {
            let answer = self.door.call(request).await;
            let status = answer.status().as_u16();
            // A stream that breaks off has said what it has said.
            let body = answer.into_body().collect().await.map(|body| body.to_bytes().to_vec()).unwrap_or_default();
            (status, body)
        })
    }

    pub fn ask(&self, who: &Credentials, ask: &Ask) -> (u16, String) {
        let (status, body) = self.send(who, ask, |_| {});
        (status, String::from_utf8_lossy(&body).into_owned())
    }
}
