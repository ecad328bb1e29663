//! The places of a JSON document that may leave: a tree of members. What it doesn't name is left out, or stays if it is inside of a place
//! that is kept. What is named inside of a place that is hashed or null goes with that place.

use std::collections::BTreeMap;

/// What becomes of a value, and of the values in it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct JsonRule {
    /// What becomes of the whole value; `None`: only what is named of it leaves.
    pub(crate) exit: Option<JsonExit>,
    /// Members of an object.
    pub(crate) members: BTreeMap<String, JsonRule>,
    /// Every element of an array.
    pub(crate) elements: Option<Box<JsonRule>>,
}

/// What becomes of a value of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum JsonExit {
    /// It leaves as it is.
    Keep,
    /// A hash takes its place.
    Hash,
    /// null takes its place.
    Null,
}

impl JsonExit {
    pub(crate) fn of(word: &str) -> Option<Self> {
        match word {
            "keep" => Some(JsonExit::Keep),
            "hash" => Some(JsonExit::Hash),
            "null" => Some(JsonExit::Null),
            _ => None,
        }
    }
}

impl JsonRule {
    /// Names a path: `$`, then `.member` or `."member"` and `[*]`.
    ///
    /// # Errors
    ///
    /// What is expected instead.
    pub(crate) fn name(&mut self, path: &str, exit: JsonExit) -> Result<(), String> {
        let wrong =
            || format!("the path is {path:?}, expected one such as \"$.name\" or \"$.items[*].name\"");
        let mut rest = path.strip_prefix('$').ok_or_else(wrong)?;
        let mut rule = self;
        while !rest.is_empty() {
            if let Some(after) = rest.strip_prefix("[*]") {
                rule = rule.elements.get_or_insert_default();
                rest = after;
                continue;
            }
            let member = rest.strip_prefix('.').ok_or_else(wrong)?;
            let (name, after) = match member.strip_prefix('"') {
                Some(quoted) => quoted.split_once('"').ok_or_else(wrong)?,
                None => member.split_at(member.find(['.', '[']).unwrap_or(member.len())),
            };
            if name.is_empty() || name.contains('*') {
                return Err(wrong());
            }
            rule = rule.members.entry(name.to_owned()).or_default();
            rest = after;
        }
        match rule.exit.replace(exit) {
            None => Ok(()),
            Some(_) => Err(format!("the path {path:?} is named twice")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_make_a_tree() {
        let mut rule = JsonRule::default();
        for path in ["$.a", "$.b.c", "$.b.\"d e\"[*].f"] {
            rule.name(path, JsonExit::Keep).unwrap();
        }
        let named = rule.members["b"].members["d e"].elements.as_ref().unwrap();
        assert_eq!(named.members["f"].exit, Some(JsonExit::Keep));
        for path in ["a", "$a", "$.", "$.a[0]", "$.*", "$.\"a", "$.a"] {
            assert!(rule.name(path, JsonExit::Hash).is_err(), "{path}");
        }
    }
}
