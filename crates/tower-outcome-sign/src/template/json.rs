//! Objects in JSON (RFC 8259), as far as a member is to be found in one.

/// A member of an object.
#[derive(Debug)]
pub(super) struct Member<'a> {
    /// Without escapes.
    pub(super) name: String,
    /// As it is written.
    pub(super) value: &'a str,
}

/// A text that is being read.
struct Scan<'a> {
    text: &'a str,
    at: usize,
}

/// So deep may values be nested; whoever sends more wants something else.
const DEPTH: usize = 64;

/// Reads the members of an object in the order in which they are written. `None` if the text is none.
pub(super) fn members(text: &str) -> Option<Vec<Member<'_>>> {
    let mut scan = Scan { text, at: 0 };
    scan.space();
    let mut all = Vec::new();
    scan.object(DEPTH, &mut |name, value| all.push(Member { name, value }))?;
    scan.space();
    (scan.at == text.len()).then_some(all)
}

/// Reads a string without its escapes. `None` if the text is none.
pub(super) fn string(text: &str) -> Option<String> {
    let mut scan = Scan { text, at: 0 };
    let string = scan.string()?;
    (scan.at == text.len()).then_some(string)
}

// === impl Scan ===

impl<'a> Scan<'a> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn eat(&mut self, byte: u8) -> Option<()> {
        (self.peek()? == byte).then(|| self.at += 1)
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn object(&mut self, depth: usize, member: &mut dyn FnMut(String, &'a str)) -> Option<()> {
        self.eat(b'{')?;
        self.space();
        if self.eat(b'}').is_some() {
            return Some(());
        }
        loop {
            self.space();
            let name = self.string()?;
            self.space();
            self.eat(b':')?;
            self.space();
            let start = self.at;
            self.value(depth)?;
            member(name, &self.text[start..self.at]);
            self.space();
            if self.eat(b',').is_none() {
                return self.eat(b'}');
            }
        }
    }

    fn array(&mut self, depth: usize) -> Option<()> {
        self.eat(b'[')?;
        self.space();
        if self.eat(b']').is_some() {
            return Some(());
        }
        loop {
            self.space();
            self.value(depth)?;
            self.space();
            if self.eat(b',').is_none() {
                return self.eat(b']');
            }
        }
    }

    fn value(&mut self, depth: usize) -> Option<()> {
        let depth = depth.checked_sub(1)?;
        match self.peek()? {
            b'{' => self.object(depth, &mut |_, _| {}),
            b'[' => self.array(depth),
            b'"' => self.string().map(drop),
            b't' => self.word("true"),
            b'f' => self.word("false"),
            b'n' => self.word("null"),
            _ => self.number(),
        }
    }

    fn word(&mut self, word: &str) -> Option<()> {
        let there = self.text[self.at..].starts_with(word);
        there.then(|| self.at += word.len())
    }

    fn digits(&mut self) -> Option<()> {
        let start = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        (self.at > start).then_some(())
    }

    fn number(&mut self) -> Option<()> {
        let _ = self.eat(b'-');
        // Nothing follows a leading zero.
        if self.eat(b'0').is_none() {
            self.digits()?;
        }
        if self.eat(b'.').is_some() {
            self.digits()?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.digits()?;
        }
        Some(())
    }

    fn string(&mut self) -> Option<String> {
        self.eat(b'"')?;
        let mut out = String::new();
        loop {
            let rest = &self.text[self.at..];
            let end = rest.find(['"', '\\'])?;
            if rest[..end].bytes().any(|byte| byte < b' ') {
                return None;
            }
            out.push_str(&rest[..end]);
            self.at += end;
            if self.eat(b'"').is_some() {
                return Some(out);
            }
            self.at += 1;
            let escape = self.peek()?;
            self.at += 1;
            out.push(match escape {
                b'"' | b'\\' | b'/' => char::from(escape),
                b'b' => '\u{8}',
                b'f' => '\u{c}',
                b'n' => '\n',
                b'r' => '\r',
                b't' => '\t',
                b'u' => self.unicode()?,
                _ => return None,
            });
        }
    }

    /// Four digits, or twice four for what does not fit into them.
    fn unicode(&mut self) -> Option<char> {
        let first = self.four()?;
        if !(0xd800..0xdc00).contains(&first) {
            return char::from_u32(first);
        }
        self.eat(b'\\')?;
        self.eat(b'u')?;
        let second = self
            .four()?
            .checked_sub(0xdc00)
            .filter(|low| *low < 0x400)?;
        char::from_u32(0x1_0000 + ((first - 0xd800) << 10) + second)
    }

    fn four(&mut self) -> Option<u32> {
        let digits = self.text.get(self.at..self.at + 4)?;
        if !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return None;
        }
        self.at += 4;
        u32::from_str_radix(digits, 16).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_found_however_they_are_written() {
        let text = r#" { "a" : 1, "n\u006ece":"x\"}", "o":{"a":[{}, [1.5e-3,null]]},"\ud83d\ude00":true } "#;
        let members = members(text).unwrap();
        let shown: Vec<_> = members.iter().map(|one| (&*one.name, one.value)).collect();
        let expected = [
            ("a", "1"),
            ("nnce", r#""x\"}""#),
            ("o", r#"{"a":[{}, [1.5e-3,null]]}"#),
            ("\u{1f600}", "true"),
        ];
        assert_eq!(shown, expected);
        assert_eq!(string(r#""x\"}""#).unwrap(), "x\"}");
    }

    #[test]
    fn what_is_no_object_is_none() {
        for text in [
            "",
            "{",
            "{}{}",
            "[]",
            r#"{"a"}"#,
            r#"{"a":}"#,
            r#"{"a":1,}"#,
            r#"{"a":01}"#,
            r#"{"a":1 "b":2}"#,
            r#"{"a":"\x"}"#,
            r#"{"a":"\ud83d"}"#,
            "{\"a\":\"\n\"}",
            r#"{"a":nul}"#,
            r#"{a:1}"#,
            "\u{1e}{}",
        ] {
            assert!(members(text).is_none(), "{text}");
        }
        let deep = format!("{{\"a\":{}{}}}", "[".repeat(100_000), "]".repeat(100_000));
        assert!(members(&deep).is_none());
    }
}
