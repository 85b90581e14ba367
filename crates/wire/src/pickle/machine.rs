//! The pickle virtual machine, restricted to the opcodes that build plain data.

use memchr::memchr;
use model::Span;

use crate::number::double;
use crate::steps::touch;

use super::value::{DEPTH_MAX, LISTS_MAX, Pickle, PickleError, Text, VALUES_MAX, Value};

/// Highest supported protocol.
const PROTOCOL_MAX: u8 = 5;

/// Most bytes of an integer (digits or binary) and of an escaped string: one opcode scans all of them.
const SCANNED_BYTES_MAX: usize = 64 * 1024;

/// A pickle that is being decoded, step by step. Each step borrows the message's bytes.
#[derive(Debug, Default)]
pub struct PickleReader(MachineState);

/// The machine's state between two steps.
#[derive(Debug, Default)]
struct MachineState {
    pickle: Pickle,
    /// Offset in the message.
    at: usize,
    stack: Vec<Value>,
    /// Stack heights at its `MARK`s.
    marks: Vec<usize>,
    memo: Vec<Option<Value>>,
    /// Number of values pushed so far.
    made: usize,
}

struct Machine<'a> {
    message: &'a [u8],
    held: &'a mut MachineState,
}

impl PickleReader {
    /// Decodes the next `bytes` of `message` (a pickle without its frame's length) up to the end of an opcode.
    /// Returns the pickle at its `STOP`; bytes after it are ignored, as in Python.
    ///
    /// # Errors
    /// See [`PickleError`]. The message must be discarded then.
    pub fn step(&mut self, message: &[u8], bytes: usize) -> Result<Option<Pickle>, PickleError> {
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
    fn step(&mut self, opcode: u8) -> Result<(), PickleError> {
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
            other => Err(PickleError::Opcode(other)),
        }
    }

    fn protocol(&mut self) -> Result<(), PickleError> {
        let [version] = self.take_array()?;
        if version > PROTOCOL_MAX { Err(PickleError::Protocol(version)) } else { Ok(()) }
    }

    /// A frame is a hint for reading ahead; it only must not reach past the end.
    fn frame(&mut self) -> Result<(), PickleError> {
        let len = u64::from_le_bytes(self.take_array()?);
        let rest = (self.message.len() - self.held.at) as u64;
        if len > rest { Err(PickleError::Truncated) } else { Ok(()) }
    }

    fn number(&mut self, opcode: u8) -> Result<(), PickleError> {
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
                let bytes = self.take(usize::try_from(len).map_err(|_| PickleError::Text)?)?;
                little_endian(scannable(bytes)?)
            }
            b'F' => Value::Float(float(self.short_line()?)?),
            _ => Value::Float(f64::from_be_bytes(self.take_array()?)),
        };
        self.push(value)
    }

    fn text(&mut self, opcode: u8) -> Result<(), PickleError> {
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
                self.sent(u64::try_from(len).map_err(|_| PickleError::Text)?)?
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

    fn sent(&mut self, len: u64) -> Result<Text, PickleError> {
        let at = self.held.at;
        let text = self.take(usize::try_from(len).map_err(|_| PickleError::Truncated)?)?;
        Ok(Text::Sent(Span::new(at, text.len())))
    }

    /// A string in Python's `repr` form.
    fn quoted(&mut self) -> Result<Text, PickleError> {
        let line = self.line_span()?;
        let inner = match line.of(self.message) {
            [first @ (b'\'' | b'"'), inner @ .., last] if first == last => inner,
            _ => return Err(PickleError::Text),
        };
        if memchr(b'\\', inner).is_none() {
            return Ok(Text::Sent(Span::new(line.at as usize + 1, inner.len())));
        }
        let begin = self.held.pickle.made.len();
        let mut rest = scannable(inner)?;
        while let [byte, behind @ ..] = rest {
            rest = behind;
            let mut made = *byte;
            if *byte == b'\\' {
                let [escaped, behind @ ..] = rest else { return Err(PickleError::Text) };
                rest = behind;
                made = match escaped {
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    b'x' => {
                        let (digits, behind) = rest.split_at_checked(2).ok_or(PickleError::Text)?;
                        rest = behind;
                        hexadecimal(digits)? as u8
                    }
                    b'\\' | b'\'' | b'"' => *escaped,
                    _ => return Err(PickleError::Text),
                };
            }
            self.held.pickle.made.push(made);
        }
        Ok(Text::Made(Span::new(begin, self.held.pickle.made.len() - begin)))
    }

    /// Latin-1, with `\uXXXX` and `\UXXXXXXXX` for other characters.
    fn raw_unicode(&mut self) -> Result<Text, PickleError> {
        let line = self.line_span()?;
        let text = line.of(self.message);
        if text.is_ascii() && memchr(b'\\', text).is_none() {
            return Ok(Text::Sent(line));
        }
        let begin = self.held.pickle.made.len();
        let mut rest = scannable(text)?;
        while let [byte, behind @ ..] = rest {
            rest = behind;
            let len = match (*byte, rest.first()) {
                (b'\\', Some(b'u')) => 4,
                (b'\\', Some(b'U')) => 8,
                _ => 0,
            };
            let mut made = char::from(*byte);
            if len > 0 {
                let (digits, behind) = rest[1..].split_at_checked(len).ok_or(PickleError::Text)?;
                rest = behind;
                made = char::from_u32(hexadecimal(digits)?).ok_or(PickleError::Text)?;
            }
            self.held.pickle.made.extend_from_slice(made.encode_utf8(&mut [0; 4]).as_bytes());
        }
        Ok(Text::Made(Span::new(begin, self.held.pickle.made.len() - begin)))
    }

    fn list(&mut self, opcode: u8) -> Result<(), PickleError> {
        match opcode {
            b']' | b'}' => self.push_list(opcode == b'}', Vec::new()),
            b'l' | b'd' => {
                let at = self.unmark()?;
                // Allocate only what the values need: `split_off` may return the stack's whole capacity.
                let values = self.held.stack.drain(at..).collect();
                self.push_list(opcode == b'd', values)
            }
            b'a' => {
                let at = self.held.stack.len().checked_sub(1).ok_or(PickleError::Stack)?;
                self.append(at, false)
            }
            b's' => {
                let at = self.held.stack.len().checked_sub(2).ok_or(PickleError::Stack)?;
                self.append(at, true)
            }
            _ => {
                let at = self.unmark()?;
                self.append(at, opcode == b'u')
            }
        }
    }

    fn push_list(&mut self, dict: bool, values: Vec<Value>) -> Result<(), PickleError> {
        if dict && !values.len().is_multiple_of(2) {
            return Err(PickleError::Stack);
        }
        let at = self.held.pickle.lists.len();
        if at == LISTS_MAX {
            return Err(PickleError::TooMuch);
        }
        let at = at as u32;
        self.push(if dict { Value::Dict(at) } else { Value::List(at) })?;
        self.held.pickle.lists.push(values);
        Ok(())
    }

    /// Moves the stack from `at` on into the list or dict below it.
    fn append(&mut self, at: usize, dict: bool) -> Result<(), PickleError> {
        if self.held.marks.last().is_some_and(|mark| *mark >= at) {
            return Err(PickleError::Stack);
        }
        let below = at.checked_sub(1).ok_or(PickleError::Stack)?;
        let list = match (self.held.stack[below], dict) {
            (Value::List(list), false) => list,
            (Value::Dict(list), true) if (self.held.stack.len() - at).is_multiple_of(2) => list,
            _ => return Err(PickleError::Stack),
        };
        self.held.pickle.lists[list as usize].extend(self.held.stack.drain(at..));
        Ok(())
    }

    fn tuple(&mut self, opcode: u8) -> Result<(), PickleError> {
        let at = match opcode {
            b')' => self.held.stack.len(),
            b't' => self.unmark()?,
            // TUPLE1, TUPLE2, TUPLE3.
            _ => self.held.stack.len().checked_sub(usize::from(opcode - 0x84)).ok_or(PickleError::Stack)?,
        };
        if self.held.marks.last().is_some_and(|mark| *mark > at) {
            return Err(PickleError::Stack);
        }
        let begin = self.held.pickle.items.len();
        self.held.pickle.items.extend(self.held.stack.drain(at..));
        self.push(Value::Tuple(Span::new(begin, self.held.pickle.items.len() - begin)))
    }

    fn put(&mut self, opcode: u8) -> Result<(), PickleError> {
        let value = self.top()?;
        let at = if opcode == 0x94 { self.held.memo.len() } else { self.memo_place(opcode)? };
        // A message of ten bytes must not allocate a memo of a million entries, nor one opcode of a long message.
        if at >= VALUES_MAX || at >= self.held.at || at - at.min(self.held.memo.len()) > SCANNED_BYTES_MAX {
            return Err(PickleError::Memo);
        }
        if self.held.memo.len() <= at {
            touch(at + 1 - self.held.memo.len());
            self.held.memo.resize(at + 1, None);
        }
        self.held.memo[at] = Some(value);
        Ok(())
    }

    fn get(&mut self, opcode: u8) -> Result<(), PickleError> {
        let at = self.memo_place(opcode)?;
        let value = self.held.memo.get(at).copied().flatten().ok_or(PickleError::Memo)?;
        self.push(value)
    }

    fn memo_place(&mut self, opcode: u8) -> Result<usize, PickleError> {
        Ok(match opcode {
            b'p' | b'g' => {
                let text = std::str::from_utf8(self.short_line()?).map_err(|_| PickleError::Memo)?;
                text.parse().map_err(|_| PickleError::Memo)?
            }
            b'q' | b'h' => usize::from(u8::from_le_bytes(self.take_array()?)),
            _ => u32::from_le_bytes(self.take_array()?) as usize,
        })
    }

    fn push(&mut self, value: Value) -> Result<(), PickleError> {
        self.held.made += 1;
        if self.held.made > VALUES_MAX {
            return Err(PickleError::TooMuch);
        }
        self.held.stack.push(value);
        Ok(())
    }

    /// The topmost value above the last open `MARK`.
    fn top(&self) -> Result<Value, PickleError> {
        let floor = self.held.marks.last().copied().unwrap_or_default();
        self.held.stack[floor..].last().copied().ok_or(PickleError::Stack)
    }

    fn pop(&mut self) -> Result<Value, PickleError> {
        let value = self.top()?;
        self.held.stack.pop();
        Ok(value)
    }

    /// POP removes a value or, when there is none above it, a mark.
    fn discard(&mut self) -> Result<(), PickleError> {
        if self.held.marks.last() == Some(&self.held.stack.len()) {
            self.held.marks.pop();
            return Ok(());
        }
        self.pop().map(|_| ())
    }

    fn mark(&mut self) -> Result<(), PickleError> {
        if self.held.marks.len() == DEPTH_MAX {
            return Err(PickleError::TooMuch);
        }
        self.held.marks.push(self.held.stack.len());
        Ok(())
    }

    fn unmark(&mut self) -> Result<usize, PickleError> {
        self.held.marks.pop().ok_or(PickleError::Stack)
    }

    /// The next bytes; callers that scan them call `touch`.
    fn take(&mut self, len: usize) -> Result<&'a [u8], PickleError> {
        let rest = &self.message[self.held.at..];
        let (taken, _) = rest.split_at_checked(len).ok_or(PickleError::Truncated)?;
        self.held.at += len;
        Ok(taken)
    }

    fn take_array<const LEN: usize>(&mut self) -> Result<[u8; LEN], PickleError> {
        let taken = self.take(LEN)?;
        touch(LEN);
        Ok(*taken.first_chunk().expect("that many bytes were taken"))
    }

    fn short_line(&mut self) -> Result<&'a [u8], PickleError> {
        scannable(self.line_span()?.of(self.message))
    }

    /// The bytes before the next LF, which is consumed too.
    fn line_span(&mut self) -> Result<Span, PickleError> {
        let at = self.held.at;
        let len = memchr(b'\n', &self.message[at..]).ok_or(PickleError::Truncated)?;
        self.held.at += len + 1;
        Ok(Span::new(at, len))
    }
}

/// Checks that an opcode may scan these bytes at once.
fn scannable(bytes: &[u8]) -> Result<&[u8], PickleError> {
    if bytes.len() > SCANNED_BYTES_MAX {
        return Err(PickleError::TooMuch);
    }
    touch(bytes.len());
    Ok(bytes)
}

fn whole(digits: &[u8]) -> Result<Value, PickleError> {
    let text = std::str::from_utf8(digits).map_err(|_| PickleError::Text)?;
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    if unsigned.is_empty() || !unsigned.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(PickleError::Text);
    }
    // Valid digits fail only when there are too many.
    Ok(text.parse().map_or(Value::Huge, Value::Whole))
}

/// An integer in two's complement, of any length.
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

fn float(text: &[u8]) -> Result<f64, PickleError> {
    match text {
        b"nan" => Ok(f64::NAN),
        b"inf" => Ok(f64::INFINITY),
        b"-inf" => Ok(f64::NEG_INFINITY),
        _ => double(text).ok_or(PickleError::Text),
    }
}

fn hexadecimal(digits: &[u8]) -> Result<u32, PickleError> {
    let mut number = 0_u32;
    for digit in digits {
        number = number << 4 | char::from(*digit).to_digit(16).ok_or(PickleError::Text)?;
    }
    Ok(number)
}
