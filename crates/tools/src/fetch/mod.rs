//! Fetching what a plan names. The only phase with a network, and no code of a recipe runs in it.
//!
//! Each file comes through the ordinary client of its registry, with the user's own configuration of it: where a
//! registry is and how one proves who one is, the client knows. Asked for is one name in one version; what comes is
//! taken only if its hash is the one in the plan, so that no other version, no placeholder and no changed file gets
//! in. While a client works, what it has written is watched: it is what progress is told from, and a client that
//! writes more than the plan allows is ended.
//!
//! Files are kept by their hash and checked whenever they are taken out.

mod cache;
mod client;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

pub use self::cache::Cache;
use super::plan::{Download, Plan, Registry, Sha256};
use sandtable_sandbox::attention::Interruptible;
use sandtable_sandbox::model::observe::{Came, Event, Observer};
use sandtable_sandbox::model::path::HostPath;
use sandtable_sandbox::process::CliError;
use sandtable_store::workers::help;

/// How many files are fetched at once.
const AT_ONCE: usize = 4;
/// The largest file whose plan does not say how large it is.
const LARGEST: u64 = 2 << 30;
/// How long one file may take.
const LONGEST: Duration = Duration::from_mins(30);

/// Why a file is not here.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    #[error("there is no `{program}` here, which fetches from {registry}")]
    NoClient { program: &'static str, registry: Registry },
    #[error("cannot fetch `{file}`: {package} from {registry}")]
    Client {
        file: String,
        package: String,
        registry: Registry,
        #[source]
        source: Box<CliError>,
    },
    #[error("{registry} has no `{file}` for {package}")]
    Absent { file: String, package: String, registry: Registry },
    #[error("`{file}` is not what the plan names: its hash is `{found}`, not `{wanted}`")]
    Hash { file: String, wanted: Sha256, found: Sha256 },
    #[error("`{file}` ends after {found} bytes, and the plan says {wanted}")]
    Short { file: String, wanted: u64, found: u64 },
    #[error("`{file}` is longer than the {most} bytes that the plan allows")]
    TooLarge { file: String, most: u64 },
    #[error("`{file}` took longer than {} s", .limit.as_secs())]
    TooSlow { file: String, limit: Duration },
    #[error("`{file}` cannot be fetched: {why}")]
    Refused { file: String, why: &'static str },
    #[error("interrupted while `{file}` was fetched; the part that arrived is kept")]
    Cancelled { file: String },
    #[error("cannot {what} `{}`", path.display())]
    File {
        what: &'static str,
        path: PathBuf,
        #[source]
        source: io::Error,
    },
}

impl FetchError {
    fn file(what: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::File { what, path, source }
    }
}

/// The programs that ask registries.
pub const CLIENTS: [&str; 6] = ["apt-get", "cargo", "curl", "npm", "pip", "pip3"];

/// Where clients are and what they are told. Whoever makes it knows what is worked on, of which nothing may work for us; here
/// nothing is looked for.
#[derive(Clone, Debug)]
pub struct Clients {
    /// Those of [`CLIENTS`] that are here.
    pub programs: BTreeMap<&'static str, HostPath>,
    /// The user's environment, in which a client finds its configuration.
    pub environment: BTreeMap<String, String>,
}

/// Fetches everything that the plans name and that is not in the cache. The first failure ends all. The observer or a
/// signal cancels it: clients are killed, and the parts that arrived are kept for the next attempt.
pub fn fetch(
    plans: &[&Plan],
    cache: &Cache,
    clients: &Clients,
    observer: &dyn Observer,
) -> Result<u64, FetchError> {
    let observer = &Interruptible::new(observer);
    let mut seen = BTreeSet::new();
    let all = plans.iter().flat_map(|plan| plan.downloads.iter().map(move |download| (*plan, download)));
    let waiting: VecDeque<(&Plan, &Download)> =
        all.filter(|(_, download)| seen.insert(download.sha256)).collect();
    let workers = waiting.len().min(AT_ONCE);
    let work = Work { waiting: Mutex::new(waiting), failed: Mutex::new(None), fetched: Mutex::new(0) };
    let go_on = || {
        while let Some((plan, download)) = work.next() {
            let (tool, size) = (&plan.title(), download.size);
            let watch = client::Watch {
                coming: &|bytes| observer.event(&Event::Fetching { tool, bytes, size }),
                cancelled: &|| observer.cancelled(),
            };
            let done = cache.obtain(download, |scratch| client::run(download, scratch, clients, &watch));
            work.done(download, done, observer);
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..workers {
            help(scope, go_on);
        }
        go_on();
    });
    let failed = work.failed.into_inner().unwrap_or_else(PoisonError::into_inner);
    failed.map_or(Ok(work.fetched.into_inner().unwrap_or_else(PoisonError::into_inner)), Err)
}

struct Work<'a> {
    waiting: Mutex<VecDeque<(&'a Plan, &'a Download)>>,
    failed: Mutex<Option<FetchError>>,
    fetched: Mutex<u64>,
}

impl<'a> Work<'a> {
    fn next(&self) -> Option<(&'a Plan, &'a Download)> {
        let failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        if failed.is_some() {
            return None;
        }
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }

    fn done(&self, download: &Download, done: Result<Came, FetchError>, observer: &dyn Observer) {
        match done {
            Ok(came) => {
                if came == Came::Fetched {
                    *self.fetched.lock().unwrap_or_else(PoisonError::into_inner) += 1;
                }
                let (file, size) = (download.file.as_str(), download.size);
                observer.event(&Event::Fetched { file, size, came });
            }
            Err(error) => {
                self.failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
            }
        }
    }
}
