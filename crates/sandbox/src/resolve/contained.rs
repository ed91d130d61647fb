//! The system's part of the file system where an image brings the system: the few places every program
//! expects, and who the caller is.

use super::case::Case;
use super::error::ResolveError;
use super::source::Workspace;
use crate::facts::Kind;
use crate::model::container::{Build, Recipe};
use crate::model::engine::System;
use crate::model::mount::{Content, Mount};
use crate::model::path::{BoxPath, HostPath};
use crate::model::setting::Origin;

/// Where a project keeps the recipe of its image.
const RECIPES: [&str; 2] = [".sandtable/Dockerfile", ".llxprt/sandbox.Dockerfile"];
/// Where the virtual environment of the caller is.
pub(super) const VIRTUAL_ENV: &str = "VIRTUAL_ENV";

/// What stands in the image besides the image's own files.
pub(super) fn mounts(case: &Case<'_>) -> Vec<Mount> {
    let scratch = || Content::Scratch { size: 0 };
    let places = [
        ("/proc", Content::Processes, "the sandbox's own processes"),
        ("/dev", Content::Devices, "the few devices every program may have"),
        ("/tmp", scratch(), "temporary files, gone with the processes"),
        ("/var/tmp", scratch(), "the other place for temporary files"),
        ("/run", Content::Empty, "no socket of the host is reachable"),
        ("/etc/passwd", Content::Text { contents: passwd(case) }, "the caller has a name inside"),
        ("/etc/group", Content::Text { contents: group(case) }, "the caller's group has a name inside"),
    ];
    let mount = |(path, content, reason): (&str, Content, &str)| Mount {
        target: BoxPath::new(path).expect("absolute"),
        content,
        reason: reason.to_owned(),
        origin: Origin::Default,
    };
    places.map(mount).into()
}

/// An image cannot be given a symbolic link: the home directory's other name shows the same directory.
pub(super) fn without_links(mounts: Vec<Mount>) -> Vec<Mount> {
    let home = mounts.iter().find(|mount| matches!(mount.content, Content::Private { .. })).cloned();
    let unlinked = |mount: Mount| match (&mount.content, &home) {
        (Content::Link { .. }, Some(home)) => Some(Mount { content: home.content.clone(), ..mount }),
        (Content::Link { .. }, None) => None,
        _ => Some(mount),
    };
    mounts.into_iter().filter_map(unlinked).collect()
}

/// What the user mounts at a place of ours stands there instead.
pub(super) fn give_way(ours: &mut Vec<Mount>, others: &[Mount]) {
    ours.retain(|mount| others.iter().all(|other| other.target != mount.target));
}

/// The project's recipe for the image, if it is to be built.
pub(super) fn recipe(case: &Case<'_>, workspace: &Workspace) -> Result<Option<Recipe>, ResolveError> {
    if case.spec.container.build.value == Build::No || case.traits().system == System::Host {
        return Ok(None);
    }
    let places = RECIPES.map(|name| workspace.root.join(name));
    let is_file = |path: &&HostPath| case.facts.kind(*path).is_ok_and(|entry| entry.kind == Kind::File);
    match places.iter().find(is_file) {
        Some(file) => Ok(Some(Recipe { file: file.clone(), context: workspace.root.clone() })),
        None => Err(ResolveError::NoRecipe { places: places.map(|path| path.as_path().to_owned()).into() }),
    }
}

/// A virtual environment in the workspace was made by programs of the host. The sandbox has one of its own at
/// the same place, empty at first, and kept with it.
pub(super) fn virtual_environment(case: &Case<'_>, workspace: &Workspace) -> Option<Mount> {
    let written = case.host.environment.get(VIRTUAL_ENV).filter(|value| !value.is_empty())?;
    let place = HostPath::new(case.facts.real_path(written).ok()?).ok()?;
    (place.is_within(&workspace.root) && place != workspace.root).then(|| Mount {
        target: place.same_inside(),
        content: Content::Private { area: "venv".to_owned() },
        reason: "a virtual environment for the image's programs; the host's is hidden".to_owned(),
        origin: Origin::Variable { name: VIRTUAL_ENV.to_owned() },
    })
}

fn passwd(case: &Case<'_>) -> String {
    let (uid, gid, home) = (case.host.uid, case.host.gid, case.home_inside());
    let root = if uid == 0 {
        format!("root:x:0:0::{home}:/bin/sh\n")
    } else {
        "root:x:0:0::/root:/bin/sh\n".to_owned()
    };
    let user =
        if uid == 0 { String::new() } else { format!("{}:x:{uid}:{gid}::{home}:/bin/sh\n", name(case)) };
    format!("{root}{user}nobody:x:65534:65534::/:/bin/false\n")
}

fn group(case: &Case<'_>) -> String {
    let gid = case.host.gid;
    let own = if gid == 0 { String::new() } else { format!("{}:x:{gid}:\n", name(case)) };
    format!("root:x:0:\n{own}nogroup:x:65534:\n")
}

/// The caller's name, if it can stand in such a file.
fn name<'a>(case: &'a Case<'_>) -> &'a str {
    let fits = |name: &&String| {
        !name.is_empty()
            && name.len() <= 32
            && name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && name.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c))
            && !["root", "nobody", "nogroup"].contains(&name.as_str())
    };
    case.host.environment.get("USER").filter(fits).map_or("user", String::as_str)
}
