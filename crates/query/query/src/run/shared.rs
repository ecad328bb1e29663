//! Values that asynchronous callers hold.
//!
//! Threads share them, and the compiler has to prove that they may: from all of DataFusion's types, once more for each
//! asynchronous method that holds one. With fifty such methods, `flight` took a minute to compile. A trait object is
//! proved only once.

use std::sync::Arc;

/// A value that threads share, of a type that the compiler looks at only here.
pub(crate) type SharedValue<T> = Arc<dyn AsRef<T> + Send + Sync>;

struct HeldValue<T>(T);

impl<T> AsRef<T> for HeldValue<T> {
    fn as_ref(&self) -> &T {
        &self.0
    }
}

/// Shares a value.
pub(crate) fn shared<T: Send + Sync + 'static>(value: T) -> SharedValue<T> {
    Arc::new(HeldValue(value))
}

/// The value.
pub(crate) fn held<T>(shared: &SharedValue<T>) -> &T {
    AsRef::<T>::as_ref(&**shared)
}
