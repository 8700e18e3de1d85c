//! A Serving's new status over the one in the file: what Expedite changed is new, everything else stays as it
//! was written, including members that only an older or newer build knows.

use serde_json::{Map, Value};

/// Members that identify what a mapping is about. While they are the same, it is the same thing with some
/// members changed, and keeps the members that this build does not know.
const IDENTITY: [&str; 5] = ["type", "name", "preparationName", "digest", "promotedTime"];

/// `new` laid over `raw`: `old` and `new` are the typed status before and after, `raw` is what `old` was read
/// from. A value that did not change keeps its raw form; a member that is in neither `old` nor `new` is
/// unknown and stays; list items are recognised by being equal, then by the members that say what they are
/// about (`IDENTITY`).
#[must_use]
pub fn merge_status(raw: &Value, old: &Value, new: &Value) -> Value {
    if old == new {
        return raw.clone();
    }
    match (raw, old, new) {
        (Value::Object(r), Value::Object(o), Value::Object(n)) if is_same_thing(old, new) => {
            Value::Object(merge_maps(r, o, n))
        }
        (Value::Array(r), Value::Array(o), Value::Array(n)) if r.len() == o.len() => {
            Value::Array(merge_lists(r, o, n))
        }
        _ => new.clone(),
    }
}

/// Keeps raw's order; a new member comes after the one that it follows in `new`.
fn merge_maps(
    raw: &Map<String, Value>,
    old: &Map<String, Value>,
    new: &Map<String, Value>,
) -> Map<String, Value> {
    let mut merged: Vec<(&String, Value)> = Vec::with_capacity(raw.len() + 1);
    for (key, value) in raw {
        match (old.get(key), new.get(key)) {
            (Some(old), Some(new)) => merged.push((key, merge_status(value, old, new))),
            (None, Some(new)) => merged.push((key, new.clone())),
            (Some(_), None) => {}
            (None, None) => merged.push((key, value.clone())),
        }
    }
    let mut before: Option<&String> = None;
    for (key, value) in new {
        if !raw.contains_key(key) {
            let at = merged.iter().position(|(k, _)| Some(*k) == before).map_or(0, |i| i + 1);
            merged.insert(at, (key, value.clone()));
        }
        before = Some(key);
    }
    merged.into_iter().map(|(key, value)| (key.clone(), value)).collect()
}

fn merge_lists(raw: &[Value], old: &[Value], new: &[Value]) -> Vec<Value> {
    let mut used = vec![false; old.len()];
    let mut take = |wanted: &dyn Fn(&Value) -> bool| {
        let found = (0..old.len()).find(|&i| !used[i] && wanted(&old[i]))?;
        used[found] = true;
        Some(found)
    };
    let equal: Vec<Option<usize>> = new.iter().map(|item| take(&|o| o == item)).collect();
    let items = new.iter().zip(equal).map(|(item, equal)| match equal {
        Some(i) => raw[i].clone(),
        None => match take(&|o| o.is_object() && is_same_thing(o, item)) {
            Some(i) => merge_status(&raw[i], &old[i], item),
            None => item.clone(),
        },
    });
    items.collect()
}

/// Whether two mappings are about the same thing.
#[must_use]
pub fn is_same_thing(a: &Value, b: &Value) -> bool {
    IDENTITY.iter().all(|key| a.get(key) == b.get(key))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_did_not_change_keeps_its_form_and_unknown_members_stay() {
        let raw = json!({
            "later": {"x": 1},
            "deployedDigest": "d1",
            "history": [
                {"preparationName": "b", "promotedTime": "2026-01-02T00:00:00.000Z", "note": "kept"},
                {"preparationName": "a", "promotedTime": "2026-01-01T00:00:00.000Z", "old": "1.10"},
            ],
            "queued": {"preparationName": "c", "foo": "bar"},
        });
        let old = json!({
            "deployedDigest": "d1",
            "history": [
                {"preparationName": "b", "promotedTime": "2026-01-02T00:00:00Z"},
                {"preparationName": "a", "promotedTime": "2026-01-01T00:00:00Z"},
            ],
            "queued": {"preparationName": "c"},
        });
        let new = json!({
            "targetSince": "t",
            "deployedDigest": "d2",
            "history": [
                {"preparationName": "c", "promotedTime": "2026-01-03T00:00:00Z"},
                {"preparationName": "b", "promotedTime": "2026-01-02T00:00:00Z", "endedReason": "Superseded"},
                {"preparationName": "a", "promotedTime": "2026-01-01T00:00:00Z"},
            ],
            "queued": {"preparationName": "d"},
        });
        assert_eq!(
            merge_status(&raw, &old, &new).to_string(),
            json!({
                "targetSince": "t",
                "later": {"x": 1},
                "deployedDigest": "d2",
                "history": [
                    {"preparationName": "c", "promotedTime": "2026-01-03T00:00:00Z"},
                    {"preparationName": "b", "promotedTime": "2026-01-02T00:00:00.000Z", "endedReason": "Superseded", "note": "kept"},
                    {"preparationName": "a", "promotedTime": "2026-01-01T00:00:00.000Z", "old": "1.10"},
                ],
                "queued": {"preparationName": "d"},
            })
            .to_string()
        );
        assert_eq!(merge_status(&raw, &old, &old), raw);
    }
}
