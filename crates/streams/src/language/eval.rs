//! Running expressions.
//!
//! Locals are in slots of the machine's stack from the frame's base on. A call puts the arguments on the stack, where they
//! are the first slots of the callee's frame; the function that made a frame cuts the stack back at its end, also after errors.
//!
//! `recur` is a result of its own kind, [`Flow::Recur`], which ends at the innermost loop or function.

use std::sync::Arc;

use arcstr::ArcStr;

use super::budget::VALUE_DEPTH_MAX;
use super::classes::cannot_cast;
use super::error::{EvalError, Outcome, Reason};
use super::expr::{
    Binding, Call, Define, Expr, Function, Functions, Let, Make, NativeCall, Place, Recur, Try,
};
use super::machine::Machine;
use crate::collections::element::Element as _;
use crate::collections::map::Map;
use crate::collections::set::Set;
use crate::function::{Closure, Code};
use crate::object::class;
use crate::object::reference::Var;
use crate::value::Value;

/// Why an expression gave no value.
pub(super) enum Flow {
    Recur,
    Error(EvalError),
}

impl From<EvalError> for Flow {
    fn from(error: EvalError) -> Flow {
        Flow::Error(error)
    }
}

type Eval<T = Value> = Result<T, Flow>;

/// Most arguments of a native that need no allocation.
const ARGUMENTS_INLINE: usize = 4;

/// The function that runs.
#[derive(Clone, Copy)]
pub(super) struct Frame<'f> {
    pub(super) base: usize,
    pub(super) closure: Option<&'f Arc<Closure<Value>>>,
}

impl Frame<'_> {
    fn captures(&self) -> &[Value] {
        self.closure.map_or(&[], |closure| &closure.captures)
    }

    fn sibling(&self, index: u32) -> Value {
        match self.closure {
            Some(closure) if closure.index == index => Value::Closure(Arc::clone(closure)),
            Some(closure) => Value::Closure(Arc::new(closure.sibling(index))),
            None => Value::Nil,
        }
    }
}

impl Machine<'_> {
    /// Runs an expression outside of any function.
    ///
    /// # Errors
    /// What it throws.
    pub(super) fn run(&mut self, expr: &Expr, slots: u32) -> Outcome {
        let base = self.stack.len();
        let frame = Frame { base, closure: None };
        self.stack.resize(base + slots as usize, Value::Nil);
        let result = self.eval(expr, &frame);
        self.stack.truncate(base);
        result.map_err(outside)
    }

    /// Calls a function of a group, whose arguments are the last values of the stack. They are taken away.
    pub(super) fn call_function(
        &mut self,
        closure: &Arc<Closure<Value>>,
        function: &Function,
        given: usize,
    ) -> Outcome {
        let base = self.stack.len() - given;
        let fits = |fixed: u32, rest| given == fixed as usize || rest && given > fixed as usize;
        let Some(body) = function.bodies.iter().find(|body| fits(body.fixed, body.rest)) else {
            self.stack.truncate(base);
            return Err(wrong_arity(given, function.name.as_ref()));
        };
        let fixed = body.fixed as usize;
        if body.rest {
            let rest = if given > fixed {
                Value::list(self.stack.drain(base + fixed..).collect::<Vec<_>>())
            } else {
                Value::Nil
            };
            self.stack.push(rest);
        }
        if let Err(error) = self.budget.step(1).and_then(|()| self.budget.enter()) {
            self.stack.truncate(base);
            return Err(error);
        }
        let frame = Frame { base, closure: Some(closure) };
        self.stack.resize(base + body.slots as usize, Value::Nil);
        let result = self.repeat(&body.expr, &frame);
        self.stack.truncate(base);
        self.budget.leave();
        result.map_err(outside)
    }

    /// Runs a body until it does not end in `recur`.
    fn repeat(&mut self, body: &Expr, frame: &Frame<'_>) -> Eval {
        loop {
            match self.eval(body, frame) {
                Err(Flow::Recur) => self.budget.step(1)?,
                result => return result,
            }
        }
    }

    fn local(&self, frame: &Frame<'_>, slot: u32) -> Value {
        self.stack[frame.base + slot as usize].clone()
    }

    fn set_local(&mut self, frame: &Frame<'_>, slot: u32, value: Value) {
        self.stack[frame.base + slot as usize] = value;
    }

    fn eval(&mut self, expr: &Expr, frame: &Frame<'_>) -> Eval {
        match expr {
            Expr::Constant(value) => Ok(value.clone()),
            Expr::Local(slot) => Ok(self.local(frame, *slot)),
            Expr::Captured(index) => Ok(frame.captures()[*index as usize].clone()),
            Expr::Sibling(index) => Ok(frame.sibling(*index)),
            Expr::Global(global) => {
                self.global(&global.var).map_err(|error| Flow::Error(error.within(&global.at)))
            }
            Expr::If(parts) => {
                let [test, then, otherwise] = &**parts;
                let branch = if self.eval(test, frame)?.is_true() { then } else { otherwise };
                self.eval(branch, frame)
            }
            Expr::Do(parts) => {
                let (last, before) = parts.split_last().expect("the analysis makes no empty `do`");
                for part in before {
                    self.eval(part, frame)?;
                }
                self.eval(last, frame)
            }
            Expr::Let(inner) => {
                self.bind(inner, frame)?;
                self.eval(&inner.body, frame)
            }
            Expr::Loop(inner) => {
                self.bind(inner, frame)?;
                self.repeat(&inner.body, frame)
            }
            Expr::Recur(recur) => self.eval_recur(recur, frame),
            Expr::Function(make) => self.eval_function(make, frame),
            Expr::Functions(functions) => self.eval_functions(functions, frame),
            Expr::Native(call) => self.eval_native(call, frame),
            Expr::Call(call) => self.eval_call(call, frame),
            Expr::Field(inner) => {
                let (field, of) = &**inner;
                match self.eval(of, frame)? {
                    Value::Event(event) => Ok(event.get(*field).clone()),
                    Value::Nil => Ok(Value::Nil),
                    of => Ok(self.lookup(&of, &Value::keyword(field.name())).unwrap_or_default()),
                }
            }
            Expr::Lookup(inner) => {
                let (key, of) = &**inner;
                let of = self.eval(of, frame)?;
                Ok(self.lookup(&of, key).unwrap_or_default())
            }
            Expr::Vector(items) => self.eval_vector(items, frame),
            Expr::Map(entries) => self.eval_map(entries, frame),
            Expr::Set(items) => self.eval_set(items, frame),
            Expr::Define(define) => self.eval_define(define, frame),
            Expr::Try(attempt) => self.eval_try(attempt, frame),
            Expr::Throw(inner) => {
                let value = self.eval(&inner.0, frame)?;
                Err(Flow::Error(thrown(value).within(&inner.1)))
            }
            Expr::Binding(binding) => self.eval_binding(binding, frame),
        }
    }

    fn bind(&mut self, inner: &Let, frame: &Frame<'_>) -> Eval<()> {
        for (slot, value) in &inner.bindings {
            let value = self.eval(value, frame)?;
            self.set_local(frame, *slot, value);
        }
        Ok(())
    }

    fn eval_recur(&mut self, recur: &Recur, frame: &Frame<'_>) -> Eval {
        let mark = self.stack.len();
        // All values are computed before the first slot changes.
        for value in &recur.values {
            let value = self.eval(value, frame)?;
            self.stack.push(value);
        }
        for (index, slot) in recur.slots.iter().enumerate() {
            let value = std::mem::take(&mut self.stack[mark + index]);
            self.set_local(frame, *slot, value);
        }
        self.stack.truncate(mark);
        Err(Flow::Recur)
    }

    /// The value of a var, as the innermost `binding` has it.
    ///
    /// # Errors
    /// If it has none.
    pub(super) fn global(&mut self, var: &Arc<Var<Value>>) -> Outcome {
        if var.is_dynamic()
            && let Some((_, value)) = self.bindings.iter().rev().find(|(bound, _)| Arc::ptr_eq(bound, var))
        {
            return Ok(value.clone());
        }
        let unbound = || format!("{}/{} has no value", var.namespace, var.name);
        var.get().ok_or_else(|| EvalError::throw(&class::ILLEGAL_STATE, unbound()))
    }

    fn captured(&mut self, places: &[Place], frame: &Frame<'_>) -> Outcome<Arc<[Value]>> {
        let value = |place: &Place| match place {
            Place::Local(slot) => self.local(frame, *slot),
            Place::Captured(index) => frame.captures()[*index as usize].clone(),
            Place::Sibling(index) => frame.sibling(*index),
        };
        let captures: Arc<[Value]> = places.iter().map(value).collect();
        self.budget.memory(size_of::<Closure<Value>>() + captures.len() * size_of::<Value>())?;
        Ok(captures)
    }

    fn eval_function(&mut self, make: &Make, frame: &Frame<'_>) -> Eval {
        let captures = self.captured(&make.captures, frame)?;
        let code: Arc<dyn Code> = Arc::<super::expr::Group>::clone(&make.group);
        checked(Value::Closure(Arc::new(Closure::new(code, make.index, captures))))
    }

    fn eval_functions(&mut self, functions: &Functions, frame: &Frame<'_>) -> Eval {
        let captures = self.captured(&functions.captures, frame)?;
        let code: Arc<dyn Code> = Arc::<super::expr::Group>::clone(&functions.group);
        for (index, slot) in (0..).zip(&functions.slots) {
            let closure = Closure::new(Arc::clone(&code), index, Arc::clone(&captures));
            let value = checked(Value::Closure(Arc::new(closure)))?;
            self.set_local(frame, *slot, value);
        }
        self.eval(&functions.body, frame)
    }

    fn eval_native(&mut self, call: &NativeCall, frame: &Frame<'_>) -> Eval {
        let result = match &*call.arguments {
            [] => self.run_native(call, &mut []),
            [a] => {
                let mut arguments = [self.eval(a, frame)?];
                self.run_native(call, &mut arguments)
            }
            [a, b] => {
                let mut arguments = [self.eval(a, frame)?, self.eval(b, frame)?];
                self.run_native(call, &mut arguments)
            }
            many => return self.eval_native_many(call, many, frame),
        };
        result.map_err(Flow::Error)
    }

    fn eval_native_many(&mut self, call: &NativeCall, many: &[Expr], frame: &Frame<'_>) -> Eval {
        const NIL: Value = Value::Nil;
        if many.len() <= ARGUMENTS_INLINE {
            let mut arguments = [NIL; ARGUMENTS_INLINE];
            for (to, from) in arguments.iter_mut().zip(many) {
                *to = self.eval(from, frame)?;
            }
            return Ok(self.run_native(call, &mut arguments[..many.len()])?);
        }
        let mut arguments = Vec::with_capacity(many.len());
        for from in many {
            arguments.push(self.eval(from, frame)?);
        }
        Ok(self.run_native(call, &mut arguments)?)
    }

    fn run_native(&mut self, call: &NativeCall, arguments: &mut [Value]) -> Outcome {
        if self.loads > 0 {
            self.here = call.at.clone();
        }
        let result = self.budget.step(1).and_then(|()| (call.run)(self, arguments));
        // An exception of the function says less than that its comparisons had no end.
        match self.charge_effort().and(result) {
            Ok(value) if value.shape().depth > VALUE_DEPTH_MAX => Err(EvalError::too_deep().within(&call.at)),
            Ok(value) => Ok(value),
            Err(error) => Err(error.within(&call.at)),
        }
    }

    fn eval_call(&mut self, call: &Call, frame: &Frame<'_>) -> Eval {
        let function = self.eval(&call.function, frame)?;
        let result = if let Value::Closure(closure) = &function {
            for argument in &call.arguments {
                let value = self.eval(argument, frame)?;
                self.stack.push(value);
            }
            self.call_closure(closure, call.arguments.len())
        } else {
            let mut arguments = Vec::with_capacity(call.arguments.len());
            for argument in &call.arguments {
                arguments.push(self.eval(argument, frame)?);
            }
            self.call(&function, &mut arguments)
        };
        result.map_err(|error| Flow::Error(error.within(&call.at)))
    }

    fn eval_vector(&mut self, items: &[Expr], frame: &Frame<'_>) -> Eval {
        self.budget.memory((items.len() + 2) * size_of::<Value>())?;
        let mut vector = crate::collections::vector::Vector::default();
        for item in items {
            vector.push(self.eval(item, frame)?);
        }
        checked(Value::Vector(Arc::new(vector)))
    }

    fn eval_map(&mut self, entries: &[(Expr, Expr)], frame: &Frame<'_>) -> Eval {
        self.budget.memory((2 * entries.len() + 2) * size_of::<Value>())?;
        let mut map = Map::default();
        for (key, value) in entries {
            let key = self.eval(key, frame)?;
            let key = self.realize(&key)?;
            if map.get(&key).is_some() {
                let message = format!("Duplicate key: {}", crate::print::to_text(&key, true));
                return Err(EvalError::illegal_argument(message).into());
            }
            map.insert(key, self.eval(value, frame)?);
        }
        checked(Value::Map(Arc::new(map)))
    }

    fn eval_set(&mut self, items: &[Expr], frame: &Frame<'_>) -> Eval {
        self.budget.memory((items.len() + 2) * size_of::<Value>())?;
        let mut set = Set::default();
        for item in items {
            let item = self.eval(item, frame)?;
            let item = self.realize(&item)?;
            if !set.insert(item.clone()) {
                let message = format!("Duplicate key: {}", crate::print::to_text(&item, true));
                return Err(EvalError::illegal_argument(message).into());
            }
        }
        checked(Value::Set(Arc::new(set)))
    }

    fn eval_define(&mut self, define: &Define, frame: &Frame<'_>) -> Eval {
        if let Some(value) = &define.value
            && !(define.once && define.var.get().is_some())
        {
            let value = self.eval(value, frame)?;
            define.var.set_macro(define.is_macro);
            define.var.set(value);
        }
        Ok(Value::Var(Arc::clone(&define.var)))
    }

    fn eval_try(&mut self, attempt: &Try, frame: &Frame<'_>) -> Eval {
        let (stack, bindings, depth) = (self.stack.len(), self.bindings.len(), self.budget.depth());
        let mut result = self.eval(&attempt.body, frame);
        if let Err(Flow::Error(error)) = &result
            && let Reason::Thrown(exception) = error.reason()
        {
            self.stack.truncate(stack);
            self.bindings.truncate(bindings);
            debug_assert_eq!(self.budget.depth(), depth, "each `enter` has its `leave`");
            let caught = attempt.catches.iter().find(|catch| exception.class.is_a(catch.class));
            if let Some(catch) = caught {
                let exception = Arc::clone(exception);
                self.set_local(frame, catch.slot, Value::Exception(exception));
                result = self.eval(&catch.body, frame);
            }
        }
        let limit =
            matches!(&result, Err(Flow::Error(error)) if !matches!(error.reason(), Reason::Thrown(_)));
        if let Some(finally) = &attempt.finally
            && !limit
        {
            self.eval(finally, frame)?;
        }
        result
    }

    fn eval_binding(&mut self, binding: &Binding, frame: &Frame<'_>) -> Eval {
        let mut values = Vec::with_capacity(binding.vars.len());
        for (var, value) in &binding.vars {
            values.push((Arc::clone(var), self.eval(value, frame)?));
        }
        if binding.redefine {
            let old: Vec<_> = values.iter().map(|(var, _)| (Arc::clone(var), var.get())).collect();
            values.into_iter().for_each(|(var, value)| var.set(value));
            let result = self.eval(&binding.body, frame);
            for (var, value) in old {
                value.into_iter().for_each(|value| var.set(value));
            }
            return result;
        }
        if let Some((var, _)) = values.iter().find(|(var, _)| !var.is_dynamic()) {
            let message = format!("Can't dynamically bind non-dynamic var: {}/{}", var.namespace, var.name);
            return Err(EvalError::throw(&class::ILLEGAL_STATE, message).within(&binding.at).into());
        }
        let mark = self.bindings.len();
        self.bindings.extend(values);
        let result = self.eval(&binding.body, frame);
        self.bindings.truncate(mark);
        result
    }
}

/// A value that is not too deep.
fn checked(value: Value) -> Eval {
    if value.shape().depth > VALUE_DEPTH_MAX {
        return Err(EvalError::too_deep().into());
    }
    Ok(value)
}

/// The error of a flow that left its function. The analysis lets `recur` stand only where a loop or a function catches it.
fn outside(flow: Flow) -> EvalError {
    match flow {
        Flow::Error(error) => error,
        Flow::Recur => EvalError::throw(&class::ILLEGAL_STATE, "recur outside of a loop"),
    }
}

/// What `throw` makes of a value.
fn thrown(value: Value) -> EvalError {
    match value {
        Value::Exception(exception) => EvalError::new(Reason::Thrown(exception)),
        other => cannot_cast(&other, &class::THROWABLE),
    }
}

fn wrong_arity(given: usize, name: Option<&ArcStr>) -> EvalError {
    let name = name.map_or("fn", |name| name);
    EvalError::throw(&class::ARITY, format!("Wrong number of args ({given}) passed to: {name}"))
}
