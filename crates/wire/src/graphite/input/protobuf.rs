//! Reads the points of a protobuf message (spec graphite §1.3), step by step.
//!
//! Path of a packet: `message` -> [`Check::step`], until the whole message is validated -> [`Points::next`].
//! Not here: converting a point to a line (`message`).
//! Invariant: a step is bounded for any message: it processes one field, and a point has few.

use model::Span;

use crate::steps::touch;

/// Most bytes of one point: it is read in one step, and has two short known fields at most.
const POINT_BYTES_MAX: usize = 64 * 1024;

/// The message is invalid.
#[derive(Debug)]
pub(super) struct BadMessage;

/// Validates every field of a payload, and adds up the names that its points reference.
#[derive(Debug)]
pub(super) struct Check {
    payload: Fields,
    metric: Option<Counted>,
    texts: usize,
}

/// A metric, as far as it was validated.
#[derive(Debug)]
struct Counted {
    rest: Fields,
    points: usize,
    name_bytes: usize,
}

/// The points of a validated payload, one after the other.
#[derive(Debug)]
pub(super) struct Points {
    payload: Fields,
    metric: Option<Metric>,
}

/// `Metric { string metric = 1; repeated Point points = 2 }`, whose fields may come in any order.
#[derive(Debug)]
struct Metric {
    name: Span,
    /// Fields that may still contain a name: the last one counts.
    naming: Fields,
    points: Fields,
}

/// The result of a step.
pub(super) enum Found {
    /// A point: its name, time and value.
    Point(Span, u32, f64),
    /// A field that is not a point.
    Other,
    /// The end.
    End,
}

impl Check {
    pub(super) fn new(message: &[u8]) -> Check {
        Check { payload: Fields::of(Span::new(0, message.len())), metric: None, texts: 0 }
    }

    /// Validates `steps` more fields, and bytes of points. True when all of it is valid, with at most `most` bytes of
    /// names.
    pub(super) fn step(&mut self, message: &[u8], steps: usize, most: usize) -> Result<bool, BadMessage> {
        let mut done = 0;
        while done < steps {
            done += 1;
            match &mut self.metric {
                None => match self.payload.next(message)? {
                    // `Payload { repeated Metric metrics = 1 }`
                    Some((1, Wire::Bytes(metric))) => {
                        self.metric = Some(Counted { rest: Fields::of(metric), points: 0, name_bytes: 0 });
                    }
                    Some(_) => {}
                    None => return Ok(true),
                },
                Some(Counted { rest, points, name_bytes }) => match rest.next(message)? {
                    Some((1, Wire::Bytes(name))) => *name_bytes = name.len as usize,
                    Some((2, Wire::Bytes(span))) => {
                        point(message, span)?;
                        done += span.len as usize;
                        *points += 1;
                    }
                    Some(_) => {}
                    None => {
                        self.texts = self.texts.saturating_add(points.saturating_mul(*name_bytes));
                        if self.texts > most {
                            return Err(BadMessage);
                        }
                        self.metric = None;
                    }
                },
            }
        }
        Ok(false)
    }
}

impl Points {
    pub(super) fn new(message: &[u8]) -> Points {
        Points { payload: Fields::of(Span::new(0, message.len())), metric: None }
    }

    /// Reads one more field. Does not fail after validation.
    pub(super) fn next(&mut self, message: &[u8]) -> Found {
        self.try_next(message).unwrap_or(Found::End)
    }

    fn try_next(&mut self, message: &[u8]) -> Result<Found, BadMessage> {
        let Some(Metric { name, naming, points }) = &mut self.metric else {
            return Ok(match self.payload.next(message)? {
                Some((1, Wire::Bytes(span))) => {
                    let fields = Fields::of(span);
                    self.metric = Some(Metric { name: Span::default(), naming: fields, points: fields });
                    Found::Other
                }
                Some(_) => Found::Other,
                None => Found::End,
            });
        };
        if let Some(field) = naming.next(message)? {
            if let (1, Wire::Bytes(text)) = field {
                *name = text;
            }
            return Ok(Found::Other);
        }
        match points.next(message)? {
            Some((2, Wire::Bytes(span))) => {
                let (time, value) = point(message, span)?;
                return Ok(Found::Point(*name, time, value));
            }
            Some(_) => {}
            None => self.metric = None,
        }
        Ok(Found::Other)
    }
}

/// `Point { uint32 timestamp = 1; double value = 2 }`. A field that is 0 may be absent.
fn point(message: &[u8], point: Span) -> Result<(u32, f64), BadMessage> {
    let (mut time, mut value) = (0, 0.0);
    if point.len as usize > POINT_BYTES_MAX {
        return Err(BadMessage);
    }
    let mut fields = Fields::of(point);
    while let Some(field) = fields.next(message)? {
        match field {
            (1, Wire::Whole(number)) => time = number as u32,
            (2, Wire::Eight(bytes)) => value = f64::from_le_bytes(bytes),
            _ => {}
        }
    }
    Ok((time, value))
}

enum Wire {
    Whole(u64),
    Eight([u8; 8]),
    Bytes(Span),
    Four,
}

/// The unread fields of a protobuf message, including unknown ones.
#[derive(Clone, Copy, Debug)]
struct Fields {
    at: usize,
    end: usize,
}

impl Fields {
    fn of(span: Span) -> Fields {
        Fields { at: span.at as usize, end: span.at as usize + span.len as usize }
    }

    fn next(&mut self, message: &[u8]) -> Result<Option<(u64, Wire)>, BadMessage> {
        if self.at == self.end {
            return Ok(None);
        }
        let key = self.whole(message)?;
        let value = match key & 7 {
            0 => Wire::Whole(self.whole(message)?),
            1 => Wire::Eight(*self.take(8)?.of(message).first_chunk().ok_or(BadMessage)?),
            2 => {
                let len = usize::try_from(self.whole(message)?).map_err(|_| BadMessage)?;
                Wire::Bytes(self.take(len)?)
            }
            5 => self.take(4).map(|_| Wire::Four)?,
            _ => return Err(BadMessage),
        };
        Ok(Some((key >> 3, value)))
    }

    fn whole(&mut self, message: &[u8]) -> Result<u64, BadMessage> {
        let mut number = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.take(1)?.of(message)[0];
            number |= u64::from(byte & 0x7F) << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(BadMessage)
    }

    fn take(&mut self, len: usize) -> Result<Span, BadMessage> {
        touch(1);
        if len > self.end - self.at {
            return Err(BadMessage);
        }
        let taken = Span::new(self.at, len);
        self.at += len;
        Ok(taken)
    }
}
