//! From the table of mounts to rules about paths. The last rule that fits a path decides, so mounts are lowered
//! in their order, parents before children, and what lies in the sandbox's own state comes after all of them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use super::{Lasts, Link, Moved, OwnFile, Parameter, Place, SeatbeltPlan};
use crate::model::layout::Layout;
use crate::model::mount::{Content, HostAccess, Mount, MountTable};
use crate::model::path::{BoxPath, HostPath};
use crate::model::resolved::{ResolvedSpec, Variable};
use crate::model::seatbelt::{Base, SeatbeltProfile, Traffic, Unsupported};

/// Links of the root directory on every Mac. The kernel compares paths without links.
const PRIVATE: [&str; 3] = ["/etc", "/tmp", "/var"];
/// Places below the home directory that the guard speaks of.
const GUARDED: [(&str, &str, &str); 12] = [
    ("GIT_CONFIG", ".gitconfig", "git's configuration of the user"),
    ("GIT_DIRECTORY", ".config/git", "git's configuration of the user"),
    ("DOCKER", ".docker", "Docker's sockets"),
    ("DOCKER_DESKTOP", "Library/Containers/com.docker.docker", "Docker's sockets"),
    ("CONTAINERS", ".local/share/containers", "Podman's sockets"),
    ("CONTAINERS_CONFIG", ".config/containers", "Podman's sockets"),
    ("COLIMA", ".colima", "Colima's sockets"),
    ("LIMA", ".lima", "Lima's sockets"),
    ("ORBSTACK", ".orbstack", "OrbStack's sockets"),
    ("RANCHER", ".rd", "Rancher Desktop's sockets"),
    ("FINCH", ".finch", "Finch's sockets"),
    ("MULTIPASS", "Library/Application Support/multipass-client-certificate", "Multipass's key"),
];
/// Variables that name a place inside.
const PLACES: [&str; 5] = ["HOME", "TMPDIR", "SHELL", "PWD", "PATH"];

/// Lowers `spec` for the sandbox at `place`, or says what of it Seatbelt cannot do.
pub fn lower(spec: &ResolvedSpec, place: &Place) -> Result<SeatbeltPlan, Unsupported> {
    let name = spec.seatbelt.unwrap_or(SeatbeltProfile::PermissiveClosed);
    let mut lowering = Lowering::new(&spec.mounts, place);
    for mount in spec.mounts.iter() {
        lowering.mount(mount)?;
    }
    let Lowering { rules, late, ancestors, sockets, mut parameters, moved, links, files, .. } = lowering;
    for (name, below, reason) in GUARDED {
        let value = text(real(&spec.home).join(below).as_path())?;
        parameters.push(Parameter { name: name.to_owned(), value, reason: reason.to_owned() });
    }
    let base = match name.base() {
        Base::Permissive => include_str!("permissive.sbpl"),
        Base::Restrictive => include_str!("restrictive.sbpl"),
    };
    let traffic = match name.traffic() {
        Traffic::Open => include_str!("open.sbpl"),
        Traffic::Closed => include_str!("closed.sbpl"),
        Traffic::Proxied => include_str!("proxied.sbpl"),
    };
    let mut profile = [base, include_str!("root.sbpl"), &rules, &late].concat();
    for path in ancestors {
        let name = parameter(&mut parameters, 'A', &path, "on the way to what is shown")?;
        writeln!(
            profile,
            "; On the way to what is shown.\n(allow file-read-metadata (literal (param \"{name}\")))"
        )
        .expect("a string takes everything");
    }
    profile.extend([traffic, &sockets, include_str!("guard.sbpl")]);
    let mut plan = SeatbeltPlan {
        name,
        profile,
        parameters,
        environment: BTreeMap::new(),
        directory: HostPath::new("/").expect("absolute"),
        moved,
        links,
        files,
    };
    plan.directory = plan.outside(&spec.directory);
    plan.environment = environment(&plan, spec);
    Ok(plan)
}

/// A path as the kernel compares it.
pub(super) fn real(path: &BoxPath) -> HostPath {
    let path = path.as_path();
    let link = PRIVATE.iter().any(|link| path.starts_with(link));
    let below = path.strip_prefix("/").unwrap_or(path);
    let real = if link { Path::new("/private").join(below) } else { path.to_owned() };
    HostPath::new(real).expect("absolute, as it was")
}

/// What may be done at a path.
#[derive(Clone, Copy)]
enum Rule {
    Nothing,
    Read,
    Write,
}

struct Lowering<'a> {
    table: &'a MountTable,
    place: &'a Place,
    rules: String,
    /// Rules about the sandbox's own state.
    late: String,
    /// Directories on the way to what is shown: they can be passed through, not listed.
    ancestors: BTreeSet<PathBuf>,
    /// Rules about sockets that may be connected to.
    sockets: String,
    parameters: Vec<Parameter>,
    moved: Vec<Moved>,
    links: Vec<Link>,
    files: Vec<OwnFile>,
}

impl<'a> Lowering<'a> {
    fn new(table: &'a MountTable, place: &'a Place) -> Self {
        Self {
            table,
            place,
            rules: String::new(),
            late: String::new(),
            ancestors: BTreeSet::new(),
            sockets: String::new(),
            parameters: Vec::new(),
            moved: Vec::new(),
            links: Vec::new(),
            files: Vec::new(),
        }
    }

    fn mount(&mut self, mount: &Mount) -> Result<(), Unsupported> {
        let (target, own) = (&mount.target, &self.place.directory);
        let at = real(target);
        match &mount.content {
            Content::Host { source, access, .. } => {
                if real(&source.same_inside()) != at {
                    return Err(Unsupported::Elsewhere { path: source.clone(), target: target.clone() });
                }
                let rule = match access {
                    HostAccess::Read => Rule::Read,
                    HostAccess::Write => Rule::Write,
                };
                self.link(target, &at);
                self.rule(&at, rule, &mount.reason)
            }
            Content::Link { .. } => self.rule(&at, Rule::Read, &mount.reason),
            Content::Masked => {
                if let Some(outside) = self.inherited(target) {
                    self.late(&outside, Rule::Nothing, &mount.reason)?;
                }
                self.rule(&at, Rule::Nothing, &mount.reason)
            }
            Content::Private { area } => self.elsewhere(mount, own.join(area), Lasts::Sandbox),
            Content::Copy { layer, .. } => self.elsewhere(mount, Layout::of(own).copy(layer), Lasts::Sandbox),
            Content::Scratch { .. } => {
                let name = format!("scratch-{}", self.moved.len());
                self.elsewhere(mount, own.join(name), Lasts::Processes)
            }
            Content::Text { contents } => {
                let outside = own.join(format!("file-{}", self.files.len()));
                self.files.push(OwnFile { path: outside.clone().into(), contents: contents.clone() });
                self.rule(&at, Rule::Nothing, &mount.reason)?;
                self.late(&outside, Rule::Read, &mount.reason)?;
                self.link(target, &outside);
                self.moved.push(Moved { inside: target.clone(), outside, lasts: Lasts::Processes });
                Ok(())
            }
            Content::Devices => {
                self.rules.push_str(include_str!("devices.sbpl"));
                Ok(())
            }
            Content::Agent => {
                self.link(target, &at);
                self.rule(&at, Rule::Read, &mount.reason)?;
                let name = parameter(&mut self.parameters, 'P', at.as_path(), &mount.reason)?;
                self.sockets.push_str("; A socket that the user brings in: see the parameter.\n");
                writeln!(self.sockets, "(allow network-outbound (literal (param \"{name}\")))")
                    .expect("a string takes everything");
                Ok(())
            }
            Content::Cow { .. } => Err(Unsupported::CopyOnWrite { target: target.clone() }),
            Content::Empty => {
                Err(Unsupported::Content { target: target.clone(), what: "an empty directory" })
            }
            Content::Processes => {
                Err(Unsupported::Content { target: target.clone(), what: "a process file system" })
            }
        }
    }

    /// Something of the sandbox's own: its place inside is closed, and where it lies can be written.
    fn elsewhere(&mut self, mount: &Mount, outside: HostPath, lasts: Lasts) -> Result<(), Unsupported> {
        self.rule(&real(&mount.target), Rule::Nothing, &mount.reason)?;
        self.late(&outside, Rule::Write, &mount.reason)?;
        self.link(&mount.target, &outside);
        self.moved.push(Moved { inside: mount.target.clone(), outside, lasts });
        Ok(())
    }

    /// Lets a program find `to` by its name in a moved directory.
    fn link(&mut self, target: &BoxPath, to: &HostPath) {
        if let Some(at) = self.inherited(target) {
            self.links.push(Link { inside: target.clone(), at, to: to.clone() });
        }
    }

    /// Where `target` would be as part of a moved mount above it.
    fn inherited(&self, target: &BoxPath) -> Option<HostPath> {
        let above = self.table.at(&target.parent()?)?;
        let moved = self.moved.iter().find(|moved| moved.inside == above.target)?;
        Some(moved.outside.join(target.below(&moved.inside)?))
    }

    fn rule(&mut self, path: &HostPath, rule: Rule, reason: &str) -> Result<(), Unsupported> {
        let text = self.text(path, rule, reason)?;
        self.rules.push_str(&text);
        Ok(())
    }

    fn late(&mut self, path: &HostPath, rule: Rule, reason: &str) -> Result<(), Unsupported> {
        let text = self.text(path, rule, reason)?;
        self.late.push_str(&text);
        Ok(())
    }

    /// The whole of what holds at a path and below it, whatever earlier rules said.
    fn text(&mut self, path: &HostPath, rule: Rule, reason: &str) -> Result<String, Unsupported> {
        let name = parameter(&mut self.parameters, 'P', path.as_path(), reason)?;
        if !matches!(rule, Rule::Nothing) {
            self.ancestors.extend(
                path.as_path().ancestors().skip(1).filter(|path| path.parent().is_some()).map(Path::to_owned),
            );
        }
        let deny = format!("(deny file-read* file-write* process-exec* (subpath (param \"{name}\")))\n");
        Ok(match rule {
            Rule::Nothing => format!("; Closed: see the parameter.\n{deny}"),
            Rule::Read => {
                format!(
                    "; Read only: see the parameter.\n{deny}(allow file-read* process-exec* (subpath (param \"{name}\")))\n"
                )
            }
            Rule::Write => format!(
                "; Open: see the parameter.\n(allow file-read* file-write* process-exec* (subpath (param \"{name}\")))\n"
            ),
        })
    }
}

fn parameter(all: &mut Vec<Parameter>, kind: char, path: &Path, reason: &str) -> Result<String, Unsupported> {
    let name = format!("{kind}{}", all.len());
    all.push(Parameter { name: name.clone(), value: text(path)?, reason: reason.to_owned() });
    Ok(name)
}

fn text(path: &Path) -> Result<String, Unsupported> {
    path.to_str().map(str::to_owned).ok_or_else(|| Unsupported::NotText { path: path.to_owned() })
}

/// The environment, with places inside replaced by where they are.
fn environment(plan: &SeatbeltPlan, spec: &ResolvedSpec) -> BTreeMap<String, Variable> {
    let place = |written: &str| match BoxPath::new(written) {
        // What only passes through a link of the root is left as it was written.
        Ok(path) if plan.outside(&path) != real(&path) => plan.outside(&path).to_string(),
        _ => written.to_owned(),
    };
    let rewritten = |(name, variable): (&String, &Variable)| {
        let mut variable = variable.clone();
        if PLACES.contains(&name.as_str()) {
            variable.value = variable.value.split(':').map(place).collect::<Vec<_>>().join(":");
        }
        (name.clone(), variable)
    };
    spec.environment.iter().map(rewritten).collect()
}
