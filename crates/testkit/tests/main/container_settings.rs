//! What a launcher brings into a container besides the workspace: an agent's settings, credentials that are shown
//! on purpose, variables, and nothing of a registry's passwords.

use sandtable_testkit::container::{Contained, Kind};
use sandtable_testkit::env::Caller;
use sandtable_testkit::fingerprint::Fingerprint;

#[test]
fn an_agent_reads_its_key_and_keeps_its_settings_at_both_homes() {
    Contained::each(Contained::new, |world, source| {
        let settings = world.env.home().join(".llxprt");
        world.env.file(&settings.join("settings.json"), "{\"theme\": 1}\n");
        // The home directory has a second name.
        let link = world.env.root().join("also-home");
        world.env.symlink("home", &link);
        let before = Fingerprint::of(&settings, &[]);
        let agent = "cat $HOME/.llxprt/settings.json; echo $API_KEY > ~/.llxprt/last; cat $0/.llxprt/last";
        let run = world.starting(&source).variable("HOME", &link).variable("API_KEY", "hunter2");
        let run =
            run.args(["--name", "a", "--agent-home", "llxprt", "-e", "API_KEY", "--", "sh", "-c", agent]);
        let ended = run.arg(&link).ended().expect_code(0);
        assert_eq!(ended.stdout, "{\"theme\": 1}\nhunter2\n", "{}", ended.stderr);
        let again =
            world.sandtable().args(["exec", "a", "--", "sh", "-c", "cat ~/.llxprt/last $0/.llxprt/last"]);
        assert_eq!(again.arg(&link).ended().expect_code(0).stdout, "hunter2\nhunter2\n");
        assert_eq!(before.differences(&Fingerprint::of(&settings, &[])), [""; 0]);
        drop(world.sandtable().args(["rm", "a"]).ended().expect_code(0));
    });
}

#[test]
fn git_configuration_is_under_both_names_of_the_home() {
    Contained::each(Contained::new, |world, source| {
        let names = [".gitconfig", ".config/git/config", ".gitignore_global"];
        for name in names {
            world.env.file(&world.env.home().join(name), format!("# {name}\n"));
        }
        let link = world.env.root().join("also-home");
        world.env.symlink("home", &link);
        let script = "for home in $HOME $0 $1; do for name in $2 $3 $4; do cat $home/$name; echo x >> $home/$name; done; done; true";
        let run =
            world.starting(&source).variable("HOME", &link).args(["--rm", "-q", "--", "sh", "-c", script]);
        let ended = run.arg(&link).arg(world.env.home()).args(names).ended().expect_code(0);
        let once: String = names.map(|name| format!("# {name}\n")).concat();
        assert_eq!(ended.stdout, once.repeat(3), "{}", ended.stderr);
        assert_eq!(fs_err::read_to_string(link.join(".gitconfig")).unwrap(), "# .gitconfig\n");
    });
}

#[test]
fn credentials_of_google_are_shown_only_on_purpose_and_cannot_be_changed() {
    Contained::each(Contained::new, |world, source| {
        let gcloud = world.env.home().join(".config/gcloud");
        world.env.file(&gcloud.join("credentials.db"), "token\n");
        let adc = world.env.home().join("service.json");
        world.env.file(&adc, "{\"key\": 1}\n");
        let script = "cat ~/.config/gcloud/credentials.db; cat ${GOOGLE_APPLICATION_CREDENTIALS:-/none}; \
                      echo x >> ~/.config/gcloud/credentials.db; true";
        let run = |options: &[&str]| {
            let run = world.starting(&source).variable("GOOGLE_APPLICATION_CREDENTIALS", &adc);
            run.args(["--rm", "-q"]).args(options).args(["--", "sh", "-c", script]).ended().expect_code(0)
        };
        assert_eq!(run(&[]).stdout, "");
        let shown = run(&["--expose", "gcloud", "--expose", "adc"]);
        assert_eq!(shown.stdout, "token\n{\"key\": 1}\n", "{}", shown.stderr);
        assert_eq!(fs_err::read_to_string(gcloud.join("credentials.db")).unwrap(), "token\n");
    });
}

#[test]
fn variables_arrive_by_their_launchers_names() {
    Contained::each(Contained::new, |world, source| {
        let run = world
            .starting(&source)
            .variable("SANDBOX_ENV", "A=1,B=two words")
            .variable("GEMINI_API_KEY", "k");
        let run = run.variable("NODE_OPTIONS", "--require=/evil.js").args([
            "--rm",
            "--name",
            "v",
            "--profile",
            "safe",
        ]);
        let script = "echo $A $B $SANDBOX ${GEMINI_API_KEY:-none} $NODE_OPTIONS; test -t 1 || echo $TERM";
        let ended = run.args(["--", "sh", "-c", script]).ended().expect_code(0);
        assert_eq!(ended.stdout, "1 two words v none --max-old-space-size=2048\ndumb\n", "{}", ended.stderr);
    });
}

#[test]
fn a_run_asks_nobody_for_a_registrys_password() {
    for caller in [Caller::Same, Caller::ordinary()] {
        let Some(world) = Contained::new(Kind::Podman, caller) else { continue };
        let source = world.env.repository("r");
        let mark = world.env.root().join("home/asked");
        let helper = world.env.root().join("bin/docker-credential-mark");
        world.env.file(&helper, format!("#!/bin/sh\necho asked > {}\nexit 1\n", mark.display()));
        fs_err::set_permissions(&helper, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let auth = world.env.root().join("auth.json");
        world.env.file(&auth, "{\"credHelpers\": {\"localhost\": \"mark\", \"127.0.0.1:1\": \"mark\"}}\n");
        let run =
            world.starting(&source).variable("REGISTRY_AUTH_FILE", &auth).args(["--rm", "-q", "--", "true"]);
        drop(run.ended().expect_code(0));
        assert!(!mark.exists(), "{caller:?}");
        // To fetch one, it is asked.
        let words = ["run", "--engine", "podman", "--image", "127.0.0.1:1/x:1", "--", "true"];
        let run = world.sandtable().directory(&source).variable("REGISTRY_AUTH_FILE", &auth).args(words);
        drop(run.ended().expect_code(125));
        assert!(mark.exists(), "{caller:?}");
    }
}
