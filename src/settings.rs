//! Settings (`expedite.yaml`): raw → valid through one door, all problems at once.
