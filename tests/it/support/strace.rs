//! Kills a program at its effects, from outside: strace delivers the signal when a system call is entered,
//! so that this call and everything after it does not happen.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

/// Every system call by which something outside the process changes.
const EFFECTS: &str = "rename,renameat,renameat2,link,linkat,symlink,symlinkat,unlink,unlinkat,rmdir,mkdir,mkdirat,\
                       write,writev,pwrite64,pwritev,sendto,sendmsg,sendfile,ftruncate,truncate,fallocate,copy_file_range,\
                       chmod,fchmod,fchmodat,utimensat";

/// A place to kill a program at: the `nth` call of that name in any one thread, counted from one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Site {
    /// The system call.
    pub call: String,
    /// Which of them.
    pub nth: usize,
    /// What it did when nobody disturbed it.
    pub line: String,
}

/// Runs `command` undisturbed and gives every place to kill it at. Effects that `ours` does not want (by the
/// traced line) are left out. strace counts calls by thread, so an effect could be hidden behind another
/// thread's: that none is, is made sure of.
///
/// # Panics
/// The command does not succeed, or an effect could not be reached.
pub fn sites(strace: &Path, command: &Command, trace: &Path, ours: impl Fn(&str) -> bool) -> Vec<Site> {
    let mut traced = wrapped(strace, command, &["-y", "-e", &format!("trace={EFFECTS}"), "-o"], trace);
    let output = traced.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(&std::fs::read(trace).unwrap()).into_owned();
    let mut counts: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    let mut reached: BTreeMap<&str, usize> = BTreeMap::new();
    let mut sites = Vec::new();
    let mut hidden = Vec::new();
    for line in text.lines() {
        let Some((thread, said)) = line.split_once(' ') else { continue };
        let said = said.trim_start();
        let Some((call, _)) = said.split_once('(') else { continue };
        if !call.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
            continue;
        }
        let nth = counts.entry((thread, call)).or_default();
        *nth += 1;
        let first = reached.entry(call).or_default();
        let wanted = !said.contains("anon_inode:[eventfd]") && ours(said);
        if *nth > *first {
            *first = *nth;
            if wanted {
                sites.push(Site { call: call.to_owned(), nth: *nth, line: said.to_owned() });
            }
        } else if wanted {
            hidden.push(said);
        }
    }
    assert!(
        hidden.is_empty(),
        "strace cannot kill at these, another thread counts first:\n{}",
        hidden.join("\n")
    );
    sites
}

/// Runs `command` and kills it at `site`. Whether it was killed; if not, it must have succeeded.
///
/// # Panics
/// It ended neither by the signal nor well.
pub fn killed(strace: &Path, command: &Command, site: &Site) -> bool {
    let inject = format!("inject={}:signal=KILL:when={}", site.call, site.nth);
    let trace = format!("trace={}", site.call);
    let mut wrapped = wrapped(strace, command, &["-e", &trace, "-e", &inject, "-o"], Path::new("/dev/null"));
    let output = wrapped.output().unwrap();
    let killed = output.status.signal() == Some(9);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(killed || output.status.success(), "{site:?}: {}\n{stderr}", output.status);
    killed
}

/// `most` of the sites, spread evenly, the first and the last of each call among them.
pub fn spread(sites: &[Site], most: usize) -> Vec<Site> {
    let mut chosen = BTreeSet::new();
    for call in sites.iter().map(|site| &site.call).collect::<BTreeSet<_>>() {
        let of_it: Vec<usize> = (0..sites.len()).filter(|n| &sites[*n].call == call).collect();
        chosen.extend([of_it[0], of_it[of_it.len() - 1]]);
    }
    let rest = most.saturating_sub(chosen.len());
    chosen.extend((0..rest).map(|n| n * sites.len() / rest.max(1)));
    chosen.into_iter().map(|n| sites[n].clone()).collect()
}

/// The same command under strace, which follows its threads and children.
fn wrapped(strace: &Path, command: &Command, arguments: &[&str], output: &Path) -> Command {
    let mut wrapped = Command::new(strace);
    wrapped.args(["-f", "-q"]).args(arguments).arg(output).arg("--");
    wrapped.arg(command.get_program()).args(command.get_args());
    wrapped.env_clear().envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    if let Some(folder) = command.get_current_dir() {
        wrapped.current_dir(folder);
    }
    wrapped.stdin(Stdio::null());
    wrapped
}
