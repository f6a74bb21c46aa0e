//! Objects in JSON, written and never read.

use std::fmt::Write;

/// An object of texts and numbers, on its way to being written.
#[derive(Debug)]
pub(super) struct Object(String);

// === impl Object ===

impl Object {
    pub(super) fn new() -> Self {
        Self(String::with_capacity(128))
    }

    pub(super) fn text(mut self, name: &str, value: &str) -> Self {
        self.name(name);
        self.string(value);
        self
    }

    pub(super) fn number(mut self, name: &str, value: u64) -> Self {
        self.name(name);
        // Writing to a string does not fail.
        let _ = write!(self.0, "{value}");
        self
    }

    pub(super) fn finish(mut self) -> String {
        self.0.push('}');
        self.0
    }

    fn name(&mut self, name: &str) {
        self.0.push(if self.0.is_empty() { '{' } else { ',' });
        self.string(name);
        self.0.push(':');
    }

    /// Writes a string with the escapes of RFC 8259, section 7.
    fn string(&mut self, text: &str) {
        self.0.push('"');
        for char in text.chars() {
            match char {
                '"' | '\\' => {
                    self.0.push('\\');
                    self.0.push(char);
                }
                char if char < ' ' => {
                    let _ = write!(self.0, "\\u{:04x}", u32::from(char));
                }
                char => self.0.push(char),
            }
        }
        self.0.push('"');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_end_a_string_is_escaped() {
        let object = Object::new().text("a\"", "b\\c\n€").number("n", 7);
        assert_eq!(object.finish(), "{\"a\\\"\":\"b\\\\c\\u000a€\",\"n\":7}");
    }
}
