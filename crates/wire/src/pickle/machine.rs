//! The stack machine that a pickle is a program of, with the opcodes that make plain data only.

use memchr::memchr;
use model::Span;

use crate::cost::touch;
use crate::number::double;

use super::{Bad, DEPTH_MAX, LISTS_MAX, Pickle, Text, VALUES_MAX, Value};

/// Highest protocol.
const PROTOCOL_MAX: u8 = 5;

/// Most bytes of a number in digits or of any length, and of a text with escapes: one opcode looks at all of them.
const LOOKED_AT_MAX: usize = 64 * 1024;

/// A pickle that is being read, step by step. Its bytes are lent for each.
#[derive(Debug, Default)]
pub struct Reading(Held);

/// What is held of it between two steps.
#[derive(Debug, Default)]
struct Held {
    pickle: Pickle,
    /// Place in the message.
    at: usize,
    stack: Vec<Value>,
    /// Heights of the stack at its `MARK`s.
    marks: Vec<usize>,
    memo: Vec<Option<Value>>,
    /// Values pushed so far.
    made: usize,
}

struct Machine<'a> {
    message: &'a [u8],
    held: &'a mut Held,
}

impl Reading {
    /// Goes on with `message`, a pickle without its frame's length, by `bytes` of it and an opcode. The pickle when its `STOP`
    /// has come; what follows that is not looked at, as in Python.
    ///
    /// # Errors
    /// See [`Bad`]. Nothing of the message is of use then.
    pub fn step(&mut self, message: &[u8], bytes: usize) -> Result<Option<Pickle>, Bad> {
        let mut machine = Machine { message, held: &mut self.0 };
        let end = machine.held.at.saturating_add(bytes);
        while machine.held.at < end {
            let [opcode] = machine.take_array()?;
            if opcode == b'.' {
                let root = machine.pop()?;
                return Ok(Some(Pickle { root, ..std::mem::take(&mut machine.held.pickle) }));
            }
            machine.step(opcode)?;
        }
        Ok(None)
    }
}

impl<'a> Machine<'a> {
    fn step(&mut self, opcode: u8) -> Result<(), Bad> {
        match opcode {
            0x80 => self.protocol(),
            0x95 => self.frame(),
            b'(' => self.mark(),
            b'0' => self.discard(),
            b'1' => self.unmark().map(|at| self.held.stack.truncate(at)),
            b'2' => self.top().and_then(|value| self.push(value)),
            b'N' => self.push(Value::None),
            0x88 => self.push(Value::Whole(1)),
            0x89 => self.push(Value::Whole(0)),
            b'I' | b'J' | b'K' | b'M' | b'L' | 0x8A | 0x8B | b'F' | b'G' => self.number(opcode),
            b'S' | b'V' | b'T' | b'U' | b'X' | 0x8C | 0x8D | b'B' | b'C' | 0x8E => self.text(opcode),
            b']' | b'}' | b'l' | b'd' | b'a' | b'e' | b's' | b'u' => self.list(opcode),
            b')' | b't' | 0x85..=0x87 => self.tuple(opcode),
            b'p' | b'q' | b'r' | 0x94 => self.put(opcode),
            b'g' | b'h' | b'j' => self.get(opcode),
            other => Err(Bad::Opcode(other)),
        }
    }

    fn protocol(&mut self) -> Result<(), Bad> {
        let [version] = self.take_array()?;
        if version > PROTOCOL_MAX { Err(Bad::Protocol(version)) } else { Ok(()) }
    }

    /// A frame is a hint to read ahead; it only must not reach past the end.
    fn frame(&mut self) -> Result<(), Bad> {
        let len = u64::from_le_bytes(self.take_array()?);
        let rest = (self.message.len() - self.held.at) as u64;
        if len > rest { Err(Bad::Truncated) } else { Ok(()) }
    }

    fn number(&mut self, opcode: u8) -> Result<(), Bad> {
        let value = match opcode {
            b'I' => match self.short_line()? {
                b"00" => Value::Whole(0),
                b"01" => Value::Whole(1),
                digits => whole(digits)?,
            },
            b'J' => Value::Whole(i64::from(i32::from_le_bytes(self.take_array()?))),
            b'K' => Value::Whole(i64::from(u8::from_le_bytes(self.take_array()?))),
            b'M' => Value::Whole(i64::from(u16::from_le_bytes(self.take_array()?))),
            b'L' => {
                let line = self.short_line()?;
                whole(line.strip_suffix(b"L").unwrap_or(line))?
            }
            0x8A => {
                let [len] = self.take_array()?;
                little_endian(self.take(usize::from(len))?)
            }
            0x8B => {
                let len = i32::from_le_bytes(self.take_array()?);
                let bytes = self.take(usize::try_from(len).map_err(|_| Bad::Text)?)?;
                little_endian(looked_at(bytes)?)
            }
            b'F' => Value::Float(float(self.short_line()?)?),
            _ => Value::Float(f64::from_be_bytes(self.take_array()?)),
        };
        self.push(value)
    }

    fn text(&mut self, opcode: u8) -> Result<(), Bad> {
        let text = match opcode {
            b'S' => self.quoted()?,
            b'V' => self.raw_unicode()?,
            b'U' | 0x8C | b'C' => {
                let [len] = self.take_array()?;
                self.sent(u64::from(len))?
            }
            // A signed length.
            b'T' => {
                let len = i32::from_le_bytes(self.take_array()?);
                self.sent(u64::try_from(len).map_err(|_| Bad::Text)?)?
            }
            b'X' | b'B' => {
                let len = u32::from_le_bytes(self.take_array()?);
                self.sent(u64::from(len))?
            }
            _ => {
                let len = u64::from_le_bytes(self.take_array()?);
                self.sent(len)?
            }
        };
        self.push(Value::Text(text))
    }

    fn sent(&mut self, len: u64) -> Result<Text, Bad> {
        let at = self.held.at;
        let text = self.take(usize::try_from(len).map_err(|_| Bad::Truncated)?)?;
        Ok(Text::Sent(Span::new(at, text.len())))
    }

    /// The `repr` of a string.
    fn quoted(&mut self) -> Result<Text, Bad> {
        let line = self.line_span()?;
        let inner = match line.of(self.message) {
            [first @ (b'\'' | b'"'), inner @ .., last] if first == last => inner,
            _ => return Err(Bad::Text),
        };
        if memchr(b'\\', inner).is_none() {
            return Ok(Text::Sent(Span::new(line.at as usize + 1, inner.len())));
        }
        let begin = self.held.pickle.made.len();
        let mut rest = looked_at(inner)?;
        while let [byte, behind @ ..] = rest {
            rest = behind;
            let mut made = *byte;
            if *byte == b'\\' {
                let [escaped, behind @ ..] = rest else { return Err(Bad::Text) };
                rest = behind;
                made = match escaped {
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    b'x' => {
                        let (digits, behind) = rest.split_at_checked(2).ok_or(Bad::Text)?;
                        rest = behind;
                        hexadecimal(digits)? as u8
                    }
                    b'\\' | b'\'' | b'"' => *escaped,
                    _ => return Err(Bad::Text),
                };
            }
            self.held.pickle.made.push(made);
        }
        Ok(Text::Made(Span::new(begin, self.held.pickle.made.len() - begin)))
    }

    /// Latin-1, with `\uXXXX` and `\UXXXXXXXX` for the rest.
    fn raw_unicode(&mut self) -> Result<Text, Bad> {
        let line = self.line_span()?;
        let text = line.of(self.message);
        if text.is_ascii() && memchr(b'\\', text).is_none() {
            return Ok(Text::Sent(line));
        }
        let begin = self.held.pickle.made.len();
        let mut rest = looked_at(text)?;
        while let [byte, behind @ ..] = rest {
            rest = behind;
            let len = match (*byte, rest.first()) {
                (b'\\', Some(b'u')) => 4,
                (b'\\', Some(b'U')) => 8,
                _ => 0,
            };
            let mut made = char::from(*byte);
            if len > 0 {
                let (digits, behind) = rest[1..].split_at_checked(len).ok_or(Bad::Text)?;
                rest = behind;
                made = char::from_u32(hexadecimal(digits)?).ok_or(Bad::Text)?;
            }
            self.held.pickle.made.extend_from_slice(made.encode_utf8(&mut [0; 4]).as_bytes());
        }
        Ok(Text::Made(Span::new(begin, self.held.pickle.made.len() - begin)))
    }

    fn list(&mut self, opcode: u8) -> Result<(), Bad> {
        match opcode {
            b']' | b'}' => self.push_list(opcode == b'}', Vec::new()),
            b'l' | b'd' => {
                let at = self.unmark()?;
                // No more memory than the values take: `split_off` may hand over all that the stack ever had.
                let values = self.held.stack.drain(at..).collect();
                self.push_list(opcode == b'd', values)
            }
            b'a' => {
                let at = self.held.stack.len().checked_sub(1).ok_or(Bad::Stack)?;
                self.append(at, false)
            }
            b's' => {
                let at = self.held.stack.len().checked_sub(2).ok_or(Bad::Stack)?;
                self.append(at, true)
            }
            _ => {
                let at = self.unmark()?;
                self.append(at, opcode == b'u')
            }
        }
    }

    fn push_list(&mut self, dict: bool, values: Vec<Value>) -> Result<(), Bad> {
        if dict && !values.len().is_multiple_of(2) {
            return Err(Bad::Stack);
        }
        let at = self.held.pickle.lists.len();
        if at == LISTS_MAX {
            return Err(Bad::TooMuch);
        }
        let at = at as u32;
        self.push(if dict { Value::Dict(at) } else { Value::List(at) })?;
        self.held.pickle.lists.push(values);
        Ok(())
    }

    /// Moves what is on the stack from `at` on into the list or dict below it.
    fn append(&mut self, at: usize, dict: bool) -> Result<(), Bad> {
        if self.held.marks.last().is_some_and(|mark| *mark >= at) {
            return Err(Bad::Stack);
        }
        let below = at.checked_sub(1).ok_or(Bad::Stack)?;
        let list = match (self.held.stack[below], dict) {
            (Value::List(list), false) => list,
            (Value::Dict(list), true) if (self.held.stack.len() - at).is_multiple_of(2) => list,
            _ => return Err(Bad::Stack),
        };
        self.held.pickle.lists[list as usize].extend(self.held.stack.drain(at..));
        Ok(())
    }

    fn tuple(&mut self, opcode: u8) -> Result<(), Bad> {
        let at = match opcode {
            b')' => self.held.stack.len(),
            b't' => self.unmark()?,
            // TUPLE1, TUPLE2, TUPLE3.
            _ => self.held.stack.len().checked_sub(usize::from(opcode - 0x84)).ok_or(Bad::Stack)?,
        };
        if self.held.marks.last().is_some_and(|mark| *mark > at) {
            return Err(Bad::Stack);
        }
        let begin = self.held.pickle.items.len();
        self.held.pickle.items.extend(self.held.stack.drain(at..));
        self.push(Value::Tuple(Span::new(begin, self.held.pickle.items.len() - begin)))
    }

    fn put(&mut self, opcode: u8) -> Result<(), Bad> {
        let value = self.top()?;
        let at = if opcode == 0x94 { self.held.memo.len() } else { self.memo_place(opcode)? };
        // A message of ten bytes may not ask for room for a million places, nor one opcode of a long one.
        if at >= VALUES_MAX || at >= self.held.at || at - at.min(self.held.memo.len()) > LOOKED_AT_MAX {
            return Err(Bad::Memo);
        }
        if self.held.memo.len() <= at {
            touch(at + 1 - self.held.memo.len());
            self.held.memo.resize(at + 1, None);
        }
        self.held.memo[at] = Some(value);
        Ok(())
    }

    fn get(&mut self, opcode: u8) -> Result<(), Bad> {
        let at = self.memo_place(opcode)?;
        let value = self.held.memo.get(at).copied().flatten().ok_or(Bad::Memo)?;
        self.push(value)
    }

    fn memo_place(&mut self, opcode: u8) -> Result<usize, Bad> {
        Ok(match opcode {
            b'p' | b'g' => {
                let text = std::str::from_utf8(self.short_line()?).map_err(|_| Bad::Memo)?;
                text.parse().map_err(|_| Bad::Memo)?
            }
            b'q' | b'h' => usize::from(u8::from_le_bytes(self.take_array()?)),
            _ => u32::from_le_bytes(self.take_array()?) as usize,
        })
    }

    fn push(&mut self, value: Value) -> Result<(), Bad> {
        self.held.made += 1;
        if self.held.made > VALUES_MAX {
            return Err(Bad::TooMuch);
        }
        self.held.stack.push(value);
        Ok(())
    }

    /// The topmost value that no open container hides.
    fn top(&self) -> Result<Value, Bad> {
        let floor = self.held.marks.last().copied().unwrap_or_default();
        self.held.stack[floor..].last().copied().ok_or(Bad::Stack)
    }

    fn pop(&mut self) -> Result<Value, Bad> {
        let value = self.top()?;
        self.held.stack.pop();
        Ok(value)
    }

    /// POP takes a value or, when there is none above it, a mark.
    fn discard(&mut self) -> Result<(), Bad> {
        if self.held.marks.last() == Some(&self.held.stack.len()) {
            self.held.marks.pop();
            return Ok(());
        }
        self.pop().map(|_| ())
    }

    fn mark(&mut self) -> Result<(), Bad> {
        if self.held.marks.len() == DEPTH_MAX {
            return Err(Bad::TooMuch);
        }
        self.held.marks.push(self.held.stack.len());
        Ok(())
    }

    fn unmark(&mut self) -> Result<usize, Bad> {
        self.held.marks.pop().ok_or(Bad::Stack)
    }

    /// The next bytes, whatever they hold: who looks at them says so to `touch`.
    fn take(&mut self, len: usize) -> Result<&'a [u8], Bad> {
        let rest = &self.message[self.held.at..];
        let (taken, _) = rest.split_at_checked(len).ok_or(Bad::Truncated)?;
        self.held.at += len;
        Ok(taken)
    }

    fn take_array<const LEN: usize>(&mut self) -> Result<[u8; LEN], Bad> {
        let taken = self.take(LEN)?;
        touch(LEN);
        Ok(*taken.first_chunk().expect("that many bytes were taken"))
    }

    fn short_line(&mut self) -> Result<&'a [u8], Bad> {
        looked_at(self.line_span()?.of(self.message))
    }

    /// What stands before the next LF, which is taken too.
    fn line_span(&mut self) -> Result<Span, Bad> {
        let at = self.held.at;
        let len = memchr(b'\n', &self.message[at..]).ok_or(Bad::Truncated)?;
        self.held.at += len + 1;
        Ok(Span::new(at, len))
    }
}

/// What is to be looked at at once.
fn looked_at(bytes: &[u8]) -> Result<&[u8], Bad> {
    if bytes.len() > LOOKED_AT_MAX {
        return Err(Bad::TooMuch);
    }
    touch(bytes.len());
    Ok(bytes)
}

fn whole(digits: &[u8]) -> Result<Value, Bad> {
    let text = std::str::from_utf8(digits).map_err(|_| Bad::Text)?;
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    if unsigned.is_empty() || !unsigned.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(Bad::Text);
    }
    // Digits alone fail only for being too many.
    Ok(text.parse().map_or(Value::Huge, Value::Whole))
}

/// A whole number in two's complement, of any length.
fn little_endian(bytes: &[u8]) -> Value {
    let negative = bytes.last().is_some_and(|byte| byte & 0x80 != 0);
    let fill = if negative { 0xFF } else { 0 };
    let mut word = [fill; 8];
    let held = bytes.len().min(8);
    word[..held].copy_from_slice(&bytes[..held]);
    let number = i64::from_le_bytes(word);
    let fits = bytes[held..].iter().all(|byte| *byte == fill) && (number < 0) == negative;
    if fits { Value::Whole(number) } else { Value::Huge }
}

fn float(text: &[u8]) -> Result<f64, Bad> {
    match text {
        b"nan" => Ok(f64::NAN),
        b"inf" => Ok(f64::INFINITY),
        b"-inf" => Ok(f64::NEG_INFINITY),
        _ => double(text).ok_or(Bad::Text),
    }
}

fn hexadecimal(digits: &[u8]) -> Result<u32, Bad> {
    let mut number = 0_u32;
    for digit in digits {
        number = number << 4 | char::from(*digit).to_digit(16).ok_or(Bad::Text)?;
    }
    Ok(number)
}
