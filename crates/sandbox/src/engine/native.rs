//! The native engine: namespaces, mounts, Landlock and a system call filter, on Linux, without a daemon.

use std::fmt;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::Instant;

use rustix::io::Errno;
use rustix::process::geteuid;
use sandtable_launch::outside::attach::{self, Frozen};
use sandtable_launch::outside::cgroup;
use sandtable_launch::outside::supervisor;
use sandtable_launch::{error, handles};
use sandtable_protocol::constants::GROUP_PREFIX;
use sandtable_protocol::invocation::{AttachError, Ending, FreezeError, Invocation};
use sandtable_protocol::op::{self, Allow, Beneath, Ids, Op, Owner, SetIds, Shift};
use sandtable_protocol::report::Report;
use sandtable_protocol::step::Step as Tried;

use super::ssh_agent::{self, relay};
use super::{Engine, Handles, LaunchError, Place, Running, fingerprint, nat};
use crate::model::agent::Forwarding;
use crate::model::layout::{self, Layout};
use crate::model::mount::{Content, FileIdentity, HostAccess, Mount, Ownership, Pins};
use crate::model::path::HostPath;
use crate::model::resolved::{HelperKind, NetworkHelper, ResolvedSpec, Systemd, SystemdKind};
use crate::model::spec::Network;
use crate::os;

/// How many ids a root sandbox has.
pub const ID_COUNT: u32 = 1 << 16;

/// The native engine.
#[derive(Clone, Copy, Debug)]
pub struct Native;

impl Engine for Native {
    type Plan = op::Plan;

    fn plan(&self, spec: &ResolvedSpec, place: &Place) -> op::Plan {
        op::Plan {
            hostname: place.name.to_string(),
            ids: match place.id_base {
                Some(base) => Ids::Range { base, count: ID_COUNT },
                None => Ids::Same { uid: spec.identity.uid, gid: spec.identity.gid },
            },
            network: network(spec),
            ops: spec.mounts.iter().map(|mount| lower(mount, spec, place)).collect(),
            landlock: landlock(spec),
            set_ids: set_ids(spec, place),
            limits: limits(spec, place),
            relay: agent_relay(spec, place),
        }
    }

    fn launch(&self, plan: &op::Plan, handles: &Handles<'_>) -> Result<Box<dyn Running>, LaunchError> {
        let handles = handles::Handles { listener: handles.control, lock: handles.lock };
        let agent = plan
            .relay
            .as_ref()
            .map(relay::Guard::prepare)
            .transpose()
            .map_err(ssh_agent::SshAgentError::from)?;
        let sandbox = supervisor::launch(plan, &handles)?;
        let way_out = match (&plan.network, sandbox.namespaces()) {
            (op::Network::Nat { program }, Some(namespaces)) => Some(nat::start(program, namespaces)?),
            _ => None,
        };
        Ok(Box::new(Launched { sandbox, _way_out: way_out, agent }))
    }

    fn freeze(&self, connection: OwnedFd, directory: &HostPath) -> Result<Frozen, FreezeError> {
        let journal = directory.join(layout::GROUPS);
        // Whoever called `listen`: the supervisor. It has to remove the group, so root makes none for others.
        let supervisor = os::peer(&connection).ok().filter(|supervisor| supervisor.uid == geteuid());
        let group = supervisor.and_then(|supervisor| {
            let supervisor = supervisor.pid.as_raw_nonzero().get();
            cgroup::cold(journal.as_path(), &group(directory), supervisor)
        });
        attach::freeze(connection, group.as_ref())
    }
}

/// A running sandbox, the program that gives it a network, and the way to its ssh-agent.
#[derive(Debug)]
struct Launched {
    sandbox: supervisor::Sandbox,
    _way_out: Option<nat::WayOut>,
    agent: Option<relay::Guard>,
}

impl Running for Launched {
    fn report(&self) -> &Report {
        self.sandbox.report()
    }

    fn run(&self, invocation: Invocation, started: &mut dyn FnMut()) -> Result<Ending, AttachError> {
        attach::run(self.sandbox.socket(), invocation, |_| {
            if let Some(agent) = &self.agent {
                agent.start();
            }
            started();
        })
    }

    fn connection(&self) -> BorrowedFd<'_> {
        self.sandbox.socket()
    }

    fn end(&mut self) {
        self.sandbox.end();
    }

    fn wait_for_others(&self, deadline: Option<Instant>, waiting: &mut dyn FnMut(usize)) {
        attach::wait_for_others(self.sandbox.socket(), deadline, waiting);
    }

    fn ran_out_of_memory(&self) -> bool {
        self.sandbox.ran_out_of_memory()
    }
}

/// The control group. The time a command has is the session's business.
pub(super) fn limits(spec: &ResolvedSpec, place: &Place) -> Option<op::Limits> {
    let asked = &spec.limits;
    let limits = op::Limits {
        group: group(&place.directory),
        journal: place.directory.join(layout::GROUPS).into(),
        memory: asked.memory.as_ref().map(|limit| limit.value.bytes()),
        cpus: asked.cpus.as_ref().map(|limit| limit.value.thousandths()),
        pids: asked.pids.as_ref().map(|limit| limit.value.count()),
        systemd: spec.systemd.as_ref().map(|found| systemd(found, spec.identity.uid)),
    };
    let any = limits.memory.is_some() || limits.cpus.is_some() || limits.pids.is_some();
    any.then_some(limits)
}

fn systemd(found: &Systemd, uid: u32) -> op::Systemd {
    let whose = match found.kind {
        SystemdKind::System => op::Whose::System,
        SystemdKind::User => op::Whose::User { uid },
    };
    op::Systemd { socket: found.socket.as_path().to_owned(), whose }
}

/// The name of a control group: the sandbox's, which its directory ends in, and one for the whole directory as
/// well, because another user or another home may have a sandbox of the same name.
fn group(directory: &HostPath) -> String {
    let name = directory.as_path().file_name().unwrap_or_default().to_string_lossy();
    format!("{GROUP_PREFIX}{name}-{:016x}", fingerprint(directory.as_path()))
}

fn network(spec: &ResolvedSpec) -> op::Network {
    match (spec.network.value, &spec.network_helper) {
        (Network::Host, _) => op::Network::Host,
        (Network::Nat, Some(NetworkHelper { kind: HelperKind::Slirp4netns, program })) => {
            op::Network::Nat { program: program.as_path().to_owned() }
        }
        (Network::None | Network::Proxied | Network::Nat, _) => op::Network::Own,
    }
}

fn lower(mount: &Mount, spec: &ResolvedSpec, place: &Place) -> Op {
    let target = mount.target.as_path().to_owned();
    match &mount.content {
        Content::Host { source, access, ownership, identity } => Op::Bind {
            source: source.as_path().to_owned(),
            target,
            access: match access {
                HostAccess::Read => op::Access::Read,
                HostAccess::Write => op::Access::Write,
            },
            shift: match ownership {
                Ownership::System => Shift::Keep,
                Ownership::Caller => Shift::Shift,
            },
            pinned: identity.map(pinned),
        },
        Content::Cow { source, layer, pins, identity } => Op::Overlay {
            lower: source.as_path().to_owned(),
            layers: place.directory.clone().into(),
            name: layer.to_string(),
            target,
            pins: *pins == Pins::Present,
            pinned: identity.map(pinned),
        },
        Content::Copy { layer, .. } => Op::Bind {
            source: Layout::of(&place.directory).copy(layer).into(),
            target,
            access: op::Access::Write,
            shift: Shift::Shift,
            pinned: None,
        },
        Content::Private { area } => Op::Bind {
            source: place.directory.join(area).into(),
            target,
            access: op::Access::Write,
            shift: Shift::Shift,
            pinned: None,
        },
        Content::Scratch { size } => {
            let owner = if mount.target == spec.home { Owner::Workload } else { Owner::Everybody };
            Op::Tmpfs { target, size: *size, owner }
        }
        Content::Empty => Op::Directory { target },
        Content::Link { to } => Op::Symlink { target, to: to.into() },
        Content::Text { contents } => Op::File { target, contents: contents.clone() },
        Content::Masked => Op::Mask { target },
        Content::Processes => Op::Proc { target },
        Content::Devices => Op::Dev { target },
        Content::Agent => agent_socket(target, spec, place),
    }
}

/// The agent's socket, or ours that stands for it. Connecting to a socket needs no mount that can be written.
fn agent_socket(target: PathBuf, spec: &ResolvedSpec, place: &Place) -> Op {
    let access = op::Access::Read;
    if let Some(relay) = agent_relay(spec, place) {
        return Op::Bind { source: relay.at, target, access, shift: Shift::Shift, pinned: None };
    }
    match &spec.ssh_agent.forwarding {
        Some(Forwarding::Direct { socket, identity }) => Op::Bind {
            source: socket.as_path().to_owned(),
            target,
            access,
            shift: Shift::Keep,
            pinned: identity.map(pinned),
        },
        // The other ways lead into virtual machines, where there is no native engine.
        _ => Op::Mask { target },
    }
}

/// An agent answers its own user and root, not the private ids that a sandbox of root has.
fn agent_relay(spec: &ResolvedSpec, place: &Place) -> Option<op::Relay> {
    match (&spec.ssh_agent.forwarding, place.id_base) {
        (Some(Forwarding::Direct { socket, .. }), Some(_)) => Some(op::Relay {
            at: place.directory.join(layout::SSH_AGENT).into(),
            to: socket.as_path().to_owned(),
            owner: Owner::Workload,
        }),
        _ => None,
    }
}

fn pinned(identity: FileIdentity) -> op::Identity {
    op::Identity { device: identity.device, inode: identity.inode }
}

/// Everything may be read, since the mounts decide what is there; changed may be what is meant to be.
pub(super) fn landlock(spec: &ResolvedSpec) -> Vec<Beneath> {
    let mut rules = vec![Beneath { target: "/".into(), allow: Allow::Read }];
    for mount in spec.mounts.iter() {
        let target = mount.target.as_path();
        let mut allow = |target: PathBuf, allow| rules.push(Beneath { target, allow });
        match &mount.content {
            Content::Cow { .. }
            | Content::Copy { .. }
            | Content::Private { .. }
            | Content::Scratch { .. }
            | Content::Host { access: HostAccess::Write, .. } => allow(target.to_owned(), Allow::Write),
            Content::Devices => {
                allow(target.to_owned(), Allow::Devices);
                allow(target.join("shm"), Allow::Write);
            }
            Content::Processes => allow(target.to_owned(), Allow::Devices),
            Content::Host { access: HostAccess::Read, .. }
            | Content::Empty
            | Content::Link { .. }
            | Content::Text { .. }
            | Content::Agent
            | Content::Masked => {}
        }
    }
    rules
}

/// What is written into a directory of the host is there for every user of it, unless it lies in our own state, which
/// nobody else can enter.
pub(super) fn set_ids(spec: &ResolvedSpec, place: &Place) -> SetIds {
    let state = place.directory.parent().and_then(|sandboxes| sandboxes.parent());
    let is_lent = |mount: &Mount| match &mount.content {
        Content::Host { source, access: HostAccess::Write, .. } => {
            !state.as_ref().is_some_and(|state| source.is_within(state))
        }
        _ => false,
    };
    if spec.mounts.iter().any(is_lent) { SetIds::Refused } else { SetIds::Allowed }
}

/// Removes the control groups of a launch whose supervisor was killed.
pub(super) fn reap(directory: &HostPath) {
    cgroup::reap(directory.join(layout::GROUPS).as_path());
}

/// Whether the journal of control groups is there.
pub(super) fn has_groups(directory: &HostPath) -> bool {
    directory.join(layout::GROUPS).as_path().exists()
}

/// What helps where the place of a mount is not what it was.
pub(super) const CHANGED_WAY: &str = "a command of a sandbox has put a file or a link where a directory was: move it \
    away. For a place in the home directory it is in `sandtable/sandboxes/NAME/home` below `XDG_DATA_HOME` or `~/.local/share`, \
    for one in the workspace in `workspace.upper` or `copies/workspace` beside that, and for one in a directory that you lent for writing in that \
    directory itself. No link of a sandbox is followed, and nothing of its work is lost";

/// What helps where a directory on the way to a mount may not be entered.
const CLOSED_WAY: &str = "a command of a sandbox has taken the permissions from its home directory, from a directory in it, or \
    from another place above a mount: give them back with `chmod u+rwx`. The home directory of a sandbox is \
    `sandtable/sandboxes/NAME/home` below `XDG_DATA_HOME` or `~/.local/share`. Nothing of its work is lost, and `diff`, `merge` and \
    `fork` do not need it";

/// What a command of the sandbox has made of the way to a mount, if that is why the launch failed.
fn spoilt_way(error: &error::LaunchError) -> Option<&'static str> {
    let error::LaunchError::Step { step, cause: Some(errno) } = error else { return None };
    let is_made = matches!(step, Tried::MakeWay(_) | Tried::MakeMountPoint(_) | Tried::MakeLink(_));
    match *errno {
        Errno::NOTDIR | Errno::LOOP if is_made => Some(CHANGED_WAY),
        Errno::ACCESS if is_made || matches!(step, Tried::OpenForLandlock(_)) => Some(CLOSED_WAY),
        _ => None,
    }
}

/// Whether it is a command of the sandbox that stands in the way, and not the machine.
pub(super) fn is_spoilt(error: &error::LaunchError) -> bool {
    spoilt_way(error).is_some()
}

/// What helps against a failed launch.
pub(super) fn remedy(error: &error::LaunchError) -> Option<String> {
    use error::LaunchError::{Lost, Namespaces, Step, Threads};
    let errno = match error {
        Namespaces(errno) | Step { cause: Some(errno), .. } => *errno,
        Threads => return Some("a program with several threads uses `session::spawn::spawn`".to_owned()),
        Step { cause: None, .. } | Lost(_) => return None,
    };
    match (error, errno) {
        (Namespaces(_), Errno::PERM | Errno::ACCESS) => Some(
            "this machine forbids user namespaces: allow them with `sysctl kernel.unprivileged_userns_clone=1`, or on \
             Ubuntu `sysctl kernel.apparmor_restrict_unprivileged_userns=0`; inside a container start it with a \
             seccomp profile that allows `clone` with namespaces"
                .to_owned(),
        ),
        (Namespaces(_), Errno::NOSPC) => {
            Some("too few namespaces are allowed: raise `sysctl user.max_user_namespaces` and its neighbours".to_owned())
        }
        (Step { step: Tried::ShiftOwners(_), .. }, _) => Some(
            "this file system cannot shift owners (idmapped mounts): put the directory on ext4, xfs or btrfs, or run as \
             an ordinary user"
                .to_owned(),
        ),
        (Step { step: Tried::MapIds, .. }, Errno::PERM) => Some(
            "this root is not the machine's root (a container or user namespace): run as an ordinary user".to_owned(),
        ),
        (Step { step, .. }, Errno::PERM) if step.path() == Some(Path::new("/proc")) => Some(
            "part of `/proc` is covered here, as in most containers, so the kernel allows no new one: run outside the \
             container, or start it with `--security-opt systempaths=unconfined`"
                .to_owned(),
        ),
        (Step { .. }, Errno::STALE) => Some("run the command again".to_owned()),
        _ => spoilt_way(error).map(str::to_owned),
    }
}

/// The plan for people: who, which network, then one line per mount.
pub(super) fn describe(plan: &op::Plan, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    writeln!(f, "host name  {}", plan.hostname)?;
    writeln!(f, "ids        {}", plan.ids)?;
    let network = match &plan.network {
        op::Network::Own => "own namespace, loopback only".to_owned(),
        op::Network::Nat { program } => format!("own namespace, out through {}", program.display()),
        op::Network::Host => "the host's".to_owned(),
    };
    writeln!(f, "network    {network}")?;
    if let Some(limits) = &plan.limits {
        writeln!(f, "limits     {limits}")?;
    }
    if let Some(relay) = &plan.relay {
        writeln!(f, "relay      {} to {}", relay.at.display(), relay.to.display())?;
    }
    for op in &plan.ops {
        writeln!(f, "  {op}")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_helps_depends_on_the_step_and_not_on_its_words() {
        let failed = |step, cause| error::LaunchError::Step { step, cause: Some(cause) };
        let path = || PathBuf::from("/a place/make the b");
        for (step, errno, part) in [
            (Tried::ShiftOwners(path()), Errno::INVAL, "idmapped mounts"),
            (Tried::MapIds, Errno::PERM, "not the machine's root"),
            (Tried::Mount("/proc".into()), Errno::PERM, "systempaths=unconfined"),
            (Tried::MountReplaced(path()), Errno::STALE, "run the command again"),
        ] {
            let error = failed(step, errno);
            assert!(remedy(&error).is_some_and(|text| text.contains(part)), "{error}");
            assert!(!is_spoilt(&error), "{error}");
        }
        for (step, errno, expected) in [
            (Tried::MakeMountPoint(path()), Errno::NOTDIR, Some(CHANGED_WAY)),
            (Tried::MakeWay(path()), Errno::LOOP, Some(CHANGED_WAY)),
            (Tried::MakeWay(path()), Errno::ACCESS, Some(CLOSED_WAY)),
            (Tried::OpenForLandlock(path()), Errno::ACCESS, Some(CLOSED_WAY)),
            (Tried::OpenForLandlock(path()), Errno::NOTDIR, None),
            (Tried::MakeStage, Errno::ACCESS, None),
            (Tried::Open(path()), Errno::ACCESS, None),
        ] {
            let error = failed(step, errno);
            assert_eq!(remedy(&error).as_deref(), expected, "{error}");
            assert_eq!(is_spoilt(&error), expected.is_some(), "{error}");
        }
    }
}
