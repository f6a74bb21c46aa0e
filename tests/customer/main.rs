//! One process of several that share a stored credential, started by the tests.
//!
//! ```text
//! customer get  STORE TOKEN-URL     prints the token of a good credential
//! customer hold STORE               takes the lock, says so, and keeps it until it is killed
//! ```

use std::{error::Error, io::Write};

use tower_outcome::{
    Credentials,
    auth_refresh::{FileStore, TokenStore},
};

#[path = "../auth/source.rs"]
mod source;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["get", store, url] => {
            let credentials = Credentials::builder("venue", source::source(url.to_owned()))
                .any_origin()
                .store(FileStore::new(store))
                .build()?;
            let snapshot = credentials.get(None).await?;
            println!("{}", snapshot.credential().token().expose());
        }
        ["hold", store] => {
            let _held = FileStore::new(store).lock().await?;
            println!("held");
            std::io::stdout().flush()?;
            std::future::pending::<()>().await;
        }
        _ => return Err("usage: customer get STORE TOKEN-URL, or customer hold STORE".into()),
    }
    Ok(())
}
