//! Who a commit is by: flags, then variables, then settings, then git's configuration, then a default.

use super::CommitSigner;
use crate::{Environment, Repository};
use std::fmt;

/// Name and mail address of an author or committer. Never empty, never with `<`, `>` or control
/// characters, which git would refuse.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Person {
    /// For people.
    pub name: String,
    /// As git shows it between `<` and `>`.
    pub email: String,
}

impl Person {
    /// Reads `Name <address>`, the form that [`Display`](fmt::Display) writes; `None` for anything else.
    ///
    /// ```
    /// use git_commits::Person;
    /// let ann = Person::parse("Ann <ann@shop.example>").unwrap();
    /// assert_eq!(ann.to_string(), "Ann <ann@shop.example>");
    /// for other in ["Ann", "automatic", "<ann@x>", "Ann <a@x> b", "Ann <a@x>\nSigned-off-by: B <b@x>", "A <a> <b>"] {
    ///     assert_eq!(Person::parse(other), None, "{other}");
    /// }
    /// ```
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (name, email) = text.strip_suffix('>')?.split_once(" <")?;
        let person = Self { name: clean_name(name)?, email: clean_name(email)? };
        (person.name == name && person.email == email && !email.contains(char::is_whitespace))
            .then_some(person)
    }
}

impl fmt::Display for Person {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} <{}>", self.name, self.email)
    }
}

/// Author and committer of a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// Whose change it is.
    pub author: Person,
    /// Who made the commit.
    pub committer: Person,
    /// Signs it, where that was asked for.
    pub signer: Option<CommitSigner>,
}

/// A name and an address, each where one is given.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Given {
    /// Empty counts as absent.
    pub name: Option<String>,
    /// Empty counts as absent.
    pub email: Option<String>,
}

impl Identity {
    /// Takes name and address each from the first place that has one: `flags`, the variables
    /// `GIT_AUTHOR_NAME`, `GIT_AUTHOR_EMAIL`, `GIT_COMMITTER_NAME`, `GIT_COMMITTER_EMAIL`, `settings`,
    /// git's configuration (`author.*`, `committer.*`, `user.*`), and last
    /// `Expedite <expedite@localhost>`. An empty value is an absent one. Never fails.
    #[must_use]
    pub fn resolve(
        flags: &Given,
        environment: &Environment,
        settings: &Given,
        repository: &Repository,
    ) -> Self {
        let config = |role: &str, what: &str| {
            repository
                .find_config(&format!("{role}.{what}"))
                .and_then(clean_name)
                .or_else(|| repository.find_config(&format!("user.{what}")).and_then(clean_name))
        };
        let one = |flag: &Option<String>,
                   variable: &str,
                   setting: &Option<String>,
                   role: &str,
                   what: &str,
                   default: &str| {
            flag.as_deref()
                .and_then(clean_name)
                .or_else(|| environment.get(variable).and_then(clean_name))
                .or_else(|| setting.as_deref().and_then(clean_name))
                .or_else(|| config(role, what))
                .unwrap_or_else(|| default.to_owned())
        };
        let person = |upper: &str, role: &str| Person {
            name: one(&flags.name, &format!("GIT_{upper}_NAME"), &settings.name, role, "name", "Expedite"),
            email: one(
                &flags.email,
                &format!("GIT_{upper}_EMAIL"),
                &settings.email,
                role,
                "email",
                "expedite@localhost",
            ),
        };
        Self { author: person("AUTHOR", "author"), committer: person("COMMITTER", "committer"), signer: None }
    }

    /// Who asks, where git knows: the author by the variables and by git's configuration, which are the
    /// person's own; settings name whoever commits for everybody. `None`: nobody has a name there.
    #[must_use]
    pub fn find_requester(environment: &Environment, repository: &Repository) -> Option<Person> {
        let known = |variable: &str, what: &str| {
            environment
                .get(variable)
                .and_then(clean_name)
                .or_else(|| repository.find_config(&format!("author.{what}")).and_then(clean_name))
                .or_else(|| repository.find_config(&format!("user.{what}")).and_then(clean_name))
        };
        Some(Person { name: known("GIT_AUTHOR_NAME", "name")?, email: known("GIT_AUTHOR_EMAIL", "email")? })
    }

    /// `Co-authored-by` trailers for those who asked for what a commit does and neither wrote nor committed
    /// it, each once. What is no `Name <address>` (`automatic`, `unknown`) is nobody.
    #[must_use]
    pub fn collect_co_authors<'a>(&self, asked: impl IntoIterator<Item = &'a str>) -> Vec<(String, String)> {
        let mut others: Vec<Person> = asked.into_iter().filter_map(Person::parse).collect();
        others.retain(|p| p.email != self.author.email && p.email != self.committer.email);
        others.sort_by(|a, b| (&a.email, &a.name).cmp(&(&b.email, &b.name)));
        others.dedup_by(|a, b| a.email == b.email);
        others.into_iter().map(|p| ("Co-authored-by".to_owned(), p.to_string())).collect()
    }

    /// The same, whose commits are signed by `signer`.
    #[must_use]
    pub fn with_signer(self, signer: Option<CommitSigner>) -> Self {
        Self { signer, ..self }
    }
}

/// Without what git refuses in a name; `None` when nothing is left.
fn clean_name(text: &str) -> Option<String> {
    let kept: String = text.chars().filter(|c| !c.is_control() && !matches!(c, '<' | '>')).collect();
    let kept = kept.trim_matches(|c: char| c.is_whitespace() || ".,:;\"'\\".contains(c)).to_owned();
    (!kept.is_empty()).then_some(kept)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]
    use super::*;
    use crate::{RepositoryOptions, RepositoryTarget};

    fn given(name: &str, email: &str) -> Given {
        Given { name: Some(name.to_owned()), email: Some(email.to_owned()) }
    }

    #[test]
    fn co_authors_are_the_others_who_asked_each_once() {
        let person = |name: &str| Person { name: name.into(), email: format!("{}@x", name.to_lowercase()) };
        let bot = Identity { author: person("Bot"), committer: person("Bot"), signer: None };
        let asked =
            ["Bob <bob@x>", "automatic", "Ann <ann@x>", "Bot <bot@x>", "Ann B. <ann@x>", "x\n\nA <a@x>"];
        let found: Vec<String> =
            bot.collect_co_authors(asked).into_iter().map(|(k, v)| format!("{k}: {v}")).collect();
        assert_eq!(found, ["Co-authored-by: Ann <ann@x>", "Co-authored-by: Bob <bob@x>"]);
    }

    #[test]
    fn who_asks_is_who_git_says_and_not_the_settings() {
        let dir = tempfile::tempdir().unwrap();
        git2::Repository::init_bare(dir.path()).unwrap();
        let open = || {
            Repository::open_target(&RepositoryTarget::Path(dir.path().into()), RepositoryOptions::default())
                .unwrap()
        };
        assert_eq!(Identity::find_requester(&Environment::default(), &open()), None);
        let mut config = git2::Repository::open_bare(dir.path()).unwrap().config().unwrap();
        config.set_str("user.name", "Ann").unwrap();
        config.set_str("user.email", "ann@x").unwrap();
        let ann = Identity::find_requester(&Environment::default(), &open()).unwrap();
        assert_eq!(ann.to_string(), "Ann <ann@x>");
        let env = Environment::new([("GIT_AUTHOR_NAME", "Bob"), ("GIT_AUTHOR_EMAIL", "bob@x")]);
        assert_eq!(Identity::find_requester(&env, &open()).unwrap().to_string(), "Bob <bob@x>");
    }

    #[test]
    fn the_first_place_that_has_one_wins_and_empty_is_absent() {
        let dir = tempfile::tempdir().unwrap();
        git2::Repository::init_bare(dir.path()).unwrap();
        let repository =
            Repository::open_target(&RepositoryTarget::Path(dir.path().into()), RepositoryOptions::default())
                .unwrap();
        let none = Given::default();
        let env = Environment::default();
        let plain = Identity::resolve(&none, &env, &none, &repository);
        assert_eq!(plain.author.to_string(), "Expedite <expedite@localhost>");
        assert_eq!(plain.author, plain.committer);

        let mut config = git2::Repository::open_bare(dir.path()).unwrap().config().unwrap();
        config.set_str("user.name", "").unwrap();
        config.set_str("user.email", "config@x").unwrap();
        let repository =
            Repository::open_target(&RepositoryTarget::Path(dir.path().into()), RepositoryOptions::default())
                .unwrap();
        let configured = Identity::resolve(&none, &env, &none, &repository);
        assert_eq!(configured.author.to_string(), "Expedite <config@x>");

        let settings = given("Settings", "settings@x");
        assert_eq!(
            Identity::resolve(&none, &env, &settings, &repository).author.to_string(),
            "Settings <settings@x>"
        );
        let env = Environment::new([
            ("GIT_AUTHOR_NAME", "A"),
            ("GIT_AUTHOR_EMAIL", "a@x"),
            ("GIT_COMMITTER_NAME", "C"),
            ("GIT_COMMITTER_EMAIL", "c@x"),
        ]);
        let variables = Identity::resolve(&none, &env, &settings, &repository);
        assert_eq!(
            (variables.author.to_string(), variables.committer.to_string()),
            ("A <a@x>".into(), "C <c@x>".into())
        );
        let flags = Identity::resolve(&given("F <f>\n", "f@x"), &env, &settings, &repository);
        assert_eq!(flags.committer.to_string(), "F f <f@x>");
    }
}
