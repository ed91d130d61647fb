//! Fetching with clients of our own making, which do whatever a hostile or broken registry could make them do.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use fs_err as fs;

use super::*;

#[derive(Debug, Default)]
struct Heard {
    cached: AtomicU64,
    fetched: AtomicU64,
}

impl Observer for Heard {
    fn event(&self, event: &Event<'_>) {
        let Event::Fetched { came, .. } = event else { return };
        match came {
            Came::Cached => &self.cached,
            Came::Fetched => &self.fetched,
        }
        .fetch_add(1, Ordering::SeqCst);
    }
}

struct World {
    place: tempfile::TempDir,
    cache: Cache,
}

impl World {
    fn new() -> Self {
        let place = tempfile::tempdir().unwrap();
        fs::create_dir(place.path().join("programs")).unwrap();
        let cache = Cache::new(HostPath::new(place.path().join("cache")).unwrap());
        Self { place, cache }
    }

    /// A client that does this. `$out` is the file after `--output`.
    fn client(&self, name: &str, script: &str) -> &Self {
        let path = self.place.path().join("programs").join(name);
        let text = format!(
            "#!/bin/sh\nexport PATH=/usr/bin:/bin\necho \"$@\" >> '{}'\nwhile [ $# -gt 0 ]; do\ncase \"$1\" in --output) out=$2;; --dest) dest=$2;; esac\nshift\ndone\n{script}\n",
            self.place.path().join("calls").display()
        );
        write_program(&path, &text);
        self
    }

    fn calls(&self) -> String {
        fs::read_to_string(self.place.path().join("calls")).unwrap_or_default()
    }

    fn fetch(&self, downloads: &[Download]) -> Result<u64, FetchError> {
        self.fetch_heard(downloads, &Heard::default())
    }

    fn fetch_heard(&self, downloads: &[Download], heard: &dyn Observer) -> Result<u64, FetchError> {
        let plan: Plan = serde_json::from_value(serde_json::json!({
            "format": 1, "name": "tool", "version": "1",
            "platform": {"os": "linux", "arch": "x86_64", "libc": "glibc"}, "steps": [], "provides": {},
        }))
        .unwrap();
        let plan = Plan { downloads: downloads.to_vec(), ..plan };
        let place = HostPath::new(self.place.path().join("programs")).unwrap();
        let here = CLIENTS.into_iter().map(|name| (name, place.join(name)));
        let programs = here.filter(|(_, path)| path.as_path().is_file()).collect();
        fetch(&[&plan], &self.cache, &Clients { programs, environment: BTreeMap::new() }, heard)
    }
}

/// Writes a program by another process: a file that this one has open for writing, for a moment and in any thread's
/// child, cannot be executed.
#[expect(clippy::disallowed_methods, reason = "nothing of ours is tested by it")]
fn write_program(path: &Path, text: &str) {
    use std::io::Write as _;
    let mut child = std::process::Command::new("/bin/sh")
        .args(["-c", "cat > \"$0\" && chmod 755 \"$0\""])
        .arg(path)
        .stdin(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    assert!(child.wait().unwrap().success());
}

fn https(content: &str) -> Download {
    Download {
        source: Registry::Https,
        name: "thing".parse().unwrap(),
        version: "1".to_owned(),
        file: "thing.tar.gz".parse().unwrap(),
        url: Some("https://example.org/thing.tar.gz".to_owned()),
        sha256: Sha256::of(content.as_bytes()),
        size: Some(content.len() as u64),
    }
}

#[test]
fn what_is_right_is_fetched_once() {
    let world = World::new();
    world.client("curl", "printf content > \"$out\"");
    assert_eq!(world.fetch(&[https("content")]).unwrap(), 1);
    let heard = Heard::default();
    assert_eq!(world.fetch_heard(&[https("content")], &heard).unwrap(), 0);
    assert_eq!((heard.cached.into_inner(), heard.fetched.into_inner()), (1, 0));
    assert_eq!(world.calls().lines().count(), 1);
    assert!(world.calls().contains("--url https://example.org/thing.tar.gz"));
}

#[test]
fn an_address_is_one_address() {
    let world = World::new();
    world.client("curl", "printf content > \"$out\"");
    world
        .fetch(&[Download { url: Some("https://example.org/[1-400]{a,b}".to_owned()), ..https("content") }])
        .unwrap();
    // Without it curl makes hundreds of requests of one address.
    assert!(world.calls().contains("--globoff"), "{}", world.calls());
    assert!(world.calls().contains("--url https://example.org/[1-400]{a,b}"));
}

#[test]
fn a_file_that_was_changed_in_the_cache_is_fetched_again() {
    let world = World::new();
    world.client("curl", "printf content > \"$out\"");
    world.fetch(&[https("content")]).unwrap();
    let kept = world.place.path().join("cache").join(https("content").sha256.to_string());
    for damage in ["", "conten", "contenT"] {
        fs::set_permissions(&kept, std::fs::Permissions::from_mode(0o600)).unwrap();
        fs::write(&kept, damage).unwrap();
        assert!(world.cache.open(&https("content")).unwrap().is_none(), "{damage:?}");
        assert_eq!(world.fetch(&[https("content")]).unwrap(), 1);
    }
}

#[test]
fn hostile_answers_are_errors_that_name_the_file() {
    let world = World::new();
    let refused = |script: &str| {
        world.client("curl", script);
        let text = world.fetch(&[https("content")]).unwrap_err().to_string();
        assert!(world.cache.open(&https("content")).unwrap().is_none());
        assert!(text.contains("`thing.tar.gz`"), "{text}");
        text
    };
    assert!(refused("printf contenT > \"$out\"").contains("its hash is"));
    assert!(refused("printf cont > \"$out\"").contains("ends after 4 bytes, and the plan says 7"));
    assert!(refused("printf content-and-more > \"$out\"").contains("its hash is"));
    assert!(refused("ln -s /etc/passwd \"$out\"").contains("is no file"));
    assert!(refused("mkdir \"$out\"").contains("is no file"));
    assert!(refused("echo 'no such host' >&2; exit 6").contains("cannot fetch"));
    assert!(refused("head -c 300000000 /dev/zero > \"$out\"; sleep 60").contains("longer than the 7 bytes"));
}

/// Cancels once a part of the file has arrived.
#[derive(Debug, Default)]
struct Fickle(std::sync::atomic::AtomicBool);

impl Observer for Fickle {
    fn event(&self, event: &Event<'_>) {
        if let Event::Fetching { .. } = event {
            self.0.store(true, Ordering::SeqCst);
        }
    }

    fn cancelled(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}

#[test]
fn a_cancelled_download_kills_its_client_and_can_be_resumed() {
    let world = World::new();
    world.client("curl", "printf con > \"$out\"; echo $$ > \"$out.pid\"; exec sleep 600");
    let ended = world.fetch_heard(&[https("content")], &Fickle::default());
    assert!(matches!(&ended, Err(FetchError::Cancelled { file }) if file == "thing.tar.gz"), "{ended:?}");
    let scratch = world.place.path().join("cache").join(format!("{}.partial", https("content").sha256));
    assert_eq!(fs::read(scratch.join("thing.tar.gz")).unwrap(), b"con", "the part is kept");
    // The client is gone, if it got as far as writing its id.
    let pid = fs::read_to_string(scratch.join("thing.tar.gz.pid")).unwrap_or_default();
    assert!(pid.trim().is_empty() || !Path::new("/proc").join(pid.trim()).exists(), "{pid}");
    world.client("curl", "[ \"$(cat \"$out\")\" = con ] && printf tent >> \"$out\"");
    assert_eq!(world.fetch(&[https("content")]).unwrap(), 1);
}

#[test]
fn a_broken_attempt_can_be_gone_on_with() {
    let world = World::new();
    world.client("curl", "printf con > \"$out\"; exit 18");
    assert!(world.fetch(&[https("content")]).is_err());
    world.client("curl", "printf tent >> \"$out\"");
    assert_eq!(world.fetch(&[https("content")]).unwrap(), 1);
    assert!(world.calls().contains("--continue-at -"));
}

#[test]
fn no_other_version_is_taken() {
    let world = World::new();
    let wheel = |content: &str| Download {
        source: Registry::Pypi,
        name: "ziglang".parse().unwrap(),
        version: "0.17.0".to_owned(),
        file: "ziglang-0.17.0-py3-none-musllinux_1_1_x86_64.whl".parse().unwrap(),
        url: None,
        ..https(content)
    };
    world.client("pip", "mkdir -p \"$dest\"; printf placeholder > \"$dest/ziglang-0.0.0-py3-none-any.whl\"");
    let text = world.fetch(&[wheel("zig")]).unwrap_err().to_string();
    assert_eq!(text, "pypi has no `ziglang-0.17.0-py3-none-musllinux_1_1_x86_64.whl` for ziglang 0.17.0");
    let calls = world.calls();
    for word in ["--no-deps", "--only-binary=:all:", "--require-hashes", "--platform=musllinux_1_1_x86_64"] {
        assert!(calls.contains(word), "{word} in {calls}");
    }
    let source = Download { file: "ziglang-0.17.0.tar.gz".parse().unwrap(), ..wheel("zig") };
    assert!(world.fetch(&[source]).unwrap_err().to_string().contains("only wheels"));
}

#[test]
fn a_client_that_is_not_there_is_named() {
    let world = World::new();
    let package = Download { source: Registry::Npm, url: None, ..https("x") };
    assert_eq!(
        world.fetch(&[package]).unwrap_err().to_string(),
        "there is no `npm` here, which fetches from npm"
    );
}

#[test]
fn many_are_fetched_at_once_and_each_once() {
    let world = World::new();
    world.client("curl", "basename=${out##*/}; printf %s \"${basename%.txt}\" > \"$out\"");
    let file = |number: usize| {
        let name = format!("f{number}");
        Download { file: format!("{name}.txt").parse().unwrap(), ..https(&name) }
    };
    let mut all: Vec<Download> = (0..12).map(file).collect();
    all.extend((0..12).map(file));
    assert_eq!(world.fetch(&all).unwrap(), 12);
    assert!(Path::new(&world.place.path().join("cache")).is_dir());
}

#[test]
fn a_source_is_looked_for_on_every_mirror_of_apt() {
    let world = World::new();
    let source = Download { source: Registry::DebianSource, url: None, ..https("content") };
    world.client("apt-get", "printf 'http://one/debian/\\nhttp://two/debian/\\nhttp://one/debian/\\n'");
    let calls = world.place.path().join("calls");
    let answer = format!("tail -n 1 '{}' | grep -q http://two/ || exit 22", calls.display());
    world.client("curl", &format!("{answer}\nprintf content > \"$out\""));
    assert_eq!(world.fetch(std::slice::from_ref(&source)).unwrap(), 1);
    let urls: Vec<String> =
        world.calls().lines().filter_map(|line| Some(line.split_once("--url ")?.1.to_owned())).collect();
    assert_eq!(
        urls,
        ["http://one/debian", "http://two/debian"]
            .map(|mirror| format!("{mirror}/pool/main/t/thing/thing.tar.gz"))
    );
    world.client("apt-get", "true");
    let none = Download { sha256: Sha256::of(b"other"), ..source };
    assert!(matches!(world.fetch(&[none]), Err(FetchError::Absent { .. })));
}
