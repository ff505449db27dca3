//! A store in memory behind a door on a loopback port that the kernel gives.

use crate::client::Client;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use mw_env::Env;
use mw_s3::{S3Options, service};
use mw_world::{KeyRequest, Options, Principal, Role, Store};
use std::convert::Infallible;
use std::sync::Arc;
use tokio::runtime::Runtime;

pub struct House {
    pub store: Arc<Store>,
    pub root: Client,
    /// Stops the listener when the test ends.
    _runtime: Runtime,
}

impl House {
    pub fn new() -> Self {
        Self::with(S3Options::default())
    }

    pub fn with(options: S3Options) -> Self {
        let settings = Options { background: false, ..Options::default() };
        let (meta, segments) = (mw_meta::Memory::default(), mw_segments::Memory::default());
        let store = Store::open(Arc::new(meta), Arc::new(segments), Env::real(), settings).unwrap();
        let door = service(Arc::clone(&store), options);
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
        let addr = listener.local_addr().unwrap();
        runtime.spawn(async move {
            while let Ok((stream, peer)) = listener.accept().await {
                let door = door.clone();
                tokio::spawn(async move {
                    let answer = service_fn(move |mut request: hyper::Request<hyper::body::Incoming>| {
                        request.extensions_mut().insert(peer);
                        let door = door.clone();
                        async move { Ok::<_, Infallible>(door.call::<hyper::body::Incoming>(request).await) }
                    });
                    let _ = hyper::server::conn::http1::Builder::new()
                        .half_close(true)
                        .serve_connection(TokioIo::new(stream), answer)
                        .await;
                });
            }
        });
        let secret = store.root_key().unwrap();
        let root = Client { addr, id: secret.id, secret: secret.secret };
        Self { store, root, _runtime: runtime }
    }

    /// A house with one empty world, `base`.
    pub fn with_base() -> Self {
        let house = Self::new();
        house.root.put("/base", "").ok();
        house
    }

    pub fn root_principal(&self) -> Principal {
        self.store.principal(&self.root.id).unwrap()
    }

    /// A key for some worlds.
    pub fn key(&self, grants: &[(&str, Role)]) -> Client {
        let request = KeyRequest {
            name: "a test".into(),
            grants: grants.iter().map(|(world, role)| mw_world::Grant::new(*world, *role)).collect(),
            ..KeyRequest::default()
        };
        let secret = self.store.create_key(&self.root_principal(), &request).unwrap();
        Client { addr: self.root.addr, id: secret.id, secret: secret.secret }
    }
}
