#![doc = include_str!("../README.md")]

mod answer;
mod body;
mod config;
mod course;
mod evidence;
mod finding;
mod future;
mod inquiry;
mod kept;
mod layer;
mod observer;
mod operation_id;
mod query;
mod reconciled;
mod reconciler;
mod resolutions;
mod schedule;
mod service;
mod shown;
mod through;
#[cfg(feature = "tracing")]
mod traced;

#[cfg(feature = "tracing")]
pub use self::traced::Traced;
pub use self::{
    body::ReconcileBody,
    finding::{Finding, Resolution},
    future::ResponseFuture,
    inquiry::Inquiry,
    layer::{Keep, ReconcileLayer, ReconcileLayerBuilder},
    observer::{Counts, Ended, Observer, Resolved, Told, Unknown, Unresolved},
    operation_id::OperationId,
    query::ByQuery,
    reconciled::{AfterInquiry, How, Reconciled},
    reconciler::Reconciler,
    resolutions::Resolutions,
    schedule::Schedule,
    service::Reconcile,
    through::Through,
};
