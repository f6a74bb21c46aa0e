//! A store in a file.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use fs4::TryLockError;
use tokio::{task::spawn_blocking, time::sleep};
use zeroize::Zeroizing;

use super::{StoreError, Stored, Swap, TokenStore, document};
use crate::Credential;

/// Keeps a credential in a file, for several processes of one machine and one user.
///
/// - The lock is an advisory one of the operating system, on a file beside it that is called `.lock`.
///   It ends with the process that holds it, however that ends.
/// - A credential is written to another file, flushed to the disk, and put in the place of the old one
///   in one step: a reader finds the old or the new one, whole.
/// - Whoever names the same file shares the lock, be it through a link or another directory; one that
///   has several names on the disk (hard links) has as many locks.
/// - It is a secret: the files are made readable for their owner alone, and on Unix one that others may
///   read is refused.
///
/// A file that cannot be read or is not whole is an error and not an empty store, and nothing is fetched
/// over it: a refresh token is in there.
///
/// Advisory locks are not reliable on network file systems.
#[derive(Clone, Debug)]
pub struct FileStore {
    path: Arc<Path>,
    account: Option<Arc<str>>,
}

/// Where the files are, whatever links lead there.
#[derive(Debug)]
struct Paths {
    account: Option<Arc<str>>,
    credential: PathBuf,
    lock: PathBuf,
    new: PathBuf,
}

/// Keeps the other processes out until it is dropped.
#[derive(Debug)]
pub struct FileLock {
    _file: File,
}

/// Waiting for the lock of another process, which nothing announces.
const FIRST_WAIT: Duration = Duration::from_millis(5);
const LONGEST_WAIT: Duration = Duration::from_millis(100);

// === impl FileStore ===

impl FileStore {
    /// Keeps the credential in the file of that name, whose directory has to be there.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: Arc::from(path.into()),
            account: None,
        }
    }

    /// Writes whose credential it is into the file, and takes no file for it that names somebody else: two
    /// that were given the same name by mistake would log each other out. Default: nobody is named.
    #[must_use]
    pub fn account(mut self, name: impl Into<Arc<str>>) -> Self {
        self.account = Some(name.into());
        self
    }

    /// Returns the name of the file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Paths) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (path, account) = (Arc::clone(&self.path), self.account.clone());
        let work = spawn_blocking(move || {
            let paths = Paths::resolve(&path, account).map_err(StoreError::new)?;
            work(&paths)
        });
        work.await.map_err(StoreError::new)?
    }
}

impl TokenStore for FileStore {
    type Guard = FileLock;

    /// Asks again and again: a thread that waits for the operating system could not be called back.
    async fn lock(&self) -> Result<FileLock, StoreError> {
        let mut file = self
            .blocking(|paths| open_private(&paths.lock).map_err(StoreError::new))
            .await?;
        let mut wait = FIRST_WAIT;
        loop {
            let tried = spawn_blocking(move || {
                let locked = fs4::FileExt::try_lock(&file);
                (file, locked)
            });
            let (returned, locked) = tried.await.map_err(StoreError::new)?;
            file = returned;
            match locked {
                Ok(()) => return Ok(FileLock { _file: file }),
                Err(TryLockError::WouldBlock) => {}
                // Nobody can tell who holds it.
                Err(TryLockError::Error(error)) => return Err(StoreError::new(error)),
            }
            sleep(wait).await;
            wait = (wait * 2).min(LONGEST_WAIT);
        }
    }

    async fn load(&self) -> Result<Option<Stored>, StoreError> {
        self.blocking(load).await
    }

    async fn compare_and_set(
        &self,
        expected: u64,
        credential: Credential,
    ) -> Result<Swap, StoreError> {
        self.blocking(move |paths| {
            let stored = load(paths)?;
            let revision = stored.as_ref().map_or(0, |stored| stored.revision);
            if revision != expected {
                return Ok(Swap::Changed(stored));
            }
            let next = Stored::new(credential, revision.saturating_add(1));
            replace(paths, &document::write(&next, paths.account.as_deref())?)
                .map_err(StoreError::new)?;
            Ok(Swap::Stored(next.revision))
        })
        .await
    }
}

// === impl Paths ===

impl Paths {
    /// Follows links, to a file that need not be there yet.
    fn resolve(path: &Path, account: Option<Arc<str>>) -> io::Result<Self> {
        let mut credential = path.to_owned();
        // As many as the system would follow at most; then it says what is wrong.
        for _ in 0..40 {
            let Ok(target) = fs::read_link(&credential) else {
                break;
            };
            let directory = credential.parent().unwrap_or(Path::new(""));
            credential = directory.join(target);
        }
        let name = credential.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        let directory = credential.parent();
        let directory = directory.filter(|directory| !directory.as_os_str().is_empty());
        let directory = fs::canonicalize(directory.unwrap_or(Path::new(".")))?;
        let beside = |suffix: &str| {
            let mut name = name.to_owned();
            name.push(suffix);
            directory.join(name)
        };
        Ok(Self {
            account,
            lock: beside(".lock"),
            new: beside(".new"),
            credential: beside(""),
        })
    }
}

fn load(paths: &Paths) -> Result<Option<Stored>, StoreError> {
    let mut file = match File::open(&paths.credential) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(StoreError::new(error)),
    };
    refuse_public(&file, &paths.credential).map_err(StoreError::new)?;
    let mut text = Zeroizing::new(String::new());
    io::Read::read_to_string(&mut file, &mut text).map_err(StoreError::new)?;
    document::read(&text, paths.account.as_deref()).map(Some)
}

/// Puts a document in the place of the old one, in one step.
fn replace(paths: &Paths, text: &str) -> io::Result<()> {
    // Left by a process that was killed; nobody else writes while the lock is held.
    match fs::remove_file(&paths.new) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = private().write(true).create_new(true).open(&paths.new)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(&paths.new, &paths.credential)?;
    sync_directory(&paths.credential)
}

fn open_private(path: &Path) -> io::Result<File> {
    private()
        .write(true)
        .create(true)
        .truncate(false)
        .open(path)
}

/// Files that are made are for their owner alone.
fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

#[cfg(unix)]
fn refuse_public(file: &File, path: &Path) -> io::Result<()> {
    let mode = std::os::unix::fs::MetadataExt::mode(&file.metadata()?) & 0o777;
    if mode & 0o077 == 0 {
        return Ok(());
    }
    let path = path.display();
    Err(io::Error::new(
        io::ErrorKind::PermissionDenied,
        format!("{path} has mode {mode:o}: others may read or write the credential, expected 600"),
    ))
}

#[cfg(not(unix))]
#[expect(clippy::unnecessary_wraps, reason = "it can fail elsewhere")]
fn refuse_public(_: &File, _: &Path) -> io::Result<()> {
    Ok(())
}

/// A new name is on the disk once its directory is.
#[cfg(unix)]
fn sync_directory(path: &Path) -> io::Result<()> {
    let directory = path.parent().filter(|path| !path.as_os_str().is_empty());
    File::open(directory.unwrap_or(Path::new(".")))?.sync_all()
}

#[cfg(not(unix))]
#[expect(clippy::unnecessary_wraps, reason = "it can fail elsewhere")]
fn sync_directory(_: &Path) -> io::Result<()> {
    Ok(())
}
