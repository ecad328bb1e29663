//! A JSON document with differences applied. Only containers on a difference's path are expanded into nodes;
//! the rest stays in the bytes it came from.

use std::borrow::Cow;

use super::binary::{StoredValue, put_container};
use super::text::TextWriter;
use super::{
    JSON_DEPTH_MAX, JsonDiff, JsonDiffOperation, JsonDiffs, JsonDocument, JsonPath, JsonPathLeg, JsonValue,
};
use crate::error::{Error, Result};

const WHAT: &str = "json difference";

/// A document, expanded into nodes where it was changed.
#[derive(Debug, Clone, PartialEq)]
pub struct JsonTree<'a> {
    root: Node<'a>,
    /// Bytes of all documents that its values come from.
    size: usize,
}

#[derive(Debug, Clone, PartialEq)]
enum Node<'a> {
    Value(StoredValue<'a>),
    Array(Vec<Node<'a>>),
    Object(Vec<ObjectMember<'a>>),
}

#[derive(Debug, Clone, PartialEq)]
struct ObjectMember<'a> {
    key: Cow<'a, [u8]>,
    value: Node<'a>,
}

impl<'a> JsonDiffs<'a> {
    /// The document of the after-image, from that of the before-image.
    ///
    /// # Errors
    ///
    /// A difference or a document that can't be read, a path that leads nowhere in the document.
    pub fn apply(&self, before: JsonDocument<'a>) -> Result<JsonTree<'a>> {
        let mut tree = JsonTree::new(before)?;
        for diff in self.iter() {
            let diff = diff?;
            tree.apply(&diff, &JsonPath::parse(diff.path)?)?;
        }
        Ok(tree)
    }
}

impl<'a> JsonTree<'a> {
    /// A document as it stands.
    pub fn new(document: JsonDocument<'a>) -> Result<Self> {
        Ok(JsonTree { root: Node::of(document)?, size: document.as_bytes().len() })
    }

    /// Applies one difference; its path has been parsed already.
    fn apply(&mut self, diff: &JsonDiff<'a>, path: &JsonPath<'a>) -> Result<()> {
        let value = match diff.value {
            Some(document) => {
                self.size += document.as_bytes().len();
                Some(Node::of(document)?)
            }
            None => None,
        };
        let nowhere = || Error::invalid(WHAT, "path", diff.path.escape_ascii(), "a place in the document");
        // The whole document has no parent; to replace it, a server logs a document, not a difference.
        let (last, legs) = path.legs().split_last().ok_or_else(nowhere)?;
        let mut parent = &mut self.root;
        for leg in legs {
            parent = parent.child(leg)?.ok_or_else(nowhere)?;
        }
        match (diff.operation, value) {
            (JsonDiffOperation::Replace, Some(value)) => *parent.child(last)?.ok_or_else(nowhere)? = value,
            (JsonDiffOperation::Insert, Some(value)) => parent.insert(last, value)?.ok_or_else(nowhere)?,
            _ => parent.remove(last)?.ok_or_else(nowhere)?,
        }
        Ok(())
    }

    /// Appends the document as a column has it. Values that didn't change keep their bytes; the server may have them in another order.
    ///
    /// # Errors
    ///
    /// A document that can't be read, is nested too deeply or has 4 GiB.
    pub fn put_document(&self, out: &mut Vec<u8>) -> Result<()> {
        let (value_type, bytes) = self.root.stored(0)?;
        out.push(value_type);
        out.extend_from_slice(&bytes);
        Ok(())
    }

    /// Appends the document as the server prints it; see [`JsonDocument::write_text`].
    pub fn write_text(&self, out: &mut Vec<u8>) -> Result<()> {
        self.root.write(&mut TextWriter::new(out, self.size), true)
    }

    /// Writes the document's text without quotes, like [`JsonDocument::write_text_unquoted`].
    pub fn write_text_unquoted(&self, out: &mut Vec<u8>) -> Result<()> {
        self.root.write(&mut TextWriter::new(out, self.size), false)
    }
}

impl<'a> Node<'a> {
    /// A document that can be read, at least its outermost value.
    fn of(document: JsonDocument<'a>) -> Result<Self> {
        document.value()?;
        Ok(Node::Value(StoredValue::of(document)))
    }

    /// The type and the bytes that this node has in a document.
    fn stored(&self, depth: usize) -> Result<(u8, Vec<u8>)> {
        if depth > JSON_DEPTH_MAX {
            return Err(Error::invalid(WHAT, "depth", depth, "at most 100"));
        }
        let mut bytes = Vec::new();
        let value_type = match self {
            Node::Value(value) => {
                let (value_type, stored) = value.bytes()?;
                return Ok((value_type, stored.to_vec()));
            }
            Node::Array(elements) => {
                let element = |element: &Node<'a>| {
                    let (value_type, bytes) = element.stored(depth + 1)?;
                    Ok((None, value_type, bytes))
                };
                let elements = elements.iter().map(element).collect::<Result<Vec<_>>>()?;
                put_container(&mut bytes, false, &elements)?
            }
            Node::Object(members) => {
                let mut stored = Vec::new();
                for ObjectMember { key, value } in members {
                    let (value_type, bytes) = value.stored(depth + 1)?;
                    stored.push((Some(&**key), value_type, bytes));
                }
                put_container(&mut bytes, true, &stored)?
            }
        };
        Ok((value_type, bytes))
    }

    /// Expands a container into nodes, unless that was done already.
    fn open(&mut self) -> Result<&mut Self> {
        let Node::Value(stored) = self else { return Ok(self) };
        match stored.value()? {
            JsonValue::Array(array) => {
                let elements = array.stored().map(|value| value.map(Node::Value));
                *self = Node::Array(elements.collect::<Result<_>>()?);
            }
            JsonValue::Object(object) => {
                let member =
                    |(key, value)| ObjectMember { key: Cow::Borrowed(key), value: Node::Value(value) };
                let members = object.stored().map(|found| found.map(member));
                *self = Node::Object(members.collect::<Result<_>>()?);
            }
            _ => {}
        }
        Ok(self)
    }

    fn child(&mut self, leg: &JsonPathLeg<'_>) -> Result<Option<&mut Node<'a>>> {
        Ok(match (self.open()?, leg) {
            (Node::Array(elements), JsonPathLeg::Element(index)) => elements.get_mut(*index),
            (Node::Object(members), JsonPathLeg::Member(key)) => {
                members.iter_mut().find(|member| member.key == *key).map(|member| &mut member.value)
            }
            _ => None,
        })
    }

    /// `None`: there is no such place.
    fn insert(&mut self, leg: &JsonPathLeg<'a>, value: Node<'a>) -> Result<Option<()>> {
        Ok(match (self.open()?, leg) {
            (Node::Array(elements), JsonPathLeg::Element(index)) => {
                elements.insert((*index).min(elements.len()), value);
                Some(())
            }
            (Node::Object(members), JsonPathLeg::Member(key)) => {
                // Sorted as in a binary document: short keys first, then by their bytes.
                let order =
                    |member: &ObjectMember<'_>| (member.key.len(), &*member.key).cmp(&(key.len(), key));
                match members.binary_search_by(order) {
                    Ok(_) => None,
                    Err(at) => {
                        members.insert(at, ObjectMember { key: key.clone(), value });
                        Some(())
                    }
                }
            }
            _ => None,
        })
    }

    /// `None`: there is no such place.
    fn remove(&mut self, leg: &JsonPathLeg<'_>) -> Result<Option<()>> {
        Ok(match (self.open()?, leg) {
            (Node::Array(elements), JsonPathLeg::Element(index)) if *index < elements.len() => {
                elements.remove(*index);
                Some(())
            }
            (Node::Object(members), JsonPathLeg::Member(key)) => {
                members.iter().position(|member| member.key == *key).map(|at| {
                    members.remove(at);
                })
            }
            _ => None,
        })
    }

    fn write(&self, writer: &mut TextWriter<'_>, quoted: bool) -> Result<()> {
        match self {
            Node::Value(value) => return writer.value(&value.value()?, quoted),
            Node::Array(elements) => {
                writer.descend()?;
                writer
                    .elements(b'[', elements.iter(), b']', |writer, element| element.write(writer, true))?;
            }
            Node::Object(members) => {
                writer.descend()?;
                writer.elements(b'{', members.iter(), b'}', |writer, member| {
                    writer.key(&member.key);
                    member.value.write(writer, true)
                })?;
            }
        }
        writer.leave();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::put::PutFields;
    use crate::row::json::JsonDiffs;

    /// `{"a": 1, "b": [true, "x"]}`
    const OBJECT: &[u8] = b"\x00\x02\x00\x20\x00\x12\x00\x01\x00\x13\x00\x01\x00\x05\x01\x00\x02\x14\x00ab\
        \x02\x00\x0c\x00\x04\x01\x00\x0c\x0a\x00\x01x";
    const NULL: &[u8] = b"\x04\x00";
    const X: &[u8] = b"\x0c\x01X";

    fn after(diffs: &[(u8, &str, &[u8])]) -> Result<String> {
        let mut bytes = Vec::new();
        for (operation, path, value) in diffs {
            bytes.put_u8(*operation);
            bytes.put_lei(path.len() as u64);
            bytes.put(path.as_bytes());
            if *operation < 2 {
                bytes.put_lei(value.len() as u64);
                bytes.put(value);
            }
        }
        let mut text = Vec::new();
        let tree = JsonDiffs::new(&bytes).apply(JsonDocument::new(OBJECT))?;
        tree.write_text(&mut text)?;
        // The document's bytes say the same.
        let mut document = Vec::new();
        let mut again = Vec::new();
        tree.put_document(&mut document)?;
        JsonDocument::new(&document).write_text(&mut again)?;
        assert_eq!(text.escape_ascii().to_string(), again.escape_ascii().to_string());
        Ok(String::from_utf8(text).unwrap())
    }

    #[test]
    fn a_document_comes_back_to_the_byte() {
        let mut tree = JsonTree::new(JsonDocument::new(OBJECT)).unwrap();
        let put = |tree: &JsonTree<'_>| {
            let mut bytes = Vec::new();
            tree.put_document(&mut bytes).unwrap();
            bytes
        };
        assert_eq!(put(&tree), OBJECT);
        // Expanded, too.
        tree.root.child(&JsonPathLeg::Member(Cow::Borrowed(b"b"))).unwrap().unwrap().open().unwrap();
        assert_eq!(put(&tree), OBJECT);
        assert_eq!(put(&JsonTree::new(JsonDocument::new(b"")).unwrap()), NULL);
    }

    #[test]
    fn a_document_that_grows_gets_room() {
        let mut long = b"\x0c\x80\x80\x04".to_vec();
        long.resize(4 + (1 << 16), b'x');
        let numbers: [&[u8]; 3] = [b"\x07\xff\xff\xfe\xff", b"\x05\xfe\xff", b"\x08\xff\xff\xff\xff"];
        let diffs = [
            (1, "$.b[0]", numbers[0]),
            (1, "$.b[0]", numbers[1]),
            (1, "$.b[0]", numbers[2]),
            (1, "$.b[0]", &long),
        ];
        let text = after(&diffs).unwrap();
        assert!(
            text.ends_with("xx\", 4294967295, -2, -65537, true, \"x\"]}"),
            "{}",
            &text[text.len() - 60..]
        );
    }

    #[test]
    fn differences_are_applied_in_order() {
        assert_eq!(after(&[]).unwrap(), r#"{"a": 1, "b": [true, "x"]}"#);
        assert_eq!(after(&[(0, "$.a", X)]).unwrap(), r#"{"a": "X", "b": [true, "x"]}"#);
        assert_eq!(after(&[(0, "$.b[1]", NULL)]).unwrap(), r#"{"a": 1, "b": [true, null]}"#);
        assert_eq!(after(&[(1, "$.b[0]", X)]).unwrap(), r#"{"a": 1, "b": ["X", true, "x"]}"#);
        assert_eq!(after(&[(1, "$.b[9]", X)]).unwrap(), r#"{"a": 1, "b": [true, "x", "X"]}"#);
        assert_eq!(after(&[(2, "$.b[0]", b"")]).unwrap(), r#"{"a": 1, "b": ["x"]}"#);
        assert_eq!(after(&[(2, "$.b", b""), (1, "$.c", X)]).unwrap(), r#"{"a": 1, "c": "X"}"#);
    }

    #[test]
    fn members_keep_the_order_of_a_document() {
        let diffs = [(1, "$.aa", NULL), (1, "$.c", NULL), (1, "$.\"\"", NULL)];
        let expected = r#"{"": null, "a": 1, "b": [true, "x"], "c": null, "aa": null}"#;
        assert_eq!(after(&diffs).unwrap(), expected);
    }

    #[test]
    fn paths_that_lead_nowhere_are_errors() {
        for (operation, path) in [
            (0, "$"),
            (0, "$.c"),
            (0, "$.a[0]"),
            (0, "$.b[2]"),
            (0, "$.a.b"),
            (0, "$.b.a"),
            (1, "$.a"),
            (1, "$.a[0]"),
            (1, "$"),
            (2, "$.c"),
            (2, "$.b[2]"),
            (2, "$"),
        ] {
            assert!(after(&[(operation, path, X)]).is_err(), "{operation} {path}");
        }
        let error = after(&[(2, "$.c.d", b"")]).unwrap_err();
        assert_eq!(error.to_string(), "json difference: path is $.c.d, expected a place in the document");
    }
}
