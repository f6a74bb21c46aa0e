//! A token endpoint whose sessions die and whose refresh tokens work once.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::{Answer, Demand, Request};

/// Demands a bearer token that it has issued itself, and issues them at a path.
///
/// `POST` to that path, with a form of OAuth 2.0 as the body (RFC 6749, sections 4.3 and 6):
///
/// - `grant_type=password` logs in: a new family of tokens.
/// - `grant_type=refresh_token&refresh_token=…` spends a refresh token: the answer has a new pair, and
///   the old access token dies. A refresh token works once. When it comes again, somebody has stolen
///   it, or two have refreshed at once: the whole family is revoked (RFC 9700, section 4.14.2),
///   counted in [`reuses`](Self::reuses), and answered 400 with `invalid_grant`.
///
/// Requests to other paths need `authorization: Bearer …` with an access token that lives, or are
/// rejected: 401, or whatever [`rejects_with`](Self::rejects_with) says. Nothing that happens here
/// is applied in the sense of the ledger. A cheap handle; clones share.
#[derive(Clone, Debug)]
pub struct Logins {
    path: Arc<str>,
    rejection: Answer,
    /// Shared with the venue's thread.
    book: Arc<Mutex<Book>>,
}

#[derive(Debug, Default)]
struct Book {
    /// By access token, the family.
    access: HashMap<String, u64>,
    /// By refresh token, the family, and whether it was spent.
    refresh: HashMap<String, (u64, bool)>,
    issued: u64,
    families: u64,
    logins: usize,
    refreshes: usize,
    reuses: usize,
    rejections: usize,
    expires_in: Option<u64>,
}

// === impl Logins ===

impl Logins {
    /// Issues tokens at `path`; none is issued yet.
    #[must_use]
    pub fn at(path: impl Into<Arc<str>>) -> Self {
        Self {
            path: path.into(),
            rejection: Answer::json(401, r#"{"error":"session"}"#),
            book: Arc::default(),
        }
    }

    /// Sets what a request without a living token is answered: by default 401 with a short document.
    ///
    /// To be said before the venue gets its clone.
    #[must_use]
    pub fn rejects_with(mut self, answer: Answer) -> Self {
        self.rejection = answer;
        self
    }

    /// Sets what `expires_in` says, in seconds: by default nothing. It is said and not enforced.
    pub fn expires_in(&self, seconds: u64) {
        self.lock().expires_in = Some(seconds);
    }

    /// Ends all sessions: no access token lives any more. Refresh tokens stay good.
    pub fn expire_all(&self) {
        self.lock().access.clear();
    }

    /// Returns how often somebody logged in.
    #[must_use]
    pub fn logins(&self) -> usize {
        self.lock().logins
    }

    /// Returns how often a refresh token was spent.
    #[must_use]
    pub fn refreshes(&self) -> usize {
        self.lock().refreshes
    }

    /// Returns how often a refresh token came that had been spent before.
    #[must_use]
    pub fn reuses(&self) -> usize {
        self.lock().reuses
    }

    /// Returns how many requests were rejected.
    #[must_use]
    pub fn rejections(&self) -> usize {
        self.lock().rejections
    }

    fn lock(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Demand for Logins {
    fn check(&mut self, request: &Request) -> Result<(), Answer> {
        let mut book = self.lock();
        if *request.path == *self.path {
            return Err(book.grant(&request.body));
        }
        let token = request
            .header("authorization")
            .and_then(|value| value.strip_prefix("Bearer "));
        if token.is_some_and(|token| book.access.contains_key(token)) {
            return Ok(());
        }
        book.rejections += 1;
        Err(self.rejection.clone())
    }
}

// === impl Book ===

impl Book {
    fn grant(&mut self, form: &[u8]) -> Answer {
        match field(form, "grant_type") {
            Some("password") => {
                self.logins += 1;
                self.families += 1;
                self.issue(self.families)
            }
            Some("refresh_token") => match field(form, "refresh_token") {
                Some(token) => self.refresh(token),
                None => refused("invalid_request"),
            },
            _ => refused("unsupported_grant_type"),
        }
    }

    fn refresh(&mut self, token: &str) -> Answer {
        let Some((family, spent)) = self.refresh.get_mut(token) else {
            return refused("invalid_grant");
        };
        let family = *family;
        if std::mem::replace(spent, true) {
            self.reuses += 1;
            self.access.retain(|_, of| *of != family);
            self.refresh
                .retain(|_, (of, spent)| *of != family || *spent);
            return refused("invalid_grant");
        }
        self.refreshes += 1;
        self.access.retain(|_, of| *of != family);
        self.issue(family)
    }

    fn issue(&mut self, family: u64) -> Answer {
        self.issued += 1;
        let number = self.issued;
        let (access, refresh) = (format!("access-{number}"), format!("refresh-{number}"));
        let expires_in = match self.expires_in {
            Some(seconds) => format!(r#","expires_in":{seconds}"#),
            None => String::new(),
        };
        let document = format!(
            r#"{{"token_type":"Bearer","access_token":"{access}","refresh_token":"{refresh}"{expires_in}}}"#
        );
        self.access.insert(access, family);
        self.refresh.insert(refresh, (family, false));
        Answer::json(200, document)
    }
}

fn refused(error: &str) -> Answer {
    Answer::json(400, format!(r#"{{"error":"{error}"}}"#))
}

/// A field of a form. Tokens of this endpoint need no escapes.
fn field<'a>(form: &'a [u8], name: &str) -> Option<&'a str> {
    let form = std::str::from_utf8(form).ok()?;
    form.split('&')
        .filter_map(|pair| pair.split_once('='))
        .find_map(|(known, value)| (known == name).then_some(value))
}
