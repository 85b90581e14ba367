//! Why a text has no value.

use config::diagnostic::{Code, Diagnostic, Place};

/// Why a text has no value. The public functions convert it to a [`Diagnostic`].
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Fault {
    pub(super) supported: bool,
    pub(super) place: Place,
    pub(super) message: String,
    pub(super) label: String,
    pub(super) hint: Option<String>,
}

/// Workaround for unsupported JavaScript.
const CONVERT: &str = "write the value itself, or convert the file on a machine with node: \
    node -p 'JSON.stringify(eval(\"config=\" + require(\"fs\").readFileSync(\"FILE\", \"utf8\")), null, 2)'";

impl Fault {
    /// The text is not JavaScript, or node reports an error here as well.
    pub(super) fn syntax(place: Place, message: impl Into<String>, label: impl Into<String>) -> Fault {
        Fault { supported: true, place, message: message.into(), label: label.into(), hint: None }
    }

    /// Valid JavaScript that is not supported.
    pub(super) fn unsupported(place: Place, message: impl Into<String>) -> Fault {
        let hint = Some(CONVERT.into());
        Fault { supported: false, place, message: message.into(), label: "not supported here".into(), hint }
    }

    pub(super) fn hint(self, hint: impl Into<String>) -> Fault {
        Fault { hint: Some(hint.into()), ..self }
    }

    pub(super) fn diagnostic(self) -> Diagnostic {
        let code = if self.supported { Code::ImportSyntax } else { Code::UnsupportedJavascript };
        let diagnostic = Diagnostic::error(code, self.message).at(self.place).label(self.label);
        Diagnostic { hint: self.hint, ..diagnostic }
    }
}
