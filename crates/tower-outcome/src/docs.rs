//! The longer explanations.

#[doc = include_str!("docs/architecture.md")]
pub mod architecture {}

#[doc = include_str!("docs/ordering.md")]
pub mod ordering {}

#[doc = include_str!("docs/unknown.md")]
pub mod unknown {}
