//! Templates: `$name` in paths is replaced before anything is fetched.

use super::{Call, Expr, ExprKind, Literal, NamedArg, TEMPLATE_VALUES_MAX};
use crate::query::error::{Code, QueryError};
use crate::query::numbers;

/// Longest path after the replacements, in bytes.
const EXPANDED_BYTES_MAX: usize = super::TARGET_BYTES_MAX;

/// A `$name` and its value.
type Value = (String, Literal);

/// Replaces each template by its body with the values filled in. `request` are the values of the request
/// (`template[name]`): they win over those in the target.
///
/// # Errors
/// When there are too many values, or the paths become longer than a target may be.
pub fn expand(expr: Expr, request: &[(String, String)]) -> Result<Expr, QueryError> {
    if request.len() > TEMPLATE_VALUES_MAX {
        let message = format!("a request has at most {TEMPLATE_VALUES_MAX} values for templates");
        return Err(QueryError::new(Code::Limit, message));
    }
    let mut left = EXPANDED_BYTES_MAX;
    walk(expr, None, request, &mut left)
}

fn walk(
    expr: Expr,
    values: Option<&[Value]>,
    request: &[(String, String)],
    left: &mut usize,
) -> Result<Expr, QueryError> {
    let at = expr.at;
    let kind = match expr.kind {
        ExprKind::Path(path) => match values {
            None => ExprKind::Path(path),
            Some(values) => fill(path, values, left).map_err(|mistake| mistake.at(at))?,
        },
        ExprKind::Literal(literal) => ExprKind::Literal(literal),
        ExprKind::Call(call) => {
            let args = call.args.into_iter().map(|arg| walk(arg, values, request, left));
            let args = args.collect::<Result<_, _>>()?;
            let named = call.named.into_iter().map(|arg| {
                let value = walk(arg.value, values, request, left)?;
                Ok(NamedArg { value, ..arg })
            });
            let named = named.collect::<Result<_, _>>()?;
            ExprKind::Call(Call { args, named, ..call })
        }
        ExprKind::Template(template) => {
            let mut own: Vec<Value> = template.values;
            for (name, value) in request {
                own.retain(|(other, _)| other != name);
                own.push((name.clone(), Literal::Text(value.clone())));
            }
            // A longer name first: `$10` is not `$1` and a zero.
            own.sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
            return walk(*template.body, Some(&own), request, left);
        }
    };
    Ok(Expr { at, kind })
}

/// A path with its `$names` replaced; a path that is one `$name` becomes the value itself.
fn fill(path: String, values: &[Value], left: &mut usize) -> Result<ExprKind, QueryError> {
    let Some(first) = path.find('$') else { return Ok(ExprKind::Path(path)) };
    if first == 0
        && let Some((_, value)) = values.iter().find(|(name, _)| *name == path[1..])
    {
        return Ok(ExprKind::Literal(match value {
            Literal::Text(text) => number(text).unwrap_or_else(|| value.clone()),
            _ => value.clone(),
        }));
    }
    let mut filled = String::with_capacity(path.len());
    let mut rest = path.as_str();
    while let Some(at) = rest.find('$') {
        filled.push_str(&rest[..at]);
        let after = &rest[at + 1..];
        match values.iter().find(|(name, _)| after.starts_with(name.as_str())) {
            Some((name, value)) => {
                push(&mut filled, value);
                rest = &after[name.len()..];
            }
            None => {
                filled.push('$');
                rest = after;
            }
        }
        if filled.len() > *left {
            let message = format!("the paths of this template are longer than {EXPANDED_BYTES_MAX} bytes");
            return Err(QueryError::new(Code::Limit, message));
        }
    }
    filled.push_str(rest);
    *left = left.saturating_sub(filled.len());
    Ok(ExprKind::Path(filled))
}

/// Text of digits and dots, with an optional minus.
fn number(text: &str) -> Option<Literal> {
    let unsigned = text.strip_prefix('-').unwrap_or(text);
    let looks_like = !unsigned.is_empty() && unsigned.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    looks_like.then(|| text.parse().ok()).flatten().map(Literal::Float)
}

fn push(path: &mut String, value: &Literal) {
    match value {
        Literal::Int(int) => path.push_str(&int.to_string()),
        Literal::Float(float) => path.push_str(&numbers::repr(*float)),
        Literal::Text(text) => path.push_str(text),
        Literal::Bool(_) | Literal::None => {}
    }
}
