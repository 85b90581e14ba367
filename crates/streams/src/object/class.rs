//! The Java classes that configs name, and who descends from whom.

/// A class.
#[derive(Debug)]
pub struct Class {
    /// Its full name: `java.lang.String`.
    pub name: &'static str,
    /// The class above it, or an interface that configs ask for; `None` for `java.lang.Object`.
    pub parent: Option<&'static Class>,
}

impl Class {
    /// Its name without its package.
    pub fn short_name(&self) -> &'static str {
        self.name.rsplit_once('.').map_or(self.name, |(_, short)| short)
    }

    /// Whether values of this class are of that one too.
    pub fn is_a(&self, other: &Class) -> bool {
        let mut class = Some(self);
        while let Some(this) = class {
            if std::ptr::eq(this, other) {
                return true;
            }
            class = this.parent;
        }
        false
    }
}

macro_rules! classes {
    ($($id:ident = $name:literal : $parent:expr;)*) => {
        $(
            #[doc = concat!("`", $name, "`")]
            pub static $id: Class = Class { name: $name, parent: $parent };
        )*
        /// All of them.
        pub static ALL: &[&Class] = &[$(&$id),*];
    };
}

classes! {
    OBJECT = "java.lang.Object": None;
    THROWABLE = "java.lang.Throwable": Some(&OBJECT);
    EXCEPTION = "java.lang.Exception": Some(&THROWABLE);
    ERROR = "java.lang.Error": Some(&THROWABLE);
    STACK_OVERFLOW = "java.lang.StackOverflowError": Some(&ERROR);
    OUT_OF_MEMORY = "java.lang.OutOfMemoryError": Some(&ERROR);
    ASSERTION_ERROR = "java.lang.AssertionError": Some(&ERROR);
    RUNTIME_EXCEPTION = "java.lang.RuntimeException": Some(&EXCEPTION);
    ARITHMETIC = "java.lang.ArithmeticException": Some(&RUNTIME_EXCEPTION);
    CLASS_CAST = "java.lang.ClassCastException": Some(&RUNTIME_EXCEPTION);
    NULL_POINTER = "java.lang.NullPointerException": Some(&RUNTIME_EXCEPTION);
    ILLEGAL_ARGUMENT = "java.lang.IllegalArgumentException": Some(&RUNTIME_EXCEPTION);
    NUMBER_FORMAT = "java.lang.NumberFormatException": Some(&ILLEGAL_ARGUMENT);
    PATTERN_SYNTAX = "java.util.regex.PatternSyntaxException": Some(&ILLEGAL_ARGUMENT);
    ARITY = "clojure.lang.ArityException": Some(&ILLEGAL_ARGUMENT);
    ILLEGAL_STATE = "java.lang.IllegalStateException": Some(&RUNTIME_EXCEPTION);
    UNSUPPORTED = "java.lang.UnsupportedOperationException": Some(&RUNTIME_EXCEPTION);
    INDEX_OUT_OF_BOUNDS = "java.lang.IndexOutOfBoundsException": Some(&RUNTIME_EXCEPTION);
    STRING_INDEX = "java.lang.StringIndexOutOfBoundsException": Some(&INDEX_OUT_OF_BOUNDS);
    EXCEPTION_INFO = "clojure.lang.ExceptionInfo": Some(&RUNTIME_EXCEPTION);
    NO_SUCH_ELEMENT = "java.util.NoSuchElementException": Some(&RUNTIME_EXCEPTION);
    IO_EXCEPTION = "java.io.IOException": Some(&EXCEPTION);
    JSON_PARSE = "com.fasterxml.jackson.core.JsonParseException": Some(&IO_EXCEPTION);
    JSON_GENERATION = "com.fasterxml.jackson.core.JsonGenerationException": Some(&IO_EXCEPTION);
    FILE_NOT_FOUND = "java.io.FileNotFoundException": Some(&IO_EXCEPTION);
    CONNECT = "java.net.ConnectException": Some(&IO_EXCEPTION);
    UNKNOWN_HOST = "java.net.UnknownHostException": Some(&IO_EXCEPTION);
    SOCKET_TIMEOUT = "java.net.SocketTimeoutException": Some(&IO_EXCEPTION);
    TIMEOUT = "java.util.concurrent.TimeoutException": Some(&EXCEPTION);
    INTERRUPTED = "java.lang.InterruptedException": Some(&EXCEPTION);
    STRING = "java.lang.String": Some(&OBJECT);
    BOOLEAN = "java.lang.Boolean": Some(&OBJECT);
    CHARACTER = "java.lang.Character": Some(&OBJECT);
    NUMBER = "java.lang.Number": Some(&OBJECT);
    LONG = "java.lang.Long": Some(&NUMBER);
    INTEGER = "java.lang.Integer": Some(&NUMBER);
    SHORT = "java.lang.Short": Some(&NUMBER);
    BYTE = "java.lang.Byte": Some(&NUMBER);
    DOUBLE = "java.lang.Double": Some(&NUMBER);
    FLOAT = "java.lang.Float": Some(&NUMBER);
    BIG_INT = "clojure.lang.BigInt": Some(&NUMBER);
    RATIO = "clojure.lang.Ratio": Some(&NUMBER);
    KEYWORD = "clojure.lang.Keyword": Some(&OBJECT);
    SYMBOL = "clojure.lang.Symbol": Some(&OBJECT);
    FUNCTION = "clojure.lang.IFn": Some(&OBJECT);
    PERSISTENT_COLLECTION = "clojure.lang.IPersistentCollection": Some(&OBJECT);
    SEQUENTIAL = "clojure.lang.Sequential": Some(&PERSISTENT_COLLECTION);
    ISEQ = "clojure.lang.ISeq": Some(&SEQUENTIAL);
    IPERSISTENT_MAP = "clojure.lang.IPersistentMap": Some(&PERSISTENT_COLLECTION);
    IPERSISTENT_VECTOR = "clojure.lang.IPersistentVector": Some(&SEQUENTIAL);
    IPERSISTENT_SET = "clojure.lang.IPersistentSet": Some(&PERSISTENT_COLLECTION);
    LIST = "clojure.lang.PersistentList": Some(&ISEQ);
    LAZY_SEQ = "clojure.lang.LazySeq": Some(&ISEQ);
    VECTOR = "clojure.lang.PersistentVector": Some(&IPERSISTENT_VECTOR);
    ARRAY_MAP = "clojure.lang.PersistentArrayMap": Some(&IPERSISTENT_MAP);
    HASH_SET = "clojure.lang.PersistentHashSet": Some(&IPERSISTENT_SET);
    EVENT = "riemann.codec.Event": Some(&IPERSISTENT_MAP);
    PATTERN = "java.util.regex.Pattern": Some(&OBJECT);
    VAR = "clojure.lang.Var": Some(&FUNCTION);
    ATOM = "clojure.lang.Atom": Some(&OBJECT);
    DELAY = "clojure.lang.Delay": Some(&OBJECT);
    CLASS = "java.lang.Class": Some(&OBJECT);
    NAMESPACE = "clojure.lang.Namespace": Some(&OBJECT);
    DATE = "java.util.Date": Some(&OBJECT);
    DATE_TIME = "org.joda.time.DateTime": Some(&OBJECT);
    MATH = "java.lang.Math": Some(&OBJECT);
    SYSTEM = "java.lang.System": Some(&OBJECT);
    THREAD = "java.lang.Thread": Some(&OBJECT);
    INET_ADDRESS = "java.net.InetAddress": Some(&OBJECT);
    UUID = "java.util.UUID": Some(&OBJECT);
}

/// The class of a name as configs write it: in full, or short where Java or Clojure import it by themselves. Classes of
/// other packages are found by their short names too, as if they were imported.
pub fn find(name: &str) -> Option<&'static Class> {
    let alias = match name {
        "clojure.lang.IExceptionInfo" => return Some(&EXCEPTION_INFO),
        "java.util.Map" | "Map" => return Some(&IPERSISTENT_MAP),
        "java.util.List" | "List" => return Some(&SEQUENTIAL),
        "java.util.Set" | "Set" => return Some(&IPERSISTENT_SET),
        "java.util.Collection" => return Some(&PERSISTENT_COLLECTION),
        "clojure.lang.Fn" | "clojure.lang.AFn" => return Some(&FUNCTION),
        name => name,
    };
    ALL.iter().copied().find(|class| class.name == alias || class.short_name() == alias)
}
