//! What forms become: expressions whose names are resolved, so that running them looks nothing up by name.
//!
//! A function's arguments and locals are slots of its frame; what it captured is in its closure.

use std::any::Any;
use std::sync::Arc;

use arcstr::ArcStr;

use super::machine::NativeFn;
use crate::event::Field;
use crate::function::Code;
use crate::object::class::Class;
use crate::object::reference::Var;
use crate::position::Position;
use crate::value::Value;

/// An expression.
#[derive(Debug)]
pub(crate) enum Expr {
    Constant(Value),
    /// A slot of the frame.
    Local(u32),
    /// A value that the closure captured.
    Captured(u32),
    /// A function that was made beside the one that runs, or that one itself.
    Sibling(u32),
    Global(Box<Global>),
    If(Box<[Expr; 3]>),
    Do(Box<[Expr]>),
    Let(Box<Let>),
    /// As `Let`, and `Recur` in its body begins the body anew.
    Loop(Box<Let>),
    /// Sets slots and begins the innermost loop or function anew.
    Recur(Box<Recur>),
    Function(Box<Make>),
    /// Functions that know each other, each in a slot, around a body.
    Functions(Box<Functions>),
    Native(Box<NativeCall>),
    Call(Box<Call>),
    /// A standard field of the argument: `(:metric e)`.
    Field(Box<(Field, Expr)>),
    /// A keyword called with one argument.
    Lookup(Box<(Value, Expr)>),
    Vector(Box<[Expr]>),
    Map(Box<[(Expr, Expr)]>),
    Set(Box<[Expr]>),
    Define(Box<Define>),
    Try(Box<Try>),
    Throw(Box<(Expr, Position)>),
    Binding(Box<Binding>),
}

#[derive(Debug)]
pub(crate) struct Global {
    pub(crate) var: Arc<Var<Value>>,
    pub(crate) at: Position,
}

#[derive(Debug)]
pub(crate) struct Let {
    pub(crate) bindings: Box<[(u32, Expr)]>,
    pub(crate) body: Expr,
}

#[derive(Debug)]
pub(crate) struct Recur {
    pub(crate) slots: Box<[u32]>,
    pub(crate) values: Box<[Expr]>,
}

#[derive(Debug)]
pub(crate) struct Make {
    pub(crate) group: Arc<Group>,
    pub(crate) index: u32,
    pub(crate) captures: Box<[Place]>,
}

#[derive(Debug)]
pub(crate) struct Functions {
    pub(crate) group: Arc<Group>,
    pub(crate) captures: Box<[Place]>,
    pub(crate) slots: Box<[u32]>,
    pub(crate) body: Expr,
}

/// Where a value is that a new closure captures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Local(u32),
    Captured(u32),
    Sibling(u32),
}

#[derive(Debug)]
pub(crate) struct NativeCall {
    pub(crate) run: NativeFn,
    pub(crate) arguments: Box<[Expr]>,
    pub(crate) at: Position,
}

#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) function: Expr,
    pub(crate) arguments: Box<[Expr]>,
    pub(crate) at: Position,
}

#[derive(Debug)]
pub(crate) struct Define {
    pub(crate) var: Arc<Var<Value>>,
    pub(crate) value: Option<Expr>,
    pub(crate) is_macro: bool,
    /// `defonce`: a value that is there stays.
    pub(crate) once: bool,
}

#[derive(Debug)]
pub(crate) struct Try {
    pub(crate) body: Expr,
    pub(crate) catches: Box<[Catch]>,
    pub(crate) finally: Option<Expr>,
}

#[derive(Debug)]
pub(crate) struct Catch {
    pub(crate) class: &'static Class,
    pub(crate) slot: u32,
    pub(crate) body: Expr,
}

#[derive(Debug)]
pub(crate) struct Binding {
    pub(crate) vars: Box<[(Arc<Var<Value>>, Expr)]>,
    pub(crate) body: Expr,
    pub(crate) at: Position,
    /// `with-redefs`: the vars themselves change meanwhile, dynamic or not.
    pub(crate) redefine: bool,
}

/// The functions of one `fn` or `letfn`.
#[derive(Debug)]
pub(crate) struct Group {
    /// A hash of what was written.
    pub(crate) form: u64,
    pub(crate) functions: Box<[Function]>,
}

/// A function: one body for each number of arguments.
#[derive(Debug)]
pub(crate) struct Function {
    pub(crate) name: Option<ArcStr>,
    pub(crate) bodies: Box<[Body]>,
}

/// What a function does with so many arguments.
#[derive(Debug)]
pub(crate) struct Body {
    /// Arguments with a slot each: the first slots.
    pub(crate) fixed: u32,
    /// Whether further arguments are a list in the slot after them.
    pub(crate) rest: bool,
    /// Slots of a frame, those of the arguments among them.
    pub(crate) slots: u32,
    pub(crate) expr: Expr,
}

impl Code for Group {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn name(&self, index: u32) -> Option<&str> {
        self.functions.get(index as usize)?.name.as_deref()
    }

    fn form(&self) -> u64 {
        self.form
    }
}
