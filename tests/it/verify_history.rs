//! `verify-history`: the past judged again by the real binary, and every way to forge it found.

mod forged;
mod walk;

use crate::support::harness::Said;
use crate::support::past::Past;
use serde_json::Value;

/// What the verb found, as JSON.
struct Found {
    said: Said,
    json: Value,
}

impl Found {
    fn of(past: &Past, arguments: &[&str]) -> Self {
        let said = past.verb(&[&["verify-history", "-o", "json"], arguments].concat());
        let json = serde_json::from_str(&said.stdout)
            .unwrap_or_else(|e| panic!("{e}: {}", said.transcript("verify-history")));
        Self { said, json }
    }

    fn codes(&self, list: &str) -> Vec<&str> {
        self.json[list].as_array().unwrap().iter().map(|f| f["code"].as_str().unwrap()).collect()
    }

    fn messages(&self, list: &str) -> String {
        let all = self.json[list].as_array().unwrap().iter();
        all.map(|f| f["message"].as_str().unwrap()).collect::<Vec<_>>().join("\n")
    }

    /// Wants no finding at all, and everything read.
    #[track_caller]
    fn clean(&self) -> &Self {
        assert_eq!(self.said.status, Some(0), "{:#}\n{}", self.json, self.said.stderr);
        assert_eq!((self.codes("findings").len(), self.codes("unread").len()), (0, 0));
        self
    }

    /// Wants findings, one of this code with this text, and exit status 5.
    #[track_caller]
    fn finds(&self, code: &str, text: &str) -> &Self {
        assert_eq!(self.said.status, Some(5), "{:#}\n{}", self.json, self.said.stderr);
        let found = self.json["findings"].as_array().unwrap().iter();
        let hit =
            found.into_iter().any(|f| f["code"] == code && f["message"].as_str().unwrap().contains(text));
        assert!(hit, "no {code} with {text:?} in {:#}", self.json);
        self
    }

    #[track_caller]
    fn counts(&self, promotions: u64, deployments: u64) -> &Self {
        assert_eq!(
            (self.json["promotions"].as_u64(), self.json["deployments"].as_u64()),
            (Some(promotions), Some(deployments)),
            "{:#}",
            self.json
        );
        self
    }
}
