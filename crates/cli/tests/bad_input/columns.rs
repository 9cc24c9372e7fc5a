//! Mistakes in what a new sync is told of single columns.

use super::commands::failed_table;
use super::{INCREMENTAL, busy_desk, option};

#[test]
fn columns_without_a_table() {
    option("columns_without_a_table", "--columns id,note");
}

#[test]
fn columns_of_another_table() {
    option("columns_of_another_table", "--columns main.order:id");
}

#[test]
fn columns_that_are_not_there() {
    option("columns_that_are_not_there", "--columns main.orders:id,nota");
}

#[test]
fn column_named_twice() {
    option("column_named_twice", "--columns main.orders:id,note,id");
}

#[test]
fn no_column_is_left() {
    option("no_column_is_left", "--exclude-columns main.events:id,kind");
}

#[test]
fn cursor_is_left_out() {
    option(
        "cursor_is_left_out",
        &format!("{INCREMENTAL} --exclude-columns main.orders:updated_at"),
    );
}

#[test]
fn key_of_no_column() {
    option("key_of_no_column", "--key main.orders:");
}

#[test]
fn key_that_is_not_there() {
    option("key_that_is_not_there", "--key main.orders:nr");
}

#[test]
fn columns_both_ways() {
    option("columns_both_ways", "--columns main.orders:id --exclude-columns main.orders:note");
}

#[test]
fn cast_to_an_unknown_type() {
    option("cast_to_an_unknown_type", "--type-cast main.orders:note:varchar");
}

#[test]
fn cast_of_a_column_that_is_not_there() {
    option("cast_of_a_column_that_is_not_there", "--type-cast main.orders:nota:text");
}

#[test]
fn cast_that_could_round() {
    option("cast_that_could_round", "--type-cast main.orders:price:int32");
}

#[test]
fn cast_of_the_cursor() {
    option("cast_of_the_cursor", &format!("{INCREMENTAL} --type-cast main.orders:updated_at:text"));
}

#[test]
fn cast_twice() {
    option("cast_twice", "--type-cast main.orders:note:text --type-cast main.orders:note:json");
}

#[test]
fn decimal_without_a_scale() {
    option("decimal_without_a_scale", "--decimal main.orders:price:38");
}

#[test]
fn decimal_beyond_all_digits() {
    option("decimal_beyond_all_digits", "--decimal main.orders:price:99,2");
}

#[test]
fn unknown_drift() {
    option("unknown_drift", "--on-schema-drift follow");
}

#[test]
fn unknown_policy() {
    option("unknown_policy", "--on-special-number zero");
}

#[test]
fn table_named_twice() {
    option("table_named_twice", "--columns main.orders:id --columns orders:note");
}

#[test]
fn key_is_left_out() {
    option("key_is_left_out", "--key main.orders:note --exclude-columns main.orders:note,price");
}

#[test]
fn cast_of_what_is_left_out() {
    option("cast_of_what_is_left_out", "--columns main.orders:id --type-cast orders:note:json");
}

#[test]
fn a_column_was_added() {
    let desk = busy_desk();
    desk.shop("ALTER TABLE orders ADD COLUMN colour TEXT");
    failed_table("a_column_was_added", &desk);
}

#[test]
fn a_column_was_renamed() {
    let desk = busy_desk();
    desk.shop("ALTER TABLE orders RENAME COLUMN note TO remark");
    failed_table("a_column_was_renamed", &desk);
}

#[test]
fn a_column_has_another_type() {
    let desk = busy_desk();
    desk.shop("ALTER TABLE orders DROP COLUMN price; ALTER TABLE orders ADD COLUMN price TEXT");
    failed_table("a_column_has_another_type", &desk);
}
