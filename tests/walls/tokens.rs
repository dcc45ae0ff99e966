//! The part of Rust's syntax that imports need.

/// A piece of source text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Token {
    Word(String),
    /// `::`
    Path,
    Text(String),
    Mark(char),
}

/// The tokens of a source text, without its comments and items for tests only. Also returns the
/// names of modules for tests only.
pub(crate) fn read(source: &str) -> (Vec<Token>, Vec<String>) {
    without_tests(&split(source))
}

fn split(source: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let characters: Vec<char> = source.chars().collect();
    let mut at = 0;
    while at < characters.len() {
        let next = characters.get(at + 1).copied();
        match characters[at] {
            '/' if next == Some('/') => {
                while at < characters.len() && characters[at] != '\n' {
                    at += 1;
                }
            }
            ':' if next == Some(':') => {
                tokens.push(Token::Path);
                at += 2;
            }
            '"' => {
                let mut text = String::new();
                at += 1;
                while at < characters.len() && characters[at] != '"' {
                    at += usize::from(characters[at] == '\\');
                    text.extend(characters.get(at));
                    at += 1;
                }
                tokens.push(Token::Text(text));
                at += 1;
            }
            // A character, not a lifetime.
            '\'' if characters.get(at + 2) == Some(&'\'') => at += 3,
            '\'' if next == Some('\\') => {
                at += 3;
                while at < characters.len() && characters[at] != '\'' {
                    at += 1;
                }
                at += 1;
            }
            first if first.is_alphanumeric() || first == '_' => {
                let mut word = String::new();
                while characters
                    .get(at)
                    .is_some_and(|c| c.is_alphanumeric() || *c == '_')
                {
                    word.push(characters[at]);
                    at += 1;
                }
                tokens.push(Token::Word(word));
            }
            first => {
                if !first.is_whitespace() {
                    tokens.push(Token::Mark(first));
                }
                at += 1;
            }
        }
    }
    tokens
}

fn without_tests(tokens: &[Token]) -> (Vec<Token>, Vec<String>) {
    let (mut kept, mut modules) = (Vec::new(), Vec::new());
    let mut at = 0;
    while at < tokens.len() {
        match attribute(tokens, at) {
            Some((inside, end)) if is_for_tests(inside) => {
                let (module, after) = skip_item(tokens, end);
                modules.extend(module);
                at = after;
            }
            _ => {
                kept.push(tokens[at].clone());
                at += 1;
            }
        }
    }
    (kept, modules)
}

/// The inside of the attribute that begins at `at`, and where it ends.
fn attribute(tokens: &[Token], at: usize) -> Option<(&[Token], usize)> {
    if tokens.get(at..at + 2)? != [Token::Mark('#'), Token::Mark('[')] {
        return None;
    }
    let end = at
        + tokens[at..]
            .iter()
            .position(|token| *token == Token::Mark(']'))?;
    Some((&tokens[at + 2..end], end + 1))
}

fn is_for_tests(attribute: &[Token]) -> bool {
    let is_word = |token: &Token, word: &str| *token == Token::Word(word.to_owned());
    let says_test =
        |token: &Token| is_word(token, "test") || *token == Token::Text("testing".to_owned());
    let says_else = |token: &Token| matches!(token, Token::Text(text) if text != "testing");
    let is_negated = attribute.iter().any(|token| is_word(token, "not"));
    let is_cfg = attribute.first().is_some_and(|token| is_word(token, "cfg"));
    is_cfg && !is_negated && attribute.iter().any(says_test) && !attribute.iter().any(says_else)
}

/// Where the item that begins at `at` ends. If it is a module in its own file, also its name.
fn skip_item(tokens: &[Token], at: usize) -> (Option<String>, usize) {
    let mut at = at;
    while let Some((_, end)) = attribute(tokens, at) {
        at = end;
    }
    let begin = at;
    let mut depth = 0;
    while at < tokens.len() {
        match tokens[at] {
            Token::Mark('{') => depth += 1,
            Token::Mark('}') => depth -= 1,
            _ => {}
        }
        let is_end = match tokens[at] {
            Token::Mark('}') => depth == 0,
            Token::Mark(';') => depth == 0,
            _ => false,
        };
        at += 1;
        if is_end {
            break;
        }
    }
    let item = &tokens[begin..at];
    let position = item
        .iter()
        .position(|token| *token == Token::Word("mod".to_owned()));
    let module = position.and_then(|position| match &item[position + 1..] {
        [Token::Word(name), Token::Mark(';')] => Some(name.clone()),
        _ => None,
    });
    (module, at)
}

#[test]
fn items_of_tests_are_left_out() {
    let source = r#"
        // use crate::comment;
        use crate::a;
        #[cfg(test)]
        mod tests;
        #[cfg(any(test, feature = "testing"))]
        pub mod testing { use crate::b; }
        #[cfg(test)]
        use crate::c;
        #[cfg(feature = "fdb")]
        use crate::d;
        #[cfg(any(feature = "fdb", feature = "testing"))]
        use crate::e;
    "#;
    let (tokens, modules) = read(source);
    let has = |word: &str| tokens.contains(&Token::Word(word.to_owned()));
    assert!(has("a") && has("d") && has("e"));
    assert!(!has("b") && !has("c") && !has("comment"));
    assert_eq!(modules, ["tests"]);
}
