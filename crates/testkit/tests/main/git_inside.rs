//! Git inside, with the user's identity and without the user's passwords: native and in containers, with and
//! without an agent to sign in with.

use std::path::Path;

use sandtable_testkit::agent::SshAgent;
use sandtable_testkit::container::{Contained, Kind};
use sandtable_testkit::env::{Caller, TestEnv};
use sandtable_testkit::process::Run;
use sandtable_testkit::require;

use crate::cli::Unused as _;

const IDENTITY: &str =
    "[user]\n\tname = Ann Author\n\temail = ann@example.invalid\n[credential]\n\thelper = store\n";
const COMMIT: &str = "cd src && echo more >> main.c && git commit -qam inside && git log -1 --format='%an <%ae> %s' && git log --oneline | wc -l";

/// The files of a home directory that concern git, one of them a secret.
fn furnish(env: &TestEnv) {
    env.file(&env.home().join(".gitconfig"), IDENTITY);
    env.file(&env.home().join(".config/git/config"), "[core]\n\texcludesFile = ~/.gitignore_global\n");
    env.file(&env.home().join(".gitignore_global"), "*.ignored\n");
    env.file(&env.home().join(".git-credentials"), "https://ann:hunter2@example.invalid\n");
}

fn script(run: Run, options: &[&str], script: &str) -> sandtable_testkit::process::Ended {
    run.args(options).args(["--", "sh", "-c", script]).ended()
}

/// What must hold on every engine.
fn holds(env: &TestEnv, source: &Path, run: impl Fn() -> Run) {
    furnish(env);
    let committed = script(run(), &["--rm", "-q"], COMMIT).expect_code(0);
    assert_eq!(
        committed.stdout.split_whitespace().collect::<Vec<_>>().join(" "),
        "Ann Author <ann@example.invalid> inside 3"
    );
    let files = "touch x.ignored; git status --porcelain; echo $GIT_DISCOVERY_ACROSS_FILESYSTEM
        for file in .gitconfig .config/git/config .gitignore_global .git-credentials; do
            cat ~/$file > /dev/null 2>&1 && echo seen $file; (echo x >> ~/$file) 2> /dev/null && echo changed $file; done";
    let seen = script(run(), &["--rm", "-q"], files).expect_code(0);
    // Nothing is at the place of the passwords, so the private home can have a file there.
    assert_eq!(
        seen.stdout,
        "1\nseen .gitconfig\nseen .config/git/config\nseen .gitignore_global\nchanged .git-credentials\n"
    );
    let passwords = fs_err::read_to_string(env.home().join(".git-credentials")).unwrap();
    assert!(passwords.ends_with("example.invalid\n"), "{passwords}");
    let sanitized =
        script(run(), &["--rm", "-q", "--git-config", "sanitized"], "git config -l; git config user.name");
    assert!(
        sanitized.stdout.ends_with("Ann Author\n") && !sanitized.stdout.contains("helper"),
        "{}",
        sanitized.stdout
    );
    let off = script(run(), &["--rm", "-q", "--git-config", "off"], "git config user.name");
    assert_eq!((off.code, off.stdout.as_str()), (1, ""));
    for name in [".gitconfig", ".config/git/config", ".gitignore_global"] {
        fs_err::remove_file(env.home().join(name)).unwrap();
    }
    script(run(), &["--rm", "-q"], "git log --oneline").expect_code(0).unused();
    for name in [".gitconfig", ".config/git/config", ".gitignore_global"] {
        env.directory(&env.home().join(name));
    }
    script(run(), &["--rm", "-q"], "git log --oneline").expect_code(0).unused();
    env.file(&source.join(".git-credentials"), "https://ann:hunter2@example.invalid\n");
    let refused = script(run(), &["--rm", "-q"], "true").expect_code(2);
    refused.expect_stderr("[source-holds-credentials]").expect_stderr("--dangerously-allow-source").unused();
}

#[test]
fn git_works_inside_with_the_users_identity_and_no_password() {
    for caller in [Caller::Same, Caller::ordinary()] {
        let Some(env) = TestEnv::of_the_executable_as(caller) else { continue };
        let source = env.repository("r");
        holds(&env, &source, || env.sandtable().directory(&source).arg("run"));
    }
}

/// A plain `git clone . copy` compares inode numbers, which an overlay cannot keep: see docs/shortcomings.md.
#[test]
fn a_repository_is_cloned_inside_without_hard_links() {
    for caller in [Caller::Same, Caller::ordinary()] {
        let Some(env) = TestEnv::of_the_executable_as(caller) else { continue };
        let source = env.repository("r");
        let run = || env.sandtable().directory(&source).arg("run");
        for clone in ["git clone -q --no-hardlinks . copy", "git clone -q file://$PWD copy"] {
            let cloned =
                script(run(), &["--rm", "-q"], &format!("{clone} && git -C copy log --oneline | wc -l"));
            assert_eq!(cloned.expect_code(0).stdout.trim(), "2", "{clone}");
        }
        let copied =
            script(run(), &["--rm", "-q", "--mode", "copy"], "git clone -q . copy && cat copy/README");
        assert_eq!(copied.expect_code(0).stdout, "A sample.\n");
    }
}

/// A repository whose own configuration has a token, as continuous integration leaves it.
fn with_passwords(env: &TestEnv, name: &str) -> std::path::PathBuf {
    let source = env.repository(name);
    let address = "https://ann:hunter2@example.invalid/r.git";
    env.git(&source, &["config", "remote.origin.url", address]);
    env.git(
        &source,
        &["config", "http.https://example.invalid/.extraheader", "AUTHORIZATION: basic hunter2"],
    );
    env.git(&source, &["config", "core.sshCommand", "sshpass -p hunter2 ssh"]);
    env.git(&source, &["config", "extensions.worktreeConfig", "true"]);
    env.git(&source, &["config", "--worktree", "remote.second.url", address]);
    source
}

const LOOK: &str = "cat .git/config*; git remote -v; git commit -q --allow-empty -m x && echo done";

#[test]
fn passwords_in_a_repository_are_named_and_left_out_where_asked() {
    for caller in [Caller::Same, Caller::ordinary()] {
        let Some(env) = TestEnv::of_the_executable_as(caller) else { continue };
        furnish(&env);
        let source = with_passwords(&env, "r");
        let linked = env.root().join("linked");
        env.directory(&linked);
        env.git(&source, &["worktree", "add", "-q", linked.to_str().unwrap()]);
        let before = fs_err::read(source.join(".git/config")).unwrap();
        let shown = env.run_script(&source, &["--rm"], LOOK).expect_code(0);
        shown
            .expect_stderr("[exposed-credentials]")
            .expect_stderr("`remote.origin.url`")
            .expect_stderr("`core.sshcommand`")
            .expect_stderr("`remote.second.url`")
            .unused();
        let ways: [&[&str]; 4] = [&[], &["--mode", "copy"], &["--base", "store"], &["--profile", "tight"]];
        for way in ways {
            for (directory, look) in [(&source, LOOK), (&linked, "git config -l; git remote -v")] {
                let options = [&["--rm", "--git-config", "sanitized"], way].concat();
                let ended = env.run_script(directory, &options, look).expect_code(0);
                let told = format!("{}{}", ended.stdout, ended.stderr);
                assert!(ended.stdout.contains("https://example.invalid/r.git (fetch)"), "{way:?}: {told}");
                assert!(
                    !told.contains("hunter2") && !told.contains("[exposed-credentials]"),
                    "{way:?}: {told}"
                );
                assert!(look != LOOK || told.contains("done"), "{way:?}: {told}");
            }
        }
        let live = ["--rm", "--git-config", "sanitized", "--mode", "live"];
        let live = env.run_script(&source, &live, "true").expect_code(0);
        let live = live.expect_stderr("[exposed-credentials]");
        assert!(!live.stderr.contains("`--git-config sanitized`"), "it is set already: {}", live.stderr);
        assert_eq!(fs_err::read(source.join(".git/config")).unwrap(), before);
        env.file(&env.home().join(".gitconfig"), "[http]\n\textraHeader = \"Authorization: x\"\n");
        let own = env.run_script(&env.repository("plain"), &["--rm"], "true").expect_code(0);
        own.expect_stderr("[exposed-credentials]").expect_stderr("`http.extraheader`").unused();
    }
}

/// Without root Podman stands every layer on one directory, so nothing of the source can be exchanged for a copy: there
/// the warning stays.
#[test]
fn passwords_in_a_repository_are_named_and_left_out_of_containers() {
    Contained::each(Contained::new, |world, _| {
        furnish(&world.env);
        let source = with_passwords(&world.env, "secret");
        let before = fs_err::read(source.join(".git/config")).unwrap();
        let shown = script(starting(world, &source), &["--rm"], LOOK).expect_code(0);
        for word in
            ["[exposed-credentials]", "`remote.origin.url`", "`core.sshcommand`", "`remote.second.url`"]
        {
            assert!(shown.stderr.contains(word), "{word}: {}", shown.stderr);
        }
        let rootless =
            world.kind == Kind::Podman && (world.env.caller() != Caller::Same || !require::is_root());
        for way in [&[][..], &["--mode", "copy"], &["--base", "store"], &["--profile", "tight"]] {
            let options = [&["--rm", "--git-config", "sanitized"], way].concat();
            let ended = script(starting(world, &source), &options, LOOK).expect_code(0);
            let told = format!("{}{}", ended.stdout, ended.stderr);
            assert!(told.contains("done"), "{way:?}: {told}");
            // A copy can be written as it should be, and a profile that hides files makes one.
            let kept = rootless && way.is_empty();
            assert_eq!(told.contains("hunter2"), kept, "{way:?}: {told}");
            assert_eq!(ended.stderr.contains("[exposed-credentials]"), kept, "{way:?}: {told}");
        }
        assert_eq!(fs_err::read(source.join(".git/config")).unwrap(), before);
    });
}

/// The system's programs, for an image that has none.
pub(crate) const PROGRAMS: &[&str] = &["-v", "/usr", "-v", "/usr/lib:/lib", "-v", "/usr/lib64:/lib64"];

fn starting(world: &Contained, source: &Path) -> Run {
    world.starting(source).args(PROGRAMS)
}

#[test]
fn git_works_in_containers_with_the_users_identity_and_no_password() {
    Contained::each(Contained::new, |world, source| holds(&world.env, &source, || starting(world, &source)));
}

#[test]
fn a_commit_in_a_container_holds_the_work_of_the_sandbox_alone() {
    Contained::each(Contained::new, |world, source| {
        furnish(&world.env);
        script(starting(world, &source), &["-q", "--name", "a"], "true").expect_code(0).unused();
        world.env.file(&source.join("README"), "Mine.\n");
        world.env.git(&source, &["commit", "-q", "-am", "my own work"]);
        world.env.git(&source, &["checkout", "-q", "-b", "topic"]);
        world.env.git(&source, &["gc", "-q"]);
        let commit = "echo agent > agent.txt && git add -A && git commit -qm inside && git show --format=%s --name-status && git status -sb";
        let exec =
            world.sandtable().args(["exec", "-q", "a", "--", "sh", "-c", commit]).ended().expect_code(0);
        assert_eq!(exec.stdout, "inside\n\nA\tagent.txt\n## main\n");
    });
}

#[test]
fn the_agent_answers_in_containers_and_off_leaves_nothing_of_it() {
    Contained::each(Contained::new, |world, source| {
        let Some(agent) = SshAgent::start(&world.env) else { return };
        world.env.file(&world.env.home().join(".ssh/known_hosts"), "example.invalid ssh-ed25519 AAAA\n");
        let run = || {
            let run = starting(world, &source).variable("SANDTABLE_SSH_AGENT", "");
            run.variable("SSH_AUTH_SOCK", agent.socket())
        };
        let inside = "echo $SSH_AUTH_SOCK; /usr/bin/ssh-add -l; cat ~/.ssh/known_hosts; ls -A ~/.ssh";
        let ended = script(run(), &["--rm"], inside).expect_code(0);
        let expected = format!(
            "/ssh-agent\n256 {} a-test-key (ED25519)\nexample.invalid ssh-ed25519 AAAA\nknown_hosts\n",
            agent.fingerprint()
        );
        assert_eq!(ended.stdout, expected, "{}", ended.stderr);
        let off = run().variable("SANDBOX_SSH_AGENT", "off");
        let nothing =
            "test -z \"${SSH_AUTH_SOCK+x}\" && ! test -e /ssh-agent && ! /usr/bin/ssh-add -l 2> /dev/null";
        script(off, &["--rm"], nothing).expect_code(0).unused();
    });
}

/// Root in a container has lost the right to open the socket of somebody else.
#[test]
fn the_agent_of_somebody_else_is_relayed_into_containers() {
    for kind in [Kind::Docker, Kind::Podman] {
        let Some(owner) = TestEnv::of_the_executable_as(Caller::ordinary()) else { return };
        let Some(agent) = SshAgent::start(&owner) else { return };
        let Some(world) = Contained::new(kind, Caller::Same).filter(|_| require::is_root()) else { continue };
        let source = world.env.repository("r");
        let run = starting(&world, &source).variable("SANDTABLE_SSH_AGENT", "required");
        let ended = script(run.variable("SSH_AUTH_SOCK", agent.socket()), &["--rm"], "/usr/bin/ssh-add -l");
        assert!(ended.stdout.contains(agent.fingerprint()), "{kind:?}: {} {}", ended.stdout, ended.stderr);
    }
}

#[test]
fn a_place_of_a_mount_that_was_replaced_is_said_with_the_way_out() {
    let Some(env) = TestEnv::of_the_executable_as(Caller::ordinary()) else { return };
    let source = env.repository("r");
    env.file(&env.home().join(".config/git/config"), "[core]\n\tabbrev = 12\n");
    let script = "mv ~/.config ~/old && ln -s /etc ~/.config";
    env.run_script(&source, &["--name", "a"], script).expect_code(0).unused();
    let exec = || env.sandtable().directory(&source).args(["exec", "a", "--", "true"]).ended();
    let refused = exec();
    assert_eq!(refused.code, 125, "{}", refused.stderr);
    for word in [".config/git/config", "sandboxes/NAME/home", "move it away"] {
        assert!(refused.stderr.contains(word), "{word}: {}", refused.stderr);
    }
    // As it says.
    let home = env.sandboxes().join("a/home");
    fs_err::rename(home.join(".config"), home.join("moved")).unwrap();
    exec().expect_code(0).unused();
}
