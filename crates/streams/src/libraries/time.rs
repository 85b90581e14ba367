//! `riemann.time`: the clock (spec riemann §8.4). Tasks are in `riemann::timing`.

use crate::natives;
use crate::nodes::fields;
use crate::value::Value;

natives! {
    /// The namespace.
    pub(super) NATIVES = {
        "unix-time", 0, 0, "The present time, in Unix seconds.", |m, _| Ok(Value::of_time_us(m.graph.now_us()));
        "linear-time", 0, 0, "The present time, in seconds that only grow.", |m, _| Ok(Value::of_time_us(m.graph.now_us()));
        "next-tick", 2, 3, "The first time of a grid after now: `anchor dt [now]`.", |m, a| {
            let now = match a.get(2) { Some(now) => now.clone(), None => Value::of_time_us(m.graph.now_us()) };
            let (anchor, dt, now) = (fields::number(&a[0])?, fields::number(&a[1])?, fields::number(&now)?);
            if dt.is_zero() { return Err(crate::arithmetic::ArithmeticError::DivideByZero.into()); }
            // anchor + dt·(floor((now − anchor) / dt) + 1), as now + (dt − (now − anchor) mod dt).
            let since = fields::subtract(now, anchor)?;
            let ticks = (since.as_f64() / dt.as_f64()).floor() as i64;
            let ticks = crate::number::Number::Int(ticks.saturating_add(1));
            let next = fields::add(anchor, &fields::multiply(dt, &ticks)?)?;
            Ok(match now {
                crate::number::Number::Double(_) | crate::number::Number::Float(_) => next.as_f64().into(),
                _ => Value::Number(next),
            })
        };
    }
}
