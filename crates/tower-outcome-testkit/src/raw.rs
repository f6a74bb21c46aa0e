//! Scripted servers for what no HTTP library would send: each connection is a closure over bytes.
//!
//! ```
//! use tower_outcome_testkit::raw::{self, frame};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let server = raw::Server::script()
//!     // The first connection is reset after the request was read.
//!     .connection(|mut conn| async move {
//!         conn.read_request().await?;
//!         conn.reset()
//!     })
//!     // All later ones speak HTTP/2 and refuse every stream.
//!     .connection(|mut conn| async move {
//!         conn.start_http2(&[]).await?;
//!         while let Some(request) = conn.next_headers().await? {
//!             let refused = frame::rst_stream(request.stream, frame::REFUSED_STREAM);
//!             conn.write_all(&refused).await?;
//!         }
//!         Ok(())
//!     })
//!     .start()?;
//! assert_eq!(server.requests(), 0);
//! # Ok(())
//! # }
//! ```

mod connection;
pub mod frame;
mod server;

pub use self::connection::{Connection, Headers};
pub use self::server::{Script, Server};
