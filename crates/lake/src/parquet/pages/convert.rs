//! Arrays as numbers of the kinds that Parquet stores.

use arrow::array::{Array, ArrowPrimitiveType, AsArray};
use arrow::datatypes::DecimalType;
use tidelake_model::{Error, ErrorKind, Result};

/// Values that lie in the array as they are stored.
pub(super) fn same<'a, T: ArrowPrimitiveType>(
    array: &'a dyn Array,
    _: &'a mut Vec<T::Native>,
) -> Result<&'a [T::Native]> {
    Ok(array.as_primitive::<T>().values())
}

/// Values that are stored as wider ones.
pub(super) fn widened<'a, T: ArrowPrimitiveType<Native: Into<N>>, N>(
    array: &'a dyn Array,
    converted: &'a mut Vec<N>,
) -> Result<&'a [N]> {
    converted.clear();
    converted.extend(array.as_primitive::<T>().values().iter().map(|value| (*value).into()));
    Ok(converted)
}

/// Decimals of so few digits that a number holds them.
pub(super) fn decimals<'a, T: DecimalType, N: TryFrom<T::Native> + Default>(
    array: &'a dyn Array,
    converted: &'a mut Vec<N>,
) -> Result<&'a [N]> {
    converted.clear();
    let values = array.as_primitive::<T>().values();
    let mut fits = true;
    converted.extend(values.iter().map(|value| {
        let number = N::try_from(*value);
        fits &= number.is_ok();
        number.unwrap_or_default()
    }));
    // What lies below a NULL may be anything.
    let is_too_long =
        |row: usize, value: &T::Native| array.is_valid(row) && N::try_from(*value).is_err();
    if !fits && values.iter().enumerate().any(|(row, value)| is_too_long(row, value)) {
        return Err(Error::new(ErrorKind::Data, "a number is too long for its column"));
    }
    Ok(converted)
}
