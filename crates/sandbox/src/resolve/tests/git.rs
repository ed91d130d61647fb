//! Repositories, worktrees and the user's git configuration.

use super::machines::{ann, worktree};
use super::{check, host, own_mounts, resolved, spec};
use crate::facts::MachineFacts;
use crate::facts::fake::Fake;
use crate::model::path::HostPath;
use crate::model::resolved::EngineName;
use crate::model::resolved::SourceKind;
use crate::model::setting::Setting;
use crate::model::spec::GitConfig;
use crate::process::Cli;
use crate::resolve::case::Case;
use crate::resolve::source;

fn view(directory: &str, machine: &Fake) -> String {
    let resolved = resolved(&spec(directory), &host(1000, "/home/ann", "/usr/bin"), machine).unwrap();
    format!("{:?} {}\n{}", resolved.source.kind, resolved.directory, own_mounts(&resolved))
}

#[test]
fn a_linked_worktree_brings_its_git_directory() {
    insta::assert_snapshot!(view("/home/ann/tree", &worktree()), @"
    LinkedWorktree { common: HostPath(/home/ann/repo/.git) } /home/ann/tree
    /.sandtable/objects: read caller from /home/ann/repo/.git/objects
    /etc/wireguard: masked
    /home/ann: private home
    /home/ann/.gitconfig: read caller
    /home/ann/repo/.git: cow git
    /home/ann/tree: cow workspace
    /opt: read system
    ");
}

#[test]
fn a_worktree_with_relative_pointers() {
    let machine = worktree()
        .file("/home/ann/tree/.git", "gitdir: ../repo/.git/worktrees/tree\n")
        .file("/home/ann/repo/.git/worktrees/tree/gitdir", "../../../../tree/.git\n")
        .owner("/home/ann", 1000, 1000);
    assert!(view("/home/ann/tree", &machine).contains("/home/ann/repo/.git: cow git"));
}

#[test]
fn forged_worktrees_bring_nothing() {
    let forged = [
        ("no pointer back", ann().file("/home/ann/evil/.git", "gitdir: /home/ann/repo/.git\n")),
        (
            "another worktree's directory",
            worktree().file("/home/ann/evil/.git", "gitdir: /home/ann/repo/.git/worktrees/tree\n"),
        ),
        (
            "a common directory that does not know it",
            worktree()
                .file("/home/ann/evil/.git", "gitdir: /srv/fake\n")
                .file("/srv/fake/gitdir", "/home/ann/evil/.git\n")
                .file("/srv/fake/commondir", "/home/ann/repo/.git\n"),
        ),
        (
            "the home directory as common directory",
            ann()
                .file("/home/ann/evil/.git", "gitdir: /home/ann/worktrees/x\n")
                .file("/home/ann/worktrees/x/gitdir", "/home/ann/evil/.git\n")
                .file("/home/ann/worktrees/x/commondir", "/home/ann\n")
                .file("/home/ann/HEAD", "")
                .dir("/home/ann/objects")
                .dir("/home/ann/refs"),
        ),
        ("not a pointer", ann().file("/home/ann/evil/.git", "/home/ann/repo/.git\n")),
        ("a link", ann().dir("/home/ann/evil").link("/home/ann/evil/.git", "/home/ann/repo/.git")),
    ];
    for (what, machine) in forged {
        let text = view("/home/ann/evil", &machine.owner("/home/ann", 1000, 1000));
        assert!(text.starts_with("Plain /home/ann/evil\n"), "{what}: {text}");
        assert!(!text.contains("repo/.git: cow") && !text.contains("cow git"), "{what}: {text}");
        assert!(text.contains("! git-directory-outside: "), "{what}: {text}");
    }
}

#[test]
fn a_git_directory_that_is_part_of_the_source() {
    let machine = ann()
        .file("/home/ann/own/.git", "gitdir: .bare\n")
        .file("/home/ann/own/.bare/HEAD", "")
        .owner("/home/ann", 1000, 1000);
    assert!(view("/home/ann/own", &machine).starts_with("Git /home/ann/own\n"));
}

#[test]
fn a_repository_in_the_home_directory_does_not_swallow_projects() {
    let machine = ann()
        .file("/home/ann/.git/HEAD", "")
        .dir("/home/ann/project")
        .dir("/home/ann/empty/.git")
        .owner("/home/ann", 1000, 1000);
    let text = view("/home/ann/project", &machine);
    assert!(text.starts_with("Plain /home/ann/project\n"), "{text}");
    assert!(text.contains("! repository-too-wide: the repository around `/home/ann/project` is `/home/ann`"));
    let text = check(&spec("/home/ann/empty"), &host(1000, "/home/ann", ""), &machine);
    assert!(text.starts_with("source /home/ann/empty Plain"), "an empty .git is no repository: {text}");
}

#[test]
fn git_configuration_as_it_is() {
    let machine = ann()
        .link("/home/ann/.gitconfig", "dots/gitconfig")
        .file("/home/ann/dots/gitconfig", "")
        .link("/home/ann/.config/git/config", "/home/ann/.git-credentials")
        .file("/home/ann/.gitignore_global", "")
        .owner("/home/ann", 1000, 1000)
        .mode("/home/ann/.gitignore_global", 0);
    insta::assert_snapshot!(view("/home/ann/repo", &machine), @"
    Git /home/ann/repo
    /etc/wireguard: masked
    /home/ann: private home
    /home/ann/.gitconfig: read caller from /home/ann/dots/gitconfig
    /home/ann/repo: cow workspace
    /opt: read system
    ");
}

#[test]
fn git_configuration_without_what_could_hurt() {
    let machine = ann()
        .file(
            "/home/ann/.config/git/config",
            "[user]\nname = Old\n[url \"https://u:token@h/\"]\ninsteadOf = h:\n[include]\npath = more\n",
        )
        .file("/home/ann/.config/git/more", "[core]\n autocrlf = input\n sshCommand = evil\n")
        .file(
            "/home/ann/.gitconfig",
            "[user]\n name = \"Ann \\\"A\\\"\"\n email = a@b\n signingKey = K\n\
             [credential]\n helper = store\n[alias]\n lg = log --oneline\n sh = !sh\n opt = -c a.b=c log\n\
             \x20sw = switch -c\n cl = clone -c http.extraheader=t\n up = push https://u:p@h/x\n\
             [core]\n editor = vi\n hooksPath = /x\n pager = less\n quotePath\n\
             [includeIf \"gitdir:~/repo/\"]\n path = ~/repo.inc\n\
             [includeIf \"gitdir:~/other/\"]\n path = ~/other.inc\n\
             [includeIf \"onbranch:main\"]\n path = ~/branch.inc\n[include]\n path = ~/gone\n",
        )
        .file("/home/ann/repo.inc", "[pull]\n rebase = true\n[include]\n path = repo.inc\n")
        .file("/home/ann/other.inc", "[pull]\n ff = only\n")
        .owner("/home/ann", 1000, 1000);
    let mut spec = spec("/home/ann/repo");
    spec.git_config = Setting::default_value(GitConfig::Sanitized);
    let resolved = resolved(&spec, &host(1000, "/home/ann", "/usr/bin"), &machine).unwrap();
    insta::assert_snapshot!(own_mounts(&resolved), @r#"
    /etc/wireguard: masked
    /home/ann: private home
    /home/ann/.gitconfig: text
    [user]
    	name = "Old"
    [core]
    	autocrlf = "input"
    [user]
    	name = "Ann \"A\""
    	email = "a@b"
    [alias]
    	lg = "log --oneline"
    	sw = "switch -c"
    [core]
    	quotepath
    [pull]
    	rebase = "true"

    /home/ann/repo: cow workspace
    /opt: read system
    ! git-config-skipped: `/home/ann/repo.inc` is left out of the git configuration: it is included by itself, too deeply, or after too many others
    ! git-config-skipped: `/home/ann/branch.inc` is left out of the git configuration: its condition cannot be decided here
    "#);
}

/// Git itself makes the repositories, the real machine is asked.
#[test]
fn worktrees_of_git_are_recognised() {
    let dir = tempfile::tempdir().unwrap();
    let top = HostPath::new(dir.path().canonicalize().unwrap()).unwrap();
    let git = |arguments: &[&str]| {
        let git = Cli::new(HostPath::new("/usr/bin/git").unwrap()).variable("GIT_CONFIG_NOSYSTEM", "1");
        let identity = ["-c", "user.name=a", "-c", "user.email=a@b"];
        git.directory(top.as_path()).args(identity).args(arguments).output().unwrap();
    };
    git(&["init", "--quiet", "main"]);
    git(&["-C", "main", "commit", "--quiet", "--allow-empty", "-m", "first"]);
    git(&["-C", "main", "worktree", "add", "--quiet", "../side"]);
    git(&["init", "--quiet", "--separate-git-dir=apart", "far"]);
    let mut host = host(1000, "/home/ann", "/usr/bin");
    host.data = top.join("state");
    let kind = |name: &str| {
        let spec = spec(&top.join(name).to_string());
        let case = Case::new(&spec, &host, &MachineFacts, EngineName::Native).unwrap();
        source::find(&case, &mut Vec::new()).unwrap().kind
    };
    assert_eq!(kind("main"), SourceKind::Git);
    assert_eq!(kind("side"), SourceKind::LinkedWorktree { common: top.join("main/.git") });
    assert_eq!(kind("far"), SourceKind::Plain);
}
