//! Masks JSON documents: as a whole by a hash, or place by place. What isn't named is left out.
//!
//! Values that stay are written anew from the document's text: a DECIMAL becomes a double, a date a string.

use binlogz_binlog::Error as BinlogError;
use binlogz_binlog::row::json::{JsonDocument, JsonValue};
use serde_json::{Map, Value};

use super::text::{digest_of_text, letters};
use crate::policy::{JsonExit, JsonRule};
use crate::secret::MaskKey;

const WHAT: &str = "json document";

/// A string with the document's hash; null stays null.
pub(super) fn hashed(key: &MaskKey, document: JsonDocument<'_>) -> Result<Vec<u8>, BinlogError> {
    if document.value()? == JsonValue::Null {
        return Ok(document.as_bytes().to_vec());
    }
    let mut text = Vec::new();
    document.write_text(&mut text)?;
    written(&Value::String(hash_of(key, &text)))
}

/// The parts of a document that may leave.
pub(super) fn by_rule(key: Option<&MaskKey>, rule: &JsonRule, bytes: &[u8]) -> Result<Vec<u8>, BinlogError> {
    let mut text = Vec::new();
    JsonDocument::new(bytes).write_text(&mut text)?;
    let value = serde_json::from_slice(&text).map_err(|error| {
        BinlogError::invalid(WHAT, "text", error.to_string(), "one that can be read again")
    })?;
    written(&pruned(key, rule, false, value).unwrap_or(Value::Null))
}

fn written(value: &Value) -> Result<Vec<u8>, BinlogError> {
    let mut bytes = Vec::new();
    JsonDocument::put_text(value.to_string().as_bytes(), &mut bytes)?;
    Ok(bytes)
}

fn hash_of(key: &MaskKey, text: &[u8]) -> String {
    letters(&digest_of_text(key, text)).iter().map(|&letter| char::from(letter)).collect()
}

/// `None`: nothing of the value may leave. `keeps`: what has no rule of its own stays, since the place around it does.
fn pruned(key: Option<&MaskKey>, rule: &JsonRule, keeps: bool, value: Value) -> Option<Value> {
    match (rule.exit.or(keeps.then_some(JsonExit::Keep)), value) {
        (Some(JsonExit::Keep), Value::Object(members)) => {
            let kept = members.into_iter().filter_map(|(name, value)| match rule.members.get(&name) {
                Some(rule) => Some((name, pruned(key, rule, true, value)?)),
                None => Some((name, value)),
            });
            Some(Value::Object(kept.collect::<Map<_, _>>()))
        }
        (Some(JsonExit::Keep), Value::Array(elements)) => Some(Value::Array(match &rule.elements {
            Some(rule) => {
                elements.into_iter().filter_map(|element| pruned(key, rule, true, element)).collect()
            }
            None => elements,
        })),
        (Some(JsonExit::Keep), value) => Some(value),
        (Some(JsonExit::Null), _) | (Some(JsonExit::Hash), Value::Null) => Some(Value::Null),
        // A string has the hash that a column with the same text has.
        (Some(JsonExit::Hash), Value::String(text)) => Some(Value::String(hash_of(key?, text.as_bytes()))),
        (Some(JsonExit::Hash), other) => Some(Value::String(hash_of(key?, other.to_string().as_bytes()))),
        (None, Value::Object(members)) => {
            let named = members.into_iter().filter_map(|(name, value)| {
                let value = pruned(key, rule.members.get(&name)?, false, value)?;
                Some((name, value))
            });
            Some(Value::Object(named.collect::<Map<_, _>>())).filter(|_| !rule.members.is_empty())
        }
        (None, Value::Array(elements)) => {
            let rule = rule.elements.as_ref()?;
            Some(Value::Array(
                elements.into_iter().filter_map(|element| pruned(key, rule, false, element)).collect(),
            ))
        }
        (None, Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_named_leaves() {
        let key = MaskKey::new(b"a key of sixteen");
        let mut rule = JsonRule::default();
        for (path, exit) in [
            ("$.plan", JsonExit::Keep),
            ("$.name", JsonExit::Hash),
            ("$.note", JsonExit::Null),
            ("$.items[*].sku", JsonExit::Keep),
        ] {
            rule.name(path, exit).unwrap();
        }
        let text = r#"{"plan": {"a": 1.5}, "name": "Bob", "note": "x", "age": 7, "items": [{"sku": 1, "who": "Bob"}, "Bob"]}"#;
        let mut bytes = Vec::new();
        JsonDocument::put_text(text.as_bytes(), &mut bytes).unwrap();
        let masked = by_rule(Some(&key), &rule, &bytes).unwrap();
        let mut shown = Vec::new();
        JsonDocument::new(&masked).write_text(&mut shown).unwrap();
        let hash = hash_of(&key, b"Bob");
        assert_eq!(
            String::from_utf8(shown).unwrap(),
            format!(r#"{{"name": "{hash}", "note": null, "plan": {{"a": 1.5}}, "items": [{{"sku": 1}}]}}"#)
        );
        for scalar in ["\"Bob\"", "7", "[1]"] {
            let mut bytes = Vec::new();
            JsonDocument::put_text(scalar.as_bytes(), &mut bytes).unwrap();
            let mut null = Vec::new();
            JsonDocument::put_text(b"null", &mut null).unwrap();
            assert_eq!(by_rule(Some(&key), &rule, &bytes).unwrap(), null);
        }
        assert!(by_rule(Some(&key), &rule, b"\x00\xff").is_err());
    }

    #[test]
    fn what_is_named_inside_of_a_kept_place_is_masked() {
        let key = MaskKey::new(b"a key of sixteen");
        let mut rule = JsonRule::default();
        for (path, exit) in [
            ("$", JsonExit::Keep),
            ("$.name", JsonExit::Hash),
            ("$.a.b.note", JsonExit::Null),
            ("$.items[*].who", JsonExit::Hash),
        ] {
            rule.name(path, exit).unwrap();
        }
        let text = r#"{"name": "Bob", "age": 7, "a": {"b": {"note": "x", "c": 1}}, "items": [{"who": "Bob", "n": 1}, 2]}"#;
        let mut bytes = Vec::new();
        JsonDocument::put_text(text.as_bytes(), &mut bytes).unwrap();
        let mut shown = Vec::new();
        JsonDocument::new(&by_rule(Some(&key), &rule, &bytes).unwrap()).write_text(&mut shown).unwrap();
        let hash = hash_of(&key, b"Bob");
        assert_eq!(
            String::from_utf8(shown).unwrap(),
            format!(
                r#"{{"a": {{"b": {{"c": 1, "note": null}}}}, "age": 7, "name": "{hash}", "items": [{{"n": 1, "who": "{hash}"}}, 2]}}"#
            )
        );
    }
}
