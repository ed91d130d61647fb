//! Real container engines for tests. Docker is a daemon that whoever starts the tests has started
//! (`SANDTABLE_TEST_DOCKER` names its socket); Podman keeps images and containers in the test's own directory.
//! The image is one static program, so that no registry is needed.

use std::cell::RefCell;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use crate::env::{Caller, PATH, TestEnv};
use crate::outside::Outside;
use crate::process::{Ended, Run};
use crate::require;

/// The engine under test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Docker,
    Podman,
}

/// A world with a container engine and an image in it.
#[derive(Debug)]
pub struct Contained {
    pub env: TestEnv,
    pub kind: Kind,
    pub image: String,
    /// Images that were made besides that one.
    others: RefCell<Vec<String>>,
    docker: Option<String>,
    outside: Option<Outside>,
}

impl Kind {
    pub fn word(self) -> &'static str {
        match self {
            Self::Docker => "docker",
            Self::Podman => "podman",
        }
    }
}

impl Contained {
    /// The engine for a caller; `None`, said aloud, where there is none.
    pub fn new(kind: Kind, caller: Caller) -> Option<Self> {
        Self::with_libraries_of(kind, caller, None)
    }

    /// The same with an image that has what `program`, a file of this machine, loads.
    pub fn with_libraries_of(kind: Kind, caller: Caller, program: Option<&Path>) -> Option<Self> {
        let world = Self::bare(kind, caller)?;
        world.furnish(&require::program("busybox")?, program);
        Some(world)
    }

    /// A test with a repository of its own on every engine, as root and as an ordinary user. `make` is one of the
    /// constructors. Nothing may be left of its sandboxes.
    pub fn each(make: impl Fn(Kind, Caller) -> Option<Self>, test: impl Fn(&Self, PathBuf)) {
        for kind in [Kind::Docker, Kind::Podman] {
            for caller in [Caller::Same, Caller::ordinary()] {
                if let Some(world) = make(kind, caller) {
                    let source = world.env.repository("r");
                    test(&world, source);
                    assert_eq!(world.left(), [""; 0], "{kind:?} {caller:?}");
                }
            }
        }
    }

    fn bare(kind: Kind, caller: Caller) -> Option<Self> {
        let docker = require::variable("SANDTABLE_TEST_DOCKER");
        let obstacle = match kind {
            Kind::Docker if docker.is_none() => Some("no Docker: `./test` starts one as root"),
            Kind::Podman if require::program("podman").is_none() => Some("no Podman"),
            Kind::Podman if require::program("newuidmap").is_none() => Some("Podman needs newuidmap"),
            _ => None,
        };
        if let Some(why) = obstacle {
            require::skip(why);
            return None;
        }
        let env = TestEnv::of_the_executable_as(caller)?;
        let name = env.root().file_name()?.to_string_lossy().to_lowercase().replace(['_', '.'], "");
        let image = format!("localhost/{name}:1");
        Some(Self { env, kind, image, others: RefCell::default(), docker, outside: None })
    }

    /// The same with a way out; `None`, said aloud, where the engine has none.
    pub fn with_way_out(kind: Kind, caller: Caller) -> Option<Self> {
        let mut world = Self::bare(kind, caller)?;
        match (kind, caller) {
            (Kind::Docker, _) => {}
            (Kind::Podman, Caller::Same) if require::is_root() => {
                world.outside = Some(Outside::own(world.env.root()));
            }
            (Kind::Podman, _) => world.outside = Some(Outside::here(world.env.root())?),
        }
        world.furnish(&require::program("busybox")?, None);
        if kind == Kind::Docker {
            let format = "{{range .IPAM.Config}}{{.Subnet}}{{end}}";
            let asked = ["network", "inspect", "bridge", "--format", format];
            let subnet = world.run("docker").args(asked).ended().stdout;
            let network = subnet.trim().split('/').next().and_then(|text| text.parse::<Ipv4Addr>().ok());
            let Some(network) = network else {
                require::skip("this Docker has no bridge");
                return None;
            };
            // The daemon's own address is the first of its network.
            let gateway = Ipv4Addr::from_bits(network.to_bits() + 1).into();
            let address = world.docker.clone()?;
            world.outside = Some(Outside::of_docker(Path::new(address.strip_prefix("unix://")?), gateway));
        }
        Some(world)
    }

    /// What a sandbox with a way out can reach.
    ///
    /// # Panics
    /// In a world without.
    pub fn outside(&self) -> &Outside {
        self.outside.as_ref().expect("a world with a way out")
    }

    /// The address of it, if there is a way out.
    pub fn outside_address(&self) -> Option<SocketAddr> {
        self.outside.as_ref().map(Outside::address)
    }

    /// A program of this world that can reach the engine.
    pub fn run(&self, program: impl AsRef<std::ffi::OsStr>) -> Run {
        let root = self.env.root();
        let run = self
            .env
            .run(program)
            .variable("PATH", format!("{}:{PATH}", root.join("bin").display()))
            .variable("XDG_RUNTIME_DIR", root.join("run"))
            .variable("CONTAINERS_CONF", root.join("containers.conf"));
        let run = match &self.docker {
            Some(address) => run.variable("DOCKER_HOST", address),
            None => run,
        };
        match &self.outside {
            Some(outside) => outside.around(run),
            None => run,
        }
    }

    /// Where Docker is, if it is here.
    pub fn docker_address(&self) -> Option<&str> {
        self.docker.as_deref()
    }

    /// The executable under test.
    pub fn sandtable(&self) -> Run {
        self.run(self.env.binary())
    }

    /// `sandtable run --engine … --image … OPTIONS -- sh -c SCRIPT` in a directory.
    pub fn run_script(&self, directory: &Path, options: &[&str], script: &str) -> Ended {
        self.starting(directory).args(options).args(["--", "sh", "-c", script]).ended()
    }

    /// `sandtable run --engine … --image …`, to be continued.
    pub fn starting(&self, directory: &Path) -> Run {
        let words = ["run", "--engine", self.kind.word(), "--image", &self.image];
        self.sandtable().directory(directory).args(words)
    }

    /// What the engine answers.
    ///
    /// # Panics
    /// If it fails.
    pub fn engine(&self, args: &[&str]) -> String {
        self.run(self.kind.word()).args(args).ended().expect_code(0).stdout
    }

    /// Every container, volume and network of this world's sandboxes that the engine knows.
    pub fn left(&self) -> Vec<String> {
        let here = |label: &str| label.contains(&self.env.root().display().to_string());
        let containers = self.engine(&["ps", "--all", "--format", "{{.Names}} {{.Labels}}"]);
        let ours = containers.lines().filter(|line| here(line));
        let volumes = self.engine(&["volume", "ls", "--format", "{{.Name}} {{.Labels}}"]);
        let volumes = volumes.lines().filter(|line| here(line));
        let networks = self.engine(&["network", "ls", "--format", "{{.Name}} {{.Labels}}"]);
        let networks = networks.lines().filter(|line| here(line));
        ours.chain(volumes).chain(networks).map(str::to_owned).collect()
    }

    fn furnish(&self, busybox: &Path, libraries_of: Option<&Path>) {
        let root = self.env.root();
        let storage: Vec<String> = [("--root", "s"), ("--runroot", "r"), ("--tmpdir", "t")]
            .map(|(option, name)| format!("{option} {}", root.join("p").join(name).display()))
            .into();
        // Where control groups are of the first version Podman needs the older runtime.
        let networks = root.join("p/n").display().to_string();
        let conf = format!(
            "[containers]\ndefault_ulimits = [\"nofile=1024:4096\", \"nproc=4096:4096\"]\n\
                    [engine]\nruntime = \"runc\"\ncgroup_manager = \"cgroupfs\"\nevents_logger = \"file\"\n\
             [network]\nnetwork_config_dir = \"{networks}\"\n"
        );
        self.env.file(&root.join("containers.conf"), conf);
        let wrapper = format!("#!/bin/sh\nexec /usr/bin/podman {} \"$@\"\n", storage.join(" "));
        self.env.file(&root.join("bin/podman"), wrapper);
        set_mode(&root.join("bin/podman"), 0o755);
        self.env.directory(&root.join("run"));
        set_mode(&root.join("run"), 0o700);
        self.env.directory(&root.join("p"));
        self.import(&self.image, busybox, &|image| {
            if let Some(program) = require::program("ssh-add") {
                add(image, libraries(image, &program).into_iter().chain([program]));
            }
            if let Some(program) = libraries_of {
                add(image, libraries(image, program));
            }
        });
    }

    /// Another image of one static program, and of what `fill` puts into its directory; `None` without the program.
    pub fn another(&self, tag: &str, fill: &dyn Fn(&Path)) -> Option<String> {
        let name = format!("{}-{tag}", self.image);
        self.import(&name, &require::program("busybox")?, fill);
        self.others.borrow_mut().push(name.clone());
        Some(name)
    }

    fn import(&self, name: &str, busybox: &Path, fill: &dyn Fn(&Path)) {
        let archive = pack(self.env.root(), busybox, fill);
        self.engine(&["import", &archive.display().to_string(), name]);
        fs_err::remove_file(archive).ok();
    }
}

impl Drop for Contained {
    fn drop(&mut self) {
        let quietly = |args: &[&str]| drop(self.run(self.kind.word()).args(args).ended());
        for image in self.others.borrow().iter().chain([&self.image]) {
            quietly(&["rmi", "--force", image]);
        }
        if self.kind == Kind::Podman {
            // Ends the process by which an ordinary user's Podman holds its namespace.
            quietly(&["system", "migrate"]);
        }
    }
}

/// A root file system of one static program, with an entry point and a health check that would both be noticed.
fn pack(root: &Path, busybox: &Path, fill: &dyn Fn(&Path)) -> PathBuf {
    let image = root.join("image");
    fs_err::create_dir_all(image.join("bin")).expect("a directory of our own");
    fs_err::copy(busybox, image.join("bin/busybox")).expect("room for a program");
    for name in [
        "cat", "chmod", "cp", "env", "false", "grep", "id", "ip", "kill", "ls", "mkdir", "nc", "ps", "rm",
        "sh", "sleep", "stty", "touch", "true", "whoami", "wc",
    ] {
        symlink("busybox", image.join("bin").join(name)).expect("a link of our own");
    }
    fill(&image);
    let archive = root.join("image.tar");
    let words = ["--create", "--owner=0", "--group=0", "--file", &archive.display().to_string(), "."];
    drop(Run::new("tar", &image).variable("PATH", PATH).args(words).ended().expect_code(0));
    fs_err::remove_dir_all(image).ok();
    archive
}

/// Everything that a program of this machine loads.
pub fn libraries(directory: &Path, program: &Path) -> Vec<PathBuf> {
    let listed = Run::new("ldd", directory).variable("PATH", PATH).arg(program).ended().stdout;
    listed.split_whitespace().filter(|word| word.starts_with('/')).map(PathBuf::from).collect()
}

/// Adds files of this machine at their places.
///
/// # Panics
/// Where there is no room for them.
pub fn add(image: &Path, files: impl IntoIterator<Item = PathBuf>) {
    for file in files {
        let place = image.join(file.strip_prefix("/").expect("an absolute path"));
        fs_err::create_dir_all(place.parent().expect("it is in a directory"))
            .expect("a directory of our own");
        fs_err::copy(&file, &place).expect("room for a library");
    }
}

fn set_mode(path: &Path, mode: u32) {
    fs_err::set_permissions(path, PermissionsExt::from_mode(mode)).expect("a file of our own");
}
