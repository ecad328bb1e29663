//! The outcome of a call, and the message of the last call that failed.

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use binlogz_flow::Error as FlowError;
use binlogz_flow::error::in_log;
use binlogz_payload::Error as PayloadError;

/// The outcome of a call. After any but BINLOGZ_OK and BINLOGZ_END, binlogz_last_error() has a message.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum binlogz_status {
    /// Done.
    BINLOGZ_OK = 0,
    /// There are no more events or changes.
    BINLOGZ_END = 1,
    /// An argument that can't be: a null pointer, a handle that isn't open or that another thread uses, a level that zstd doesn't have.
    BINLOGZ_BAD_ARGUMENT = 2,
    /// Bytes that can't be right: damaged, cut off, no binary log. The message has the offset, what was found and what was expected.
    BINLOGZ_BAD_INPUT = 3,
    /// The system refused: a file that isn't there, a full disk.
    BINLOGZ_IO = 4,
    /// A bug in binlogz. The handle can't be used again; close it.
    BINLOGZ_BUG = 5,
    /// After the last change: the log was read to its end, but it may hold changes that could not be read, or says that some
    /// are lost. The message names the first.
    BINLOGZ_UNREAD = 6,
}

/// Why a call fails.
#[derive(Debug, Clone)]
pub(crate) struct CallTrouble {
    status: binlogz_status,
    message: String,
}

pub(crate) type Result<T, E = CallTrouble> = std::result::Result<T, E>;

impl CallTrouble {
    pub(crate) fn argument(message: impl Into<String>) -> Self {
        CallTrouble { status: binlogz_status::BINLOGZ_BAD_ARGUMENT, message: message.into() }
    }

    pub(crate) fn input(message: impl ToString) -> Self {
        CallTrouble { status: binlogz_status::BINLOGZ_BAD_INPUT, message: message.to_string() }
    }

    pub(crate) fn system(error: impl ToString) -> Self {
        CallTrouble { status: binlogz_status::BINLOGZ_IO, message: error.to_string() }
    }

    pub(crate) fn io(path: &Path, error: &impl ToString) -> Self {
        let message = format!("{}: {}", path.display(), error.to_string());
        CallTrouble { status: binlogz_status::BINLOGZ_IO, message }
    }

    pub(crate) fn bug(message: impl ToString) -> Self {
        CallTrouble {
            status: binlogz_status::BINLOGZ_BUG,
            message: format!("a bug in binlogz: {}", message.to_string()),
        }
    }

    /// This trouble, with `place` before its message.
    pub(crate) fn behind(self, place: &str) -> Self {
        CallTrouble { message: format!("{place}: {}", self.message), ..self }
    }

    /// A log that can't be read to its end.
    pub(crate) fn in_log(path: &Path, error: &FlowError) -> Self {
        match error {
            FlowError::Input(error @ PayloadError::Io(_)) => Self::io(path, error),
            FlowError::Input(error) => Self::input(in_log(&path.display(), error)),
            FlowError::Unread(_) => {
                let message = format!("{} {error}", path.display());
                CallTrouble { status: binlogz_status::BINLOGZ_UNREAD, message }
            }
            error => Self::io(path, error),
        }
    }
}

thread_local! {
    static MESSAGE: RefCell<CString> = RefCell::new(CString::default());
}

/// A text for C. Everything after a NUL byte is lost: no name or message has one.
pub(crate) fn c_string(text: impl Into<Vec<u8>>) -> CString {
    let mut bytes = text.into();
    bytes.truncate(bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len()));
    CString::new(bytes).unwrap_or_default()
}

/// Makes a call, whose panics stay here.
pub(crate) fn called(call: impl FnOnce() -> Result<binlogz_status>) -> binlogz_status {
    let came_to = catch_unwind(AssertUnwindSafe(call)).unwrap_or_else(|panic| {
        let said = panic
            .downcast_ref::<String>()
            .map(String::as_str)
            .or_else(|| panic.downcast_ref::<&str>().copied())
            .unwrap_or("a panic");
        Err(CallTrouble::bug(said))
    });
    came_to.unwrap_or_else(|trouble| {
        MESSAGE.with_borrow_mut(|message| *message = c_string(trouble.message));
        trouble.status
    })
}

/// The message of the last call of this thread that failed; empty if none has. It stays until another call of this thread
/// fails.
#[unsafe(no_mangle)]
pub extern "C" fn binlogz_last_error() -> *const c_char {
    MESSAGE.with_borrow(|message| message.as_ptr())
}

/// The version of this library, as in "0.2.0".
#[unsafe(no_mangle)]
pub extern "C" fn binlogz_version() -> *const c_char {
    const VERSION: &CStr =
        match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
            Ok(version) => version,
            Err(_) => c"",
        };
    VERSION.as_ptr()
}

/// A C string as text; `what` names the argument.
///
/// # Safety
///
/// `pointer` is null or points to a string that ends with NUL.
pub(crate) unsafe fn text<'a>(pointer: *const c_char, what: &str) -> Result<&'a str> {
    if pointer.is_null() {
        return Err(CallTrouble::argument(format!("{what} is NULL")));
    }
    // SAFETY: the caller keeps to it.
    let text = unsafe { CStr::from_ptr(pointer) };
    text.to_str().map_err(|_| CallTrouble::argument(format!("{what} isn't UTF-8")))
}

/// The value that a pointer points to; an error if it is null. `what` names the argument.
///
/// # Safety
///
/// `pointer` is null or points to a value that nobody else uses meanwhile.
pub(crate) unsafe fn pointed<'a, T>(pointer: *mut T, what: &str) -> Result<&'a mut T> {
    // SAFETY: the caller keeps to it.
    unsafe { pointer.as_mut() }.ok_or_else(|| CallTrouble::argument(format!("{what} is NULL")))
}
