//! `try`.

use super::analyzer::{Analyzer, MISTAKE};
use crate::language::expr::{Catch, Expr, Try};
use crate::value::Value;

impl Analyzer<'_, '_> {
    pub(super) fn try_form(&mut self, forms: &[Value]) -> Expr {
        let clause = |form: &Value, name: &str| {
            let Value::List(list) = form else { return None };
            let is_it = list.first().and_then(Value::as_symbol).is_some_and(|head| head == name);
            is_it.then(|| list.iter().skip(1).cloned().collect::<Vec<Value>>())
        };
        let is_clause = |form: &Value| clause(form, "catch").or_else(|| clause(form, "finally")).is_some();
        let end = forms.iter().position(is_clause).unwrap_or(forms.len());
        // A loop inside has its own place for `recur`; one outside cannot be reached from here.
        let body = self.body(forms[..end].iter(), false);
        let (mut catches, mut finally) = (Vec::new(), None);
        for form in &forms[end..] {
            if let Some(rest) = clause(form, "catch") {
                let Some(catch) = self.catch(&rest) else { return MISTAKE };
                catches.push(catch);
            } else if let Some(rest) = clause(form, "finally") {
                finally = Some(self.body(rest.iter(), false));
            } else {
                return self.complain("nothing but `catch` and `finally` follows the first `catch` of `try`");
            }
        }
        Expr::Try(Box::new(Try { body, catches: catches.into(), finally }))
    }

    fn catch(&mut self, forms: &[Value]) -> Option<Catch> {
        let [class, Value::Symbol(name), body @ ..] = forms else {
            self.complain("`catch` takes a class and a name");
            return None;
        };
        let class = self.class(class)?;
        let mark = self.mark();
        let slot = self.declare(&name.name);
        let body = self.body(body.iter(), false);
        self.back_to(mark);
        Some(Catch { class, slot, body })
    }
}
