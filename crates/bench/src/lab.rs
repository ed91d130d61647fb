//! The place where everything is measured: one directory of our own, who calls, and the peers that are here.
//! What is missing is kept as the reason, because the report has to give it.

use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use super::process::Caller;
use super::tree::give;

/// What the wrapper hands over.
#[derive(Clone, Debug)]
pub struct Site {
    /// A directory of our own, removed by the wrapper.
    pub base: PathBuf,
    pub sandtable: PathBuf,
    /// A tree that stands for the largest size instead of a generated one.
    pub large: Option<PathBuf>,
    /// The ordinary user to become when we are root.
    pub user: Option<String>,
    /// The daemon's address, or why there is none.
    pub docker: Result<String, String>,
}

/// Something, or the reason why it is not there.
pub type Maybe<T> = Result<T, String>;

/// Callers and container images, made once.
#[derive(Debug)]
pub struct Lab {
    site: Site,
    pub root: Maybe<Rc<Caller>>,
    pub user: Maybe<Rc<Caller>>,
    archive: Option<Maybe<String>>,
    docker: Option<Maybe<String>>,
    podman: Vec<(&'static str, Maybe<Vec<String>>)>,
}

const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// `runc`, because `crun` refuses a hybrid cgroup hierarchy; the limits, because Podman's own need a
/// capability that a machine in a container may lack.
const CONTAINERS_CONF: &str = r#"[containers]
default_ulimits = ["nofile=1024:4096", "nproc=4096:4096"]
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
"#;

impl Lab {
    pub fn open(site: Site) -> io::Result<Self> {
        let set_up = |name, ids| caller(&site, name, ids).map(Rc::new);
        let we_are_root = fs_err::metadata("/proc/self")?.uid() == 0;
        let (root, user) = if we_are_root {
            let root = set_up("root", None)?;
            let user = match ids_of(&site, &root) {
                Ok(ids) => Ok(set_up("user", Some(ids))?),
                Err(reason) => Err(reason),
            };
            (Ok(root), user)
        } else {
            (Err("the benchmark was not started by root".to_owned()), Ok(set_up("user", None)?))
        };
        fs_err::write(site.base.join("containers.conf"), CONTAINERS_CONF)?;
        Ok(Self { site, root, user, archive: None, docker: None, podman: Vec::new() })
    }

    pub fn caller(&self, name: &str) -> Maybe<Rc<Caller>> {
        if name == "root" { self.root.clone() } else { self.user.clone() }
    }

    /// Whoever can run a program that only prints its version.
    pub fn anybody(&self) -> Maybe<Rc<Caller>> {
        self.root.clone().or_else(|_| self.user.clone())
    }

    pub fn base(&self) -> &Path {
        &self.site.base
    }

    /// The tree that was given.
    pub fn large(&self) -> Option<&Path> {
        self.site.large.as_deref()
    }

    pub fn sandtable(&self) -> String {
        self.site.sandtable.display().to_string()
    }

    /// The image of this run alone, since the daemon may be the machine's own. The wrapper removes by this
    /// name whatever an interrupted run has left.
    fn image(&self) -> String {
        let run = self.site.base.extension().unwrap_or_default();
        format!("sandtable-bench:{}", run.display())
    }

    /// The image to run, in the daemon.
    pub fn docker(&mut self) -> Maybe<String> {
        if let Some(known) = &self.docker {
            return known.clone();
        }
        let docker = self.import_docker();
        self.docker = Some(docker.clone());
        docker
    }

    /// A peer from npm, which the wrapper has installed for this run, or has written down why not.
    pub fn npm(&self, name: &str) -> Maybe<String> {
        let place = self.site.base.join("npm");
        let program = place.join(name).join("node_modules/.bin").join(name);
        if program.exists() {
            return Ok(program.display().to_string());
        }
        let reason = fs_err::read_to_string(place.join(format!("{name}.reason"))).unwrap_or_default();
        let reason = reason.trim();
        Err(if reason.is_empty() { format!("`{name}` was not installed") } else { reason.to_owned() })
    }

    /// How Podman is called by this caller, up to the subcommand; the image has the same name.
    pub fn podman(&mut self, caller: &Rc<Caller>) -> Maybe<(Vec<String>, String)> {
        let known = self.podman.iter().find(|(name, _)| *name == caller.name);
        let podman = if let Some((_, podman)) = known {
            podman.clone()
        } else {
            let podman = self.import_podman(caller);
            self.podman.push((caller.name, podman.clone()));
            podman
        };
        podman.map(|podman| (podman, self.image()))
    }

    fn import_docker(&mut self) -> Maybe<String> {
        self.site.docker.clone()?;
        let archive = self.archive()?;
        self.anybody()?.invoke(&self.site.base, ["docker", "import", &archive, &self.image()]).output()?;
        Ok(self.image())
    }

    fn import_podman(&mut self, caller: &Rc<Caller>) -> Maybe<Vec<String>> {
        let archive = self.archive()?;
        let mut podman = vec!["podman".to_owned()];
        // Short names: Podman refuses a run root of more than 50 characters.
        for (option, directory) in [("--root", "storage"), ("--runroot", "r"), ("--tmpdir", "t")] {
            let directory = caller.area.join(directory);
            podman.extend([option.to_owned(), directory.display().to_string()]);
        }
        let image = self.image();
        let import = podman.iter().map(String::as_str).chain(["import", &archive, &image]);
        caller.invoke(&caller.area, import).output()?;
        Ok(podman)
    }

    fn archive(&mut self) -> Maybe<String> {
        if let Some(known) = &self.archive {
            return known.clone();
        }
        let archive = self.pack_image();
        self.archive = Some(archive.clone());
        archive
    }

    /// A root file system of one static program, so that no registry is needed.
    fn pack_image(&self) -> Maybe<String> {
        let busybox = ["/usr/bin/busybox", "/bin/busybox"].into_iter().find(|path| Path::new(path).exists());
        let busybox = busybox.ok_or("no static `busybox` to make an image from")?;
        let image = self.site.base.join("image");
        let fill = || {
            let programs = image.join("bin");
            fs_err::create_dir_all(&programs)?;
            fs_err::copy(busybox, programs.join("busybox"))?;
            ["sh", "sleep", "true"].iter().try_for_each(|name| symlink("busybox", programs.join(name)))
        };
        fill().map_err(|error: io::Error| error.to_string())?;
        let archive = self.site.base.join("image.tar").display().to_string();
        self.anybody()?.invoke(&image, ["tar", "--create", "--file", &archive, "."]).output()?;
        Ok(archive)
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        let Ok(anybody) = self.anybody() else { return };
        if let Some(Ok(image)) = &self.docker {
            drop(anybody.invoke(&self.site.base, ["docker", "rmi", "--force", image]).output());
        }
        for (name, podman) in &self.podman {
            // For an ordinary user this also ends the process that holds the user namespace.
            if let (Ok(podman), Ok(caller)) = (podman, self.caller(name)) {
                let migrate = podman.iter().map(String::as_str).chain(["system", "migrate"]);
                drop(caller.invoke(&caller.area, migrate).output());
            }
        }
    }
}

fn ids_of(site: &Site, root: &Rc<Caller>) -> Maybe<(u32, u32)> {
    let user = site.user.as_deref().ok_or("no ordinary user was named by `SANDTABLE_TEST_USER`")?;
    let ask = |option| {
        let id = root.invoke(&site.base, ["id", option, user]).output()?;
        id.parse().map_err(|_| format!("`id` said `{id}` about `{user}`"))
    };
    Ok((ask("-u")?, ask("-g")?))
}

fn caller(site: &Site, name: &'static str, ids: Option<(u32, u32)>) -> io::Result<Caller> {
    let area = site.base.join(name);
    let home = area.join("home");
    let directories = [("", "."), ("HOME", ""), ("XDG_RUNTIME_DIR", "run")];
    let state = [
        ("XDG_CONFIG_HOME", "config"),
        ("XDG_DATA_HOME", "data"),
        ("XDG_STATE_HOME", "state"),
        ("XDG_CACHE_HOME", "cache"),
    ];
    let mut environment = Vec::new();
    for (variable, directory) in directories.into_iter().chain(state) {
        let path = if directory == "." { area.clone() } else { home.join(directory) };
        fs_err::create_dir_all(&path)?;
        fs_err::set_permissions(&path, PermissionsExt::from_mode(0o700))?;
        give(&path, ids)?;
        if !variable.is_empty() {
            environment.push((variable.to_owned(), path.display().to_string()));
        }
    }
    let conf = site.base.join("containers.conf").display().to_string();
    let fixed =
        [("PATH", PATH), ("LANG", "C.UTF-8"), ("GIT_CONFIG_NOSYSTEM", "1"), ("CONTAINERS_CONF", &conf)];
    environment.extend(fixed.map(|(name, value)| (name.to_owned(), value.to_owned())));
    if let Ok(address) = &site.docker {
        environment.push(("DOCKER_HOST".to_owned(), address.clone()));
    }
    Ok(Caller { name, ids, area, environment })
}
