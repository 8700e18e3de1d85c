//! Where the credentials of an HTTP server come from. Each is tried once, and exactly one
//! `Authorization` header is ever sent.
//!
//! In this order: a token of ours (`EXPEDITE_GIT_TOKEN`, or the file that `EXPEDITE_GIT_TOKEN_FILE`
//! names); user and password of the URL; the header that `http.<url>.extraheader` holds, as
//! actions/checkout leaves it; nothing; and when the server then asks, git's credential helpers.

use crate::error::{GitError, GitErrorKind};
use crate::{Config, Environment, SecretText};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use child_process::{Bounds, ProgramFault, run_program};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;
use url::Url;

/// The value of an `Authorization` header, and what to call it in a message.
#[derive(Debug, Clone)]
pub(crate) struct Authorization {
    pub value: SecretText,
    pub source: String,
    /// Nothing is tried after it: a person gave it explicitly, or a helper did.
    last: bool,
    /// Came from a helper, which is to hear whether it worked.
    helped: Option<GitHelperAnswer>,
}

impl Authorization {
    /// The same, with nobody left to tell that it worked.
    pub fn forget_helper(self) -> Self {
        Self { helped: None, ..self }
    }
}

/// What a helper answered, by attribute.
type GitHelperAnswer = BTreeMap<String, SecretText>;

/// How far a helper may go.
const HELPER: Bounds = Bounds { time: Duration::from_secs(30), output: 64 << 10 };

/// Credentials for one URL.
#[derive(Debug, Clone)]
pub(crate) struct Credentials {
    url: Url,
    first: Option<Authorization>,
    /// Other headers that the configuration wants sent.
    pub headers: Vec<(String, SecretText)>,
    config: Config,
    environment: Environment,
    folder: Option<PathBuf>,
}

impl Credentials {
    /// Collects what is known without asking anybody. `folder` is where helpers run.
    pub fn collect_known(
        url: &Url,
        config: &Config,
        environment: &Environment,
        folder: Option<PathBuf>,
    ) -> Result<Self, GitError> {
        let mut headers: Vec<(String, SecretText)> = Vec::new();
        for line in config.collect_url_values("http", url, "extraheader") {
            match line.split_once(':') {
                // An empty value empties the list.
                None if line.trim().is_empty() => headers.clear(),
                None => {}
                Some((name, value)) => {
                    headers.push((name.trim().to_ascii_lowercase(), SecretText(value.trim().to_owned())));
                }
            }
        }
        let (theirs, headers): (Vec<_>, Vec<_>) =
            headers.into_iter().partition(|(n, _)| n == "authorization");
        let header = theirs.into_iter().next_back().map(|(_, value)| Authorization {
            value,
            source: "the header in http.extraheader".to_owned(),
            last: false,
            helped: None,
        });
        let first = read_token(url, environment)?.or_else(|| parse_userinfo(url)).or(header);
        let mut url = url.clone();
        // Neither can fail: the URL has a host.
        let _ = url.set_password(None);
        Ok(Self { url, first, headers, config: config.clone(), environment: environment.clone(), folder })
    }

    /// What to send at first, if anything.
    pub fn first(&self) -> Option<Authorization> {
        self.first.clone()
    }

    /// What to try after the server refused `tried`: helpers, unless a person gave us something
    /// explicitly.
    pub fn choose_next(&self, tried: Option<&Authorization>) -> Result<Option<Authorization>, GitError> {
        if tried.is_some_and(|t| t.last) {
            return Ok(None);
        }
        let Some(answer) = self.ask_helpers()? else { return Ok(None) };
        let (Some(user), Some(password)) = (answer.get("username"), answer.get("password")) else {
            return Ok(None);
        };
        let value = match answer.get("authtype").zip(answer.get("credential")) {
            Some((kind, credential)) => SecretText(format!("{} {}", kind.0, credential.0)),
            None => format_basic(&user.0, &password.0),
        };
        Ok(Some(Authorization {
            value,
            source: "a credential helper".to_owned(),
            last: true,
            helped: Some(answer),
        }))
    }

    /// Tells helpers whether what they gave worked, as git does.
    pub fn tell_helpers(&self, used: &Authorization, worked: bool) {
        let Some(answer) = &used.helped else { return };
        let mut said = String::new();
        for (name, value) in answer {
            said.push_str(&format!("{name}={}\n", value.0));
        }
        // A helper that cannot remember is no reason to fail.
        let _ = self.run_git(if worked { "approve" } else { "reject" }, &said);
    }

    /// Asks `git credential fill`, or, where there is no git program, the helpers themselves.
    fn ask_helpers(&self) -> Result<Option<GitHelperAnswer>, GitError> {
        let question = self.format_question();
        match self.run_git("fill", &question) {
            Ok(answer) => Ok(answer.map(|a| parse_answer(&a))),
            Err(failure) if failure.code == "program-absent" => self.run_helpers(&question),
            Err(failure) => Err(failure),
        }
    }

    fn format_question(&self) -> String {
        let host = self.url.host_str().unwrap_or_default();
        let port = self.url.port().map(|p| format!(":{p}")).unwrap_or_default();
        let mut said = format!("protocol={}\nhost={host}{port}\n", self.url.scheme());
        if self.config.find_url_value("credential", &self.url, "usehttppath") == Some("true") {
            said.push_str(&format!("path={}\n", self.url.path().trim_start_matches('/')));
        }
        if !self.url.username().is_empty() {
            said.push_str(&format!("username={}\n", decode_percent(self.url.username())));
        }
        said
    }

    fn run_git(&self, verb: &str, said: &str) -> Result<Option<String>, GitError> {
        let mut command = Command::new("git");
        command.args(["credential", verb]);
        self.run_program(command, "git credential", said)
    }

    /// The configured helpers in their order, the first that answers.
    fn run_helpers(&self, question: &str) -> Result<Option<GitHelperAnswer>, GitError> {
        let mut helpers = Vec::new();
        for helper in self.config.collect_url_values("credential", &self.url, "helper") {
            if helper.is_empty() { helpers.clear() } else { helpers.push(helper) }
        }
        for helper in helpers {
            let line = match helper.strip_prefix('!') {
                Some(shell) => format!("{shell} get"),
                None if helper.starts_with('/') => format!("{helper} get"),
                None => format!("git-credential-{helper} get"),
            };
            let mut command = Command::new("sh");
            command.args(["-c", &line]);
            let answer = self
                .run_program(command, "credential helper", question)?
                .map(|a| parse_answer(&a))
                .unwrap_or_default();
            if answer.contains_key("password") {
                return Ok(Some(answer));
            }
        }
        Ok(None)
    }

    /// Runs a program with `said` as its input; `None` when it ends with an error, as it does when there
    /// is nothing to answer.
    fn run_program(&self, mut command: Command, name: &str, said: &str) -> Result<Option<String>, GitError> {
        let failed = |code, why: String| {
            GitError::new(GitErrorKind::Repository, code, why).with_object(name.to_owned())
        };
        command.env_clear().envs(self.environment.iter());
        // Nobody sits there to answer.
        command.envs([("GIT_TERMINAL_PROMPT", "0"), ("GCM_INTERACTIVE", "never")]).env_remove("SSH_ASKPASS");
        command.env_remove("DISPLAY");
        if let Some(folder) = &self.folder {
            command.current_dir(folder);
        }
        command.stderr(Stdio::null());
        match run_program(command, said.as_bytes(), HELPER) {
            Ok(ended) if ended.status.success() => {
                Ok(Some(String::from_utf8_lossy(&ended.output).into_owned()))
            }
            Ok(_) => Ok(None),
            Err(fault @ ProgramFault::Absent) => Err(failed("program-absent", fault.to_string())),
            Err(fault) => Err(failed("credential-helper", fault.to_string())),
        }
    }
}

fn parse_answer(answer: &str) -> GitHelperAnswer {
    answer
        .lines()
        .filter_map(|line| line.split_once('='))
        .map(|(name, value)| (name.to_owned(), SecretText(value.to_owned())))
        .collect()
}

fn format_basic(user: &str, password: &str) -> SecretText {
    SecretText(format!("Basic {}", BASE64_STANDARD.encode(format!("{user}:{password}"))))
}

/// A part of a URL without its `%xx`.
pub(crate) fn decode_percent(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        let hex = (*first == b'%').then(|| after.get(..2).and_then(|h| hex::decode(h).ok())).flatten();
        match hex {
            Some(byte) => {
                bytes.extend(byte);
                rest = &after[2..];
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn parse_userinfo(url: &Url) -> Option<Authorization> {
    let password = url.password()?;
    let value = format_basic(&decode_percent(url.username()), &decode_percent(password));
    Some(Authorization { value, source: "user and password of the URL".to_owned(), last: true, helped: None })
}

/// The token that was given to us, from the variable or from the file that a variable names. White space
/// around it goes; a line end inside is an error that does not show it.
fn read_token(url: &Url, environment: &Environment) -> Result<Option<Authorization>, GitError> {
    const VARIABLE: &str = "EXPEDITE_GIT_TOKEN";
    const FILE: &str = "EXPEDITE_GIT_TOKEN_FILE";
    let (source, text) = if let Some(text) = environment.get(VARIABLE) {
        (VARIABLE.to_owned(), text.to_owned())
    } else if let Some(file) = environment.get_path(FILE) {
        let wrong = |why: String| {
            GitError::new_input("git-token", why).with_object(format!("{FILE} {}", file.display()))
        };
        let text = std::fs::read_to_string(&file).map_err(|e| wrong(format!("cannot read it: {e}")))?;
        if text.trim().is_empty() {
            return Err(wrong("the file is empty".to_owned()));
        }
        (format!("the file {FILE} names"), text.trim().to_owned())
    } else {
        return Ok(None);
    };
    if text.chars().any(|c| c.is_control() || c == ' ') {
        return Err(GitError::new_input(
            "git-token",
            "the token holds a line end, a space or a control character",
        )
        .with_object(source)
        .with_hint("store the token alone, on one line"));
    }
    let user =
        if url.username().is_empty() { "x-access-token".to_owned() } else { decode_percent(url.username()) };
    Ok(Some(Authorization { value: format_basic(&user, &text), source, last: true, helped: None }))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;

    fn collect(url: &str, environment: &Environment) -> Result<Credentials, GitError> {
        Credentials::collect_known(&Url::parse(url).unwrap(), &Config::default(), environment, None)
    }

    fn plain(value: &SecretText) -> String {
        let bytes = BASE64_STANDARD.decode(value.0.strip_prefix("Basic ").unwrap()).unwrap();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn b34_tokens_end_without_a_newline_and_a_newline_inside_is_refused_without_showing_it() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("token");
        let env = Environment::new([("EXPEDITE_GIT_TOKEN_FILE", file.as_os_str())]);
        for text in ["s3cret\n", "s3cret\r\n", "s3cret"] {
            std::fs::write(&file, text).unwrap();
            let found = collect("https://h/x", &env).unwrap().first().unwrap();
            assert_eq!(plain(&found.value), "x-access-token:s3cret");
        }
        std::fs::write(&file, "s3\ncret\n").unwrap();
        let refused = collect("https://h/x", &env).unwrap_err();
        assert!(!format!("{refused:?}").contains("cret"), "{refused:?}");
        std::fs::write(&file, "\n").unwrap();
        assert_eq!(collect("https://h/x", &env).unwrap_err().code, "git-token");
        let env = Environment::new([("EXPEDITE_GIT_TOKEN", "t\n")]);
        let found = collect("https://me@h/x", &env).unwrap().first().unwrap();
        assert_eq!(plain(&found.value), "me:t");
        assert!(!format!("{found:?}").contains("bWU6"), "{found:?}");
    }

    #[test]
    fn the_urls_password_is_decoded_once() {
        let env = Environment::default();
        let found = collect("https://us%40er:p%25%20w@h/x", &env).unwrap().first().unwrap();
        assert_eq!(plain(&found.value), "us@er:p% w");
    }
}
