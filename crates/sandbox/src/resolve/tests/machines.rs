//! Machines on paper.

use crate::facts::fake::Fake;

/// Debian with merged /usr.
pub(super) fn debian(uid: u32) -> Fake {
    let fake = Fake::new(uid)
        .dir("/usr/bin")
        .file("/usr/bin/fish", "")
        .dir("/usr/local/bin")
        .link("/bin", "usr/bin")
        .link("/sbin", "usr/sbin")
        .link("/lib", "usr/lib")
        .link("/lib64", "usr/lib64")
        .dir("/opt")
        .dir("/var/tmp")
        .dir("/tmp")
        .file("/etc/shadow", "root:x")
        .mode("/etc/shadow", 0o640)
        .file("/etc/ssh/ssh_host_rsa_key", "key")
        .mode("/etc/ssh/ssh_host_rsa_key", 0o600)
        .file("/etc/ssh/ssh_host_rsa_key.pub", "key")
        .file("/etc/wireguard/wg0.conf", "key")
        .file("/run/systemd/resolve/stub-resolv.conf", "nameserver 127.0.0.53")
        .link("/etc/resolv.conf", "../run/systemd/resolve/stub-resolv.conf");
    fake.mount("/proc", "proc").mount("/sys", "sysfs").mount("/run", "tmpfs")
}

/// A user with a repository, dot files and a few tools.
pub(super) fn ann() -> Fake {
    debian(1000)
        .file("/home/ann/.gitconfig", "[user]\n\tname = Ann\n")
        .file("/home/ann/.git-credentials", "secret")
        .file("/home/ann/.ssh/id_ed25519", "secret")
        .file("/home/ann/.cargo/bin/cargo", "")
        .file("/home/ann/.cargo/credentials.toml", "secret")
        .dir("/home/ann/.rustup/toolchains")
        .file("/home/ann/bin/own", "")
        .file("/home/ann/repo/.git/HEAD", "ref: refs/heads/main\n")
        .file("/home/ann/repo/src/main.rs", "")
        .owner("/home/ann", 1000, 1000)
}

/// A linked worktree at `/home/ann/tree` of `/home/ann/repo`.
pub(super) fn worktree() -> Fake {
    ann()
        .dir("/home/ann/repo/.git/objects")
        .dir("/home/ann/repo/.git/refs")
        .file("/home/ann/repo/.git/worktrees/tree/gitdir", "/home/ann/tree/.git\n")
        .file("/home/ann/repo/.git/worktrees/tree/commondir", "../..\n")
        .file("/home/ann/repo/.git/worktrees/tree/HEAD", "ref: refs/heads/side\n")
        .file("/home/ann/tree/.git", "gitdir: /home/ann/repo/.git/worktrees/tree\n")
        .owner("/home/ann", 1000, 1000)
}
