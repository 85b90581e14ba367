//! Text of a query to tokens (spec riemann §5.1): the longest token wins, and the earlier kind among equally long ones.
//!
//! Names contain `=`, `<`, `>` and `!`, so that upstream needs spaces around operators. With [`Spacing::Optional`]
//! they end names, for texts that upstream rejects (spec riemann §17.17).
//! Invariant: tokens are not empty and within the text; any text gives tokens or one error.

use super::error::QueryError;

/// Whether operators need spaces around them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Spacing {
    /// As upstream: `=`, `<`, `>` and `!` are letters of names.
    Required,
    /// Operators end names.
    Optional,
}

/// Kinds of tokens, in the order in which error messages list them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    /// The end of the text.
    End,
    Not,
    And,
    Or,
    Open,
    Close,
    Tagged,
    Equal,
    NotEqual,
    Less,
    Greater,
    LessOrEqual,
    GreaterOrEqual,
    Like,
    Matches,
    String,
    Float,
    Hex,
    Long,
    BigInt,
    Nil,
    True,
    False,
    Name,
}

impl Kind {
    /// As error messages of upstream name it.
    pub(super) const fn label(self) -> &'static str {
        match self {
            Kind::End => "<EOF>",
            Kind::Not => "'not'",
            Kind::And => "'and'",
            Kind::Or => "'or'",
            Kind::Open => "'('",
            Kind::Close => "')'",
            Kind::Tagged => "'tagged'",
            Kind::Equal => "'='",
            Kind::NotEqual => "'!='",
            Kind::Less => "'<'",
            Kind::Greater => "'>'",
            Kind::LessOrEqual => "'<='",
            Kind::GreaterOrEqual => "'>='",
            Kind::Like => "'=~'",
            Kind::Matches => "'~='",
            Kind::String => "STRING",
            Kind::Float => "FLOAT",
            Kind::Hex => "HEX",
            Kind::Long => "LONG",
            Kind::BigInt => "BIGN",
            Kind::Nil => "NIL",
            Kind::True => "'true'",
            Kind::False => "'false'",
            Kind::Name => "NAME",
        }
    }
}

/// A token: its kind and its place in the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) kind: Kind,
    pub(super) start: usize,
    pub(super) end: usize,
}

/// Operators, the longer ones first.
const OPERATORS: [(&str, Kind); 8] = [
    ("!=", Kind::NotEqual),
    ("<=", Kind::LessOrEqual),
    (">=", Kind::GreaterOrEqual),
    ("=~", Kind::Like),
    ("~=", Kind::Matches),
    ("=", Kind::Equal),
    ("<", Kind::Less),
    (">", Kind::Greater),
];

/// The next token at or after a position.
///
/// # Errors
/// A character that begins no token, and a string without its end.
pub(super) fn next(text: &str, from: usize, spacing: Spacing) -> Result<Token, QueryError> {
    let rest = &text[from..];
    let is_space = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\r' | b'\n' | b',');
    let start = from + rest.bytes().take_while(|byte| is_space(byte)).count();
    let rest = &text[start..];
    let Some(&first) = rest.as_bytes().first() else {
        return Ok(Token { kind: Kind::End, start, end: start });
    };
    let (kind, len) = match first {
        b'(' => (Kind::Open, 1),
        b')' => (Kind::Close, 1),
        b'"' => (Kind::String, string_len(rest).ok_or_else(|| not_a_token(text, start, rest.len()))?),
        _ => longest(rest, spacing).ok_or_else(|| not_a_token(text, start, 1))?,
    };
    debug_assert!(len > 0 && text.is_char_boundary(start + len), "tokens consist of whole characters");
    Ok(Token { kind, start, end: start + len })
}

fn not_a_token(text: &str, start: usize, len: usize) -> QueryError {
    QueryError::new(start, format!("token recognition error at: '{}'", shown(&text[start..], len)))
}

/// A token's text in a message: at most 64 characters, on one line.
pub(super) fn shown(text: &str, len: usize) -> String {
    const SHOWN_MAX: usize = 64;
    let mut out = String::new();
    for (count, (at, letter)) in text.char_indices().enumerate() {
        if at >= len {
            break;
        }
        if count == SHOWN_MAX {
            out.push('…');
            break;
        }
        match letter {
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            _ => out.push(letter),
        }
    }
    out
}

/// Length of the string that the text begins with. A backslash takes the next character with it.
fn string_len(text: &str) -> Option<usize> {
    let mut escaped = false;
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return Some(at + 1),
            _ => {}
        }
    }
    None
}

/// The longest operator, number or name that the text begins with.
fn longest(text: &str, spacing: Spacing) -> Option<(Kind, usize)> {
    let operator = OPERATORS.iter().find(|(operator, _)| text.starts_with(operator));
    let mut best = operator.map(|(operator, kind)| (*kind, operator.len()));
    let mut offer = |kind, len: usize| {
        if len > best.map_or(0, |(_, longest)| longest) {
            best = Some((kind, len));
        }
    };
    if let Some((kind, len)) = number(text) {
        offer(kind, len);
    }
    let len = name_len(text, spacing);
    offer(word(&text[..len]), len);
    best
}

/// What a whole name is: a word of the language, or the name of a field.
fn word(name: &str) -> Kind {
    match name {
        "and" => Kind::And,
        "or" => Kind::Or,
        "not" => Kind::Not,
        "tagged" => Kind::Tagged,
        "nil" | "null" => Kind::Nil,
        "true" => Kind::True,
        "false" => Kind::False,
        _ => Kind::Name,
    }
}

/// Whether a name may begin with it.
fn is_head(letter: char) -> bool {
    !matches!(
        letter,
        '0'..='9'
            | '^'
            | '`'
            | '\''
            | '"'
            | '#'
            | '~'
            | '@'
            | ':'
            | '/'
            | '%'
            | '('
            | ')'
            | '['
            | ']'
            | '{'
            | '}'
            | ' '
            | '\n'
            | '\r'
            | '\t'
            | ','
    )
}

/// Length of the name that the text begins with; 0 for none.
fn name_len(text: &str, spacing: Spacing) -> usize {
    let operator = |at: usize| match text.as_bytes()[at] {
        b'=' | b'<' | b'>' => true,
        b'!' => text[at..].starts_with("!="),
        _ => false,
    };
    let ends = |at: usize| spacing == Spacing::Optional && operator(at);
    let mut len = 0;
    let mut colon = false;
    for (at, letter) in text.char_indices() {
        let is_first = at == 0;
        if letter == ':' && !is_first && !colon {
            // It belongs to the name if a letter follows.
            colon = true;
            continue;
        }
        let fits = is_head(letter) || !is_first && letter.is_ascii_digit();
        if !fits || ends(at) {
            break;
        }
        colon = false;
        len = at + letter.len_utf8();
    }
    len
}

/// The number that the text begins with.
fn number(text: &str) -> Option<(Kind, usize)> {
    let bytes = text.as_bytes();
    let sign = usize::from(bytes.first() == Some(&b'-'));
    if let Some(word) = ["Infinity", "NaN"].iter().find(|word| text[sign..].starts_with(*word)) {
        return Some((Kind::Float, sign + word.len()));
    }
    let digits = |from: usize| bytes[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let whole = sign + digits(sign);
    if whole == sign {
        return None;
    }
    if let Some(len) = hexadecimal(bytes) {
        return Some((Kind::Hex, len));
    }
    let mut end = whole;
    if bytes.get(end) == Some(&b'.') && digits(end + 1) > 0 {
        end += 1 + digits(end + 1);
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(bytes.get(end + 1) == Some(&b'-'));
        let exponent = bytes.len().min(end + 1 + sign);
        if digits(exponent) > 0 {
            end = exponent + digits(exponent);
        }
    }
    if end > whole {
        return Some((Kind::Float, end));
    }
    Some(match bytes.get(whole) {
        Some(b'n' | b'N') => (Kind::BigInt, whole + 1),
        Some(b'l' | b'L') => (Kind::Long, whole + 1),
        _ => (Kind::Long, whole),
    })
}

fn hexadecimal(bytes: &[u8]) -> Option<usize> {
    let [b'0', b'x' | b'X', digits @ ..] = bytes else {
        return None;
    };
    let count = digits.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
    (count > 0).then_some(2 + count)
}
