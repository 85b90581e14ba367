//! The stack machine that a pickle is a program of, with the opcodes that make plain data only.

use memchr::memchr;
use model::Span;

use crate::cost::touch;

use super::{Bad, DEPTH_MAX, Pickle, Text, VALUES_MAX, Value};

/// Highest protocol.
const PROTOCOL_MAX: u8 = 5;

/// Reads `message`, a pickle without its frame's length. What follows its `STOP` is not looked at, as in Python.
///
/// # Errors
/// See [`Bad`]. Nothing of the message is of use then.
pub fn read(message: &[u8]) -> Result<Pickle, Bad> {
    let pickle = Pickle { made: Vec::new(), items: Vec::new(), lists: Vec::new(), root: Value::None };
    let mut machine =
        Machine { message, pickle, at: 0, stack: Vec::new(), marks: Vec::new(), memo: Vec::new(), made: 0 };
    loop {
        let [opcode] = machine.take_array()?;
        if opcode == b'.' {
            machine.pickle.root = machine.pop()?;
            return Ok(machine.pickle);
        }
        machine.step(opcode)?;
    }
}

struct Machine<'a> {
    message: &'a [u8],
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

impl<'a> Machine<'a> {
    fn step(&mut self, opcode: u8) -> Result<(), Bad> {
        match opcode {
            0x80 => self.protocol(),
            0x95 => self.frame(),
            b'(' => self.mark(),
            b'0' => self.discard(),
            b'1' => self.unmark().map(|at| self.stack.truncate(at)),
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
        let rest = (self.message.len() - self.at) as u64;
        if len > rest { Err(Bad::Truncated) } else { Ok(()) }
    }

    fn number(&mut self, opcode: u8) -> Result<(), Bad> {
        let value = match opcode {
            b'I' => match self.line()? {
                b"00" => Value::Whole(0),
                b"01" => Value::Whole(1),
                digits => whole(digits)?,
            },
            b'J' => Value::Whole(i64::from(i32::from_le_bytes(self.take_array()?))),
            b'K' => Value::Whole(i64::from(u8::from_le_bytes(self.take_array()?))),
            b'M' => Value::Whole(i64::from(u16::from_le_bytes(self.take_array()?))),
            b'L' => {
                let line = self.line()?;
                whole(line.strip_suffix(b"L").unwrap_or(line))?
            }
            0x8A => {
                let [len] = self.take_array()?;
                little_endian(self.take(usize::from(len))?)
            }
            0x8B => {
                let len = i32::from_le_bytes(self.take_array()?);
                little_endian(self.take(usize::try_from(len).map_err(|_| Bad::Text)?)?)
            }
            b'F' => Value::Float(float(self.line()?)?),
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
        let at = self.at;
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
        let begin = self.pickle.made.len();
        let mut rest = inner;
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
            self.pickle.made.push(made);
        }
        Ok(Text::Made(Span::new(begin, self.pickle.made.len() - begin)))
    }

    /// Latin-1, with `\uXXXX` and `\UXXXXXXXX` for the rest.
    fn raw_unicode(&mut self) -> Result<Text, Bad> {
        let line = self.line_span()?;
        let text = line.of(self.message);
        if text.is_ascii() && memchr(b'\\', text).is_none() {
            return Ok(Text::Sent(line));
        }
        let begin = self.pickle.made.len();
        let mut rest = text;
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
            self.pickle.made.extend_from_slice(made.encode_utf8(&mut [0; 4]).as_bytes());
        }
        Ok(Text::Made(Span::new(begin, self.pickle.made.len() - begin)))
    }

    fn list(&mut self, opcode: u8) -> Result<(), Bad> {
        match opcode {
            b']' | b'}' => self.push_list(opcode == b'}', Vec::new()),
            b'l' | b'd' => {
                let at = self.unmark()?;
                // No more memory than the values take: `split_off` may hand over all that the stack ever had.
                let values = self.stack.drain(at..).collect();
                self.push_list(opcode == b'd', values)
            }
            b'a' => {
                let at = self.stack.len().checked_sub(1).ok_or(Bad::Stack)?;
                self.append(at, false)
            }
            b's' => {
                let at = self.stack.len().checked_sub(2).ok_or(Bad::Stack)?;
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
        let at = u32::try_from(self.pickle.lists.len()).map_err(|_| Bad::TooMuch)?;
        self.push(if dict { Value::Dict(at) } else { Value::List(at) })?;
        self.pickle.lists.push(values);
        Ok(())
    }

    /// Moves what is on the stack from `at` on into the list or dict below it.
    fn append(&mut self, at: usize, dict: bool) -> Result<(), Bad> {
        if self.marks.last().is_some_and(|mark| *mark >= at) {
            return Err(Bad::Stack);
        }
        let below = at.checked_sub(1).ok_or(Bad::Stack)?;
        let list = match (self.stack[below], dict) {
            (Value::List(list), false) => list,
            (Value::Dict(list), true) if (self.stack.len() - at).is_multiple_of(2) => list,
            _ => return Err(Bad::Stack),
        };
        self.pickle.lists[list as usize].extend(self.stack.drain(at..));
        Ok(())
    }

    fn tuple(&mut self, opcode: u8) -> Result<(), Bad> {
        let at = match opcode {
            b')' => self.stack.len(),
            b't' => self.unmark()?,
            // TUPLE1, TUPLE2, TUPLE3.
            _ => self.stack.len().checked_sub(usize::from(opcode - 0x84)).ok_or(Bad::Stack)?,
        };
        if self.marks.last().is_some_and(|mark| *mark > at) {
            return Err(Bad::Stack);
        }
        let begin = self.pickle.items.len();
        self.pickle.items.extend(self.stack.drain(at..));
        self.push(Value::Tuple(Span::new(begin, self.pickle.items.len() - begin)))
    }

    fn put(&mut self, opcode: u8) -> Result<(), Bad> {
        let value = self.top()?;
        let at = if opcode == 0x94 { self.memo.len() } else { self.memo_place(opcode)? };
        // A message of ten bytes may not ask for room for a million places.
        if at >= VALUES_MAX || at >= self.at {
            return Err(Bad::Memo);
        }
        if self.memo.len() <= at {
            touch(at + 1 - self.memo.len());
            self.memo.resize(at + 1, None);
        }
        self.memo[at] = Some(value);
        Ok(())
    }

    fn get(&mut self, opcode: u8) -> Result<(), Bad> {
        let at = self.memo_place(opcode)?;
        let value = self.memo.get(at).copied().flatten().ok_or(Bad::Memo)?;
        self.push(value)
    }

    fn memo_place(&mut self, opcode: u8) -> Result<usize, Bad> {
        Ok(match opcode {
            b'p' | b'g' => {
                let text = std::str::from_utf8(self.line()?).map_err(|_| Bad::Memo)?;
                text.parse().map_err(|_| Bad::Memo)?
            }
            b'q' | b'h' => usize::from(u8::from_le_bytes(self.take_array()?)),
            _ => u32::from_le_bytes(self.take_array()?) as usize,
        })
    }

    fn push(&mut self, value: Value) -> Result<(), Bad> {
        self.made += 1;
        if self.made > VALUES_MAX {
            return Err(Bad::TooMuch);
        }
        self.stack.push(value);
        Ok(())
    }

    /// The topmost value that no open container hides.
    fn top(&self) -> Result<Value, Bad> {
        let floor = self.marks.last().copied().unwrap_or_default();
        self.stack[floor..].last().copied().ok_or(Bad::Stack)
    }

    fn pop(&mut self) -> Result<Value, Bad> {
        let value = self.top()?;
        self.stack.pop();
        Ok(value)
    }

    /// POP takes a value or, when there is none above it, a mark.
    fn discard(&mut self) -> Result<(), Bad> {
        if self.marks.last() == Some(&self.stack.len()) {
            self.marks.pop();
            return Ok(());
        }
        self.pop().map(|_| ())
    }

    fn mark(&mut self) -> Result<(), Bad> {
        if self.marks.len() == DEPTH_MAX {
            return Err(Bad::TooMuch);
        }
        self.marks.push(self.stack.len());
        Ok(())
    }

    fn unmark(&mut self) -> Result<usize, Bad> {
        self.marks.pop().ok_or(Bad::Stack)
    }

    fn take(&mut self, len: usize) -> Result<&'a [u8], Bad> {
        let rest = &self.message[self.at..];
        let (taken, _) = rest.split_at_checked(len).ok_or(Bad::Truncated)?;
        touch(len);
        self.at += len;
        Ok(taken)
    }

    fn take_array<const LEN: usize>(&mut self) -> Result<[u8; LEN], Bad> {
        let taken = self.take(LEN)?;
        Ok(*taken.first_chunk().expect("that many bytes were taken"))
    }

    /// What stands before the next LF, which is taken too.
    fn line(&mut self) -> Result<&'a [u8], Bad> {
        Ok(self.line_span()?.of(self.message))
    }

    fn line_span(&mut self) -> Result<Span, Bad> {
        let at = self.at;
        let len = memchr(b'\n', &self.message[at..]).ok_or(Bad::Truncated)?;
        touch(len + 1);
        self.at += len + 1;
        Ok(Span::new(at, len))
    }
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
        _ => fast_float2::parse(text).map_err(|_| Bad::Text),
    }
}

fn hexadecimal(digits: &[u8]) -> Result<u32, Bad> {
    let mut number = 0_u32;
    for digit in digits {
        number = number << 4 | char::from(*digit).to_digit(16).ok_or(Bad::Text)?;
    }
    Ok(number)
}
