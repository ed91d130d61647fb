//! The clients, and how each is asked for exactly one file.

use std::process::Stdio;
use std::time::{Duration, Instant};

use fs_err as fs;
use sandtable_sandbox::model::path::HostPath;
use sandtable_sandbox::process::{Cli, CliError};

use super::cache::written;
use super::{Clients, FetchError, LARGEST, LONGEST};
use crate::plan::{Download, Registry};

/// How often a client is looked at.
const PAUSE: Duration = Duration::from_millis(50);
/// What a client writes besides the file itself: indexes, caches, a second copy while it moves.
const BESIDES: u64 = 256 << 20;

/// Runs the client of a download's registry and says where below `scratch` the file is.
pub(super) fn run(
    download: &Download,
    scratch: &HostPath,
    clients: &Clients,
    watch: &Watch<'_>,
) -> Result<HostPath, FetchError> {
    let job = Job { download, scratch, clients, watch };
    match download.source {
        Registry::Pypi => job.pip(),
        Registry::Npm => job.npm(),
        Registry::Crate => job.cargo(),
        Registry::Debian => job.apt(),
        Registry::DebianSource => job.apt_source(),
        Registry::Https => {
            let url = download.url.as_deref().ok_or_else(|| job.refused("its plan has no address"))?;
            job.curl(url)
        }
    }
}

struct Job<'a> {
    download: &'a Download,
    scratch: &'a HostPath,
    clients: &'a Clients,
    watch: &'a Watch<'a>,
}

/// Progress and cancellation of a client.
pub(super) struct Watch<'a> {
    /// Called with the number of bytes so far.
    pub(super) coming: &'a dyn Fn(u64),
    /// Whether to kill the client.
    pub(super) cancelled: &'a dyn Fn() -> bool,
}

impl Job<'_> {
    /// A wheel, by name, version and hash. Anything but a wheel would have to be executed to be asked its name.
    fn pip(&self) -> Result<HostPath, FetchError> {
        let file = self.download.file.as_str();
        let tags = wheel_tags(file).ok_or_else(|| {
            self.refused(
                "only wheels are taken from this registry, since pip executes a source package to look at it",
            )
        })?;
        let list = self.scratch.join("requirements.txt");
        let Download { name, version, sha256, .. } = self.download;
        fs::write(list.as_path(), format!("{name}=={version} --hash=sha256:{sha256}\n"))
            .map_err(FetchError::file("write", list.as_path()))?;
        let wheels = self.scratch.join("wheels");
        let cli = self
            .client("pip", &["pip", "pip3"])?
            .args(["download", "--quiet", "--no-input", "--no-deps", "--no-cache-dir", "--only-binary=:all:"])
            .args(["--require-hashes", "--requirement"])
            .arg(list.as_path())
            .arg("--dest")
            .arg(wheels.as_path())
            .args(tags);
        self.finish(&cli)?;
        self.only_file(&wheels, &[file])
    }

    /// A package as it is, without running its scripts.
    fn npm(&self) -> Result<HostPath, FetchError> {
        let packed = self.scratch.join("packed");
        fs::create_dir_all(packed.as_path()).map_err(FetchError::file("make", packed.as_path()))?;
        let cli = self
            .client("npm", &["npm"])?
            .args(["pack", "--silent", "--ignore-scripts", "--pack-destination"])
            .arg(packed.as_path())
            .arg("--cache")
            .arg(self.scratch.join("npm").as_path())
            .arg("--")
            .arg(format!("{}@{}", self.download.name, self.download.version));
        self.finish(&cli)?;
        self.only_file(&packed, &[])
    }

    /// A crate, out of cargo's own cache, where `cargo info` puts it.
    fn cargo(&self) -> Result<HostPath, FetchError> {
        let Download { name, version, .. } = self.download;
        let cli =
            self.client("cargo", &["cargo"])?.args(["info", "--quiet"]).arg(format!("{name}@{version}"));
        self.finish(&cli)?;
        let home = self.clients.environment.get("CARGO_HOME").map(HostPath::new).and_then(Result::ok);
        let user = self.clients.environment.get("HOME").and_then(|home| HostPath::new(home).ok());
        let home = home.or_else(|| Some(user?.join(".cargo"))).ok_or_else(|| self.absent())?;
        let caches = fs::read_dir(home.join("registry/cache").as_path()).map_err(|_| self.absent())?;
        let file = format!("{name}-{version}.crate");
        let found = caches.flatten().map(|cache| cache.path().join(&file)).find(|path| path.is_file());
        let copy = self.scratch.join(&file);
        fs::copy(found.ok_or_else(|| self.absent())?, copy.as_path())
            .map_err(FetchError::file("copy", copy.as_path()))?;
        Ok(copy)
    }

    fn apt(&self) -> Result<HostPath, FetchError> {
        let packages = self.scratch.join("packages");
        fs::create_dir_all(packages.as_path()).map_err(FetchError::file("make", packages.as_path()))?;
        let cli = self
            .client("apt-get", &["apt-get"])?
            .args(["--quiet", "download"])
            .arg(format!("{}={}", self.download.name, self.download.version))
            .directory(packages.as_path());
        self.finish(&cli)?;
        self.only_file(&packages, &[])
    }

    /// A file of a source package, from a mirror that apt uses: the place of a package in the pool follows from its name,
    /// so that no list of sources is needed. Which of the mirrors has sources is not written anywhere, so each is asked.
    fn apt_source(&self) -> Result<HostPath, FetchError> {
        let asked = ["indextargets", "--format", "$(REPO_URI)", "Created-By: Packages"];
        let answer = self.client("apt-get", &["apt-get"])?.args(asked).finish();
        let text =
            String::from_utf8_lossy(&answer.map_err(|source| self.failed(source))?.stdout).into_owned();
        let name = self.download.name.as_str();
        let first = if name.starts_with("lib") { name.get(..4) } else { name.get(..1) };
        let first = first.ok_or_else(|| self.absent())?;
        let mut found = Err(self.absent());
        for mirror in mirrors(&text) {
            found = self.curl(&format!("{mirror}/pool/main/{first}/{name}/{}", self.download.file));
            if found.is_ok() {
                break;
            }
        }
        found
    }

    /// One file by its address; goes on where an attempt before ended.
    fn curl(&self, url: &str) -> Result<HostPath, FetchError> {
        let file = self.scratch.join(self.download.file.as_str());
        let cli = self
            .client("curl", &["curl"])?
            // Brackets in an address are part of it, not a range of addresses.
            .args([
                "--globoff",
                "--fail",
                "--silent",
                "--show-error",
                "--location",
                "--max-redirs",
                "5",
                "--retry",
                "3",
            ])
            .args(["--proto", "=https,http", "--proto-redir", "=https,http", "--continue-at", "-"])
            .args(["--max-filesize", &self.most().to_string(), "--output"])
            .arg(file.as_path())
            .args(["--url", url]);
        self.finish(&cli)?;
        Ok(file)
    }

    fn most(&self) -> u64 {
        self.download.size.unwrap_or(LARGEST)
    }

    fn client(&self, program: &'static str, names: &[&str]) -> Result<Cli, FetchError> {
        let found = names.iter().find_map(|name| self.clients.programs.get(name));
        let registry = self.download.source;
        let found = found.ok_or(FetchError::NoClient { program, registry })?;
        // Some read settings, or modules, where they are started: never in the source.
        let mut cli = Cli::new(found.clone()).directory(self.scratch.as_path());
        for (name, value) in &self.clients.environment {
            cli = cli.variable(name, value);
        }
        // What a client puts down on the way is ours to watch and to remove.
        Ok(cli.variable("TMPDIR", self.scratch.as_path()))
    }

    /// Runs a client to its end, unless it writes too much or takes too long.
    fn finish(&self, cli: &Cli) -> Result<(), FetchError> {
        let errors = self.scratch.join("errors");
        let stderr =
            fs::File::create(errors.as_path()).map_err(FetchError::file("make", errors.as_path()))?;
        let started = cli.start_apart(Stdio::null(), Stdio::from(stderr.into_file()));
        let mut child = started.map_err(|source| self.failed(source))?;
        let (given_up, mut last) = (Instant::now() + LONGEST, 0);
        let mut pause = Duration::from_millis(1);
        let status = loop {
            if let Ok(Some(status)) = child.try_wait() {
                break status;
            }
            let now = written(self.scratch.as_path());
            if now != last {
                last = now;
                (self.watch.coming)(now.min(self.most()));
            }
            if (self.watch.cancelled)() {
                end(&mut child);
                return Err(FetchError::Cancelled { file: self.download.file.to_string() });
            }
            let too_much = now > self.most().saturating_add(BESIDES);
            if too_much || Instant::now() > given_up {
                end(&mut child);
                let (file, most) = (self.download.file.to_string(), self.most());
                return Err(if too_much {
                    FetchError::TooLarge { file, most }
                } else {
                    FetchError::TooSlow { file, limit: LONGEST }
                });
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(PAUSE);
        };
        if status.success() {
            return Ok(());
        }
        let stderr = fs::read(errors.as_path()).unwrap_or_default();
        let tail = String::from_utf8_lossy(&stderr[stderr.len().saturating_sub(2000)..]).trim().to_owned();
        Err(self.failed(CliError::Failed { argv: cli.argv(), status, stderr: tail }))
    }

    /// The one file that a client put into a directory of ours.
    fn only_file(&self, directory: &HostPath, names: &[&str]) -> Result<HostPath, FetchError> {
        let entries = fs::read_dir(directory.as_path()).map_err(|_| self.absent())?;
        let mut found: Vec<String> =
            entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect();
        found.retain(|name| names.is_empty() || names.contains(&name.as_str()));
        match &found[..] {
            [one] => Ok(directory.join(one)),
            _ => Err(self.absent()),
        }
    }

    fn failed(&self, source: CliError) -> FetchError {
        let (file, package) = (self.download.file.to_string(), self.package());
        FetchError::Client { file, package, registry: self.download.source, source: Box::new(source) }
    }

    fn absent(&self) -> FetchError {
        let (file, package) = (self.download.file.to_string(), self.package());
        FetchError::Absent { file, package, registry: self.download.source }
    }

    fn package(&self) -> String {
        format!("{} {}", self.download.name, self.download.version)
    }

    fn refused(&self, why: &'static str) -> FetchError {
        FetchError::Refused { file: self.download.file.to_string(), why }
    }
}

/// What pip must be told so that it considers a wheel for another machine than this one; `None` if it is no wheel.
fn wheel_tags(file: &str) -> Option<Vec<String>> {
    let stem = file.strip_suffix(".whl")?;
    let mut parts = stem.rsplit('-');
    let (platforms, abi, python) = (parts.next()?, parts.next()?, parts.next()?);
    let mut arguments = Vec::new();
    if platforms != "any" {
        arguments.extend(platforms.split('.').map(|platform| format!("--platform={platform}")));
    }
    let python = python.split('.').next()?;
    if let Some(version) = python.strip_prefix("cp").filter(|version| version.len() > 1) {
        let (major, minor) = version.split_at(1);
        arguments.push(format!("--python-version={major}.{minor}"));
        arguments.push("--implementation=cp".to_owned());
        arguments.extend(abi.split('.').map(|abi| format!("--abi={abi}")));
    }
    Some(arguments)
}

/// The addresses in an answer of apt, each once.
fn mirrors(text: &str) -> Vec<&str> {
    let mut found: Vec<&str> = Vec::new();
    for line in text.lines().map(|line| line.trim().trim_end_matches('/')) {
        if line.starts_with("http") && !found.contains(&line) {
            found.push(line);
        }
    }
    found
}

/// Ends a client and whatever it started.
fn end(child: &mut std::process::Child) {
    if let Some(group) = i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw) {
        let _gone = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
    }
    let _gone = child.kill();
    let _taken = child.wait();
}
