//! Arrays of every type and pattern, the same in every run.
#![allow(dead_code)]

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, BooleanArray, Decimal64Array, Decimal128Array,
    Decimal256Array, FixedSizeBinaryArray, GenericByteArray, ListArray, PrimitiveArray,
    StructArray,
};
use arrow::buffer::{BooleanBuffer, Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow::compute::cast;
use arrow::datatypes::{
    BinaryType, ByteArrayType, DataType, Date32Type, Field, Float32Type, Float64Type, Int8Type,
    Int16Type, Int32Type, Int64Type, LargeBinaryType, LargeUtf8Type, Time32MillisecondType,
    Time64MicrosecondType, Time64NanosecondType, TimestampMicrosecondType,
    TimestampMillisecondType, TimestampNanosecondType, UInt8Type, UInt16Type, UInt32Type,
    UInt64Type, Utf8Type, i256,
};

/// Numbers without a pattern, the same in every run.
pub struct Random(pub u64);

impl Random {
    pub fn any(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        self.0 ^ self.0 >> 29
    }

    pub fn below(&mut self, limit: usize) -> usize {
        (self.any() >> 16) as usize % limit
    }
}

/// How the values of a column follow one another.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Pattern {
    Constant,
    Few,
    Thousands,
    Sorted,
    Runs,
    Any,
    /// Few at first, then any: a dictionary that is given up.
    Turning,
    /// The ends of the type, NaN, both zeros, long texts.
    Special,
}

pub const PATTERNS: [Pattern; 8] = [
    Pattern::Constant,
    Pattern::Few,
    Pattern::Thousands,
    Pattern::Sorted,
    Pattern::Runs,
    Pattern::Any,
    Pattern::Turning,
    Pattern::Special,
];

/// Which rows are NULL.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Nulls {
    /// None, in a column that may not.
    Never,
    /// None, in a column that may.
    None,
    All,
    Half,
    Rare,
    /// A long run of them at the beginning, and others later.
    Runs,
}

pub const NULLS: [Nulls; 6] =
    [Nulls::Never, Nulls::None, Nulls::All, Nulls::Half, Nulls::Rare, Nulls::Runs];

/// A column's values before they have a type.
pub struct Seeds {
    pattern: Pattern,
    values: Vec<u64>,
    nulls: Option<NullBuffer>,
}

impl Seeds {
    pub fn new(random: &mut Random, rows: usize, pattern: Pattern, nulls: Nulls) -> Self {
        let mut last = 0;
        let values = (0..rows).map(|row| match pattern {
            Pattern::Constant => 42,
            Pattern::Few => random.any() % 5,
            Pattern::Thousands => random.any() % 3_000,
            Pattern::Sorted => row as u64 / 2,
            Pattern::Runs => {
                if random.below(40) == 0 {
                    last = random.any() % 50;
                }
                last
            }
            Pattern::Turning if row < rows / 2 => random.any() % 5,
            Pattern::Any | Pattern::Turning | Pattern::Special => random.any(),
        });
        let values = values.collect();
        let mut is_valid = true;
        let valid = (0..rows).map(|row| match nulls {
            Nulls::Never | Nulls::None => true,
            Nulls::All => false,
            Nulls::Half => random.below(2) == 0,
            Nulls::Rare => random.below(500) != 0,
            Nulls::Runs => {
                if random.below(900) == 0 {
                    is_valid = !is_valid;
                }
                row > rows / 3 && is_valid
            }
        });
        let valid: BooleanBuffer = valid.collect();
        let nulls = (nulls != Nulls::Never).then(|| NullBuffer::new(valid));
        Self { pattern, values, nulls }
    }

    fn special<T: Copy>(&self, from: &[T], value: impl Fn(u64) -> T) -> Vec<T> {
        let one = |seed: &u64| match self.pattern {
            Pattern::Special => from[*seed as usize % from.len()],
            _ => value(*seed),
        };
        self.values.iter().map(one).collect()
    }

    fn numbers<T: ArrowPrimitiveType>(
        &self,
        special: &[T::Native],
        value: impl Fn(u64) -> T::Native,
    ) -> PrimitiveArray<T> {
        // What lies below a NULL is not zero.
        PrimitiveArray::new(ScalarBuffer::from(self.special(special, value)), self.nulls.clone())
    }

    fn numbers_of<T: ArrowPrimitiveType>(
        &self,
        special: &[T::Native],
        value: impl Fn(u64) -> T::Native,
    ) -> ArrayRef {
        Arc::new(self.numbers::<T>(special, value))
    }

    fn decimals(&self, precision: u8, scale: i8) -> ArrayRef {
        let limit = 10_i128.pow(u32::from(precision)) - 1;
        let value = |seed: u64| {
            let wide = i128::from(seed as i64) * i128::from(seed | 1);
            (if self.pattern == Pattern::Any { wide } else { i128::from(seed) }) % (limit + 1)
        };
        let mut array: Decimal128Array = self.numbers(&[limit, -limit, 0, 1, -1], value);
        if let Some(nulls) = array.nulls().filter(|_| precision < 38) {
            // Below a NULL there may even be what is no value of the type.
            let values = array.values().iter().enumerate();
            let values = values.map(|(row, value)| match nulls.is_valid(row) {
                true => *value,
                false => i128::MAX,
            });
            array = Decimal128Array::new(values.collect(), Some(nulls.clone()));
        }
        Arc::new(array.with_precision_and_scale(precision, scale).unwrap())
    }

    fn wide_decimals(&self, precision: u8, scale: i8) -> ArrayRef {
        let limit = i256::from_i128(10).checked_pow(u32::from(precision)).unwrap();
        let limit = limit.checked_sub(i256::ONE).unwrap();
        let value = |seed: u64| {
            i256::from_i128(i128::from(seed as i64)).wrapping_mul(i256::from_i128(1 << 40))
        };
        let special = [limit, limit.wrapping_neg(), i256::ZERO, i256::MINUS_ONE];
        let array: Decimal256Array = self.numbers(&special, value);
        Arc::new(array.with_precision_and_scale(precision, scale).unwrap())
    }

    fn text_bytes(&self, seed: u64, is_text: bool) -> Vec<u8> {
        if self.pattern != Pattern::Special {
            return match seed % 7 {
                0 => Vec::new(),
                1 => b"x".to_vec(),
                2 => format!("{}", seed % 1_000).into_bytes(),
                3 => format!("grün {seed}").into_bytes(),
                _ => format!("value number {seed:020} of its column").into_bytes(),
            };
        }
        let long = 60 + seed as usize / 64 % 10;
        match seed % 8 {
            0 => "\u{10ffff}".repeat(long).into_bytes(),
            1 => "ü".repeat(long).into_bytes(),
            2 => "z".repeat(long).into_bytes(),
            3 => "a\0".repeat(long / 2).into_bytes(),
            4 => "\u{7f}".repeat(long).into_bytes(),
            5 => "same beginning".to_owned().into_bytes(),
            6 => "x".repeat(seed as usize / 64 % 3_000).into_bytes(),
            _ if is_text => "\u{d7ff}".repeat(long).into_bytes(),
            _ => vec![0xff; long],
        }
    }

    fn texts<T: ByteArrayType>(&self, is_text: bool) -> ArrayRef {
        let cells: Vec<_> =
            self.values.iter().map(|seed| self.text_bytes(*seed, is_text)).collect();
        let offsets = OffsetBuffer::from_lengths(cells.iter().map(Vec::len));
        let values = Buffer::from(cells.concat());
        Arc::new(GenericByteArray::<T>::new(offsets, values, self.nulls.clone()))
    }

    fn fixed(&self, width: i32) -> ArrayRef {
        let bytes: Vec<u8> = self
            .values
            .iter()
            .flat_map(|seed| {
                let filler = if self.pattern == Pattern::Special { 0xff } else { *seed as u8 };
                let head = seed.to_be_bytes();
                (0..width as usize).map(move |at| if at < 8 { head[at] } else { filler })
            })
            .collect();
        Arc::new(FixedSizeBinaryArray::new(width, Buffer::from(bytes), self.nulls.clone()))
    }

    fn list(&self) -> ArrayRef {
        let items: PrimitiveArray<Int64Type> = self.numbers(&[1], |seed| seed as i64);
        let mut left = items.len();
        let lengths = self.values.iter().map(|seed| {
            let take = (*seed as usize % 4).min(left);
            left -= take;
            take
        });
        let offsets = OffsetBuffer::from_lengths(lengths.collect::<Vec<_>>());
        let field = Arc::new(Field::new("item", DataType::Int64, true));
        Arc::new(ListArray::new(field, offsets, Arc::new(items), self.nulls.clone()))
    }

    fn pair(&self) -> ArrayRef {
        let items: ArrayRef = Arc::new(self.numbers::<Int32Type>(&[1], |seed| seed as i32));
        let texts = self.texts::<Utf8Type>(true);
        let fields = vec![
            Field::new("number", DataType::Int32, true),
            Field::new("text", DataType::Utf8, true),
        ];
        Arc::new(StructArray::new(fields.into(), vec![items, texts], self.nulls.clone()))
    }

    /// All types, by names.
    pub fn all(&self) -> Vec<(&'static str, ArrayRef)> {
        let floats = [0.0, -0.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::MIN_POSITIVE];
        let singles = floats.map(|value| value as f32);
        // Some readers end where a time is not of a day.
        let day = 86_400_000;
        let bits = self.values.iter().map(|seed| seed % 3 == 0).collect();
        let moments =
            self.numbers::<TimestampMicrosecondType>(&[i64::MIN, i64::MAX, 0], |seed| seed as i64);
        let small = Decimal64Array::from(
            self.numbers::<Int64Type>(&[999_999, -999_999, 0], |seed| (seed % 1_000_000) as i64)
                .into_data()
                .into_builder()
                .data_type(DataType::Decimal64(18, 3))
                .build()
                .unwrap(),
        );
        let views = cast(&self.texts::<Utf8Type>(true), &DataType::Utf8View).unwrap();
        vec![
            ("boolean", Arc::new(BooleanArray::new(bits, self.nulls.clone()))),
            ("int8", self.numbers_of::<Int8Type>(&[i8::MIN, i8::MAX, 0], |seed| seed as i8)),
            ("int16", self.numbers_of::<Int16Type>(&[i16::MIN, i16::MAX], |seed| seed as i16)),
            ("int32", self.numbers_of::<Int32Type>(&[i32::MIN, i32::MAX], |seed| seed as i32)),
            ("int64", self.numbers_of::<Int64Type>(&[i64::MIN, i64::MAX], |seed| seed as i64)),
            ("uint8", self.numbers_of::<UInt8Type>(&[0, u8::MAX, 127, 128], |seed| seed as u8)),
            ("uint16", self.numbers_of::<UInt16Type>(&[0, u16::MAX], |seed| seed as u16)),
            ("uint32", self.numbers_of::<UInt32Type>(&[0, 7, u32::MAX], |seed| seed as u32)),
            ("uint64", self.numbers_of::<UInt64Type>(&[0, 7, u64::MAX], |seed| seed)),
            ("float32", self.numbers_of::<Float32Type>(&singles, |seed| seed as f32)),
            ("float64", self.numbers_of::<Float64Type>(&floats, |seed| seed as f64 - 2.5)),
            ("zeros", self.numbers_of::<Float64Type>(&[-0.0, 0.0], |_| 0.0)),
            ("nan", self.numbers_of::<Float32Type>(&[f32::NAN], |_| f32::NAN)),
            ("date", self.numbers_of::<Date32Type>(&[i32::MIN, i32::MAX], |seed| seed as i32)),
            (
                "milliseconds",
                self.numbers_of::<Time32MillisecondType>(&[0], |seed| (seed % day) as i32),
            ),
            (
                "microseconds",
                self.numbers_of::<Time64MicrosecondType>(&[0], |seed| (seed % day) as i64),
            ),
            (
                "nanoseconds",
                self.numbers_of::<Time64NanosecondType>(&[0], |seed| (seed % day) as i64),
            ),
            ("at ms", self.numbers_of::<TimestampMillisecondType>(&[-1], |seed| seed as i64)),
            ("at ns", self.numbers_of::<TimestampNanosecondType>(&[-1], |seed| seed as i64)),
            ("at us with zone", Arc::new(moments.clone().with_timezone("UTC"))),
            ("at us", Arc::new(moments)),
            ("decimal64", Arc::new(small)),
            ("decimal 1", self.decimals(1, 0)),
            ("decimal 5", self.decimals(5, 2)),
            ("decimal 9", self.decimals(9, 3)),
            ("decimal 10", self.decimals(10, 2)),
            ("decimal 18", self.decimals(18, 18)),
            ("decimal 19", self.decimals(19, 2)),
            ("decimal 38", self.decimals(38, 10)),
            ("decimal 39", self.wide_decimals(39, 0)),
            ("decimal 76", self.wide_decimals(76, 20)),
            ("uuid", self.fixed(16)),
            ("3 bytes", self.fixed(3)),
            ("100 bytes", self.fixed(100)),
            ("text", self.texts::<Utf8Type>(true)),
            ("large text", self.texts::<LargeUtf8Type>(true)),
            ("bytes", self.texts::<BinaryType>(false)),
            ("large bytes", self.texts::<LargeBinaryType>(false)),
            ("view", views),
            ("list", self.list()),
            ("struct", self.pair()),
        ]
    }
}
