//! An S3 server on loopback, with one bucket in memory.

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use bytes::Bytes;
use http::{Request, Uri};
use http_body_util::{BodyExt, Full};
use hyper_util::{
    rt::{TokioExecutor, TokioIo},
    server::conn::auto,
    service::TowerToHyperService,
};
use s3s::{
    Body, S3, S3Request, S3Response, S3Result,
    auth::SimpleAuth,
    dto::{
        DeleteObjectInput, DeleteObjectOutput, GetObjectInput, GetObjectOutput, PutObjectInput,
        PutObjectOutput, StreamingBlob,
    },
    s3_error,
    service::S3ServiceBuilder,
};
use tokio::{net::TcpListener, task::JoinSet};
use tower::ServiceExt;

use crate::{KEY_ID, SECRET};

/// Stops when it is dropped.
pub(crate) struct Server {
    addr: SocketAddr,
    origin: String,
    objects: Objects,
    requests: Arc<AtomicUsize>,
    _task: JoinSet<()>,
}

#[derive(Clone, Default)]
struct Objects(Arc<Mutex<BTreeMap<String, Bytes>>>);

impl Server {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let addr = listener.local_addr().unwrap();
        let objects = Objects::default();
        let requests = Arc::new(AtomicUsize::new(0));
        let mut s3 = S3ServiceBuilder::new(objects.clone());
        s3.set_auth(SimpleAuth::from_single(KEY_ID, SECRET));
        let counted = Arc::clone(&requests);
        let service = s3.build().map_request(move |request| {
            counted.fetch_add(1, Ordering::Relaxed);
            request
        });
        let service = TowerToHyperService::new(service);
        let mut task = JoinSet::new();
        task.spawn(async move {
            let mut connections = JoinSet::new();
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let service = service.clone();
                connections.spawn(async move {
                    let server = auto::Builder::new(TokioExecutor::new());
                    let served = server.serve_connection(TokioIo::new(stream), service);
                    // A client may go away at any time.
                    let _ = served.await;
                });
            }
        });
        Self {
            addr,
            origin: format!("http://{addr}"),
            objects,
            requests,
            _task: task,
        }
    }

    pub(crate) fn origin(&self) -> &str {
        &self.origin
    }

    /// Addresses a request to it.
    pub(crate) fn request(&self, mut request: Request<Full<Bytes>>) -> Request<Full<Bytes>> {
        let target = request.uri().path_and_query().unwrap().clone();
        let uri = Uri::builder()
            .scheme("http")
            .authority(self.addr.to_string());
        *request.uri_mut() = uri.path_and_query(target).build().unwrap();
        request
    }

    /// What it stores.
    pub(crate) fn keys(&self) -> Vec<String> {
        self.objects.0.lock().unwrap().keys().cloned().collect()
    }

    /// How many requests came since this was asked last.
    pub(crate) fn take_requests(&self) -> usize {
        self.requests.swap(0, Ordering::Relaxed)
    }
}

#[async_trait::async_trait]
impl S3 for Objects {
    async fn get_object(
        &self,
        request: S3Request<GetObjectInput>,
    ) -> S3Result<S3Response<GetObjectOutput>> {
        let found = self.0.lock().unwrap().get(&request.input.key).cloned();
        let body = found.ok_or_else(|| s3_error!(NoSuchKey))?;
        Ok(S3Response::new(GetObjectOutput {
            content_length: i64::try_from(body.len()).ok(),
            body: Some(StreamingBlob::from(Body::from(body))),
            ..GetObjectOutput::default()
        }))
    }

    async fn put_object(
        &self,
        request: S3Request<PutObjectInput>,
    ) -> S3Result<S3Response<PutObjectOutput>> {
        let body = Body::from(request.input.body.unwrap());
        // That it is not the one that was signed is found out while it is read.
        let body = body.collect().await;
        let body = body.map_err(|_| s3_error!(SignatureDoesNotMatch))?;
        let mut objects = self.0.lock().unwrap();
        objects.insert(request.input.key, body.to_bytes());
        Ok(S3Response::new(PutObjectOutput::default()))
    }

    async fn delete_object(
        &self,
        request: S3Request<DeleteObjectInput>,
    ) -> S3Result<S3Response<DeleteObjectOutput>> {
        self.0.lock().unwrap().remove(&request.input.key);
        Ok(S3Response::new(DeleteObjectOutput::default()))
    }
}
