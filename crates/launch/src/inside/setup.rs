//! What PID 1 does from its first instruction to the report: the table of contents of a native sandbox.

use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use rustix::fs::{Mode, OFlags};
use rustix::process::{Gid, Signal, Uid, set_parent_process_death_signal};
use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};
use sandtable_protocol::op::{Ids, Network, Plan};
use sandtable_protocol::report::{Control, Report};
use sandtable_protocol::step::Step;
use sandtable_protocol::terms::HostView;
use sandtable_protocol::wire::{Ask, Failure, Tell, WireError};

use crate::failpoint::skips;
use crate::inside::confine::confine;
use crate::inside::mount;
use crate::inside::verify::{Seen, observe, shared_namespace};
use crate::step::Context as _;
use crate::transport;

type Done<T = ()> = Result<T, Failure>;

/// Builds the sandbox around this process and reads back what holds.
pub(crate) fn set_up(
    plan: &Plan,
    host: &HostView,
    socket: &OwnedFd,
    keep: &[BorrowedFd<'_>],
) -> Done<Report> {
    if let Some(control) = shared_namespace(plan, host) {
        return Err(Failure { step: Step::LeaveNamespace(control), errno: 0 });
    }
    die_with_supervisor()?;
    if matches!(plan.network, Network::Nat { .. }) {
        hand_over_namespaces(socket)?;
    }
    let shifted = take_ids(plan, socket)?;
    // The change of ids has reset it.
    die_with_supervisor()?;
    leave_watches()?;
    mount::build(plan, shifted)?;
    let confined = confine(plan, keep)?;
    Ok(observe(&Seen { plan, host, confined, keep }))
}

fn hand_over_namespaces(socket: &OwnedFd) -> Done {
    let open = |name: &str| {
        let path = format!("/proc/self/ns/{name}");
        rustix::fs::open(&path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
            .context(|| Step::Open(path.into()))
    };
    let (user, network) = (open("user")?, open("net")?);
    transport::send(socket, &Tell::Namespaces, &[user.as_fd(), network.as_fd()])
        .map_err(|error| Failure { step: Step::Talk(error.to_string()), errno: 0 })
}

/// Gets the ids of the plan: an ordinary user maps itself, root's supervisor does it and sends the mounts
/// whose owners are shifted accordingly.
fn take_ids(plan: &Plan, socket: &OwnedFd) -> Done<Vec<OwnedFd>> {
    match plan.ids {
        Ids::Same { uid, gid } => {
            write("/proc/self/setgroups", "deny")?;
            write("/proc/self/uid_map", &format!("{uid} {uid} 1"))?;
            write("/proc/self/gid_map", &format!("{gid} {gid} 1"))?;
            Ok(Vec::new())
        }
        Ids::Range { .. } => {
            let lost = |error: WireError| Failure { step: Step::Talk(error.to_string()), errno: 0 };
            transport::send(socket, &Tell::NeedsIds, &[]).map_err(lost)?;
            let frame = transport::receive::<Ask>(socket.as_fd()).map_err(lost)?;
            let what = || Step::BecomeUser;
            set_thread_groups(&[]).context(what)?;
            set_thread_res_gid(Gid::ROOT, Gid::ROOT, Gid::ROOT).context(what)?;
            set_thread_res_uid(Uid::ROOT, Uid::ROOT, Uid::ROOT).context(what)?;
            Ok(frame.descriptors)
        }
    }
}

/// The sandbox counts against its user when it watches files. Here it is left half of what the user has, in the user
/// namespace of the sandbox: the check of the namespaces has shown that it is not the host's.
fn leave_watches() -> Done {
    for (own, host) in [
        ("/proc/sys/user/max_inotify_instances", "/proc/sys/fs/inotify/max_user_instances"),
        ("/proc/sys/user/max_inotify_watches", "/proc/sys/fs/inotify/max_user_watches"),
    ] {
        let most = fs_err::read_to_string(host).ok().and_then(|text| text.trim().parse::<u64>().ok());
        let Some(most) = most else { continue };
        match write(own, &(most / 2).max(1).to_string()) {
            // Inside most containers these settings cannot be written at all.
            Err(Failure { errno: libc::ENOENT | libc::EROFS | libc::EACCES | libc::EPERM, .. }) | Ok(()) => {}
            Err(failure) => return Err(failure),
        }
    }
    Ok(())
}

/// The kernel kills this process when its supervisor dies.
fn die_with_supervisor() -> Done {
    set_parent_process_death_signal(Some(Signal::KILL)).context(|| Step::TieToSupervisor)
}

/// The map of a root sandbox, as the supervisor writes it.
pub(crate) fn range_map(base: u32, count: u32) -> String {
    if skips(Control::PrivateIds) { "0 0 65536".to_owned() } else { format!("0 {base} {count}") }
}

fn write(path: &str, text: &str) -> Done {
    std::fs::OpenOptions::new()
        .write(true)
        .open(path)
        .and_then(|mut file| std::io::Write::write_all(&mut file, text.as_bytes()))
        .context(|| Step::Write(path.into()))
}
